/**
 * Goal: the tap collects the facts of a stream that passes through, without changing it and without parsing
 * every frame.
 * Method: hand-written frames in compact and spaced JSON; the collected facts and the withheld frames are
 * compared.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/formats/chat/json.js'
import type { StreamTap } from '../../../../src/formats/dialect.js'
import { chunk, egress, usageChunk } from '../driver.js'

const newTap = (includeUsage = false): StreamTap => {
  const tap = egress.newTap?.({ includeUsage })
  if (tap === undefined) throw new Error('no tap')
  return tap
}
const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const spaced = (json: string): string => JSON.stringify(JSON.parse(json), null, 1)

void t.test('usage, finish reason, model, content and completeness are collected', (t) => {
  for (const form of [(it: string): string => it, spaced]) {
    const tap = newTap()
    t.equal(tap.frame('', form(chunk({ role: 'assistant', content: '' }))), true)
    t.equal(tap.hasContent, false, 'a role is not content')
    t.equal(tap.frame('', form(chunk({ content: 'Hi' }))), true)
    t.equal(tap.hasContent, true)
    t.equal(tap.frame('', form(chunk({ content: ' there' }))), true)
    t.equal(tap.reason, null)
    t.equal(tap.frame('', form(chunk({}, 'stop'))), true)
    t.equal(tap.reason, 'stop')
    t.equal(tap.isComplete, false, 'usage may still follow')
    t.equal(tap.frame('', form(usageChunk(3, 2))), false, 'the client did not request it')
    t.equal(tap.frame('', '[DONE]'), true)
    t.equal(tap.isComplete, true)
    t.same(tap.usage, { input: 3, output: 2 })
    t.equal(tap.model, 'm')
    t.equal(tap.frame('', chunk({ content: 'late' })), false)
  }
  t.end()
})

void t.test('an end of file completes a stream only if each choice has a finish reason', (t) => {
  const at = (index: number, reason: string | null): string =>
    JSON.stringify({ choices: [{ index, delta: { content: 'x' }, finish_reason: reason }] })
  const tap = newTap()
  t.equal(tap.isFinished, false)
  for (const [index, reason, finished] of [
    [0, null, false],
    [1, null, false],
    [0, 'stop', false],
    [0, null, false],
    [1, 'length', true],
    [0, null, true],
  ] as const) {
    tap.frame('', at(index, reason))
    t.equal(tap.isFinished, finished, `${index} ${reason}`)
  }
  t.end()
})

void t.test('the usage chunk is forwarded if the client requested usage', (t) => {
  const tap = newTap(true)
  tap.frame('', chunk({ content: 'x' }, 'length'))
  t.equal(tap.frame('', usageChunk(1, 1)), true)
  t.equal(tap.reason, 'length')
  t.end()
})

void t.test('usage beside choices is forwarded and counted', (t) => {
  const tap = newTap()
  tap.frame('', chunk({ content: 'x' }))
  const last =
    '{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage" : {"prompt_tokens":4,"completion_tokens":1}}'
  t.equal(tap.frame('', last), true)
  t.same(tap.usage, { input: 4, output: 1 })
  t.end()
})

void t.test('text with the words usage, error and reason is ordinary text', (t) => {
  const tap = newTap()
  for (const content of [
    'usage',
    'error',
    '"usage":{"prompt_tokens":9}',
    '"finish_reason":"stop"',
    '{"error":{}}',
  ]) {
    t.equal(tap.frame('', chunk({ content })), true, content)
  }
  t.equal(tap.reason, null)
  t.equal(tap.error, null)
  t.same(tap.usage, {})
  t.end()
})

void t.test('null usage, finish reason and error are ordinary frames', (t) => {
  const tap = newTap()
  const frame =
    '{"choices":[{"delta":{"content":"x"},"finish_reason" : null}],"usage":  null,"error":null}'
  t.equal(tap.frame('', frame), true)
  t.equal(tap.frame('', frame), true)
  t.equal(tap.error, null)
  t.end()
})

void t.test('the first non-empty member of a delta is content', (t) => {
  const yes = [
    { content: 'x' },
    { refusal: 'x' },
    { reasoning_content: 'x' },
    { reasoning: 'x' },
    { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] },
    { function_call: { name: 'f', arguments: '' } },
  ]
  for (const delta of yes) {
    const tap = newTap()
    tap.frame('', chunk(delta))
    t.equal(tap.hasContent, true, JSON.stringify(delta))
  }
  for (const delta of [
    {},
    { role: 'assistant', content: null, refusal: null },
    { tool_calls: [] },
  ]) {
    const tap = newTap()
    tap.frame('', chunk(delta))
    t.equal(tap.hasContent, false, JSON.stringify(delta))
  }
  t.end()
})

void t.test('[DONE] completes a stream with content but without a finish reason', (t) => {
  const cases: [JsonObject, string][] = [
    [{ content: 'x' }, 'stop'],
    [{ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }, 'tool-use'],
  ]
  for (const [delta, reason] of cases) {
    const tap = newTap()
    tap.frame('', chunk({ role: 'assistant', content: '' }))
    tap.frame('', chunk(delta))
    t.equal(tap.frame('', '[DONE]'), true)
    t.match(tap, { isComplete: true, reason, error: null })
  }
  const empty = newTap()
  empty.frame('', chunk({ role: 'assistant', content: '' }))
  t.equal(empty.frame('', '[DONE]'), false)
  t.match(empty, { isComplete: false, error: { kind: 'upstream_truncated' } })
  t.end()
})

void t.test('errors and malformed frames stop the stream', (t) => {
  const cases: [string, string][] = [
    ['{"error":{"message":"Überlast","code":503}}', 'upstream_busy'],
    [
      `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":429}}`,
      'upstream_busy',
    ],
    [chunk({}, 'error'), 'upstream_failed'],
    ['{broken', 'upstream_malformed'],
    ['<html>', 'upstream_malformed'],
    ['', 'upstream_malformed'],
  ]
  for (const [frame, kind] of cases) {
    const tap = newTap()
    tap.frame('', chunk({ content: 'x' }))
    t.equal(tap.frame('', bytes(frame)), false, frame)
    t.equal(tap.error?.kind, kind, frame)
    t.equal(tap.frame('', '[DONE]'), false, 'nothing follows')
    t.equal(tap.isComplete, false)
  }
  const tap = newTap()
  tap.frame('', bytes('{"error":{"message":"Überlast"}}'))
  t.equal(tap.error?.message, 'Überlast', 'bytes are decoded as UTF-8')
  t.end()
})

void t.test('an ordinary delta is not parsed', (t) => {
  const tap = newTap()
  for (const content of ['w', 'x']) tap.frame('', chunk({ content }))
  const parse = t.capture(JSON, 'parse', JSON.parse)
  const frame = chunk({ content: 'y' })
  for (let at = 0; at < 100; at += 1) tap.frame('', frame)
  t.equal(parse().length, 0)
  t.end()
})

void t.test('the facts of a whole reply are collected', (t) => {
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'length' }]
  t.same(egress.tapReply?.({ model: 'm', choices, usage, service_tier: 'flex' }), {
    usage: { input: 1, output: 2 },
    reason: 'length',
    error: null,
    model: 'm',
    tier: 'flex',
    outputSize: { bytes: 0, calls: 0 },
  })
  const unreported = egress.tapReply?.({ model: 'm', choices })
  t.same(
    unreported?.outputSize,
    { bytes: 1, calls: 0 },
    'output is measured if the upstream reports no usage',
  )
  t.match(egress.tapReply?.({ error: { message: 'x', code: 500 } }), {
    usage: {},
    reason: null,
    error: { kind: 'upstream_failed' },
    model: null,
  })
  t.end()
})

void t.test('output is measured in every member with text', (t) => {
  const actual: [string, JsonObject, number][] = [
    ['text', { content: 'four' }, 4],
    ['umlauts, in UTF-8', { content: 'Überlast' }, 9],
    ['a line break and quotes', { content: 'a\n"b"' }, 5],
    ['reasoning', { reasoning_content: 'hmm' }, 3],
    ['a refusal', { refusal: 'no' }, 2],
    ['arguments', { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] }, 7],
    ['nothing', { role: 'assistant', content: '' }, 0],
    ['null', { content: null }, 0],
  ]
  for (const [name, delta, expected] of actual) {
    const tap = newTap()
    tap.frame('', bytes(chunk(delta)))
    t.equal(tap.outputSize.bytes, expected, name)
  }
  const spaced = newTap()
  spaced.frame('', '{"choices": [{"delta": {"content": "as \\u0041 Python does"}}]}')
  t.ok(spaced.outputSize.bytes >= 16, 'spaces and escapes')
  const cut = newTap()
  cut.frame('', '{"choices":[{"delta":{"content":"never ends')
  t.ok(cut.outputSize.bytes > 0, 'a frame that is not JSON')
  t.end()
})
