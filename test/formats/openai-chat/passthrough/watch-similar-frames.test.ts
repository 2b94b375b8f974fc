/**
 * Goal: in a stream that passes through, no malformed frame and no `usage: null` that only the gateway
 * requested is forwarded; usage is read at any position.
 * Method: frames of several vendors, unchanged and with one byte changed by a seeded generator; every
 * forwarded frame must be JSON with the sent content.
 */
import t from 'tap'
import { isObject } from '../../../../src/base/json.js'
import { PassthroughStream } from '../../../../src/gateway/streams/passthrough-stream.js'
import { seededRoll } from '../../../properties/transcript-streams.js'
import { chunk, upstreamCodec } from '../driver.js'
import type { StreamWatcher } from '../../../../src/formats/dialect.js'

const newWatcher = (includeUsage = false): StreamWatcher => {
  const watcher = upstreamCodec.newWatcher?.({ includeUsage })
  if (watcher === undefined) throw new Error('no watcher')
  return watcher
}

/** A frame of OpenAI for a client that requested usage. */
function frame(content: string, obfuscation = 'aB'): string {
  return (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,' +
    `"delta":{"content":${JSON.stringify(content)}},"logprobs":null,"finish_reason":null}],` +
    `"usage":null,"obfuscation":"${obfuscation}"}`
  )
}

void t.test('no frame with a wrong byte is forwarded', (t) => {
  const roll = seededRoll(7)
  let passed = 0
  for (let round = 0; round < 3_000; round += 1) {
    const watcher = newWatcher()
    for (const content of ['Hi', ' there']) watcher.frame('', frame(content))
    const good = frame(' you', 'cdE')
    const at = roll(good.length)
    const bad = good.slice(0, at) + String.fromCharCode(roll(256)) + good.slice(at + roll(3))
    if (!watcher.frame('', bad)) continue
    passed += 1
    t.ok(isObject(JSON.parse(bad)), bad)
  }
  t.ok(passed > 100, `${passed} were still valid JSON`)
  t.end()
})

void t.test('usage in every frame is read from every frame', (t) => {
  const watcher = newWatcher(true)
  const counted = (at: number): string =>
    frame(`word ${at}`).replace(
      '"usage":null',
      `"usage":{"prompt_tokens":7,"completion_tokens":${at},"total_tokens":${at + 7}}`,
    )
  for (let at = 0; at < 12; at += 1) {
    t.ok(watcher.frame('', counted(at)))
    t.same(watcher.usage, { input: 7, output: at })
  }
  t.end()
})

/** The bytes of these frames that the client receives. */
function through(frames: readonly string[], includeUsage: boolean): string {
  const stream = new PassthroughStream(newWatcher(includeUsage))
  let out = ''
  for (const data of frames) out += stream.write(Buffer.from(`data: ${data}\n\n`)).toString('latin1')
  return out + stream.end().toString('latin1')
}

void t.test('`usage: null` is forwarded only to clients that requested usage', (t) => {
  const last = frame('').replace('"finish_reason":null', '"finish_reason":"stop"')
  const spaced = JSON.stringify(JSON.parse(frame('.')), null, ' ').replaceAll('\n', '')
  const inText = frame(',"usage":null')
  const frames = [frame(''), frame('Hi'), frame(' all'), spaced, inText, last, '[DONE]']
  const whole = frames.map((data) => `data: ${data}\n\n`).join('')
  t.equal(through(frames, true), whole, 'byte for byte')
  const cut = whole.replaceAll(/(?<!\\),\s*"usage"\s*:\s*null/g, '')
  t.equal(through(frames, false), cut)
  t.equal(cut.match(/usage/g)?.length, 1, 'the text of the reply is unchanged')
  t.end()
})

void t.test('an ambiguous frame is forwarded unchanged', (t) => {
  const nested = frame('Hi').replace('"index":0', '"index":0,"usage":null')
  const first = '{"usage":null,"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}'
  const frames = [nested, first, chunk({}, 'stop'), '[DONE]']
  t.equal(through(frames, false), frames.map((data) => `data: ${data}\n\n`).join(''))
  t.end()
})
