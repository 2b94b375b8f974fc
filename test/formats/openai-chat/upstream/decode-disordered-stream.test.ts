/**
 * Goal: a stream in any order decodes to one reply or one error.
 * Method: hand-written streams, each with one kind of disorder that a provider has sent.
 */
import t from 'tap'
import type { ReplyBlock } from '../../../../src/formats/chat/fold.js'
import type { JsonObject } from '../../../../src/base/json.js'
import { TOOL_NAMES } from '../../../../src/formats/vendors.js'
import { wireName } from '../../../../src/formats/wire/tool-names.js'
import { chunk, decodeBody, decodeFrames, type Decoded, request, usageChunk } from '../driver.js'

const ROLE = chunk({ role: 'assistant', content: '' })
const textChunk = (content: string): string => chunk({ content })
const stop = (reason = 'stop'): string => chunk({}, reason)
const DONE = '[DONE]'

/** A fragment of a call; omitted members are absent from the chunk. */
const textPart = (
  index: number | undefined,
  args: string,
  { name, id }: { name?: string | undefined; id?: string | undefined } = {},
): JsonObject => {
  const it: JsonObject = { function: { arguments: args, ...(name === undefined ? {} : { name }) } }
  if (index !== undefined) it['index'] = index
  if (id !== undefined) it['id'] = id
  return it
}
const call = (...chunks: JsonObject[]): string => chunk({ tool_calls: chunks })

const blocks = ({ reply }: Decoded): ReplyBlock[] => reply?.blocks ?? []
const callsOf = (outcome: Decoded): string[] =>
  blocks(outcome).map((it) => (it.type === 'tool' ? `${it.id} ${it.name} ${it.json}` : it.type))
const kinds = ({ events }: Decoded): string[] => events.map(({ type }) => type)

void t.test('sources that arrive before the text are cited', (t) => {
  const note = { type: 'url_citation', url_citation: { url: 'https://a.example/', start_index: 0 } }
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })
  const outcome = decodeFrames([
    chunk({ role: 'assistant', content: '', annotations: [note] }),
    chunk({ reasoning_content: 'Hm.' }),
    chunk({ content: 'A' }),
    chunk({ content: 'B' }, 'stop'),
  ])
  t.equal(outcome.breach, null)
  t.match(outcome.reply?.blocks, [
    { type: 'thinking' },
    { type: 'text', text: 'AB', citations: [{ url: 'https://a.example/', start: 0 }] },
  ])
  t.end()
})

void t.test('a last chunk that has the whole message again adds its reason and usage only', (t) => {
  const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
  const last = (message: object): string =>
    JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
  const again = last({ role: 'assistant', content: 'Hi you', reasoning_content: 'Hm.' })
  const outcome = decodeFrames([
    chunk({ reasoning_content: 'Hm.' }),
    textChunk('Hi '),
    textChunk('you'),
    again,
    DONE,
  ])
  t.match(outcome.reply?.blocks, [
    { type: 'thinking', text: 'Hm.' },
    { type: 'text', text: 'Hi you' },
  ])
  t.match(outcome.reply, { reason: 'stop', usage: { input: 9, output: 4 } })
  t.match(decodeFrames([ROLE, again, DONE]).reply?.blocks, [
    { type: 'thinking', text: 'Hm.' },
    { type: 'text', text: 'Hi you' },
  ])
  t.end()
})

void t.test('[DONE] alone completes a stream of chunks only', (t) => {
  const words = { status: 'working' }
  t.equal(decodeFrames([ROLE, textChunk('Hi'), DONE]).reply?.reason, 'stop')
  const broken = decodeFrames([ROLE, textChunk('Hi'), JSON.stringify(words), DONE])
  t.equal(broken.error?.kind, 'upstream_truncated')
  t.equal(decodeFrames([ROLE, textChunk('Hi'), JSON.stringify(words), stop(), DONE]).reply?.reason, 'stop')
  t.end()
})

void t.test('fragments after a finish reason belong to the reply', (t) => {
  const first = { tool_calls: [textPart(0, '{"city":', { id: 'call_1', name: 'get' })] }
  const rest = { tool_calls: [textPart(0, '"Bern"}')] }
  const outcome = decodeFrames([
    ROLE,
    chunk(first, 'tool_calls'),
    chunk(rest, 'tool_calls'),
    usageChunk(3, 2),
    DONE,
  ])
  t.same(callsOf(outcome), ['call_1 get {"city":"Bern"}'])
  t.equal(outcome.reply?.reason, 'tool-use')
  const texts = decodeFrames([chunk({ content: 'A' }, 'stop'), chunk({ content: 'B' }, 'length'), DONE])
  t.match(blocks(texts), [{ type: 'text', text: 'AB' }])
  t.equal(texts.reply?.reason, 'length')
  t.end()
})

void t.test('a call with cut arguments is not reported as finished', (t) => {
  const first = { tool_calls: [textPart(0, '{"city":"Be', { id: 'call_1', name: 'get' })] }
  for (const reason of ['tool_calls', 'stop', null]) {
    const outcome = decodeFrames([ROLE, chunk(first, reason), DONE])
    t.equal(outcome.error?.kind, 'upstream_truncated', String(reason))
    t.equal(outcome.breach, null)
  }
  t.same(callsOf(decodeFrames([ROLE, chunk(first, 'length'), DONE])), ['call_1 get {"city":"Be'])
  t.end()
})

void t.test('usage after the finish reason is kept, and the finish event is last', (t) => {
  const outcome = decodeFrames([ROLE, textChunk('Hi'), stop(), usageChunk(3, 2), DONE])
  t.same(kinds(outcome), ['start', 'text-start', 'text-delta', 'usage', 'text-end', 'finish'])
  t.match(outcome.reply, { id: 'chatcmpl-1', model: 'm', usage: { input: 3, output: 2 } })
  t.end()
})

void t.test('usage before the finish reason, twice, or in every chunk is not added up', (t) => {
  const withUsage = (content: string, count: number): string =>
    JSON.stringify({
      ...(JSON.parse(textChunk(content)) as JsonObject),
      usage: { prompt_tokens: 5, completion_tokens: count },
    })
  const outcome = decodeFrames([withUsage('a', 1), withUsage('b', 2), stop(), DONE])
  t.same(outcome.reply?.usage, { input: 5, output: 2 })
  t.end()
})

void t.test("a missing role chunk, empty choices and Azure's first chunk are accepted", (t) => {
  const azure = '{"choices":[],"id":"","model":"","prompt_filter_results":[{"prompt_index":0}]}'
  const outcome = decodeFrames([azure, '{"choices":[]}', textChunk('Hi'), stop(), DONE])
  t.equal(outcome.events[0]?.type, 'start')
  t.match(outcome.reply, { id: 'chatcmpl-1', model: 'm', blocks: [{ text: 'Hi' }] })
  t.end()
})

void t.test('text after the finish reason and everything after [DONE] is ignored', (t) => {
  const outcome = decodeFrames([
    textChunk('Hi'),
    stop(),
    textChunk('!'),
    DONE,
    textChunk('?'),
    '{broken',
    DONE,
  ])
  t.match(outcome.reply?.blocks, [{ text: 'Hi' }])
  t.equal(outcome.breach, null)
  t.end()
})

void t.test('[DONE] after content completes a reply without a finish reason', (t) => {
  // OpenRouter's streams from Novita end like this.
  const actual = decodeFrames([ROLE, textChunk('Hi'), usageChunk(3, 2), DONE])
  t.match(actual.reply, {
    reason: 'stop',
    raw: null,
    blocks: [{ text: 'Hi' }],
    usage: { output: 2 },
  })
  t.equal(actual.breach, null)
  const called = decodeFrames([ROLE, call(textPart(0, '{"a":1}', { name: 'f', id: 'c1' })), DONE])
  t.match(called.reply, { reason: 'tool-use', raw: null, blocks: [{ name: 'f', json: '{"a":1}' }] })
  t.equal(
    decodeFrames([textChunk('Hi'), DONE, textChunk('!')]).reply?.reason,
    'stop',
    'later chunks are ignored',
  )
  t.end()
})

void t.test('an end after the finish reason completes the reply; any other end truncates it', (t) => {
  t.equal(decodeFrames([textChunk('Hi'), stop()]).reply?.reason, 'stop')
  const cut = [call(textPart(0, '{"a"', { name: 'f', id: 'c1' }))]
  for (const frames of [[], [ROLE], [textChunk('Hi')], cut, [ROLE, DONE], [DONE], ['{"choices":[]}']]) {
    const { error, reply } = decodeFrames(frames)
    t.equal(error?.kind, 'upstream_truncated', JSON.stringify(frames))
    t.equal(reply, null)
  }
  t.end()
})

void t.test('a frame that is not a chunk is malformed', (t) => {
  for (const bad of [
    '{broken',
    '',
    'null',
    '[]',
    '"x"',
    '7',
    '<html>',
    '{"choices":[{"delta":{"tool_calls":["x"]}}]}',
  ]) {
    const { error, breach } = decodeFrames([textChunk('Hi'), bad, stop(), DONE])
    t.equal(error?.kind, 'upstream_malformed', bad)
    t.equal(breach, null)
  }
  t.end()
})

void t.test('an error ends the stream with its kind, alone or beside choices', (t) => {
  const cases: [JsonObject, string][] = [
    [{ message: 'Slow down', type: 'requests', code: 'rate_limit_exceeded' }, 'upstream_busy'],
    [{ message: 'No money', type: 'insufficient_quota' }, 'upstream_busy'],
    [{ message: 'Busy', type: 'overloaded_error' }, 'upstream_busy'],
    [{ message: 'Boom', type: 'server_error' }, 'upstream_failed'],
    [{ message: 'Bad', type: 'invalid_request_error', param: 'tools' }, 'upstream_rejected'],
    [{ message: 'Late', code: 504 }, 'upstream_timeout'],
    [{ message: 'Denied', code: 401 }, 'upstream_denied'],
    [{ message: 'Gone', code: 'model_not_found' }, 'unknown_model'],
    [{ message: 'Provider returned error', code: 502 }, 'upstream_failed'],
    [{}, 'upstream_failed'],
  ]
  for (const [error, kind] of cases) {
    t.equal(decodeFrames([JSON.stringify({ error }), DONE]).error?.kind, kind)
    const choices = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]
    const errorBesideChoices = JSON.stringify({ id: 'x', model: 'm', choices, error })
    const outcome = decodeFrames([textChunk('Hi'), errorBesideChoices, DONE])
    t.equal(outcome.error?.kind, kind)
    t.equal(outcome.reply, null)
  }
  t.equal(decodeFrames([textChunk('Hi'), stop('error'), DONE]).error?.kind, 'upstream_failed')
  t.equal(decodeFrames(['{"error":"overheated"}']).error?.message, 'overheated')
  t.end()
})

void t.test('calls with interleaved fragments are emitted in sequence', (t) => {
  const outcome = decodeFrames([
    ROLE,
    call(textPart(0, '', { name: 'f', id: 'a' }), textPart(1, '', { name: 'g', id: 'b' })),
    call(textPart(0, '{"x":')),
    call(textPart(1, '{"y":')),
    call(textPart(0, '1}')),
    call(textPart(1, '2}')),
    stop('tool_calls'),
    DONE,
  ])
  t.equal(outcome.breach, null)
  t.same(callsOf(outcome), ['a f {"x":1}', 'b g {"y":2}'])
  t.equal(outcome.reply?.reason, 'tool-use')
  t.end()
})

void t.test('a call is emitted as soon as the previous one is complete', (t) => {
  const frames = [
    call(textPart(0, '{}', { name: 'f', id: 'a' })),
    call(textPart(1, '', { name: 'g', id: 'b' })),
    call(textPart(1, '{"y"')),
  ]
  const { events } = decodeFrames(frames)
  t.same(
    events.map(({ type }) => type),
    ['start', 'tool-start', 'tool-delta', 'tool-end', 'tool-start', 'tool-delta', 'error'],
  )
  t.end()
})

void t.test('calls without arguments, and text between and after calls', (t) => {
  const outcome = decodeFrames([
    textChunk('A'),
    call(textPart(0, '', { name: 'f', id: 'a' })),
    textChunk('B'),
    call(textPart(1, '', { name: 'g', id: 'b' })),
    textChunk('C'),
    stop('tool_calls'),
  ])
  t.equal(outcome.breach, null)
  t.same(callsOf(outcome), ['text', 'a f ', 'text', 'b g ', 'text'])
  t.end()
})

void t.test('calls with the index -1 or none are distinguished by ids', (t) => {
  for (const index of [-1, undefined]) {
    const outcome = decodeFrames([
      call(textPart(index, '{"x":', { name: 'f', id: 'a' })),
      call(textPart(index, '1}')),
      call(textPart(index, '', { name: 'g', id: 'b' })),
      call(textPart(index, '{"y":2}')),
      stop('tool_calls'),
    ])
    t.same(callsOf(outcome), ['a f {"x":1}', 'b g {"y":2}'])
  }
  t.end()
})

void t.test('calls that all have index 0 are distinguished by ids or by complete arguments', (t) => {
  const ids = [
    call(textPart(0, '{"x":1}', { name: 'f', id: 'a' })),
    call(textPart(0, '{"x":2}', { name: 'f', id: 'b' })),
    stop(),
  ]
  t.same(callsOf(decodeFrames(ids)), ['a f {"x":1}', 'b f {"x":2}'])
  const none = [
    call(textPart(0, '{"x":1}', { name: 'f' })),
    call(textPart(0, '{"x":2}', { name: 'f' })),
    stop(),
  ]
  t.same(callsOf(decodeFrames(none)), ['call_chatcmpl1_0 f {"x":1}', 'call_chatcmpl1_1 f {"x":2}'])
  t.end()
})

void t.test('an index that increases within one call continues the call', (t) => {
  const frames = [
    call(textPart(0, '{"x"', { name: 'f', id: 'a' })),
    call(textPart(1, ':1')),
    call(textPart(2, '}')),
    stop(),
  ]
  t.same(callsOf(decodeFrames(frames)), ['a f {"x":1}'])
  t.end()
})

void t.test('a late id and name, and an id and name in every fragment, are accepted', (t) => {
  const late = [
    call(textPart(0, '{"x"')),
    call(textPart(0, ':', { id: 'a' })),
    call(textPart(0, '1}', { name: 'f' })),
  ]
  t.same(callsOf(decodeFrames([...late, stop()])), ['a f {"x":1}'])
  const often = [
    call(textPart(0, '{"x"', { name: 'f', id: 'a' })),
    call(textPart(0, ':1}', { name: 'f', id: 'a' })),
    stop(),
  ]
  t.same(callsOf(decodeFrames(often)), ['a f {"x":1}'])
  t.end()
})

void t.test('a call without a name is malformed, an empty one is dropped', (t) => {
  const nameless = decodeFrames([call(textPart(0, '{}', { id: 'a' })), stop()])
  t.equal(nameless.error?.kind, 'upstream_malformed')
  t.same(callsOf(decodeFrames([textChunk('Hi'), call(textPart(0, '')), stop()])), ['text'])
  t.end()
})

void t.test('two calls never have the same id', (t) => {
  const frames = [
    call(textPart(0, '{}', { name: 'f', id: 'a' })),
    call(textPart(1, '{}', { name: 'g', id: 'a' })),
    stop(),
  ]
  t.same(callsOf(decodeFrames(frames)), ['a f {}', 'call_chatcmpl1_1 g {}'])
  const whole = {
    id: 'r',
    choices: [
      {
        message: {
          tool_calls: [
            textPart(undefined, '{}', { name: 'f', id: 'a' }),
            textPart(undefined, '{}', { name: 'g', id: 'a' }),
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
  }
  t.same(callsOf(decodeBody(whole)), ['a f {}', 'call_r_1 g {}'])
  t.end()
})

void t.test('stop with calls becomes tool-use; other finish reasons are kept', (t) => {
  const tool = call(textPart(0, '{}', { name: 'f', id: 'a' }))
  t.match(decodeFrames([tool, stop('stop')]).reply, { reason: 'tool-use', raw: 'stop' })
  t.match(decodeFrames([tool, stop('length')]).reply, { reason: 'length', raw: 'length' })
  for (const [raw, reason] of [
    ['stop', 'stop'],
    ['length', 'length'],
    ['tool_calls', 'tool-use'],
    ['function_call', 'tool-use'],
    ['content_filter', 'filter'],
    ['moon', 'other'],
  ] as const) {
    t.match(decodeFrames([textChunk('x'), stop(raw)]).reply, { reason, raw })
  }
  t.end()
})

void t.test(
  'refusals, three spellings of reasoning, custom and legacy calls and citations are decoded',
  (t) => {
    const refusal = decodeFrames([chunk({ refusal: 'I ' }), chunk({ refusal: 'cannot' }), stop()])
    t.same(blocks(refusal), [{ type: 'refusal', text: 'I cannot' }])
    const parts = [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }]
    for (const delta of [{ reasoning_content: 'Hm' }, { reasoning: 'Hm' }, { content: parts }]) {
      const outcome = decodeFrames([chunk(delta), textChunk('Hi'), stop()])
      t.match(blocks(outcome), [{ type: 'thinking', text: 'Hm' }, { text: 'Hi' }])
    }
    const custom = { index: 0, id: 'a', type: 'custom', custom: { name: 'c', input: 'go' } }
    const free = decodeFrames([chunk({ tool_calls: [custom] }), stop('tool_calls')])
    t.same(blocks(free), [{ type: 'tool', id: 'a', name: 'c', json: 'go', custom: true }])
    const legacy = decodeFrames([
      chunk({ function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{}' } }),
      stop('function_call'),
    ])
    t.same(callsOf(legacy), ['call_chatcmpl1_0 f {}'])
    const note = {
      type: 'url_citation',
      url_citation: { url: 'u', title: 'T', start_index: 0, end_index: 2 },
    }
    const cited = decodeFrames([textChunk('Hi'), chunk({ annotations: [note] }), stop()])
    t.match(blocks(cited), [{ citations: [{ url: 'u', title: 'T', start: 0, end: 2 }] }])
    t.end()
  },
)

void t.test('only the first choice is decoded', (t) => {
  const both = JSON.stringify({
    id: 'x',
    model: 'm',
    choices: [
      { index: 1, delta: { content: 'B' }, finish_reason: 'length' },
      { index: 0, delta: { content: 'A' }, finish_reason: null },
    ],
  })
  t.match(decodeFrames([both, stop(), DONE]).reply, { reason: 'stop', blocks: [{ text: 'A' }] })
  t.end()
})

void t.test('an invalid whole reply is malformed', (t) => {
  for (const body of [{}, { choices: [] }, { choices: 'x' }, { choices: [7] }]) {
    t.equal(decodeBody(body).error?.kind, 'upstream_malformed')
  }
  t.equal(decodeBody({ error: { message: 'x', code: 503 } }).error?.kind, 'upstream_busy')
  const bare = decodeBody({ choices: [{ message: { content: 'Hi' } }] })
  t.match(bare.reply, { reason: 'other', raw: null, blocks: [{ text: 'Hi' }] })
  t.end()
})

void t.test('long tool names are restored to those of the client', (t) => {
  const name = 'n'.repeat(100)
  const chatRequest = { ...request(), tools: [{ name }] }
  const short = wireName(name, TOOL_NAMES.openai)
  t.match(short, /^n{55}_[0-9a-f]{8}$/)
  const sent = (it: string): ReplyBlock[] =>
    blocks(decodeFrames([call(textPart(0, '{}', { name: it, id: 'a' })), stop()], chatRequest))
  t.match(sent(short), [{ name }])
  t.match(sent('other'), [{ name: 'other' }])
  t.end()
})

void t.test('unknown members are reported by name, beside text and alone', (t) => {
  const frames = [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Hi', hologram: { at: 1 }, empty: null, blank: '', none: [] }),
    chunk({ content: ' all', hologram: { at: 2 } }),
    chunk({ smell: 'of tea' }),
    chunk({}, 'stop'),
    '[DONE]',
  ]
  const { reply } = decodeFrames(frames)
  t.same(reply?.blocks, [
    { type: 'text', text: 'Hi all', citations: [] },
    { type: 'opaque', provider: 'openai-chat', block: { type: 'hologram' } },
    { type: 'opaque', provider: 'openai-chat', block: { type: 'smell' } },
  ])
  t.end()
})
