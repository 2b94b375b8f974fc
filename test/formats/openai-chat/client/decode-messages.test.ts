/**
 * Goal: every kind of turn is decoded, and a violation of the format is refused with its path.
 * Method: hand-written conversations with the canonical turns or the path of the mistake.
 */
import t, { type Test } from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { Message } from '../../../../src/formats/chat/request.js'
import { reportNative } from '../../../../src/formats/dialect.js'
import { decode, refusalOf, requestBody } from '../driver.js'

const read = (messages: JsonValue[]): Message[] => decode(requestBody({ messages })).messages
const NO_LOSSES = { drop: () => undefined }
const HI: JsonObject = { role: 'user', content: 'Hi' }
const call = (id: string, name = 'f', args = '{"a":1}'): JsonObject => {
  return { id, type: 'function', function: { name, arguments: args } }
}
const calls = (...ids: string[]): JsonObject => {
  return { role: 'assistant', content: null, tool_calls: ids.map((id) => call(id)) }
}
const result = (id: string): JsonObject => {
  return { role: 'tool', tool_call_id: id, content: `of ${id}` }
}
const user = (...content: JsonValue[]): JsonValue[] => [{ role: 'user', content }]

const PNG = 'data:image/png;base64,iVBORw0KGgo='

function refused(t: Test, messages: JsonValue[], { param, rule }: { param: string; rule: string }): void {
  const error = refusalOf(() => reportNative(decode(requestBody({ messages })), NO_LOSSES))
  t.equal(error.kind, 'malformed_request')
  t.equal(error.param, param)
  t.equal(error.message, `${param} ${rule}`)
}

void t.test('messages of every role keep their position', (t) => {
  const messages = read([
    { role: 'system', content: 'S' },
    HI,
    { role: 'developer', content: [{ type: 'text', text: 'D' }] },
    { role: 'assistant', content: 'A', refusal: 'No' },
    {
      role: 'user',
      content: [
        { type: 'text', text: '' },
        { type: 'text', text: ' ' },
      ],
      name: 'n',
    },
  ])
  t.same(messages, [
    { role: 'system', index: 0, parts: [{ type: 'text', text: 'S' }] },
    { role: 'user', index: 1, parts: [{ type: 'text', text: 'Hi' }] },
    { role: 'developer', index: 2, parts: [{ type: 'text', text: 'D' }] },
    {
      role: 'assistant',
      index: 3,
      parts: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'No' },
      ],
      toolCalls: [],
    },
    { role: 'user', index: 4, parts: [{ type: 'text', text: ' ' }] },
  ])
  t.end()
})

void t.test('a message without content is omitted', (t) => {
  const messages = read([
    { role: 'system', content: '' },
    HI,
    { role: 'assistant', content: '' },
    { role: 'assistant', content: [] },
    HI,
    { role: 'user', content: null },
    { role: 'user' },
    { role: 'developer', content: null },
  ])
  t.same(
    messages.map(({ index }) => index),
    [1, 4],
  )
  refused(t, [{ role: 'system', content: '' }], {
    param: 'messages',
    rule: 'must have at least one message with content',
  })
  t.end()
})

void t.test('an invalid message is refused with its path', (t) => {
  const roles = 'must be one of system, developer, user, assistant, tool, function'
  const text = 'must be a string or an array of parts'
  refused(t, ['x'], { param: 'messages[0]', rule: 'must be an object' })
  refused(t, [{ content: 'x' }], { param: 'messages[0].role', rule: roles })
  refused(t, [HI, { role: 'bot', content: 'x' }], { param: 'messages[1].role', rule: roles })
  for (const content of [1, {}, true]) {
    refused(t, [{ role: 'user', content }], { param: 'messages[0].content', rule: text })
    refused(t, [{ role: 'system', content }], { param: 'messages[0].content', rule: text })
  }
  for (const content of [undefined, null, '', [], [{ type: 'text', text: '' }]]) {
    refused(t, [{ role: 'user', content }], {
      param: 'messages',
      rule: 'must have at least one message with content',
    })
  }
  refused(t, [{ ...HI, name: 7 }], {
    param: 'messages[0].name',
    rule: 'must be a non-empty string',
  })
  refused(t, [HI, { role: 'assistant', content: 5 }], { param: 'messages[1].content', rule: text })
  t.end()
})

void t.test('content parts are decoded', (t) => {
  const [message] = read(
    user(
      { type: 'text', text: 'T', cache_control: { type: 'ephemeral', ttl: '1h' } },
      { type: 'image_url', image_url: { url: PNG, detail: 'low' } },
      { type: 'image_url', image_url: { url: 'https://a.example/i.png' } },
      { type: 'input_audio', input_audio: { data: 'AA_-', format: 'wav' } },
      {
        type: 'file',
        file: { file_data: 'data:application/pdf;base64,JV\nBE', filename: 'a.pdf' },
      },
      { type: 'file', file: { file_id: 'file-1' } },
    ),
  )
  t.same(message?.parts, [
    { type: 'text', text: 'T', cache: { ttl: '1h' } },
    {
      type: 'image',
      source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
      detail: 'low',
    },
    { type: 'image', source: { kind: 'url', url: 'https://a.example/i.png' } },
    { type: 'audio', format: 'wav', data: 'AA/+' },
    {
      type: 'file',
      source: { kind: 'base64', mediaType: 'application/pdf', data: 'JVBE' },
      filename: 'a.pdf',
    },
    { type: 'file', source: { kind: 'file-id', id: 'file-1' } },
  ])
  t.end()
})

void t.test('base64 is normalised: line ends, the URL-safe alphabet, missing padding', (t) => {
  const data = (url: string): unknown => {
    const [message] = read(user({ type: 'image_url', image_url: { url: `data:image/png;base64,${url}` } }))
    const [part] = message?.parts ?? []
    return part?.type === 'image' && part.source.kind === 'base64' ? part.source.data : undefined
  }
  t.equal(data('iVBO\r\nRw0K\tGgo='), 'iVBORw0KGgo=')
  t.equal(data('iVBO Rw0K'), 'iVBORw0K')
  t.equal(data('-_-_'), '+/+/')
  t.equal(data('iVBORw0KGgo'), 'iVBORw0KGgo=')
  t.equal(data('iVBORw0KGg'), 'iVBORw0KGg==')
  t.equal(data('iVBORw0KGgo%3D'), 'iVBORw0KGgo=')
  t.end()
})

void t.test('the scheme and media type of a data URL are case-insensitive', (t) => {
  const url = 'DATA:IMAGE/PNG;BASE64,iVBORw0KGgo='
  const [message] = read(user({ type: 'image_url', image_url: { url } }))
  const source = { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' }
  t.same(message?.parts, [{ type: 'image', source }])
  t.end()
})

void t.test("cache markers are kept, and OpenAI's breakpoints with their own members", (t) => {
  const cacheOf = (mark: JsonObject): unknown => {
    const [message] = read(user({ type: 'text', text: 'x', ...mark }))
    const [part] = message?.parts ?? []
    return part?.type === 'text' ? part.cache : undefined
  }
  const explicit = (more: JsonObject): JsonObject => ({
    prompt_cache_breakpoint: { mode: 'explicit', ...more },
  })
  t.strictSame(cacheOf(explicit({})), { ttl: '5m', breakpoint: {} })
  t.strictSame(cacheOf(explicit({ ttl: '30m' })), { ttl: '1h', breakpoint: { ttl: '30m' } })
  t.strictSame(cacheOf({ cache_control: { type: 'ephemeral' } }), { ttl: '5m' })
  t.end()
})

void t.test('an invalid part is refused with its path', (t) => {
  const at = 'messages[0].content[0]'
  const url = `${at}.image_url.url`
  const image = (value: JsonValue): JsonValue[] => user({ type: 'image_url', image_url: value })
  refused(t, user('x'), { param: at, rule: 'must be an object' })
  refused(t, user({}), {
    param: `${at}.type`,
    rule: 'must be one of text, image_url, input_audio, file, audio_url, input_video, video_url',
  })
  refused(t, user({ type: 'text' }), { param: `${at}.text`, rule: 'must be a string' })
  refused(t, image({}), { param: url, rule: 'must be a string' })
  for (const bad of ['ftp://x/y', 'file:///etc/passwd', '', '//x', 'javascript:1']) {
    refused(t, image({ url: bad }), { param: url, rule: 'must be an http(s) URL or a data: URL' })
  }
  const data = 'must be a data: URL with a media type and base64'
  for (const bad of ['data:,x', 'data:image/png,x', 'data:;base64,AA', 'data:image/png;base64']) {
    refused(t, image({ url: bad }), { param: url, rule: data })
  }
  refused(t, image({ url: 'data:image/png;base64,' }), { param: url, rule: 'must hold data' })
  const details = 'must be one of auto, low, high, original'
  refused(t, image({ url: PNG, detail: 'x' }), { param: `${at}.image_url.detail`, rule: details })
  const audio = (value: JsonValue): JsonValue[] => user({ type: 'input_audio', input_audio: value })
  refused(t, audio({ format: 'wav' }), {
    param: `${at}.input_audio.data`,
    rule: 'must be a non-empty string',
  })
  refused(t, audio({ data: '', format: 'wav' }), {
    param: `${at}.input_audio.data`,
    rule: 'must be a non-empty string',
  })
  const linked = { kind: 'url', url: 'https://media.example/a.wav', media: 'audio' }
  t.match(read(audio({ data: linked.url, format: 'wav' })), [{ parts: [{ type: 'file', source: linked }] }])
  refused(t, audio({ data: 'A', format: 'amr' }), {
    param: `${at}.input_audio.format`,
    rule: 'must be one of wav, mp3, aac, aiff, flac, m4a, ogg, opus, pcm16, webm',
  })
  refused(t, user({ type: 'file', file: {} }), {
    param: `${at}.file`,
    rule: 'must have file_data or file_id',
  })
  const system = [{ role: 'system', content: [{ type: 'image_url', image_url: { url: PNG } }] }]
  refused(t, system, { param: `${at}.type`, rule: 'must be one of text' })
  t.end()
})

void t.test('inline data may be a data: URL, or base64 whose type the name or the bytes show', (t) => {
  const user = (...content: JsonObject[]): JsonValue[] => [{ role: 'user', content }]
  for (const prefix of ['', 'data:audio/wav;base64,', 'data:;base64,', 'DATA:audio/x-wav;rate=1;base64,']) {
    const input_audio = { data: `${prefix}QUJD`, format: 'wav' }
    const parts = [{ type: 'audio', format: 'wav', data: 'QUJD' }]
    t.match(read(user({ type: 'input_audio', input_audio })), [{ parts }], prefix)
  }
  const pdf = Buffer.from('%PDF-1.7 x').toString('base64')
  for (const file of [{ file_data: pdf }, { file_data: pdf, filename: 'a.pdf' }]) {
    const source = { kind: 'base64', mediaType: 'application/pdf', data: pdf }
    t.match(read(user({ type: 'file', file })), [{ parts: [{ type: 'file', source }] }])
  }
  const unknown = [{ type: 'file', file: { file_data: 'QUJD', filename: 'a' } }]
  const rule = 'must be an http(s) URL or a data: URL'
  refused(t, user(...unknown), { param: 'messages[0].content[0].file.file_data', rule })
  t.end()
})

void t.test('calls and results are paired, with the results in the order of the calls', (t) => {
  const messages = read([HI, calls('a', 'b', 'c'), result('c'), result('a'), result('b'), HI])
  const ids = messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []))
  t.same(ids, ['a', 'b', 'c'])
  t.same(
    messages.map(({ index }) => index),
    [0, 1, 3, 4, 2, 5],
  )
  const custom = { id: 'x', type: 'custom', custom: { name: 'c', input: 'free text' } }
  const [, assistant] = read([HI, { role: 'assistant', tool_calls: [custom] }, result('x')])
  t.same(assistant?.role === 'assistant' && assistant.toolCalls, [
    { id: 'x', name: 'c', arguments: 'free text', custom: true },
  ])
  t.end()
})

void t.test('arguments keep their text', (t) => {
  for (const args of ['', ' ', '{}', '{"n":12345678901234567890}', '{broken', '[1]']) {
    const turn = { role: 'assistant', content: null, tool_calls: [call('a', 'f', args)] }
    const [, assistant] = read([HI, turn, result('a')])
    t.equal(assistant?.role === 'assistant' && assistant.toolCalls[0]?.arguments, args)
  }
  t.end()
})

void t.test('a call without arguments has an empty object', (t) => {
  for (const inner of [{ name: 'f' }, { name: 'f', arguments: null }]) {
    const turn = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: inner }],
    }
    const [, assistant] = read([HI, turn, result('a')])
    t.equal(assistant?.role === 'assistant' && assistant.toolCalls[0]?.arguments, '{}')
  }
  t.end()
})

void t.test('a reply without content is no turn', (t) => {
  const members = [
    {},
    { content: null },
    { content: null, refusal: null },
    { content: null, tool_calls: [] },
    { content: '', audio: null, reasoning_content: '' },
  ]
  for (const each of members) {
    t.same(
      read([HI, { role: 'assistant', ...each }, HI]).map(({ role }) => role),
      ['user', 'user'],
    )
  }
  t.end()
})

void t.test('ids that repeat, or are empty, become unique as a function of the calls before', (t) => {
  const idsOf = (messages: JsonObject[]): string[] =>
    read(messages).flatMap((message) =>
      message.role === 'assistant'
        ? message.toolCalls.map(({ id }) => id)
        : message.role === 'tool'
          ? [`result of ${message.callId}`]
          : [],
    )
  const first = [HI, calls('a'), result('a')]
  const second = [...first, calls('a', 'a'), result('a'), result('a')]
  t.same(idsOf(first), ['a', 'result of a'])
  t.same(idsOf(second), ['a', 'result of a', 'a_2', 'a_3', 'result of a_2', 'result of a_3'])
  t.same(idsOf([HI, calls(''), result(''), calls(''), result('')]), [
    'call_1',
    'result of call_1',
    'call_2',
    'result of call_2',
  ])
  t.end()
})

void t.test('a call without exactly one result is refused where it is translated', (t) => {
  const missing = 'must be followed by a tool message with its result'
  t.same(read([HI, result('a')]).length, 2, 'an upstream of the format may accept it')
  refused(t, [HI, calls('a')], { param: 'messages[1].tool_calls[0]', rule: missing })
  refused(t, [HI, calls('a', 'b'), result('a'), HI], {
    param: 'messages[1].tool_calls[1]',
    rule: missing,
  })
  refused(t, [HI, calls('a'), HI, result('a')], {
    param: 'messages[1].tool_calls[0]',
    rule: missing,
  })
  const duplicateResult = [HI, calls('a'), result('a'), result('a')]
  refused(t, duplicateResult, { param: 'messages[3].tool_call_id', rule: 'already has a result' })
  const orphan = 'matches no call of the assistant message before it'
  refused(t, [HI, calls('a'), result('z')], { param: 'messages[2].tool_call_id', rule: orphan })
  const early = 'must follow an assistant message with tool_calls'
  refused(t, [HI, result('a')], { param: 'messages[1]', rule: early })
  refused(t, [HI, calls('a', 'a'), result('a')], {
    param: 'messages[1].tool_calls[1]',
    rule: missing,
  })
  t.end()
})

void t.test('an invalid call is refused with its path', (t) => {
  const turn = (it: JsonValue): JsonValue[] => [HI, { role: 'assistant', tool_calls: [it] }]
  const at = 'messages[1].tool_calls[0]'
  refused(t, turn('x'), { param: at, rule: 'must be an object' })
  refused(t, turn({ ...call('a'), id: 7 }), {
    param: `${at}.id`,
    rule: 'must be a non-empty string',
  })
  refused(t, turn({ ...call('a'), type: 'x' }), {
    param: `${at}.type`,
    rule: 'must be one of function, custom',
  })
  refused(t, turn({ id: 'a', type: 'function' }), {
    param: `${at}.function`,
    rule: 'must be an object',
  })
  refused(t, turn(call('a', '')), { param: `${at}.function.name`, rule: 'must be a non-empty string' })
  const list = { id: 'a', type: 'function', function: { name: 'f', arguments: [1] } }
  refused(t, turn(list), { param: `${at}.function.arguments`, rule: 'must be a string' })
  t.end()
})

void t.test('the legacy form is decoded to calls with stable ids', (t) => {
  const legacyCall = {
    role: 'assistant',
    content: null,
    function_call: { name: 'f', arguments: '{}' },
  }
  const body = requestBody({
    functions: [{ name: 'f' }],
    messages: [HI, legacyCall, { role: 'function', name: 'f', content: 'R' }],
  })
  const request = decode(body)
  t.equal(request.legacyFunctions, true)
  t.same(request.tools, [{ name: 'f' }])
  const [, assistant, tool] = request.messages
  t.same(assistant?.role === 'assistant' && assistant.toolCalls[0]?.id, 'call_fn_1')
  t.same(tool, {
    role: 'tool',
    index: 2,
    callId: 'call_fn_1',
    parts: [{ type: 'text', text: 'R' }],
  })
  const missing = 'must be followed by a function message with its result'
  refused(t, [HI, legacyCall], { param: 'messages[1].function_call', rule: missing })
  const unknownValue = [HI, legacyCall, { role: 'function', name: 'g', content: 'R' }]
  const none = 'must name a function call without a result'
  refused(t, unknownValue, { param: 'messages[2].name', rule: none })
  t.end()
})

void t.test('reasoning and signatures that a client sends back are decoded', (t) => {
  const extra = { google: { thought_signature: 'sig' } }
  const [, assistant] = read([
    HI,
    {
      role: 'assistant',
      content: 'A',
      reasoning_content: 'R',
      tool_calls: [{ ...call('a'), extra_content: extra }],
    },
    result('a'),
  ])
  t.same(assistant?.parts, [
    { type: 'thinking', text: 'R', origin: 'openai-chat' },
    { type: 'text', text: 'A' },
  ])
  t.equal(assistant?.role === 'assistant' && assistant.toolCalls[0]?.signature, 'sig')
  t.end()
})
