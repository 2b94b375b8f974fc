/**
 * Goal: whole replies, chunks and errors have exactly the wire format.
 * Method: hand-written canonical values are compared with literal wire text.
 */
import t from 'tap'
import type { ChatEvent, FinishReason } from '../../../../src/formats/chat/event.js'
import type { Reply } from '../../../../src/formats/chat/fold.js'
import type { JsonObject } from '../../../../src/base/json.js'
import { ERRORS, type ErrorKind } from '../../../../src/errors.js'
import { encodeEvents, framesOf, clientCodec, expectObject, request, SEED } from '../driver.js'

/** `error.code` by kind; null for the other kinds. */
const CODES: Readonly<Record<string, string | number>> = {
  unauthenticated: 401,
  jwt_invalid: 401,
  jwt_issuer: 401,
  jwt_unknown_key: 401,
  jwt_expired: 401,
  jwt_audience: 401,
  jwt_claims: 401,
  jwt_revoked: 401,
  unknown_model: 'model_not_found',
  context_too_long: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  budget_exceeded: 'insufficient_quota',
  auth_throttled: 'rate_limit_exceeded',
  upstream_busy: 'rate_limit_exceeded',
  untranslatable: 'unsupported_parameter',
}
const BLANK: Reply = { id: 'up', model: 'up', blocks: [], usage: {}, reason: 'stop', raw: 'stop' }
const CHUNK = {
  id: SEED.id,
  object: 'chat.completion.chunk',
  created: SEED.createdAtSeconds,
  model: SEED.model,
}
const TOOL: ChatEvent[] = [
  { type: 'tool-start', index: 0, id: 'a', name: 'f' },
  { type: 'tool-delta', index: 0, json: '{"x":' },
  { type: 'tool-delta', index: 0, json: '' },
  { type: 'tool-delta', index: 0, json: '1}' },
  { type: 'tool-end', index: 0 },
  { type: 'tool-start', index: 1, id: 'b', name: 'g' },
  { type: 'tool-end', index: 1, signature: 'sig' },
]
const START: ChatEvent = { type: 'start', id: 'up', model: 'up' }
const finish = (reason: FinishReason): ChatEvent => ({ type: 'finish', reason, raw: null })

function whole(reply: Partial<Reply>, members: JsonObject = {}): JsonObject {
  return expectObject(
    JSON.parse(clientCodec.encodeReply({ ...BLANK, ...reply }, request(members), SEED).text),
  )
}

function stream(events: ChatEvent[], members: JsonObject = {}): unknown[] {
  const text = encodeEvents([START, ...events], request({ stream: true, ...members }))
  t.match(text, /^(?:data: [^\n]+\n\n)+$/)
  return framesOf(text).map((it): unknown => (it === '[DONE]' ? it : JSON.parse(it)))
}

const delta = (it: JsonObject, reason: string | null = null): JsonObject => {
  return { ...CHUNK, choices: [{ index: 0, delta: it, finish_reason: reason }] }
}

void t.test('a whole reply has the members of the format', (t) => {
  const blocks: Reply['blocks'] = [
    { type: 'thinking', text: 'Hm' },
    { type: 'text', text: 'See ', citations: [] },
    { type: 'text', text: 'this', citations: [{ url: 'u', title: 'T', start: 0, end: 4 }, {}] },
  ]
  const usage = { input: 9, output: 4, cacheRead: 3, cacheWrite: 2, reasoning: 1 }
  t.same(whole({ blocks, usage }), {
    ...CHUNK,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'See this',
          refusal: null,
          reasoning_content: 'Hm',
          annotations: [
            {
              type: 'url_citation',
              url_citation: { url: 'u', title: 'T', start_index: 4, end_index: 8 },
            },
          ],
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    },
  })
  t.same(whole({})['usage'], { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })
  t.match(whole({}), { choices: [{ message: { content: '' } }] })
  t.end()
})

void t.test('calls in a whole reply, with and without arguments, custom and legacy', (t) => {
  const blocks: Reply['blocks'] = [
    { type: 'tool', id: 'a', name: 'f', json: '{"x":12345678901234567890}' },
    { type: 'tool', id: 'b', name: 'g', json: 'null', signature: 'sig' },
    { type: 'tool', id: 'c', name: 'h', json: 'free', custom: true },
  ]
  const first = { name: 'f', arguments: '{"x":12345678901234567890}' }
  t.same(whole({ blocks, reason: 'tool-use' })['choices'], [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        refusal: null,
        tool_calls: [
          { id: 'a', type: 'function', function: first },
          {
            id: 'b',
            type: 'function',
            function: { name: 'g', arguments: '{}' },
            extra_content: { google: { thought_signature: 'sig' } },
          },
          { id: 'c', type: 'custom', custom: { name: 'h', input: 'free' } },
        ],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
    },
  ])
  const legacy = whole({ blocks, reason: 'stop' }, { functions: [{ name: 'f' }] })
  t.same(legacy['choices'], [
    {
      index: 0,
      message: { role: 'assistant', content: null, refusal: null, function_call: first },
      logprobs: null,
      finish_reason: 'function_call',
    },
  ])
  t.end()
})

void t.test('finish reasons have their names in the format', (t) => {
  const tool: Reply['blocks'] = [{ type: 'tool', id: 'a', name: 'f', json: '{}' }]
  const rows: [FinishReason, string, string][] = [
    ['stop', 'stop', 'tool_calls'],
    ['tool-use', 'stop', 'tool_calls'],
    ['length', 'length', 'length'],
    ['filter', 'content_filter', 'content_filter'],
    ['pause', 'stop', 'stop'],
    ['other', 'stop', 'stop'],
  ]
  for (const [reason, plain, called] of rows) {
    t.match(whole({ reason }), { choices: [{ finish_reason: plain }] }, reason)
    t.match(whole({ reason, blocks: tool }), { choices: [{ finish_reason: called }] }, reason)
    t.match(stream([finish(reason)]).at(-2), { choices: [{ finish_reason: plain }] }, reason)
  }
  t.end()
})

void t.test('a refusal alone has null content', (t) => {
  const reply = whole({ blocks: [{ type: 'refusal', text: 'No' }] })
  t.match(reply, { choices: [{ message: { content: null, refusal: 'No' } }] })
  t.end()
})

void t.test('a stream of text, reasoning and a refusal, without usage', (t) => {
  const events: ChatEvent[] = [
    { type: 'thinking-start', index: 0 },
    { type: 'thinking-delta', index: 0, text: 'Hm' },
    { type: 'thinking-end', index: 0, signature: 's' },
    { type: 'text-start', index: 1 },
    { type: 'text-delta', index: 1, text: 'a"\n\u{1F600}\ud83d' },
    { type: 'text-delta', index: 1, text: '' },
    { type: 'citation', index: 1, citation: { url: 'u', start: 0, end: 1 } },
    { type: 'text-end', index: 1 },
    { type: 'refusal-start', index: 2 },
    { type: 'refusal-delta', index: 2, text: 'No' },
    { type: 'refusal-end', index: 2 },
    { type: 'usage', usage: { input: 1, output: 2 } },
    finish('stop'),
  ]
  const note = { url: 'u', title: '', start_index: 0, end_index: 1 }
  t.same(stream(events), [
    delta({ role: 'assistant', content: '' }),
    delta({ reasoning_content: 'Hm' }),
    delta({ content: 'a"\n\u{1F600}\ud83d' }),
    delta({ annotations: [{ type: 'url_citation', url_citation: note }] }),
    delta({ refusal: 'No' }),
    delta({}, 'stop'),
    '[DONE]',
  ])
  t.end()
})

void t.test('usage is the last chunk before [DONE] if the client requests it', (t) => {
  const events: ChatEvent[] = [
    { type: 'usage', usage: { input: 1, output: 1 } },
    { type: 'usage', usage: { output: 2 } },
    finish('length'),
  ]
  t.same(stream(events, { stream_options: { include_usage: true } }), [
    { ...delta({ role: 'assistant', content: '' }), usage: null },
    { ...delta({}, 'length'), usage: null },
    {
      ...CHUNK,
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    },
    '[DONE]',
  ])
  t.end()
})

void t.test('a stream of tool calls has one chunk per fragment', (t) => {
  const call = (it: JsonObject): JsonObject => delta({ tool_calls: [it] })
  t.same(stream([...TOOL, finish('stop')]), [
    delta({ role: 'assistant', content: '' }),
    call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }),
    call({ index: 0, function: { arguments: '{"x":' } }),
    call({ index: 0, function: { arguments: '1}' } }),
    call({ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '' } }),
    call({ index: 1, function: { arguments: '{}' } }),
    call({ index: 1, function: {}, extra_content: { google: { thought_signature: 'sig' } } }),
    delta({}, 'tool_calls'),
    '[DONE]',
  ])
  const custom: ChatEvent[] = [
    { type: 'tool-start', index: 0, id: 'a', name: 'c', custom: true },
    { type: 'tool-delta', index: 0, json: 'go' },
    { type: 'tool-end', index: 0 },
  ]
  t.same(stream([...custom, finish('tool-use')]).slice(1, 3), [
    call({ index: 0, id: 'a', type: 'custom', custom: { name: 'c', input: '' } }),
    call({ index: 0, custom: { input: 'go' } }),
  ])
  const signed: ChatEvent[] = [
    { type: 'tool-start', index: 0, id: 'a', name: 'f', signature: 'sig' },
    { type: 'tool-delta', index: 0, json: '{}' },
    { type: 'tool-end', index: 0, signature: 'sig' },
  ]
  const extra_content = { google: { thought_signature: 'sig' } }
  const named = { id: 'a', type: 'function', function: { name: 'f', arguments: '' } }
  t.same(stream([...signed, finish('tool-use')]).slice(1, 4), [
    call({ index: 0, ...named, extra_content }),
    call({ index: 0, function: { arguments: '{}' } }),
    delta({}, 'tool_calls'),
  ])
  t.end()
})

void t.test('the legacy form contains only the first call', (t) => {
  t.same(stream([...TOOL, finish('tool-use')], { functions: [{ name: 'f' }] }), [
    delta({ role: 'assistant', content: '' }),
    delta({ function_call: { name: 'f', arguments: '' } }),
    delta({ function_call: { arguments: '{"x":' } }),
    delta({ function_call: { arguments: '1}' } }),
    delta({}, 'function_call'),
    '[DONE]',
  ])
  t.end()
})

void t.test('an error ends a stream without [DONE]', (t) => {
  const error = { kind: 'upstream_truncated', message: 'Cut.' } as const
  const body = { message: 'Cut.', type: 'api_error', code: null, kind: 'upstream_truncated' }
  t.same(stream([{ type: 'error', error }]), [delta({ role: 'assistant', content: '' }), { error: body }])
  t.equal(clientCodec.encodeStreamError(error), `data: ${JSON.stringify({ error: body })}\n\n`)
  t.end()
})

void t.test('every kind of error has the documented body', (t) => {
  for (const [kind, row] of Object.entries(ERRORS)) {
    const error = { kind: kind as ErrorKind, message: 'M', param: 'p' }
    const { status, body } = clientCodec.encodeError(error)
    t.equal(status, row.status)
    const inner = expectObject(expectObject(JSON.parse(body))['error'])
    t.match(inner, { message: 'M', kind, param: 'p' })
    t.equal(inner['code'], CODES[kind] ?? null, kind)
    t.type(inner['type'], 'string')
  }
  const { body } = clientCodec.encodeError({ kind: 'unauthenticated', message: 'M' })
  t.match(expectObject(JSON.parse(body)), { error: { type: 'authentication_error', code: 401 } })
  const filtered = { kind: 'upstream_rejected', message: 'M', code: 'content_filter' } as const
  t.match(expectObject(JSON.parse(clientCodec.encodeError(filtered).body)), {
    error: { code: 'content_filter', type: 'invalid_request_error' },
  })
  t.end()
})

void t.test('a late citation has offsets in the whole text', (t) => {
  const events: ChatEvent[] = [
    { type: 'start', id: 'up', model: 'm' },
    { type: 'text-start', index: 0 },
    { type: 'text-delta', index: 0, text: 'One. ' },
    { type: 'text-end', index: 0 },
    { type: 'text-start', index: 1 },
    { type: 'text-delta', index: 1, text: 'Two.' },
    { type: 'text-end', index: 1 },
    { type: 'citation', index: 1, citation: { url: 'https://b.example', start: 0, end: 4 } },
    { type: 'citation', index: 0, citation: { url: 'https://a.example', start: 0, end: 4 } },
    { type: 'finish', reason: 'stop', raw: null },
  ]
  const encoder = clientCodec.newEncoder(request({ stream: true }), SEED)
  for (const event of events) encoder.event(event)
  const places = [...encoder.take().matchAll(/"start_index":(\d+),"end_index":(\d+)/g)]
  t.same(
    places.map(([, from, to]) => [from, to]),
    [
      ['5', '9'],
      ['0', '4'],
    ],
  )
  t.end()
})
