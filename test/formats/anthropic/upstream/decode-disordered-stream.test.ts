/**
 * Goal: the content of a disordered stream is emitted once, in order, and the reply ends.
 * Method: streams built frame by frame, each with one disorder, behind the production grammar.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import {
  messageDelta,
  BEGIN,
  delta,
  END,
  input,
  run,
  start,
  stop,
  text,
  TEXT,
  tool,
} from '../stream-frames.js'
import type { Frame } from '../../sse-frames.js'
import { frame, decodeStream, textOf } from '../driver.js'

void t.test('padding, pings, comments and unknown events are ignored', (t) => {
  const ping = { name: 'ping', data: '{"type": "ping"}' }
  const decoded = run(
    ping,
    start(0, TEXT),
    ping,
    {
      name: 'content_block_delta',
      data: '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}       }  ',
    },
    frame({ type: 'something_new', index: 0 }),
    delta(0, { type: 'new_delta', text: 'no' }),
    { name: '', data: '' },
    start(1, { type: 'hologram', text: 'no' }),
    text(1, 'no'),
    stop(1),
    stop(0),
    stop(7),
    messageDelta('end_turn'),
    { name: '', data: '[DONE]' },
    END,
    { name: '', data: '[DONE]' },
    text(0, 'late'),
  )
  t.equal(textOf(decoded.reply), 'x')
  t.match(decoded.reply?.blocks, [{ type: 'text' }, { type: 'opaque', block: { type: 'hologram' } }])
  t.end()
})

void t.test('an event without a type is recognized by its name', (t) => {
  const decoded = decodeStream([
    { name: 'message_start', data: '{"message":{"id":"m","model":"x"}}' },
    {
      name: 'content_block_start',
      data: '{"index":0,"content_block":{"type":"text","text":"hi"}}',
    },
    { name: 'message_delta', data: '{"delta":{"stop_reason":"end_turn"}}' },
    { name: 'message_stop', data: '{}' },
  ])
  t.equal(textOf(decoded.reply), 'hi')
  t.end()
})

void t.test('blocks without an index are decoded in sequence', (t) => {
  const block = (content_block: JsonObject): Frame => frame({ type: 'content_block_start', content_block })
  const fragment = (text: string): Frame =>
    frame({ type: 'content_block_delta', delta: { type: 'text_delta', text } })
  const decoded = run(block(TEXT), fragment('a'), block(TEXT), fragment('b'), messageDelta('end_turn'), END)
  t.same(
    decoded.reply?.blocks.map((one) => one.type === 'text' && one.text),
    ['a', 'b'],
  )
  t.end()
})

void t.test('interleaved blocks are emitted whole, in sequence', (t) => {
  const decoded = run(
    start(0, tool('a')),
    start(1, tool('b')),
    start(2, TEXT),
    input(1, '{"b"'),
    input(0, '{"a"'),
    text(2, 'and'),
    input(1, ':1}'),
    stop(1),
    input(0, ':1}'),
    text(2, ' more'),
    stop(0),
    text(2, '!'),
    stop(2),
    messageDelta('tool_use'),
    END,
  )
  t.equal(decoded.breach, null)
  t.same(
    decoded.reply?.blocks.map((one) => (one.type === 'tool' ? one.json : one.type === 'text' && one.text)),
    ['{"a":1}', '{"b":1}', 'and more!'],
  )
  t.end()
})

void t.test('a block without a stop is closed at the end of the message', (t) => {
  const decoded = run(
    start(0, TEXT),
    text(0, 'a'),
    start(1, tool('b')),
    input(1, '{}'),
    messageDelta('tool_use'),
    END,
  )
  t.equal(decoded.breach, null)
  t.same(
    decoded.reply?.blocks.map((one) => one.type),
    ['text', 'tool'],
  )
  const reused = run(
    start(0, TEXT),
    text(0, 'a'),
    start(0, TEXT),
    text(0, 'b'),
    messageDelta('end_turn'),
    END,
  )
  t.same(
    reused.reply?.blocks.map((one) => one.type === 'text' && one.text),
    ['a', 'b'],
  )
  t.end()
})

void t.test('text without a start opens a block; tool input without a start is malformed', (t) => {
  const decoded = run(
    text(0, 'a'),
    text(0, 'b'),
    stop(0),
    delta(1, { type: 'thinking_delta', thinking: 'hm' }),
    delta(1, { type: 'signature_delta', signature: 'sig' }),
    text(9, ''),
    delta(5, { type: 'signature_delta', signature: 'none' }),
    delta(5, { type: 'citations_delta', citation: { url: 'https://x.test' } }),
    messageDelta('end_turn'),
    END,
  )
  t.same(decoded.reply?.blocks, [
    { type: 'text', text: 'ab', citations: [] },
    { type: 'thinking', text: 'hm', signature: 'sig' },
  ])
  t.equal(run(input(0, '{}')).error?.kind, 'upstream_malformed')
  t.equal(run(start(0, TEXT), stop(0), input(0, '{}')).error?.kind, 'upstream_malformed')
  t.equal(run(start(0, tool('a')), text(0, 'x')).error?.kind, 'upstream_malformed')
  t.end()
})

void t.test('an error event ends the stream with its kind', (t) => {
  const error = (type: string): Frame => frame({ type: 'error', error: { type, message: 'Sorry' } })
  const expected: [string, string][] = [
    ['overloaded_error', 'upstream_busy'],
    ['rate_limit_error', 'upstream_busy'],
    ['api_error', 'upstream_failed'],
    ['timeout_error', 'upstream_timeout'],
    ['authentication_error', 'upstream_denied'],
    ['invalid_request_error', 'upstream_rejected'],
    ['constructor', 'upstream_failed'],
  ]
  for (const [type, kind] of expected) {
    const decoded = run(
      start(0, TEXT),
      text(0, 'x'),
      error(type),
      text(0, 'y'),
      messageDelta('end_turn'),
      END,
    )
    t.equal(decoded.error?.kind, kind, type)
    t.equal(decoded.events.at(-1)?.type, 'error')
  }
  t.equal(decodeStream([error('overloaded_error')]).error?.kind, 'upstream_busy', 'before the start')
  t.equal(run({ name: 'error', data: 'upstream gone' }).error?.kind, 'upstream_failed')
  t.equal(run({ name: '', data: '{"error":{"message":"x"}}' }).error?.kind, 'upstream_failed')
  t.end()
})

void t.test('a frame that violates the format is malformed', (t) => {
  const broken: Frame[][] = [
    [BEGIN, { name: 'content_block_delta', data: '{"type":"content_block_delta","ind' }],
    [BEGIN, { name: '', data: '[]' }],
    [BEGIN, { name: '', data: 'null' }],
    [BEGIN, frame({ type: 'content_block_start', index: 0 })],
    [BEGIN, frame({ type: 'content_block_delta', index: 0, delta: 'x' })],
    [start(0, TEXT)],
    [text(0, 'x')],
    [messageDelta('end_turn')],
    [END],
  ]
  for (const frames of broken) {
    const decoded = decodeStream([...frames, messageDelta('end_turn'), END])
    t.equal(decoded.error?.kind, 'upstream_malformed', JSON.stringify(frames.at(-1)))
    t.equal(decoded.breach, null)
  }
  t.end()
})

void t.test('a second message_start resets the counts before content and is an error after it', (t) => {
  const second = frame({
    type: 'message_start',
    message: { id: 'msg_2', usage: { output_tokens: 2 } },
  })
  const early = decodeStream([BEGIN, second, start(0, TEXT), text(0, 'x'), messageDelta('end_turn'), END])
  t.equal(early.breach, null)
  t.equal(textOf(early.reply), 'x')
  t.equal(early.reply?.usage.output, 5)
  const counts = early.events.filter((event) => event.type === 'usage')
  t.same(counts.at(-1)?.usage, { output: 5 }, 'counts of the first start are dropped')
  const late = decodeStream([BEGIN, start(0, TEXT), second, text(0, 'x'), messageDelta('end_turn'), END])
  t.equal(late.error?.kind, 'upstream_malformed')
  t.end()
})

void t.test('tool input that is nested too deeply is malformed and does not throw', (t) => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
  const data = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"b","input":${deep}}}`
  const decoded = run({ name: 'content_block_start', data }, stop(0), messageDelta('tool_use'), END)
  t.equal(decoded.error?.kind, 'upstream_malformed')
  t.end()
})
