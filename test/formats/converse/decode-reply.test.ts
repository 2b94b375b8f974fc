/**
 * Goal: replies of Converse, whole and streamed, become canonical events, and no stream is complete without
 * its end.
 * Method: events that AWS's codec encodes, one feature at a time; a stream cut after every event; exceptions
 * and errors by the service's table.
 */
import t from 'tap'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import type { JsonObject } from '../../../src/base/json.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { awsEvent, awsException } from '../wire/aws/aws-messages.js'
import { decodeReply, decodeStream, upstreamCodec, encode, request } from './driver.js'

const START = awsEvent('messageStart', { role: 'assistant', p: 'abc' })
const METADATA = awsEvent('metadata', {
  usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
  metrics: { latencyMs: 1 },
})

function delta(contentBlockIndex: number, delta: JsonObject): Buffer {
  return awsEvent('contentBlockDelta', { contentBlockIndex, delta, p: 'abcdefg' })
}

function begin(contentBlockIndex: number, start: JsonObject): Buffer {
  return awsEvent('contentBlockStart', { contentBlockIndex, start })
}

function stop(contentBlockIndex: number): Buffer {
  return awsEvent('contentBlockStop', { contentBlockIndex, p: 'a' })
}

function end(stopReason = 'end_turn', more: JsonObject = {}): Buffer {
  return awsEvent('messageStop', { stopReason, ...more })
}

function whole(content: JsonObject[], more: JsonObject = {}): JsonObject {
  return {
    output: { message: { role: 'assistant', content } },
    stopReason: 'end_turn',
    usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
    metrics: { latencyMs: 1 },
    ...more,
  }
}

/** The events between start and finish, without counts. */
function inner(events: readonly ChatEvent[]): ChatEvent[] {
  return events.filter(({ type }) => type !== 'start' && type !== 'finish' && type !== 'usage')
}

interface Case {
  readonly name: string
  readonly content: JsonObject[]
  readonly stream: readonly Buffer[]
  readonly over?: Partial<ChatRequest>
  /** The blocks of the folded reply. */
  readonly blocks: unknown
}

const CODE = {
  toolUseId: 't1',
  name: 'nova_code_interpreter',
  type: 'server_tool_use',
}
const RESULT = { toolUseId: 't1', status: 'success', type: 'nova_code_interpreter_result' }
const IMAGE = Buffer.from('an image of some bytes')

const CASES: readonly Case[] = [
  {
    name: 'text',
    content: [{ text: 'Grüße 👋' }],
    stream: [delta(0, { text: 'Grü' }), delta(0, { text: 'ße ' }), delta(0, { text: '👋' }), stop(0)],
    blocks: [{ type: 'text', text: 'Grüße 👋', citations: [] }],
  },
  {
    name: 'text with a type, as some proxies send it',
    content: [{ type: 'text', text: 'Hi' }],
    stream: [delta(0, { text: 'Hi' })],
    blocks: [{ type: 'text', text: 'Hi', citations: [] }],
  },
  {
    name: 'signed reasoning',
    content: [{ reasoningContent: { reasoningText: { text: 'Hm.', signature: 'SIG==' } } }, { text: 'Yes.' }],
    stream: [
      delta(0, { reasoningContent: { text: 'H' } }),
      delta(0, { reasoningContent: { text: 'm.' } }),
      delta(0, { reasoningContent: { signature: 'SIG==' } }),
      stop(0),
      delta(1, { text: 'Yes.' }),
      stop(1),
    ],
    blocks: [
      { type: 'thinking', text: 'Hm.', signature: 'SIG==' },
      { type: 'text', text: 'Yes.', citations: [] },
    ],
  },
  {
    name: 'redacted reasoning is the text that Anthropic has',
    content: [
      { reasoningContent: { redactedContent: Buffer.from('RW5jcnlwdGVk').toString('base64') } },
      { text: 'Yes.' },
    ],
    stream: [
      delta(0, {
        reasoningContent: { redactedContent: Buffer.from('RW5jc').toString('base64') },
      }),
      delta(0, {
        reasoningContent: { redactedContent: Buffer.from('nlwdGVk').toString('base64') },
      }),
      stop(0),
      delta(1, { text: 'Yes.' }),
      stop(1),
    ],
    blocks: [
      { type: 'thinking', text: '', redacted: 'RW5jcnlwdGVk' },
      { type: 'text', text: 'Yes.', citations: [] },
    ],
  },
  {
    name: 'calls, one without arguments',
    content: [
      { toolUse: { toolUseId: 't1', name: 'add', input: { a: 1 }, type: 'tool_use' } },
      { toolUse: { toolUseId: 't2', name: 'now', input: {} } },
    ],
    stream: [
      begin(0, { toolUse: { toolUseId: 't1', name: 'add' } }),
      delta(0, { toolUse: { input: '{"a"' } }),
      delta(0, { toolUse: { input: ':1}' } }),
      stop(0),
      begin(1, { toolUse: { toolUseId: 't2', name: 'now' } }),
      stop(1),
    ],
    blocks: [
      { type: 'tool', id: 't1', name: 'add', json: '{"a":1}' },
      { type: 'tool', id: 't2', name: 'now', json: '{}' },
    ],
  },
  {
    name: 'names of tools as the client wrote them, and free text',
    over: { tools: [{ name: 'mcp.server/find' }, { name: 'say', custom: {} }] },
    content: [
      { toolUse: { toolUseId: 't1', name: 'mcp_server_find_2da164f3', input: {} } },
      { toolUse: { toolUseId: 't2', name: 'say', input: { input: 'Hello' } } },
    ],
    stream: [
      begin(0, { toolUse: { toolUseId: 't1', name: 'mcp_server_find_2da164f3' } }),
      stop(0),
      begin(1, { toolUse: { toolUseId: 't2', name: 'say' } }),
      delta(1, { toolUse: { input: '{"input":"Hel' } }),
      delta(1, { toolUse: { input: 'lo"}' } }),
      stop(1),
    ],
    blocks: [
      { type: 'tool', id: 't1', name: 'mcp.server/find', json: '{}' },
      { type: 'tool', id: 't2', name: 'say', json: 'Hello', custom: true },
    ],
  },
  {
    name: "what Bedrock's own tools did",
    content: [
      { toolUse: { ...CODE, input: { snippet: '1' } } },
      { toolResult: { ...RESULT, content: [{ json: { out: '1' } }] } },
      { text: 'One.' },
    ],
    stream: [
      begin(0, { toolUse: CODE }),
      delta(0, { toolUse: { input: '{"snippet":"1"}' } }),
      stop(0),
      begin(1, { toolResult: RESULT }),
      delta(1, { toolResult: [{ json: { out: '1' } }] }),
      stop(1),
      delta(2, { text: 'One.' }),
      stop(2),
    ],
    blocks: [
      {
        type: 'opaque',
        provider: 'converse',
        block: { toolUse: { ...CODE, input: { snippet: '1' } } },
      },
      {
        type: 'opaque',
        provider: 'converse',
        block: { toolResult: { ...RESULT, content: [{ json: { out: '1' } }] } },
      },
      { type: 'text', text: 'One.', citations: [] },
    ],
  },
  {
    name: 'citations',
    content: [
      {
        citationsContent: {
          content: [{ text: 'Cited.' }],
          citations: [
            { title: 'A', location: { web: { url: 'https://a.example' } } },
            { title: 'B', sourceContent: [{ text: 'the ' }, { text: 'source' }] },
          ],
        },
      },
    ],
    stream: [
      delta(0, { text: 'Cited.' }),
      delta(0, { citation: { title: 'A', location: { web: { url: 'https://a.example' } } } }),
      delta(0, { citation: { title: 'B', sourceContent: [{ text: 'the ' }, { text: 'source' }] } }),
      stop(0),
    ],
    blocks: [
      {
        type: 'text',
        text: 'Cited.',
        citations: [
          { start: 0, end: 6, url: 'https://a.example', title: 'A' },
          { start: 0, end: 6, title: 'B', citedText: 'the source' },
        ],
      },
    ],
  },
  {
    name: 'an image in several parts',
    content: [{ image: { format: 'png', source: { bytes: IMAGE.toString('base64') } } }],
    stream: [
      begin(0, { image: { format: 'png' } }),
      delta(0, { image: { source: { bytes: IMAGE.subarray(0, 4).toString('base64') } } }),
      delta(0, { image: { source: { bytes: IMAGE.subarray(4).toString('base64') } } }),
      stop(0),
    ],
    blocks: [{ type: 'image', url: `data:image/png;base64,${IMAGE.toString('base64')}` }],
  },
]

for (const { name, content, stream, over, blocks } of CASES) {
  void t.test(name, (t) => {
    const fromBody = decodeReply(whole(content), over)
    t.equal(fromBody.breach, null)
    t.same(fromBody.reply?.blocks, blocks, 'whole')
    const bytes = Buffer.concat([START, ...stream, end(), METADATA])
    const streamed = decodeStream([bytes], over)
    t.equal(streamed.breach, null)
    t.same(streamed.reply?.blocks, blocks, 'streamed')
    t.same(streamed.usage, { input: 3, output: 2 })
    t.same(
      decodeStream(
        [...bytes].map((byte) => Buffer.of(byte)),
        over,
      ).events,
      streamed.events,
      'byte by byte',
    )
    t.end()
  })
}

void t.test('opaque blocks return unchanged', (t) => {
  const block = { toolUse: { ...CODE, input: { snippet: '1' } } }
  const { body } = encode({
    messages: [
      { role: 'user', index: 0, parts: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        index: 1,
        parts: [{ type: 'opaque', provider: 'converse', block }],
        toolCalls: [],
      },
      { role: 'user', index: 2, parts: [{ type: 'text', text: 'So?' }] },
    ],
  })
  t.same((body.messages as JsonObject[])[1]?.content, [block])
  t.end()
})

void t.test('interleaved blocks and missing ends lose nothing', (t) => {
  const { reply, breach } = decodeStream([
    START,
    begin(0, { toolUse: { toolUseId: 't1', name: 'a' } }),
    begin(1, { toolUse: { toolUseId: 't2', name: 'b' } }),
    delta(1, { toolUse: { input: '{"b":2}' } }),
    delta(0, { toolUse: { input: '{"a":1}' } }),
    stop(1),
    delta(2, { text: 'Done.' }),
    end('tool_use'),
    METADATA,
  ])
  t.equal(breach, null)
  t.same(
    reply?.blocks.map((block) => (block.type === 'tool' ? block.json : block.type)),
    ['{"a":1}', '{"b":2}', 'text'],
  )
  t.end()
})

const REASONS: Record<string, string> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-use',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'filter',
  content_filtered: 'filter',
  something_new: 'other',
}

void t.test('stop reasons, the matched sequence and the tier', (t) => {
  for (const [stopReason, reason] of Object.entries(REASONS)) {
    const { reply } = decodeStream([START, delta(0, { text: 'a' }), end(stopReason), METADATA])
    t.equal(reply?.reason, reason, stopReason)
    t.equal(decodeReply(whole([{ text: 'a' }], { stopReason })).reply?.reason, reason)
  }
  const more = { additionalModelResponseFields: { stop_sequence: 'END' } }
  t.equal(decodeStream([START, end('stop_sequence', more), METADATA]).reply?.stopSequence, 'END')
  const tier = { serviceTier: { type: 'flex' } }
  t.equal(decodeReply(whole([{ text: 'a' }], tier)).reply?.serviceTier, 'flex')
  t.end()
})

void t.test('a malformed output is a failure that was billed', (t) => {
  for (const stopReason of ['malformed_model_output', 'malformed_tool_use']) {
    const { error, reply, usage } = decodeStream([START, end(stopReason), METADATA])
    t.equal(reply, null)
    t.equal(error?.kind, 'upstream_failed')
    t.same(usage, { input: 3, output: 2 })
    t.equal(decodeReply(whole([], { stopReason })).error?.kind, 'upstream_failed')
  }
  t.end()
})

void t.test('counts of the cache are part of the input', (t) => {
  const usage = {
    inputTokens: 14,
    outputTokens: 5,
    totalTokens: 1522,
    cacheReadInputTokens: 100,
    cacheWriteInputTokens: 1403,
    cacheDetails: [
      { ttl: '5m', inputTokens: 403 },
      { ttl: '1h', inputTokens: 1000 },
    ],
  }
  const expected = {
    input: 1517,
    output: 5,
    cacheRead: 100,
    cacheWrite: 1403,
    cacheWrite1h: 1000,
  }
  t.same(decodeReply(whole([{ text: 'a' }], { usage })).usage, expected)
  t.same(decodeStream([START, end(), awsEvent('metadata', { usage })]).usage, expected)
  t.end()
})

void t.test('counts before the end, and none', (t) => {
  const before = decodeStream([START, delta(0, { text: 'a' }), METADATA, end()])
  t.same(before.usage, { input: 3, output: 2 })
  t.equal(before.reply?.reason, 'stop')
  t.notOk(before.wasCut)
  const without = decodeStream([START, delta(0, { text: 'a' }), end()])
  t.equal(without.reply?.reason, 'stop', 'complete without counts')
  t.same(without.usage, {})
  t.ok(without.wasCut, 'the counts may be missing')
  t.end()
})

void t.test('a stream without messageStop is truncated, wherever it is cut', (t) => {
  const events = [START, delta(0, { text: 'a' }), stop(0), METADATA]
  for (let count = 0; count <= events.length; count += 1) {
    const { reply, error } = decodeStream(events.slice(0, count))
    t.equal(reply, null, `${count} events`)
    t.equal(error?.kind, 'upstream_truncated', `${count} events`)
  }
  const bytes = Buffer.concat([START, delta(0, { text: 'a' }), end(), METADATA])
  const complete = new Set([bytes.length, bytes.length - METADATA.length])
  for (let at = 0; at <= bytes.length; at += 1) {
    const { reply, error } = decodeStream([bytes.subarray(0, at)])
    t.equal(reply !== null, complete.has(at), `byte ${at}`)
    t.equal(error?.kind, complete.has(at) ? undefined : 'upstream_truncated', `byte ${at}`)
  }
  t.end()
})

void t.test('events that are not known, and those of a newer format', (t) => {
  const { reply, breach } = decodeStream([
    START,
    awsEvent('somethingNew', { a: 1 }),
    delta(0, { somethingNew: {} }),
    delta(0, { text: 'a' }),
    stop(7),
    end(),
    METADATA,
  ])
  t.equal(breach, null)
  t.same(reply?.blocks, [{ type: 'text', text: 'a', citations: [] }])
  const unknown = decodeReply(whole([{ searchResult: { title: 'A' } }]))
  t.same(inner(unknown.events), [
    { type: 'opaque', index: 0, provider: 'converse', block: { searchResult: { title: 'A' } } },
  ])
  t.end()
})

void t.test('what is not of the format is malformed', (t) => {
  const kindOf = (...events: Buffer[]): string | undefined => decodeStream(events).error?.kind
  t.equal(kindOf(START, delta(0, { toolUse: { input: '{}' } })), 'upstream_malformed')
  t.equal(kindOf(START, begin(0, { toolUse: { toolUseId: 'a' } })), 'upstream_malformed')
  t.equal(kindOf(START, Buffer.from('<html><body>502</body></html>')), 'upstream_malformed')
  t.equal(decodeReply({}).error?.kind, 'upstream_malformed')
  t.equal(decodeReply({ output: {} }).error?.kind, 'upstream_malformed')
  t.equal(decodeReply(whole(['x' as unknown as JsonObject])).error?.kind, 'upstream_malformed')
  t.end()
})

void t.test('a 200 that carries an unknown operation is a failure', (t) => {
  const Output = { __type: 'com.amazon.coral.service#UnknownOperationException' }
  const { error, reply } = decodeReply({ Output, Version: '1.0' })
  t.equal(reply, null)
  t.equal(error?.kind, 'upstream_misconfigured')
  t.equal(error?.upstreamCode, 'UnknownOperationException')
  t.end()
})

const EXCEPTIONS: Record<string, string> = {
  internalServerException: 'upstream_failed',
  modelStreamErrorException: 'upstream_failed',
  throttlingException: 'upstream_busy',
  serviceUnavailableException: 'upstream_busy',
  modelTimeoutException: 'upstream_timeout',
  validationException: 'upstream_rejected',
  accessDeniedException: 'upstream_denied',
  somethingNewException: 'upstream_failed',
}

void t.test('exceptions within a stream are the kinds of the table', (t) => {
  for (const [name, kind] of Object.entries(EXCEPTIONS)) {
    const payload = { message: 'Oh.', originalStatusCode: 500 }
    const { error, reply } = decodeStream([START, delta(0, { text: 'a' }), awsException(name, payload)])
    t.equal(reply, null)
    t.equal(error?.kind, kind, name)
    t.equal(error?.upstreamCode, name)
    if (kind !== 'upstream_denied') t.equal(error?.message, 'Oh.')
  }
  const tooLong = awsException('validationException', {
    message: 'The model returned the following errors: Input is too long for requested model.',
  })
  t.equal(decodeStream([START, tooLong]).error?.kind, 'context_too_long')
  t.end()
})

interface Refusal {
  readonly status: number
  readonly name?: string
  readonly message?: string
  readonly kind: string
}

const REFUSALS: readonly Refusal[] = [
  { status: 400, name: 'ValidationException', kind: 'upstream_rejected' },
  { status: 400, name: 'ServiceQuotaExceededException', kind: 'upstream_busy' },
  { status: 403, name: 'AccessDeniedException', kind: 'upstream_denied' },
  { status: 403, name: 'UnrecognizedClientException', kind: 'upstream_denied' },
  { status: 403, name: 'InvalidSignatureException', kind: 'upstream_denied' },
  { status: 403, name: 'ExpiredTokenException', kind: 'upstream_denied' },
  { status: 404, name: 'ResourceNotFoundException', kind: 'unknown_model' },
  { status: 408, name: 'ModelTimeoutException', kind: 'upstream_timeout' },
  { status: 424, name: 'ModelErrorException', kind: 'upstream_failed' },
  { status: 424, name: 'ModelStreamErrorException', kind: 'upstream_failed' },
  { status: 429, name: 'ThrottlingException', kind: 'upstream_busy' },
  { status: 429, name: 'ModelNotReadyException', kind: 'upstream_busy' },
  { status: 500, name: 'InternalServerException', kind: 'upstream_failed' },
  { status: 503, name: 'ServiceUnavailableException', kind: 'upstream_busy' },
  { status: 404, message: '', kind: 'upstream_misconfigured' },
  { status: 429, kind: 'upstream_busy' },
  { status: 502, kind: 'upstream_failed' },
  { status: 404, name: 'UnknownOperationException', kind: 'upstream_misconfigured' },
  {
    status: 400,
    name: 'ValidationException',
    message: 'prompt is too long: 214300 tokens > 200000 maximum',
    kind: 'context_too_long',
  },
]

void t.test('HTTP errors, by the name in the header or the body', (t) => {
  for (const { status, name, message = 'Oh.', kind } of REFUSALS) {
    const type = `${name ?? ''}:http://internal.amazon.com/coral/com.amazon.bedrock/`
    const headers = name === undefined ? {} : { 'x-amzn-errortype': type }
    const byHeader = upstreamCodec.decodeError(status, headers, JSON.stringify({ message }))
    t.equal(byHeader.kind, kind, `${status} ${name ?? ''}`)
    const __type = `com.amazon.coral.service#${name ?? ''}`
    const body = JSON.stringify(name === undefined ? { message } : { __type, message })
    t.same(upstreamCodec.decodeError(status, {}, body), byHeader)
  }
  t.equal(upstreamCodec.decodeError(429, { 'retry-after': '7' }, '{}').retryAfterSeconds, 7)
  t.equal(upstreamCodec.decodeError(503, {}, '<html>').kind, 'upstream_busy')
  t.end()
})

void t.test('a model that only profiles serve', (t) => {
  const message =
    'Invocation of model ID anthropic.claude-sonnet-4-5 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.'
  const headers = { 'x-amzn-errortype': 'ValidationException:' }
  const error = upstreamCodec.decodeError(400, headers, JSON.stringify({ message }))
  t.match(error.message, /inference profile, such as one that begins with "us\."/)
  t.end()
})

void t.test('secrets of a message are left out', (t) => {
  const body = JSON.stringify({
    message: 'Bearer abcdefghijk is wrong',
    __type: 'ValidationException',
  })
  t.match(upstreamCodec.decodeError(400, {}, body).message, '[redacted] is wrong')
  t.equal(request().model, 'us.amazon.nova-lite-v1:0')
  t.end()
})
