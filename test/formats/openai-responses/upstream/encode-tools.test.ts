/**
 * Goal: tools and the tool choice have the flat form of the format, and only strict tools stay strict.
 * Method: each form of tool and choice; names and ids that are too long, in requests and replies.
 */
import t from 'tap'
import type { Tool, ToolChoice } from '../../../../src/formats/chat/request.js'
import { encode, frames, decodeStream, request, userMessage } from '../driver.js'

const LOOK: Tool = { name: 'look', description: 'Looks.', parameters: { type: 'object' } }
const ORDER: Tool = { name: 'order', custom: {} }

void t.test('functions and custom tools', (t) => {
  const grammar = { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } }
  const tools: Tool[] = [
    LOOK,
    { name: 'bare' },
    { ...LOOK, strict: true },
    ORDER,
    { ...ORDER, custom: { format: { type: 'text' } } },
    { ...ORDER, custom: { format: grammar } },
  ]
  t.strictSame(encode({ tools }).body['tools'], [
    {
      type: 'function',
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object' },
      strict: false,
    },
    {
      type: 'function',
      name: 'bare',
      parameters: { type: 'object', properties: {} },
      strict: false,
    },
    {
      type: 'function',
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object' },
      strict: true,
    },
    { type: 'custom', name: 'order' },
    { type: 'custom', name: 'order', format: { type: 'text' } },
    {
      type: 'custom',
      name: 'order',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
    },
  ])
  t.end()
})

void t.test('allowed tools and parallel calls are kept', (t) => {
  const rows: [choice: ToolChoice, wire: unknown][] = [
    [{ mode: 'auto' }, 'auto'],
    [{ mode: 'none' }, 'none'],
    [{ mode: 'required' }, 'required'],
    [
      { mode: 'named', name: 'look' },
      { type: 'function', name: 'look' },
    ],
    [
      { mode: 'named', name: 'order' },
      { type: 'custom', name: 'order' },
    ],
    [
      { mode: 'allowed', required: true, names: ['look', 'order'] },
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'look' },
          { type: 'custom', name: 'order' },
        ],
      },
    ],
    [
      { mode: 'allowed', required: false, names: ['look'] },
      { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
    ],
  ]
  for (const [toolChoice, wire] of rows) {
    const { body, lost } = encode({ tools: [LOOK, ORDER], toolChoice, parallelToolCalls: false })
    t.strictSame(body['tool_choice'], wire)
    t.equal(body['parallel_tool_calls'], false)
    t.same(lost, [])
  }
  t.end()
})

void t.test('a name of more than 64 characters is restored in the reply', (t) => {
  const long = `${'x'.repeat(70)}.y`
  const tools = [{ name: long }]
  const { body } = encode({ tools, toolChoice: { mode: 'named', name: long } })
  const { name } = body['tool_choice'] as { name: string }
  t.match(name, /^[A-Za-z0-9_-]{64}$/)
  t.match(body, { tools: [{ name }] })
  const item = { type: 'function_call', id: 'fc_1', call_id: 'c', name, arguments: '{}' }
  const decoded = decodeStream(
    frames(
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { output: [item] } },
    ),
    request({ tools }),
  )
  t.match(decoded.reply, { blocks: [{ type: 'tool', id: 'c', name: long, json: '{}' }] })
  t.end()
})

void t.test('call ids that are too long for OpenAI are shortened', (t) => {
  const id = `call_${'0123456789'.repeat(9)}`
  const call = { id, name: 'look', arguments: '{}' }
  const { body } = encode({
    messages: [
      userMessage('Look.'),
      { role: 'assistant', index: 1, parts: [], toolCalls: [call, { ...call, id: `${id}x` }] },
      { role: 'tool', index: 2, callId: id, parts: [] },
      { role: 'tool', index: 3, callId: `${id}x`, parts: [] },
    ],
  })
  const [, first, second, one, other] = body['input'] as { call_id: string }[]
  t.equal(first?.call_id.length, 64)
  t.equal(one?.call_id, first?.call_id)
  t.equal(other?.call_id, second?.call_id)
  t.not(first?.call_id, second?.call_id)
  t.end()
})
