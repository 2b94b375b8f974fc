/**
 * Goal: a conversation is encoded by the rules of the API, and a longer one keeps the prefix of a shorter
 * one. Method: one conversation per rule of the format; prefixes of a long one.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { Message, ToolCall, UserPart } from '../../../../src/formats/chat/request.js'
import { encode, encodeFailure, facts, oldFacts } from '../driver.js'

const SKIP = 'skip_thought_signature_validator'

/** Messages without `index`, which follows from their order. */
type Draft = Message extends infer M ? (M extends Message ? Omit<M, 'index'> : never) : never

function talk(...drafts: Draft[]): Message[] {
  return drafts.map((draft, index): Message => ({ ...draft, index }))
}

function user(...texts: string[]): Draft {
  return { role: 'user', parts: texts.map((text) => ({ type: 'text', text })) }
}

function calls(...toolCalls: ToolCall[]): Draft {
  return { role: 'assistant', parts: [], toolCalls }
}

function result(callId: string, text: string, more: { isError?: boolean } = {}): Draft {
  return { role: 'tool', callId, parts: [{ type: 'text', text }], ...more }
}

function call(id: string, json = '{}', more: Partial<ToolCall> = {}): ToolCall {
  return { id, name: `do_${id}`, arguments: json, ...more }
}

function contents(messages: Message[], model = facts()): JsonObject[] {
  return encode({ messages }, model).body.contents as JsonObject[]
}

void t.test('leading system text is the system instruction; later text keeps its position', (t) => {
  const { body } = encode({
    messages: talk(
      { role: 'system', parts: [{ type: 'text', text: 'one' }] },
      { role: 'developer', parts: [{ type: 'text', text: 'two' }] },
      user('a'),
      { role: 'assistant', parts: [{ type: 'text', text: 'b' }], toolCalls: [] },
      { role: 'system', parts: [{ type: 'text', text: 'three' }] },
      user('c'),
    ),
  })
  t.strictSame(body.systemInstruction, { parts: [{ text: 'one' }, { text: 'two' }] })
  t.strictSame(body.contents, [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'model', parts: [{ text: 'b' }] },
    { role: 'user', parts: [{ text: '<system>\nthree\n</system>' }, { text: 'c' }] },
  ])
  t.end()
})

void t.test('system text for gemma is the start of the first user turn', (t) => {
  const messages = talk({ role: 'system', parts: [{ type: 'text', text: 's' }] }, user('a'))
  const gemma = { callSignatures: false, systemInstruction: false }
  const { body } = encode({ messages }, { ...oldFacts(), ...gemma })
  t.equal(body.systemInstruction, undefined)
  t.strictSame(body.contents, [{ role: 'user', parts: [{ text: 's' }, { text: 'a' }] }])
  t.end()
})

void t.test('turns of one role are merged; empty texts and turns are omitted', (t) => {
  const messages = talk(
    user('a', ''),
    { role: 'assistant', parts: [{ type: 'text', text: '' }], toolCalls: [] },
    user('b', ' '),
  )
  t.strictSame(contents(messages), [{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }, { text: ' ' }] }])
  t.end()
})

void t.test('the results of a turn are one user turn, in the order of the calls', (t) => {
  const messages = talk(
    user('q'),
    {
      role: 'assistant',
      parts: [{ type: 'text', text: 'looking' }],
      toolCalls: [call('a', '{"x":1}', { signature: 'sig' }), call('b', ' ')],
    },
    result('b', 'plain'),
    result('a', ' {"y":2}'),
    user('and?'),
  )
  t.strictSame(contents(messages).slice(1), [
    {
      role: 'model',
      parts: [
        { text: 'looking' },
        { functionCall: { name: 'do_a', args: { x: 1 }, id: 'a' }, thoughtSignature: 'sig' },
        { functionCall: { name: 'do_b', args: {}, id: 'b' } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { name: 'do_a', response: { y: 2 }, id: 'a' } },
        { functionResponse: { name: 'do_b', response: { output: 'plain' }, id: 'b' } },
        { text: 'and?' },
      ],
    },
  ])
  const old = JSON.stringify(contents(messages, oldFacts()))
  t.notMatch(old, /"id"/, 'older models get no ids')
  t.end()
})

void t.test('arguments and results are always objects', (t) => {
  const args = (json: string, more: Partial<ToolCall> = {}): unknown => {
    const parts = contents(talk(user('q'), calls(call('a', json, more)), result('a', '')))[1]?.parts
    return (parts as { functionCall: { args: unknown } }[])[0]?.functionCall.args
  }
  t.strictSame(args(''), {})
  t.strictSame(args('{"a":1}'), { a: 1 })
  t.strictSame(args('[1]'), { _raw: '[1]' })
  t.strictSame(args('{"a":'), { _raw: '{"a":' })
  t.strictSame(args('free text', { custom: true }), { input: 'free text' })
  const response = (text: string, isError?: boolean): unknown => {
    const tool = result('a', text, isError === undefined ? {} : { isError })
    const parts = contents(talk(user('q'), calls(call('a')), tool))[2]?.parts
    return (parts as { functionResponse: { response: unknown } }[])[0]?.functionResponse.response
  }
  t.strictSame(response('[1]'), { output: '[1]' })
  t.strictSame(response('{"a"'), { output: '{"a"' })
  t.strictSame(response(''), { output: '' })
  t.strictSame(response('{"a":1}', true), { error: '{"a":1}' })
  t.end()
})

void t.test('a lost signature of the first call of a step is replaced by a placeholder, on 3+ only', (t) => {
  const messages = talk(user('q'), calls(call('a'), call('b')), result('a', ''), result('b', ''))
  t.match(contents(messages)[1], { parts: [{ thoughtSignature: SKIP }, {}] })
  t.equal(JSON.stringify(contents(messages)).split(SKIP).length, 2, 'once')
  t.notMatch(JSON.stringify(contents(messages, oldFacts())), new RegExp(SKIP))
  t.end()
})

void t.test('reasoning state of Gemini is sent back; that of others is dropped', (t) => {
  const thinking = { type: 'thinking', text: 'hm' } as const
  const messages = talk(user('q'), {
    role: 'assistant',
    parts: [
      { ...thinking, signature: 's', origin: 'gemini' },
      { ...thinking, signature: 's', origin: 'anthropic' },
      { ...thinking, origin: 'gemini' },
      { ...thinking, signature: 's' },
      { type: 'thinking', text: '', signature: 'carrier', origin: 'gemini' },
      { type: 'opaque', provider: 'gemini', block: { executableCode: { code: '1' } } },
      { type: 'opaque', provider: 'gemini', block: { functionCall: { name: 'x' } } },
      { type: 'opaque', provider: 'openai', block: { text: 'x' } },
      { type: 'text', text: 'done' },
    ],
    toolCalls: [],
  })
  t.strictSame(contents(messages)[1]?.parts, [
    { text: 'hm', thought: true, thoughtSignature: 's' },
    { text: '', thoughtSignature: 'carrier' },
    { executableCode: { code: '1' } },
    { text: 'done' },
  ])
  t.strictSame(encode({ messages }).losses, [
    'messages.reasoning:no-equivalent',
    'messages.reasoning:no-equivalent',
    'messages.opaque:no-equivalent',
    'messages.opaque:no-equivalent',
  ])
  const block = { type: 'audio', id: 'audio_1' }
  const audio = talk(user('q'), {
    role: 'assistant',
    parts: [{ type: 'opaque', provider: 'openai-chat', block }],
    toolCalls: [],
  })
  t.strictSame(encode({ messages: audio }).losses, ['messages.audio:no-equivalent'])
  t.end()
})

void t.test('images, files and audio are sent inline', (t) => {
  const blob = (mediaType: string): { kind: 'base64'; mediaType: string; data: string } => {
    return { kind: 'base64', mediaType, data: 'AA==' }
  }
  const parts: UserPart[] = [
    { type: 'image', source: blob('image/jpg') },
    { type: 'file', source: blob('application/pdf'), filename: 'a.pdf' },
    { type: 'file', source: blob('text/plain') },
    { type: 'audio', format: 'wav', data: 'AA==' },
    { type: 'audio', format: 'mp3', data: 'AA==' },
    { type: 'audio', format: 'flac', data: 'AA==' },
    { type: 'audio', format: 'pcm16', data: 'AA==' },
  ]
  const types = [
    'image/jpeg',
    'application/pdf',
    'text/plain',
    'audio/wav',
    'audio/mp3',
    'audio/flac',
    'audio/pcm',
  ]
  t.strictSame(
    contents(talk({ role: 'user', parts }))[0]?.parts,
    types.map((mimeType) => ({ inlineData: { mimeType, data: 'AA==' } })),
  )
  t.end()
})

void t.test('media has the type of its bytes, not the declared type', (t) => {
  const png = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').toString('base64')
  const source = { kind: 'base64', mediaType: 'image/jpeg', data: png } as const
  const inlineData = { mimeType: 'image/png', data: png }
  const parts: UserPart[] = [
    { type: 'image', source },
    { type: 'file', source: { ...source, mediaType: 'application/octet-stream' } },
  ]
  t.strictSame(contents(talk({ role: 'user', parts }))[0]?.parts, [{ inlineData }, { inlineData }])
  t.end()
})

void t.test('a URL that Gemini reads is sent unchanged', (t) => {
  for (const url of [
    'https://generativelanguage.googleapis.com/v1beta/files/abc-123',
    'https://www.youtube.com/watch?v=9hE5-98ZeCg',
    'https://youtu.be/9hE5-98ZeCg',
  ]) {
    const parts: UserPart[] = [
      { type: 'image', source: { kind: 'url', url } },
      { type: 'file', source: { kind: 'url', url } },
    ]
    const fileData = { fileUri: url }
    t.strictSame(contents(talk({ role: 'user', parts }))[0]?.parts, [{ fileData }, { fileData }])
  }
  t.end()
})

void t.test('media that would have to be fetched or converted is refused with its path', (t) => {
  const parts: UserPart[] = [
    { type: 'image', source: { kind: 'url', url: 'https://a.example/x.png' } },
    { type: 'image', source: { kind: 'url', url: 'https://youtu.be.example/x' } },
    { type: 'image', source: { kind: 'file-id', id: 'file-1' } },
    { type: 'file', source: { kind: 'url', url: 'http://127.0.0.1/' } },
    { type: 'file', source: { kind: 'base64', mediaType: 'application/zip', data: '' } },
    { type: 'audio', format: 'toString', data: '' },
  ]
  for (const part of parts) {
    const error = encodeFailure({ messages: talk(user('q'), { role: 'user', parts: [part] }) })
    t.match(error, { kind: 'untranslatable', param: 'messages[1].content' })
    t.match(error.message, /^messages\[1\]\.content: .*(?:Send|Convert)/, 'states what to do')
    t.notMatch(error.message, /example|127/, 'the URL is not in the message')
  }
  t.end()
})

void t.test('images in results are inside the response on 3+, after it on older models', (t) => {
  const inlineData = { mimeType: 'image/png', data: 'AA==' }
  const image: UserPart = {
    type: 'image',
    source: { kind: 'base64', mediaType: 'image/png', data: 'AA==' },
  }
  const messages = talk(
    user('q'),
    calls(call('a'), call('b')),
    {
      role: 'tool',
      callId: 'a',
      parts: [{ type: 'text', text: 'see' }, image],
    },
    result('b', 'x'),
  )
  t.match(contents(messages)[2], { parts: [{ functionResponse: { parts: [{ inlineData }] } }, {}] })
  const old = contents(messages, oldFacts())[2]?.parts as JsonObject[]
  t.match(old, [{ functionResponse: {} }, { functionResponse: {} }, { inlineData }])
  t.end()
})

void t.test('system text between calls and results is sent after the results', (t) => {
  const messages = talk(
    user('q'),
    calls(call('a')),
    { role: 'system', parts: [{ type: 'text', text: 's' }] },
    result('a', 'x'),
  )
  t.match(contents(messages)[2]?.parts, [{ functionResponse: {} }, { text: /<system>/ }])
  t.end()
})

void t.test('histories that Gemini does not accept are refused', (t) => {
  const hello: Draft = {
    role: 'assistant',
    parts: [{ type: 'text', text: 'hello' }],
    toolCalls: [],
  }
  t.match(encodeFailure({ messages: talk(hello, user('a')) }), {
    kind: 'untranslatable',
    param: 'messages[0]',
  })
  t.match(encodeFailure({ messages: talk({ role: 'system', parts: [{ type: 'text', text: '' }] }) }), {
    kind: 'untranslatable',
    param: 'messages',
  })
  const kind = 'malformed_request'
  const orphan = talk(user('a'), result('x', ''))
  t.match(encodeFailure({ messages: orphan }), { kind, param: 'messages[1].tool_call_id' })
  const duplicateResult = talk(user('a'), calls(call('a')), result('a', ''), result('a', ''))
  t.match(encodeFailure({ messages: duplicateResult }), { kind, param: 'messages[3].tool_call_id' })
  const missing = talk(user('a'), calls(call('a'), call('b')), result('a', ''), user('b'))
  t.match(encodeFailure({ messages: missing }), { kind, param: 'messages[1].tool_calls' })
  t.end()
})

void t.test('the encoding of a message does not depend on later messages', (t) => {
  const step = (name: string): Draft[] => [
    user(`ask ${name}`),
    {
      role: 'assistant',
      parts: [{ type: 'thinking', text: 'hm', signature: name, origin: 'gemini' }],
      toolCalls: [call(`${name}1`), call(`${name}2`, '{"a":1}', { signature: name })],
    },
    result(`${name}1`, '{"ok":true}'),
    result(`${name}2`, 'fine', { isError: true }),
    { role: 'assistant', parts: [{ type: 'text', text: `answer ${name}` }], toolCalls: [] },
    { role: 'system', parts: [{ type: 'text', text: `rule ${name}` }] },
  ]
  const drafts: Draft[] = [
    { role: 'system', parts: [{ type: 'text', text: 'be brief' }] },
    ...['a', 'b', 'c'].flatMap(step),
    user('end'),
  ]
  const whole = encode({ messages: talk(...drafts) })
  const flat = (list: JsonObject[]): string[] =>
    list.flatMap(({ role, parts }) => (parts as JsonObject[]).map((part) => JSON.stringify({ role, part })))
  const all = flat(whole.body.contents as JsonObject[])
  let checked = 0
  for (let count = 2; count <= drafts.length; count += 1) {
    const last = drafts[count - 1]
    const waits = last?.role === 'assistant' && last.toolCalls.length > 0
    if (waits || (last?.role === 'tool' && last.callId.endsWith('1'))) continue
    const { body } = encode({ messages: talk(...drafts.slice(0, count)) })
    const part = flat(body.contents as JsonObject[])
    t.strictSame(part, all.slice(0, part.length), `the first ${count} messages`)
    t.strictSame(body.systemInstruction, whole.body.systemInstruction)
    checked += 1
  }
  t.ok(checked > 10)
  t.equal(JSON.stringify(encode({ messages: talk(...drafts) })), JSON.stringify(whole), 'same bytes')
  t.end()
})
