/**
 * Goal: the decoder accepts any order and shape of chunks that Gemini uses.
 * Method: one example per rule of the stream format, through the grammar.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { Tool } from '../../../../src/formats/chat/request.js'
import type { Decoded } from '../../collect-events.js'
import { chatRequest, chunk, decodeStream, decodeReply } from '../driver.js'

const STOP = { finishReason: 'STOP' }

function call(name: string, args?: JsonValue, id?: string): JsonValue {
  return {
    functionCall: {
      name,
      ...(args === undefined ? {} : { args }),
      ...(id === undefined ? {} : { id }),
    },
  }
}

function toolsOf(decoded: Decoded): { id: string; name: string; json: string }[] {
  return (decoded.reply?.blocks ?? []).flatMap((block) => {
    return block.type === 'tool' ? [{ id: block.id, name: block.name, json: block.json }] : []
  })
}

void t.test('a whole reply and any split of its parts give the same reply', (t) => {
  const parts: JsonValue[] = [
    { text: 'Think', thought: true },
    { text: 'ing', thought: true, thoughtSignature: 's1' },
    { text: 'A' },
    { text: 'B' },
    { text: '', thoughtSignature: 's2' },
    { ...(call('f', { x: 1 }) as object), thoughtSignature: 's3' },
    call('f', { x: 2 }, 'given1'),
    { executableCode: { code: '1+1' } },
    { text: 'C', thoughtSignature: 's4' },
    { text: 'D' },
    { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
  ]
  const whole = decodeReply(chunk(parts, STOP))
  t.equal(whole.breach, null)
  t.strictSame(
    whole.reply?.blocks.map((block) => block.type),
    ['thinking', 'text', 'tool', 'tool', 'opaque', 'text', 'text', 'image'],
  )
  t.match(whole.reply?.blocks, [
    { text: 'Thinking', signature: 's1' },
    { text: 'AB', signature: 's2' },
    { signature: 's3' },
    { id: 'given1' },
    { provider: 'gemini', block: { executableCode: { code: '1+1' } } },
    { text: 'C', signature: 's4' },
    { text: 'D' },
    { url: 'data:image/png;base64,AAAA' },
  ])
  for (let at = 0; at <= parts.length; at += 1) {
    const cut = decodeStream([chunk(parts.slice(0, at)), chunk(parts.slice(at), STOP)])
    t.strictSame(cut.reply, whole.reply, `cut after ${at} parts`)
  }
  const single = decodeStream([...parts.map((part) => chunk([part])), chunk([{ text: '' }], STOP)])
  t.strictSame(single.reply, whole.reply, 'one part per chunk and a trailing empty text')
  t.end()
})

void t.test('a signature alone is kept as an empty text block', (t) => {
  const decoded = decodeStream([chunk([call('f')]), chunk([{ text: '', thoughtSignature: 'sig' }], STOP)])
  t.match(decoded.reply?.blocks[1], { type: 'text', text: '', signature: 'sig' })
  const bare = decodeStream([chunk([{ thoughtSignature: 'sig' }], STOP)])
  t.match(bare.reply?.blocks, [{ type: 'text', text: '', signature: 'sig' }])
  t.end()
})

void t.test('missing candidates, content, parts and index are tolerated', (t) => {
  const decoded = decodeStream([
    { usageMetadata: { promptTokenCount: 3 } },
    { candidates: [] },
    { candidates: [{}] },
    { candidates: [{ content: {} }] },
    { candidates: [{ content: { parts: [{ text: 'x' }, null, 7, {}] } }] },
    { candidates: [{ index: 1, content: { parts: [{ text: 'not ours' }] } }] },
    { candidates: [{ finishReason: 'STOP' }] },
  ])
  t.equal(decoded.breach, null)
  t.match(decoded.reply, { blocks: [{ text: 'x' }], reason: 'stop' })
  t.end()
})

void t.test("calls have the upstream's ids if they are valid and unique, else generated ones", (t) => {
  const long = 'x'.repeat(41)
  const request = chatRequest({
    messages: [
      { role: 'user', index: 0, parts: [{ type: 'text', text: 'q' }] },
      {
        role: 'assistant',
        index: 1,
        parts: [],
        toolCalls: [
          { id: 'old1', name: 'f', arguments: '{}' },
          { id: 'call_reply1_4', name: 'f', arguments: '{}' },
        ],
      },
    ],
  })
  const parts = ['a1', 'a1', 'old1', long, 'no good', undefined].map((id) => call('f', {}, id))
  const ids = toolsOf(decodeStream([chunk(parts, STOP)], request)).map(({ id }) => id)
  t.strictSame(ids, [
    'a1',
    'call_reply1_1',
    'call_reply1_2',
    'call_reply1_3',
    'call_reply1_4_1',
    'call_reply1_5',
  ])
  const other = toolsOf(decodeStream([chunk(parts, STOP, { responseId: 'reply2' })], request))
  t.equal(other[1]?.id, 'call_reply2_1', 'ids differ between replies')
  const wild = chunk(parts, STOP, { responseId: `${'é/'.repeat(40)}end` })
  for (const { id } of toolsOf(decodeStream([wild], request))) {
    t.match(id, /^[A-Za-z0-9_-]{1,40}$/)
  }
  const none = chunk([call('f')], STOP, { responseId: null })
  t.equal(toolsOf(decodeStream([none], request))[0]?.id, 'call_m2_0', 'without a reply id: turn and index')
  t.end()
})

void t.test('missing arguments of calls are {}; STOP becomes tool-use', (t) => {
  const decoded = decodeStream([chunk([call('f'), call('f', { a: [1, 'ü'] })]), chunk([{ text: '' }], STOP)])
  t.strictSame(
    toolsOf(decoded).map(({ json }) => json),
    ['{}', '{"a":[1,"ü"]}'],
  )
  t.match(decoded.reply, { reason: 'tool-use', raw: 'STOP' })
  t.end()
})

void t.test("calls have the client's names and forms of tools", (t) => {
  const tools: Tool[] = [{ name: '1st' }, { name: '_1st' }, { name: 'sql', custom: {} }]
  const parts = [call('__1st'), call('_1st'), call('sql', { input: 'SELECT 1' }), call('sql', { q: 1 })]
  const decoded = decodeStream([chunk(parts, STOP)], chatRequest({ tools }))
  t.match(decoded.reply?.blocks, [
    { name: '1st' },
    { name: '_1st' },
    { name: 'sql', custom: true, json: 'SELECT 1' },
    { name: 'sql', custom: true, json: '{"q":1}' },
  ])
  t.end()
})

void t.test('a call of the synthetic JSON tool becomes text', (t) => {
  const request = chatRequest({
    tools: [{ name: 'f' }],
    responseFormat: { type: 'json-schema', name: 'n', schema: { type: 'object' } },
  })
  const parts = [call('json_response', { a: 1 }), call('json_response', { a: 2 })]
  const decoded = decodeStream([chunk(parts, STOP)], request)
  t.match(decoded.reply, { reason: 'stop', blocks: [{ type: 'text', text: '{"a":1}' }] })
  t.equal(decoded.reply?.blocks.length, 1, 'a second call is ignored')
  const real = decodeStream([chunk([call('f')], STOP)], request)
  t.equal(real.reply?.reason, 'tool-use', 'other calls stay calls')
  t.end()
})

void t.test('a partial call is malformed', (t) => {
  const broken: JsonValue[] = [
    { functionCall: {} },
    { functionCall: { name: '' } },
    { functionCall: { name: 'f', willContinue: true } },
    { functionCall: { name: 'f', partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }] } },
  ]
  for (const part of broken) {
    t.equal(decodeStream([chunk([part], STOP)]).error?.kind, 'upstream_malformed')
  }
  const deep = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}}]}}]}`
  t.equal(decodeStream([deep]).error?.kind, 'upstream_malformed', 'arguments nested too deeply')
  t.end()
})

void t.test('finish reasons', (t) => {
  const table: [string, JsonValue[], string | null][] = [
    ['STOP', [{ text: 'x' }], 'stop'],
    ['STOP', [], 'stop'],
    ['FINISH_REASON_UNSPECIFIED', [{ text: 'x' }], 'stop'],
    ['FINISH_REASON_UNSPECIFIED', [call('f')], 'tool-use'],
    ['MAX_TOKENS', [call('f')], 'length'],
    ['CONTINUATION', [{ text: 'x' }], 'length'],
    ['OTHER', [{ text: 'x' }], 'stop'],
    ['OTHER', [{ text: 'x', thought: true }], null],
    ['NO_IMAGE', [], null],
    ['IMAGE_OTHER', [], null],
    ['SOMETHING_NEW', [{ text: 'x' }], 'stop'],
    ['SOMETHING_NEW', [], null],
  ]
  for (const filter of [
    'SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII',
    'IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR',
  ].flatMap((names) => names.split(' '))) {
    table.push([filter, [{ text: 'x' }], 'filter'])
  }
  for (const failure of [
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MALFORMED_RESPONSE',
  ]) {
    table.push([failure, [{ text: 'x' }], null])
  }
  for (const [finishReason, parts, expected] of table) {
    const decoded = decodeStream([chunk(parts, { finishReason })])
    t.equal(decoded.reply?.reason ?? null, expected, finishReason)
    if (expected === null) {
      t.match(decoded.error, { kind: 'upstream_failed', upstreamCode: finishReason })
    } else t.equal(decoded.reply?.raw, finishReason)
  }
  t.end()
})

void t.test('a failed reply has its reason, without keys', (t) => {
  const more = {
    finishReason: 'MALFORMED_FUNCTION_CALL',
    finishMessage: 'Bad call with AIzaSyA1234567890abcdef',
  }
  const decoded = decodeStream([chunk([], more)])
  t.match(decoded.error?.message, /MALFORMED_FUNCTION_CALL.*Bad call with \[redacted\]/)
  t.end()
})

void t.test('a blocked prompt is a filtered reply, with a refusal if the upstream sends a message', (t) => {
  const silent = decodeStream([{ promptFeedback: { blockReason: 'SAFETY' } }])
  t.match(silent.reply, { reason: 'filter', raw: 'SAFETY', blocks: [] })
  const words = decodeStream([{ promptFeedback: { blockReason: 'OTHER', blockReasonMessage: 'Not this.' } }])
  t.match(words.reply, { reason: 'filter', blocks: [{ type: 'refusal', text: 'Not this.' }] })
  const partial = decodeStream([
    chunk([{ text: 'part' }], { finishReason: 'SAFETY', finishMessage: 'Cut off.' }),
  ])
  t.match(partial.reply?.blocks, [{ text: 'part' }, { type: 'refusal', text: 'Cut off.' }])
  t.end()
})

void t.test('an end without a finish reason is truncation, with the usage so far', (t) => {
  const decoded = decodeStream([
    chunk([{ text: 'half' }], {}, { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 1 } }),
  ])
  t.equal(decoded.error?.kind, 'upstream_truncated')
  t.strictSame(decoded.usage, { input: 4, output: 1 })
  const nothing = decodeStream([])
  t.strictSame(
    nothing.events.map((event) => event.type),
    ['error'],
  )
  t.end()
})

void t.test('an error inside the stream ends it', (t) => {
  const decoded = decodeStream([
    chunk([{ text: 'a' }]),
    { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } },
    chunk([{ text: 'b' }], STOP),
  ])
  t.match(decoded.error, { kind: 'upstream_busy', message: 'slow down' })
  t.equal(decoded.breach, null)
  t.equal(decoded.events.at(-1)?.type, 'error')
  const array = decodeStream(['[{"error":{"code":500,"status":"INTERNAL"}}]'])
  t.equal(array.error?.kind, 'upstream_failed', 'the array form')
  const unnamed = decodeStream([{ error: { status: 'DEADLINE_EXCEEDED' } }])
  t.equal(unnamed.error?.kind, 'upstream_timeout', 'by status without a code')
  t.end()
})

void t.test('the JSON array form of a stream decodes as one frame or as a whole body', (t) => {
  const array = [chunk([{ text: 'a' }]), chunk([{ text: 'b' }], STOP)]
  t.equal(decodeStream([JSON.stringify(array)]).reply?.reason, 'stop')
  t.strictSame(decodeReply(array).reply, decodeStream(array).reply)
  t.end()
})

void t.test('usage has the last value of each count', (t) => {
  const decoded = decodeStream([
    chunk([{ text: 'a' }], {}, { usageMetadata: { promptTokenCount: 55, thoughtsTokenCount: 9 } }),
    chunk([{ text: 'b' }], STOP, {
      usageMetadata: {
        promptTokenCount: 257,
        toolUsePromptTokenCount: 3,
        cachedContentTokenCount: 100,
        candidatesTokenCount: 20,
        totalTokenCount: 289,
      },
    }),
  ])
  t.strictSame(decoded.usage, { input: 260, output: 29, cacheRead: 100, reasoning: 9 })
  const zero = decodeReply(chunk([], STOP, { usageMetadata: { promptTokenCount: 14, totalTokenCount: 14 } }))
  t.strictSame(zero.usage, { input: 14, output: 0 }, 'Gemini omits counts of zero')
  t.strictSame(decodeReply(chunk([], STOP)).usage, {}, 'nothing reported is not zero')
  const junk = { usageMetadata: { promptTokenCount: -1, candidatesTokenCount: 'x' } }
  t.strictSame(decodeReply(chunk([], STOP, junk)).usage, {}, 'invalid values are not counts')
  t.end()
})

void t.test('frames that are not chunks', (t) => {
  for (const frame of ['{', 'null', '7', '"x"', '[1]', '<html>']) {
    t.equal(decodeStream([frame]).error?.kind, 'upstream_malformed', frame)
  }
  const done = decodeStream([chunk([{ text: 'a' }], STOP), '[DONE]'])
  t.equal(done.reply?.reason, 'stop', 'a terminator that a proxy added is ignored')
  t.end()
})

void t.test('the reply has the model that replied, not the requested one', (t) => {
  const decoded = decodeStream([chunk([], STOP, { modelVersion: 'gemini-3.8-flash' })])
  t.equal(decoded.reply?.model, 'gemini-3.8-flash')
  const unnamed = decodeStream([chunk([], STOP, { modelVersion: null })])
  t.equal(unnamed.reply?.model, 'gemini-3.5-flash')
  t.end()
})

void t.test('grounding becomes citations with UTF-16 offsets', (t) => {
  const text = 'Été 🌊 is warm. Winter is cold.'
  const bytes = (upTo: number): number => Buffer.byteLength(text.slice(0, upTo))
  const end = text.indexOf('.') + 1
  const groundingMetadata = {
    groundingChunks: [
      { web: { uri: 'https://a.example', title: 'A' } },
      { web: { title: 'no url' } },
      { retrievedContext: { uri: 'https://b.example' } },
    ],
    groundingSupports: [
      {
        segment: { endIndex: bytes(end), text: text.slice(0, end) },
        groundingChunkIndices: [0, 1, 9],
      },
      {
        segment: { startIndex: 4000, endIndex: 4010, text: 'Winter is cold.' },
        groundingChunkIndices: [2],
      },
      { segment: { startIndex: 0, endIndex: 3, text: 'not in it' }, groundingChunkIndices: [0] },
    ],
  }
  const parts = [{ text: text.slice(0, 5) }, { text: text.slice(5) }]
  const decoded = decodeStream([
    chunk(parts.slice(0, 1)),
    chunk(parts.slice(1), { groundingMetadata }),
    chunk([{ text: '' }], { ...STOP, groundingMetadata: {} }),
  ])
  t.equal(decoded.breach, null)
  const start = text.indexOf('Winter')
  t.match(decoded.reply?.blocks[0], {
    citations: [
      { url: 'https://a.example', title: 'A', start: 0, end, citedText: text.slice(0, end) },
      { url: 'https://b.example', start, end: text.length, citedText: 'Winter is cold.' },
    ],
  })
  t.strictSame(
    decodeReply(chunk(parts, { ...STOP, groundingMetadata })).reply,
    decoded.reply,
    'whole = stream',
  )
  t.end()
})

void t.test('sources that arrive after the end of their text are cited', (t) => {
  const support = (text: string, at: number): JsonObject => {
    return {
      segment: { startIndex: at, endIndex: at + text.length, text },
      groundingChunkIndices: [0],
    }
  }
  const groundingMetadata = {
    groundingChunks: [{ web: { uri: 'https://a.example' } }],
    groundingSupports: [support('Warm.', 0), support('Cold.', 5)],
  }
  const call = { functionCall: { name: 'f', args: {} } }
  const texts = [{ text: 'Warm.', thoughtSignature: 's' }, { text: 'Cold.' }]
  const { reply, breach, events } = decodeStream([
    chunk(texts),
    chunk([call]),
    chunk([], { ...STOP, groundingMetadata }),
  ])
  t.equal(breach, null)
  t.match(reply?.blocks, [
    { text: 'Warm.', citations: [{ url: 'https://a.example', start: 0, end: 5 }] },
    { text: 'Cold.', citations: [{ url: 'https://a.example', start: 0, end: 5 }] },
    { type: 'tool' },
  ])
  t.same(
    events.slice(-3).map(({ type }) => type),
    ['citation', 'citation', 'finish'],
  )
  t.end()
})
