/**
 * Goal: each kind of block, stop reason and count of a stream is decoded to its canonical event.
 * Method: well-formed streams built frame by frame, behind the production grammar.
 */
import t from 'tap'
import type { ChatEvent } from '../../../../src/formats/chat/event.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import {
  messageDelta,
  BEGIN,
  delta,
  END,
  input,
  eventTypes,
  run,
  start,
  stop,
  text,
  TEXT,
  tool,
} from '../stream-frames.js'
import { frame, decodeReply, decodeStream, textOf } from '../driver.js'

const custom: Partial<ChatRequest> = { tools: [{ name: 'shell', custom: {} }] }

void t.test('text is emitted unchanged', (t) => {
  const decoded = run(
    start(0, TEXT),
    text(0, 'a'),
    text(0, ''),
    text(0, 'b'),
    stop(0),
    messageDelta('end_turn'),
    END,
  )
  t.same(eventTypes(decoded), [
    'start',
    'usage',
    'text-start',
    'text-delta',
    'text-delta',
    'text-end',
    'usage',
    'finish',
  ])
  t.equal(textOf(decoded.reply), 'ab')
  t.equal(decoded.reply?.id, 'msg_1')
  t.equal(decoded.reply?.model, 'claude-x')
  t.end()
})

void t.test('tool input is that of the fragments, else of the start, else {}', (t) => {
  const decoded = run(
    start(0, tool('a')),
    input(0, ''),
    stop(0),
    start(1, tool('b', 'look', { far: true })),
    stop(1),
    start(2, tool('c', 'look', { ignored: 1 })),
    input(2, '{"n": 12345678901234567890'),
    input(2, '}'),
    stop(2),
    start(3, { type: 'tool_use', id: 'd', name: 'look' }),
    stop(3),
    messageDelta('tool_use'),
    END,
  )
  const calls = decoded.reply?.blocks.map((one) => one.type === 'tool' && one.json)
  t.same(calls, ['{}', '{"far":true}', '{"n": 12345678901234567890}', '{}'])
  t.equal(decoded.reply?.reason, 'tool-use')
  t.end()
})

void t.test('a call without an id gets one; a call without a name is malformed', (t) => {
  const named = run(start(0, { type: 'tool_use', name: 'look' }), messageDelta('tool_use'), END)
  t.match(named.reply?.blocks[0], { type: 'tool', id: 'toolu_0' })
  const nameless = run(start(0, { type: 'tool_use', id: 'x' }), messageDelta('tool_use'), END)
  t.equal(nameless.error?.kind, 'upstream_malformed')
  t.end()
})

void t.test('thinking keeps its signature, also without text; redacted thinking keeps its data', (t) => {
  const decoded = run(
    start(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'so' }),
    delta(0, { type: 'signature_delta', signature: 's1' }),
    stop(0),
    start(1, { type: 'thinking', thinking: '' }),
    delta(1, { type: 'signature_delta', signature: 's2' }),
    stop(1),
    start(2, { type: 'redacted_thinking', data: 'opaque==' }),
    stop(2),
    messageDelta('end_turn'),
    END,
  )
  t.same(decoded.reply?.blocks, [
    { type: 'thinking', text: 'so', signature: 's1' },
    { type: 'thinking', text: '', signature: 's2' },
    { type: 'thinking', text: '', redacted: 'opaque==' },
  ])
  t.end()
})

void t.test('citations cover their whole block', (t) => {
  const cite = {
    type: 'web_search_result_location',
    url: 'https://a.test/',
    title: 'A',
    cited_text: 'q',
  }
  const decoded = run(
    start(0, { ...TEXT, citations: [] }),
    delta(0, { type: 'citations_delta', citation: cite }),
    delta(0, { type: 'citations_delta', citation: { type: 'page_location', document_title: 'D' } }),
    text(0, 'four'),
    stop(0),
    messageDelta('end_turn'),
    END,
  )
  const citations = [
    { start: 0, end: 4, url: 'https://a.test/', title: 'A', citedText: 'q' },
    { start: 0, end: 4, title: 'D' },
  ]
  t.same(decoded.reply?.blocks, [{ type: 'text', text: 'four', citations }])
  t.end()
})

void t.test('server tools and their results are emitted whole', (t) => {
  const result = { type: 'web_search_tool_result', tool_use_id: 's1', content: [] }
  const decoded = run(
    start(0, { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }),
    input(0, ''),
    input(0, '{"query":"tides"}'),
    stop(0),
    start(1, result),
    stop(1),
    start(2, { type: 'compaction', content: null }),
    delta(2, { type: 'compaction_delta', content: 'summary' }),
    stop(2),
    start(3, TEXT),
    text(3, 'done'),
    stop(3),
    messageDelta('pause_turn'),
    END,
  )
  const search = {
    type: 'server_tool_use',
    id: 's1',
    name: 'web_search',
    input: { query: 'tides' },
  }
  t.same(decoded.reply?.blocks, [
    { type: 'opaque', provider: 'anthropic', block: search },
    { type: 'opaque', provider: 'anthropic', block: result },
    { type: 'opaque', provider: 'anthropic', block: { type: 'compaction', content: 'summary' } },
    { type: 'text', text: 'done', citations: [] },
  ])
  t.equal(decoded.reply?.reason, 'pause')
  t.end()
})

void t.test('usage is cumulative: later counts replace earlier ones', (t) => {
  const begin = frame({
    type: 'message_start',
    message: {
      usage: {
        input_tokens: 43,
        cache_creation_input_tokens: 7,
        cache_read_input_tokens: 100,
        output_tokens: 1,
      },
    },
  })
  const last = { input_tokens: 61, cache_read_input_tokens: null, output_tokens: 20 }
  const usage = { ...last, output_tokens_details: { thinking_tokens: 9 } }
  const decoded = decodeStream([
    begin,
    messageDelta(null, {}, { output_tokens: 3 }),
    messageDelta('end_turn', {}, usage),
    END,
  ])
  t.same(decoded.reply?.usage, {
    input: 168,
    output: 20,
    cacheRead: 100,
    cacheWrite: 7,
    reasoning: 9,
  })
  const silent = decodeStream([
    frame({ type: 'message_start', message: { usage: { input_tokens: -1, output_tokens: 'x' } } }),
    messageDelta('end_turn', {}, 'none'),
    END,
  ])
  t.same(silent.reply?.usage, {})
  t.end()
})

void t.test("each stop reason has a canonical one, and the upstream's own is kept", (t) => {
  const reasons: [string | null, string][] = [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['tool_use', 'tool-use'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'filter'],
    ['pause_turn', 'pause'],
    ['compaction', 'other'],
    ['news', 'other'],
    [null, 'other'],
  ]
  for (const [raw, reason] of reasons) t.match(run(messageDelta(raw), END).events.at(-1), { reason, raw })
  const called = run(start(0, tool('a')), stop(0), messageDelta('end_turn'), END)
  t.equal(called.reply?.reason, 'tool-use', 'a call with end_turn')
  const matched = run(messageDelta('stop_sequence', { stop_sequence: 'END' }), END)
  t.equal(matched.reply?.stopSequence, 'END')
  t.end()
})

void t.test('a refusal has its explanation, if there is one', (t) => {
  const decoded = run(
    start(0, TEXT),
    text(0, 'Well'),
    stop(0),
    messageDelta('refusal', { stop_details: { type: 'refusal', explanation: 'Not this.' } }),
    END,
  )
  t.same(decoded.reply?.blocks, [
    { type: 'text', text: 'Well', citations: [] },
    { type: 'refusal', text: 'Not this.' },
  ])
  t.same(run(messageDelta('refusal', { stop_details: null }), END).reply?.blocks, [])
  t.end()
})

void t.test('the finish waits for message_stop, and an end of file after the reason will do', (t) => {
  const late = run(
    start(0, TEXT),
    messageDelta('end_turn'),
    text(0, 'x'),
    messageDelta('end_turn', {}, { output_tokens: 9 }),
    END,
  )
  t.equal(textOf(late.reply), 'x')
  t.equal(late.reply?.usage.output, 9)
  t.equal(run(start(0, TEXT), text(0, 'x'), messageDelta('end_turn')).reply?.reason, 'stop')
  t.equal(run(start(0, TEXT), text(0, 'x')).error?.kind, 'upstream_truncated')
  t.equal(run(messageDelta(null)).error?.kind, 'upstream_truncated')
  t.equal(decodeStream([]).error?.kind, 'upstream_truncated')
  t.end()
})

void t.test("a custom tool's input is unwrapped", (t) => {
  const decoded = (...fragments: string[]): ChatEvent[] =>
    decodeStream(
      [
        BEGIN,
        start(0, tool('c', 'shell')),
        ...fragments.map((fragment) => input(0, fragment)),
        stop(0),
        messageDelta('tool_use'),
        END,
      ],
      custom,
    ).events.filter((event) => event.type.startsWith('tool'))
  const call = { type: 'tool-start', index: 0, id: 'c', name: 'shell', custom: true } as const
  const end = { type: 'tool-end', index: 0 } as const
  t.same(decoded('{"inp', 'ut":"ls \\"a\\""}'), [call, { type: 'tool-delta', index: 0, json: 'ls "a"' }, end])
  t.same(decoded('{"other":1}'), [call, { type: 'tool-delta', index: 0, json: '{"other":1}' }, end])
  t.same(decoded('{"input":'), [call, { type: 'tool-delta', index: 0, json: '{"input":' }, end])
  t.same(decoded(''), [call, end])
  t.end()
})

void t.test('the arguments of the synthetic tool are emitted as text', (t) => {
  const over: Partial<ChatRequest> = {
    responseFormat: { type: 'json-schema', name: 'n', schema: {} },
    tools: [{ name: 'json_response' }],
  }
  const frames = [
    BEGIN,
    start(0, tool('j', 'json_response_')),
    input(0, '{"a"'),
    input(0, ':1}'),
    stop(0),
    messageDelta('tool_use'),
    END,
  ]
  const decoded = decodeStream(frames, over)
  t.equal(textOf(decoded.reply), '{"a":1}')
  t.equal(decoded.reply?.reason, 'stop')
  const body = { content: [tool('j', 'json_response_', { a: 1 })], stop_reason: 'tool_use' }
  t.equal(textOf(decodeReply(body, over).reply), '{"a":1}')
  t.end()
})
