/**
 * Goal: the watcher collects the facts of a stream that passes through, without changing it and without
 * parsing every frame.
 * Method: hand-written frames in compact and spaced JSON; the collected facts and the withheld frames are
 * compared.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { StreamWatcher } from '../../../../src/formats/dialect.js'
import { chunk, upstreamCodec, usageChunk } from '../driver.js'

const newWatcher = (includeUsage = false): StreamWatcher => {
  const watcher = upstreamCodec.newWatcher?.({ includeUsage })
  if (watcher === undefined) throw new Error('no watcher')
  return watcher
}
const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const spaced = (json: string): string => JSON.stringify(JSON.parse(json), null, 1)

void t.test('usage, finish reason, model, content and completeness are collected', (t) => {
  for (const form of [(it: string): string => it, spaced]) {
    const watcher = newWatcher()
    t.equal(watcher.frame('', form(chunk({ role: 'assistant', content: '' }))), true)
    t.equal(watcher.hasContent, false, 'a role is not content')
    t.equal(watcher.frame('', form(chunk({ content: 'Hi' }))), true)
    t.equal(watcher.hasContent, true)
    t.equal(watcher.frame('', form(chunk({ content: ' there' }))), true)
    t.equal(watcher.reason, null)
    t.equal(watcher.frame('', form(chunk({}, 'stop'))), true)
    t.equal(watcher.reason, 'stop')
    t.equal(watcher.isComplete, false, 'usage may still follow')
    t.equal(watcher.frame('', form(usageChunk(3, 2))), false, 'the client did not request it')
    t.equal(watcher.frame('', '[DONE]'), true)
    t.equal(watcher.isComplete, true)
    t.same(watcher.usage, { input: 3, output: 2 })
    t.equal(watcher.model, 'm')
    t.equal(watcher.frame('', chunk({ content: 'late' })), false)
  }
  t.end()
})

void t.test('a call with cut arguments is never reported as finished', (t) => {
  const part = (args: string, index = 0): string =>
    chunk({ tool_calls: [{ index, function: { arguments: args } }] })
  const begin = (index: number): string =>
    chunk({
      tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
    })
  const streams: readonly (readonly [frames: readonly string[], isCut: boolean])[] = [
    [[begin(0), part('{"city":'), part('"Be')], true],
    [[begin(0), part('{"city":'), part('"Be'), part('rn"}')], false],
    [[begin(0), part('{"a":'), part('1}'), begin(1), part('{"b":', 1)], true],
    [[begin(0), begin(1), part('{"a":'), part('{"b":', 1), part('1}'), part('2}', 1)], false],
    [[begin(0), part('{"a":"}'), part('{')], true],
    [[begin(0), part('{"a":"\\"}'), part('"}')], false],
    [[begin(0)], false],
    [[begin(0), part('{}'), begin(0), part('{}')], false],
  ]
  for (const [frames, isCut] of streams) {
    for (const reason of ['tool_calls', 'stop', 'length', null]) {
      const watcher = newWatcher()
      for (const frame of frames) t.equal(watcher.frame('', frame), true)
      if (reason !== null) t.equal(watcher.frame('', chunk({}, reason)), true)
      const isRefused = isCut && reason !== 'length'
      if (reason !== null) t.equal(watcher.isFinished, !isRefused)
      t.equal(watcher.frame('', '[DONE]'), !isRefused, `${frames.join('')} ${reason ?? ''}`)
      t.equal(watcher.error?.kind, isRefused ? 'upstream_truncated' : undefined)
      t.equal(watcher.isComplete, !isRefused)
    }
  }
  t.end()
})

void t.test('an end of file completes a stream only if each choice has a finish reason', (t) => {
  const at = (index: number, reason: string | null): string =>
    JSON.stringify({ choices: [{ index, delta: { content: 'x' }, finish_reason: reason }] })
  const watcher = newWatcher()
  t.equal(watcher.isFinished, false)
  for (const [index, reason, finished] of [
    [0, null, false],
    [1, null, false],
    [0, 'stop', false],
    [0, null, false],
    [1, 'length', true],
    [0, null, true],
  ] as const) {
    watcher.frame('', at(index, reason))
    t.equal(watcher.isFinished, finished, `${index} ${reason}`)
  }
  t.end()
})

void t.test('the usage chunk is forwarded if the client requested usage', (t) => {
  const watcher = newWatcher(true)
  watcher.frame('', chunk({ content: 'x' }, 'length'))
  t.equal(watcher.frame('', usageChunk(1, 1)), true)
  t.equal(watcher.reason, 'length')
  t.end()
})

void t.test('usage beside choices is forwarded and counted', (t) => {
  const watcher = newWatcher()
  watcher.frame('', chunk({ content: 'x' }))
  const last =
    '{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage" : {"prompt_tokens":4,"completion_tokens":1}}'
  t.equal(watcher.frame('', last), true)
  t.same(watcher.usage, { input: 4, output: 1 })
  t.end()
})

void t.test('text with the words usage, error and reason is ordinary text', (t) => {
  const watcher = newWatcher()
  for (const content of [
    'usage',
    'error',
    '"usage":{"prompt_tokens":9}',
    '"finish_reason":"stop"',
    '{"error":{}}',
  ]) {
    t.equal(watcher.frame('', chunk({ content })), true, content)
  }
  t.equal(watcher.reason, null)
  t.equal(watcher.error, null)
  t.same(watcher.usage, {})
  t.end()
})

void t.test('null usage, finish reason and error are ordinary frames', (t) => {
  const watcher = newWatcher()
  const frame = '{"choices":[{"delta":{"content":"x"},"finish_reason" : null}],"usage":  null,"error":null}'
  t.equal(watcher.frame('', frame), true)
  t.equal(watcher.frame('', frame), true)
  t.equal(watcher.error, null)
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
    const watcher = newWatcher()
    watcher.frame('', chunk(delta))
    t.equal(watcher.hasContent, true, JSON.stringify(delta))
  }
  for (const delta of [{}, { role: 'assistant', content: null, refusal: null }, { tool_calls: [] }]) {
    const watcher = newWatcher()
    watcher.frame('', chunk(delta))
    t.equal(watcher.hasContent, false, JSON.stringify(delta))
  }
  t.end()
})

void t.test('[DONE] completes a stream with content but without a finish reason', (t) => {
  const cases: [JsonObject, string][] = [
    [{ content: 'x' }, 'stop'],
    [{ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }, 'tool-use'],
  ]
  for (const [delta, reason] of cases) {
    const watcher = newWatcher()
    watcher.frame('', chunk({ role: 'assistant', content: '' }))
    watcher.frame('', chunk(delta))
    t.equal(watcher.frame('', '[DONE]'), true)
    t.match(watcher, { isComplete: true, reason, error: null })
  }
  const empty = newWatcher()
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
    const watcher = newWatcher()
    watcher.frame('', chunk({ content: 'x' }))
    t.equal(watcher.frame('', bytes(frame)), false, frame)
    t.equal(watcher.error?.kind, kind, frame)
    t.equal(watcher.frame('', '[DONE]'), false, 'nothing follows')
    t.equal(watcher.isComplete, false)
  }
  const watcher = newWatcher()
  watcher.frame('', bytes('{"error":{"message":"Überlast"}}'))
  t.equal(watcher.error?.message, 'Überlast', 'bytes are decoded as UTF-8')
  t.end()
})

void t.test('an ordinary delta is not parsed', (t) => {
  const watcher = newWatcher()
  for (const content of ['w', 'x']) watcher.frame('', chunk({ content }))
  const parse = t.capture(JSON, 'parse', JSON.parse)
  const frame = chunk({ content: 'y' })
  for (let at = 0; at < 100; at += 1) watcher.frame('', frame)
  t.equal(parse().length, 0)
  t.end()
})

void t.test('the facts of a whole reply are collected', (t) => {
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'length' }]
  t.same(upstreamCodec.replyFacts?.({ model: 'm', choices, usage, service_tier: 'flex' }), {
    usage: { input: 1, output: 2 },
    reason: 'length',
    error: null,
    model: 'm',
    tier: 'flex',
    outputSize: { bytes: 0, calls: 0 },
  })
  const unreported = upstreamCodec.replyFacts?.({ model: 'm', choices })
  t.same(
    unreported?.outputSize,
    { bytes: 1, calls: 0 },
    'output is measured if the upstream reports no usage',
  )
  t.match(upstreamCodec.replyFacts?.({ error: { message: 'x', code: 500 } }), {
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
    const watcher = newWatcher()
    watcher.frame('', bytes(chunk(delta)))
    t.equal(watcher.outputSize.bytes, expected, name)
  }
  const spaced = newWatcher()
  spaced.frame('', '{"choices": [{"delta": {"content": "as \\u0041 Python does"}}]}')
  t.ok(spaced.outputSize.bytes >= 16, 'spaces and escapes')
  const cut = newWatcher()
  cut.frame('', '{"choices":[{"delta":{"content":"never ends')
  t.ok(cut.outputSize.bytes > 0, 'a frame that is not JSON')
  t.end()
})
