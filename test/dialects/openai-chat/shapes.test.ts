/**
 * Goal: of a stream that passes through no broken frame passes, and no `usage: null` that only the
 * gateway asked for; a frame that is like one before it is known without being read.
 * Method: frames in the spellings of several vendors, whole and with a byte of theirs changed by seeded
 * chance; what passes must be JSON with what was sent in it.
 */
import t from 'tap'
import { isObject } from '../../../src/chat/json.js'
import { PassedStream } from '../../../src/gateway/passed.js'
import { dice } from '../../properties/streams.js'
import { chunk, egress } from './driver.js'
import type { StreamTap } from '../../../src/dialects/dialect.js'
import { Shapes } from '../../../src/dialects/openai-chat/shapes.js'

const newTap = (includeUsage = false): StreamTap => {
  const tap = egress.newTap?.({ includeUsage })
  if (tap === undefined) throw new Error('no tap')
  return tap
}

/** A frame as OpenAI writes it to a client that asked for usage. */
function frame(content: string, obfuscation = 'aB'): string {
  return (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,' +
    `"delta":{"content":${JSON.stringify(content)}},"logprobs":null,"finish_reason":null}],` +
    `"usage":null,"obfuscation":"${obfuscation}"}`
  )
}

void t.test('a frame is known by those before it, whatever its strings say', (t) => {
  const shapes = new Shapes()
  shapes.learn(frame('Hi'), 'trim')
  for (const content of [
    '',
    'Hi',
    '"\\\n\u2028',
    '{"usage":{}}',
    '"finish_reason":"stop"',
    '\u{1F600}',
  ]) {
    t.equal(shapes.find(frame(content, 'x'.repeat(content.length))), 'trim', content)
  }
  for (const other of [
    frame('Hi').replace('null}', '"stop"}'),
    frame('Hi').replace('"usage":null', '"usage":{}'),
    frame('Hi').replace('"index":0', '"index":1'),
    frame('Hi').slice(0, -1),
    `${frame('Hi')} `,
    frame('Hi').replace('"Hi"', '"Hi'),
    frame('Hi').replace('"Hi"', '"\\x"'),
    frame('Hi').replace('"Hi"', '"\\u12"'),
    frame('Hi').replace('"Hi"', '"\n"'),
    frame('Hi').replace('"Hi"', 'null'),
    '',
  ]) {
    t.equal(shapes.find(other), null, other)
  }
  t.end()
})

void t.test(
  'shapes are few, and an upstream that never repeats one is not learnt for ever',
  (t) => {
    const shapes = new Shapes()
    const other = (at: number): string => frame('x').replace('"created":1', `"created":${at}`)
    for (let at = 0; at < 5; at += 1) shapes.learn(other(at), '')
    t.equal(shapes.find(other(0)), null, 'the oldest made room')
    t.equal(shapes.find(other(1)), '')
    for (let at = 5; at < 30; at += 1) shapes.learn(other(at), '')
    t.equal(shapes.find(other(29)), null)
    t.end()
  },
)

void t.test('no broken frame passes, wherever a byte of it is wrong', (t) => {
  const roll = dice(7)
  let passed = 0
  for (let round = 0; round < 3_000; round += 1) {
    const tap = newTap()
    for (const content of ['Hi', ' there']) tap.frame('', frame(content))
    const good = frame(' you', 'cdE')
    const at = roll(good.length)
    const bad = good.slice(0, at) + String.fromCharCode(roll(256)) + good.slice(at + roll(3))
    if (!tap.frame('', bad)) continue
    passed += 1
    t.ok(isObject(JSON.parse(bad)), bad)
  }
  t.ok(passed > 100, `${passed} were whole all the same`)
  t.end()
})

/** What the client gets of these frames. */
function through(frames: readonly string[], includeUsage: boolean): string {
  const stream = new PassedStream(newTap(includeUsage))
  let out = ''
  for (const data of frames)
    out += stream.write(Buffer.from(`data: ${data}\n\n`)).toString('latin1')
  return out + stream.end().toString('latin1')
}

void t.test('`usage: null` goes only to clients that asked for usage', (t) => {
  const last = frame('').replace('"finish_reason":null', '"finish_reason":"stop"')
  const spaced = JSON.stringify(JSON.parse(frame('.')), null, ' ').replaceAll('\n', '')
  const inText = frame(',"usage":null')
  const frames = [frame(''), frame('Hi'), frame(' all'), spaced, inText, last, '[DONE]']
  const whole = frames.map((data) => `data: ${data}\n\n`).join('')
  t.equal(through(frames, true), whole, 'byte for byte')
  const cut = whole.replaceAll(/(?<!\\),\s*"usage"\s*:\s*null/g, '')
  t.equal(through(frames, false), cut)
  t.equal(cut.match(/usage/g)?.length, 1, 'what the text says stays')
  t.end()
})

void t.test('where it cannot be told which is meant, nothing is taken away', (t) => {
  const nested = frame('Hi').replace('"index":0', '"index":0,"usage":null')
  const first =
    '{"usage":null,"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}'
  const frames = [nested, first, chunk({}, 'stop'), '[DONE]']
  t.equal(through(frames, false), frames.map((data) => `data: ${data}\n\n`).join(''))
  t.end()
})
