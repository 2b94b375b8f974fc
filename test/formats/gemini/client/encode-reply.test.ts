/**
 * Goal: whole replies and streams have the same content, including reasoning state of other providers'
 * models. Method: hand-written replies through both encoders; the request decoder reads the reasoning state
 * back.
 */
import t from 'tap'
import type { ChatEvent } from '../../../../src/formats/chat/event.js'
import { Fold } from '../../../../src/formats/chat/fold.js'
import { Grammar } from '../../../../src/formats/chat/grammar.js'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import type { DialectName, Seed } from '../../../../src/formats/dialect.js'
import { clientCodecOf } from '../../../../src/formats/index.js'
import { ERRORS, type ErrorKind } from '../../../../src/errors.js'

const clientCodec = clientCodecOf('gemini')

function requestFor(includeThoughts: boolean): ChatRequest {
  const generationConfig = { thinkingConfig: { includeThoughts } }
  const body = { contents: [{ parts: [{ text: 'Hello' }] }], generationConfig }
  return clientCodec.decodeRequest(body, { operation: 'chat', model: 'm', stream: true })
}

function seedOf(origin: DialectName): Seed {
  return { id: 'r1', createdAtSeconds: 0, model: 'asked', origin }
}

interface Both {
  readonly whole: JsonObject
  readonly chunks: readonly JsonObject[]
  /** The parts of the whole reply; `streamed` has those of the stream, joined like in a client's SDK. */
  readonly parts: readonly JsonObject[]
  readonly streamed: readonly JsonObject[]
}

function both(events: readonly ChatEvent[], origin: DialectName, shows = true): Both {
  const request = requestFor(shows)
  const fold = new Fold()
  const encoder = clientCodec.newEncoder(request, seedOf(origin))
  const grammar = new Grammar({
    event(event) {
      fold.event(event)
      encoder.event(event)
    },
  })
  for (const event of events) grammar.event(event)
  if (grammar.breach !== null) throw new Error(grammar.breach)
  const reply = fold.reply()
  if (reply === null) throw new Error('no reply')
  const whole = objectOf(JSON.parse(clientCodec.encodeReply(reply, request, seedOf(origin)).text))
  const chunks = encoder
    .take()
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => objectOf(JSON.parse(frame.slice('data: '.length))))
  return { whole, chunks, parts: partsOf([whole]), streamed: partsOf(chunks) }
}

function partsOf(chunks: readonly JsonObject[]): JsonObject[] {
  return chunks.flatMap(({ candidates }) =>
    arrayOf(objectOf(objectOf(arrayOf(candidates)[0])['content'])['parts']).map(objectOf),
  )
}

function candidateOf(chunk: JsonObject | undefined): JsonObject {
  return objectOf(arrayOf(chunk?.['candidates'])[0])
}

/** The turn that a client sends back. */
function turnOf(parts: readonly JsonObject[]): unknown {
  const calls = parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall]))
  const results = calls.map((call) => {
    const { id = null, name = '' } = objectOf(call)
    return { functionResponse: { id, name, response: {} } }
  })
  const contents: JsonValue[] = [
    { parts: [{ text: 'Hello' }] },
    { role: 'model', parts: [...parts] },
    { parts: results.length > 0 ? results : [{ text: 'And?' }] },
  ]
  return clientCodec.decodeRequest({ contents }, { operation: 'chat', model: 'm' }).messages[1]
}

const START: ChatEvent = { type: 'start', id: 'x', model: 'y' }
const STOP: ChatEvent = { type: 'finish', reason: 'stop', raw: 'stop' }

function text(index: number, ...fragments: string[]): ChatEvent[] {
  return [
    { type: 'text-start', index },
    ...fragments.map((fragment): ChatEvent => ({ type: 'text-delta', index, text: fragment })),
    { type: 'text-end', index },
  ]
}

function call(index: number, json: string): ChatEvent[] {
  return [
    { type: 'tool-start', index, id: 'toolu_1', name: 'get' },
    { type: 'tool-delta', index, json },
    { type: 'tool-end', index },
  ]
}

function thought(index: number, signature: string, ...fragments: string[]): ChatEvent[] {
  return [
    { type: 'thinking-start', index },
    ...fragments.map((fragment): ChatEvent => ({ type: 'thinking-delta', index, text: fragment })),
    { type: 'thinking-end', index, signature },
  ]
}

void t.test('text, counts and reason', (t) => {
  const usage = { input: 10, output: 7, reasoning: 3, cacheRead: 4 }
  const { whole, chunks, parts, streamed } = both(
    [START, ...text(0, 'a"', '\n', 'é'), { type: 'usage', usage }, STOP],
    'openai-chat',
  )
  t.same(parts, [{ text: 'a"\né' }])
  t.same(streamed, [{ text: 'a"' }, { text: '\n' }, { text: 'é' }, { text: '' }])
  for (const last of [whole, chunks.at(-1)]) {
    t.match(last, { modelVersion: 'asked', responseId: 'r1' })
    t.same(last?.['usageMetadata'], {
      promptTokenCount: 10,
      candidatesTokenCount: 4,
      totalTokenCount: 17,
      cachedContentTokenCount: 4,
      thoughtsTokenCount: 3,
    })
    t.match(candidateOf(last), { finishReason: 'STOP', index: 0 })
  }
  t.ok(
    chunks.every((chunk) => partsOf([chunk]).length > 0),
    'each event has a part',
  )
  t.end()
})

void t.test('calls are sent whole with any arguments', (t) => {
  const cases: [string, unknown][] = [
    ['', {}],
    [' ', {}],
    ['{"a":\n 1}', { a: 1 }],
    ['[1]', { _raw: '[1]' }],
    ['{"a":}', { _raw: '{"a":}' }],
  ]
  for (const [json, args] of cases) {
    const { parts, streamed, whole } = both([START, ...call(0, json), STOP], 'openai-chat')
    const expected = { functionCall: { id: 'toolu_1', name: 'get', args } }
    t.same(parts, [expected])
    t.same(streamed, [expected, { text: '' }])
    t.equal(candidateOf(whole)['finishReason'], 'STOP', 'calls end with STOP')
  }
  const { chunks } = both([START, ...call(0, '{"id":12345678901234567890}'), STOP], 'openai-chat')
  t.ok(chunks.length > 0)
  const encoder = clientCodec.newEncoder(requestFor(false), seedOf('openai-chat'))
  for (const event of [START, ...call(0, '{"id":12345678901234567890}')]) encoder.event(event)
  t.match(encoder.take(), /"id":12345678901234567890/, 'integers keep all digits')
  t.end()
})

void t.test('reasoning state is restored unchanged, whether the text is shown or not', (t) => {
  const events = [START, ...thought(0, 'sig', 'First ', 'second.'), ...text(1, 'Hi'), ...call(2, '{}'), STOP]
  const expected = {
    parts: [
      { type: 'thinking', text: 'First second.', signature: 'sig', origin: 'anthropic' },
      { type: 'text', text: 'Hi' },
    ],
    toolCalls: [{ id: 'toolu_1', name: 'get', arguments: '{}' }],
  }
  for (const shows of [true, false]) {
    const { parts, streamed } = both(events, 'anthropic', shows)
    t.equal(
      parts.some((part) => part['thought'] === true),
      shows,
    )
    for (const sent of [parts, streamed]) {
      t.match(turnOf(sent), expected)
      const withoutIds = sent.map((part) => {
        const { name = '', args = {} } = objectOf(part['functionCall'])
        return part['functionCall'] === undefined ? part : { ...part, functionCall: { name, args } }
      })
      t.match(turnOf(withoutIds), expected, 'the signature has the id as well')
    }
  }
  const only = both([START, ...thought(0, 'sig', 'Hm'), STOP], 'anthropic', false)
  t.match(turnOf(only.parts), { parts: [{ type: 'thinking', text: 'Hm', signature: 'sig' }] })
  const redacted: ChatEvent[] = [
    { type: 'thinking-start', index: 0, redacted: 'secret' },
    { type: 'thinking-end', index: 0 },
  ]
  const hidden = both([START, ...redacted, ...text(1, 'Hi'), STOP], 'anthropic')
  for (const sent of [hidden.parts, hidden.streamed]) {
    t.match(turnOf(sent), { parts: [{ type: 'thinking', redacted: 'secret' }, { text: 'Hi' }] })
  }
  t.end()
})

void t.test("Google's own signatures are sent unchanged", (t) => {
  const { parts, streamed } = both([START, ...thought(0, 'own', 'a', 'b'), ...text(1, 'Hi'), STOP], 'gemini')
  t.same(parts[0], { text: 'ab', thought: true, thoughtSignature: 'own' })
  t.same(streamed.slice(0, 2), [
    { text: 'a', thought: true },
    { text: 'b', thought: true, thoughtSignature: 'own' },
  ])
  t.end()
})

void t.test('every finish reason', (t) => {
  const ends: [Partial<Extract<ChatEvent, { type: 'finish' }>>, DialectName, string][] = [
    [{ reason: 'length', raw: 'max_tokens' }, 'anthropic', 'MAX_TOKENS'],
    [{ reason: 'filter', raw: 'refusal' }, 'anthropic', 'SAFETY'],
    [{ reason: 'tool-use', raw: 'tool_use' }, 'anthropic', 'STOP'],
    [{ reason: 'other', raw: 'odd' }, 'openai-chat', 'OTHER'],
    [{ reason: 'filter', raw: 'RECITATION' }, 'gemini', 'RECITATION'],
  ]
  for (const [end, origin, word] of ends) {
    const finish: ChatEvent = { type: 'finish', reason: 'stop', raw: null, ...end }
    const { whole, chunks } = both([START, ...text(0, 'Hi'), finish], origin)
    t.equal(candidateOf(whole)['finishReason'], word)
    t.equal(candidateOf(chunks.at(-1))['finishReason'], word)
  }
  const blocked = both([START, { type: 'finish', reason: 'filter', raw: 'JAILBREAK' }], 'gemini')
  for (const last of [blocked.whole, blocked.chunks.at(-1)]) {
    t.same(last?.['promptFeedback'], { blockReason: 'JAILBREAK' })
    t.equal(last?.['candidates'], undefined)
  }
  const refusal: ChatEvent[] = [
    { type: 'refusal-start', index: 0 },
    { type: 'refusal-delta', index: 0, text: 'No.' },
    { type: 'refusal-end', index: 0 },
  ]
  const refused = both([START, ...refusal, STOP], 'openai-chat')
  t.equal(refused.parts[0]?.['text'], 'No.')
  t.equal(refused.streamed[0]?.['text'], 'No.')
  t.equal(candidateOf(refused.whole)['finishReason'], 'SAFETY', 'a refusal has the reason SAFETY')
  t.equal(candidateOf(refused.chunks.at(-1))['finishReason'], 'SAFETY')
  const filtered = both([START, ...refusal, { type: 'finish', reason: 'filter', raw: 'x' }], 'anthropic')
  t.match(candidateOf(filtered.whole), { finishReason: 'SAFETY', finishMessage: 'No.' })
  t.match(candidateOf(filtered.chunks.at(-1)), { finishReason: 'SAFETY', finishMessage: 'No.' })
  t.end()
})

void t.test('sources, log probabilities and images', (t) => {
  const citation = { url: 'https://example.com', title: 'Ex', citedText: 'ö', start: 1, end: 2 }
  const tokens = [
    { token: 'aö', logprob: -0.5, bytes: null, top: [{ token: 'b', logprob: -1, bytes: null }] },
  ]
  const { whole, chunks, parts } = both(
    [
      START,
      { type: 'text-start', index: 0 },
      { type: 'logprobs', index: 0, tokens },
      { type: 'text-delta', index: 0, text: 'aö' },
      { type: 'text-end', index: 0 },
      { type: 'citation', index: 0, citation },
      { type: 'citation', index: 0, citation: { title: 'Novel', citedText: 'a' } },
      { type: 'image', index: 1, url: 'data:image/png;base64,aGk=' },
      STOP,
    ],
    'anthropic',
  )
  const grounding = {
    groundingChunks: [
      { web: { uri: 'https://example.com', title: 'Ex' } },
      { retrievedContext: { title: 'Novel', text: 'a' } },
    ],
    groundingSupports: [
      { segment: { startIndex: 1, endIndex: 3, text: 'ö' }, groundingChunkIndices: [0] },
      { segment: { startIndex: 0, endIndex: 0, text: 'a' }, groundingChunkIndices: [1] },
    ],
  }
  t.same(candidateOf(whole)['groundingMetadata'], grounding)
  t.same(candidateOf(chunks.at(-1))['groundingMetadata'], grounding)
  const likely = {
    topCandidates: [{ candidates: [{ token: 'b', logProbability: -1 }] }],
    chosenCandidates: [{ token: 'aö', logProbability: -0.5 }],
  }
  t.same(candidateOf(whole)['logprobsResult'], likely)
  t.same(candidateOf(chunks[0])['logprobsResult'], likely)
  t.same(parts[1], { inlineData: { mimeType: 'image/png', data: 'aGk=' } })
  t.end()
})

void t.test('every error kind', (t) => {
  const statuses: Partial<Record<number, string>> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  }
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const { status, body } = clientCodec.encodeError({ kind, message: 'Bad.' })
    const error = objectOf(objectOf(JSON.parse(body))['error'])
    t.equal(error['code'], status)
    t.equal(status, ERRORS[kind].status)
    if (statuses[status] !== undefined) t.equal(error['status'], statuses[status])
    t.match(error['details'], [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: kind, domain: 'sluice' },
    ])
  }
  const { body } = clientCodec.encodeError({
    kind: 'upstream_busy',
    message: 'messages[2].content is late',
    param: 'messages[2].content',
    retryAfterSeconds: 7,
  })
  t.match(JSON.parse(body), {
    error: {
      message: 'contents[2] is late',
      details: [{}, { fieldViolations: [{ field: 'contents[2]' }] }, { retryDelay: '7s' }],
    },
  })
  t.match(clientCodec.encodeStreamError({ kind: 'upstream_failed', message: 'Bad.' }), /^data: \{"error":/)
  t.end()
})
