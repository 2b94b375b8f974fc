/**
 * Goal: a conversation is encoded as the input items of the format, with reasoning at its position.
 * Method: each kind of turn; then prefixes of a conversation, whose items must be a prefix of all items.
 */
import t from 'tap'
import type { Message, ThinkingPart, UserPart } from '../../../../src/formats/chat/request.js'
import { encode, userMessage, PLAIN_MODEL } from '../driver.js'

function input(...messages: Message[]): unknown[] {
  return encode({ messages }).body['input'] as unknown[]
}

function assistant(
  parts: Extract<Message, { role: 'assistant' }>['parts'],
  toolCalls: Extract<Message, { role: 'assistant' }>['toolCalls'] = [],
): Message {
  return { role: 'assistant', index: 1, parts, toolCalls }
}

const BARE: ThinkingPart = { type: 'thinking', text: 'Tides first.', origin: 'openai-responses' }
const THOUGHT: ThinkingPart = { ...BARE, signature: 'rs_1:gAAAsealed==' }
const LOOK = { id: 'call_1', name: 'look', arguments: '{"a":1}' }

void t.test('instructions keep their position, and get the role that the model accepts', (t) => {
  const system: Message = { role: 'system', index: 0, parts: [{ type: 'text', text: 'Be brief.' }] }
  t.match(input(system, userMessage('Hi')), [{ role: 'developer' }, { role: 'user' }])
  t.match(input(userMessage('Hi'), system), [{ role: 'user' }, { role: 'developer' }])
  t.match(encode({ messages: [system] }, PLAIN_MODEL).body, { input: [{ role: 'system' }] })
  t.end()
})

void t.test('user messages with every kind of part', (t) => {
  const rows: [part: UserPart, wire: object][] = [
    [
      { type: 'text', text: 'Hi' },
      { type: 'input_text', text: 'Hi' },
    ],
    [
      { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'AA==' } },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
    ],
    [
      { type: 'image', source: { kind: 'url', url: 'https://a.example/x' }, detail: 'low' },
      { type: 'input_image', image_url: 'https://a.example/x', detail: 'low' },
    ],
    [
      { type: 'image', source: { kind: 'file-id', id: 'file-1' } },
      { type: 'input_image', file_id: 'file-1' },
    ],
    [
      {
        type: 'file',
        source: { kind: 'base64', mediaType: 'application/pdf', data: 'AA==' },
        filename: 'log.pdf',
      },
      {
        type: 'input_file',
        filename: 'log.pdf',
        file_data: 'data:application/pdf;base64,AA==',
      },
    ],
    [
      { type: 'file', source: { kind: 'base64', mediaType: 'text/plain', data: 'AA==' } },
      { type: 'input_file', filename: 'file.txt', file_data: 'data:text/plain;base64,AA==' },
    ],
    [
      { type: 'file', source: { kind: 'url', url: 'https://a.example/x.pdf' } },
      { type: 'input_file', file_url: 'https://a.example/x.pdf' },
    ],
    [
      { type: 'file', source: { kind: 'file-id', id: 'file-2' } },
      { type: 'input_file', file_id: 'file-2' },
    ],
  ]
  for (const [part, wire] of rows) {
    const message: Message = { role: 'user', index: 0, parts: [part] }
    t.strictSame(input(message), [{ role: 'user', content: [wire] }])
  }
  t.end()
})

void t.test('a turn of the model: reasoning, text, calls', (t) => {
  const turn = assistant(
    [THOUGHT, { type: 'text', text: 'I look.' }, { type: 'text', text: '' }],
    [LOOK, { id: 'call_2', name: 'order', arguments: 'SWING', custom: true }],
  )
  t.strictSame(input(turn), [
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Tides first.' }],
      encrypted_content: 'gAAAsealed==',
    },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"a":1}' },
    { type: 'custom_tool_call', call_id: 'call_2', name: 'order', input: 'SWING' },
  ])
  t.match(input(assistant([], [{ ...LOOK, arguments: ' ' }])), [{ arguments: '{}' }])
  t.match(input(assistant([], [{ ...LOOK, arguments: '{"n":1e99' }])), [{ arguments: '{"n":1e99' }])
  t.end()
})

void t.test('reasoning without state, of another origin, or without a following item is omitted', (t) => {
  const calls = [LOOK]
  for (const part of [BARE, { ...THOUGHT, origin: 'anthropic' }, { ...BARE, signature: '' }]) {
    const { body, lost } = encode({ messages: [assistant([part], calls)] })
    t.match(body['input'], [{ type: 'function_call' }])
    t.same(lost, ['messages.thinking: no-equivalent'])
  }
  const last = encode({ messages: [assistant([{ type: 'text', text: 'Yes.' }, THOUGHT])] })
  t.match(last.body['input'], [{ role: 'assistant' }])
  t.same(last.lost, ['messages.thinking: no-equivalent'])
  t.same(encode({ messages: [assistant([THOUGHT])] }).body['input'], [])
  t.end()
})

void t.test('encrypted content without an id, or as `redacted`, is sent back', (t) => {
  const silent = { ...BARE, text: '', redacted: 'gAAAother' }
  t.strictSame(input(assistant([silent], [LOOK])).slice(0, 1), [
    { type: 'reasoning', summary: [], encrypted_content: 'gAAAother' },
  ])
  t.end()
})

void t.test('results with text are strings, others are parts', (t) => {
  const calls = [LOOK, { id: 'call_2', name: 'order', arguments: 'X', custom: true }]
  const png = { kind: 'base64', mediaType: 'image/png', data: 'AA==' } as const
  const tool = (callId: string, parts: UserPart[]): Message => {
    return { role: 'tool', index: 2, callId, parts }
  }
  t.strictSame(
    input(
      assistant([], calls),
      tool('call_1', [
        { type: 'text', text: 'See' },
        { type: 'image', source: png },
      ]),
      tool('call_2', [{ type: 'text', text: 'done' }]),
    ).slice(2),
    [
      {
        type: 'function_call_output',
        call_id: 'call_1',
        output: [
          { type: 'input_text', text: 'See' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
        ],
      },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
    ],
  )
  t.match(input(assistant([], [LOOK]), tool('call_1', [])).at(-1), { output: '' })
  const failed: Message = { role: 'tool', index: 2, callId: 'call_1', parts: [], isError: true }
  t.same(encode({ messages: [assistant([], [LOOK]), failed] }).lost, ['messages.is_error: no-equivalent'])
  t.end()
})

void t.test('a longer conversation begins with the same items', (t) => {
  const all: Message[] = [
    { role: 'system', index: 0, parts: [{ type: 'text', text: 'Be brief.' }] },
    userMessage('One', 1),
    assistant([THOUGHT, { type: 'text', text: 'I look.' }], [LOOK]),
    { role: 'tool', index: 3, callId: 'call_1', parts: [{ type: 'text', text: 'rain' }] },
    assistant([{ type: 'text', text: 'Rain.' }]),
    userMessage('Two', 5),
  ]
  const whole = JSON.stringify(input(...all))
  for (let cut = 1; cut <= all.length; cut += 1) {
    const part = JSON.stringify(input(...all.slice(0, cut)))
    t.ok(whole.startsWith(part.slice(0, -1)), `${cut} turns`)
  }
  t.end()
})

void t.test('items of hosted tools are sent back unchanged, and no other opaque blocks', (t) => {
  const search = { type: 'web_search_call', id: 'ws_1', status: 'completed' }
  const own = { type: 'opaque', provider: 'openai-responses', block: search } as const
  const text = { type: 'text', text: 'Found.' } as const
  t.match(input(userMessage('Hi'), assistant([THOUGHT, own, text])).slice(1), [
    { type: 'reasoning', id: 'rs_1' },
    search,
    { role: 'assistant', content: [{ type: 'output_text', text: 'Found.' }] },
  ])
  const foreign = { ...own, provider: 'anthropic' }
  const strange = { ...own, block: { type: 'hologram' } }
  const encoded = encode({ messages: [userMessage('Hi'), assistant([foreign, strange, text])] })
  t.same(encoded.lost, ['messages.opaque: no-equivalent', 'messages.opaque: no-equivalent'])
  t.equal(Array.isArray(encoded.body['input']) && encoded.body['input'].length, 2)
  t.end()
})
