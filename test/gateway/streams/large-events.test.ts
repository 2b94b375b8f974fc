/**
 * Goal: an event that is too large to be parsed passes byte for byte if both sides use the same format, and
 * its usage counts; otherwise the stream fails and names the limit. The boundaries of chunks change nothing.
 * Method: streams in chunks of several sizes, through the translations alone.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { clientCodecOf } from '../../../src/formats/index.js'
import { PassthroughStream } from '../../../src/gateway/streams/passthrough-stream.js'
import { TranslatedStream, type Translation } from '../../../src/formats/translated-stream.js'
import { REQUEST, SEED, upstream } from '../../properties/transcript-streams.js'

const SIZES = [1_000, 65_536, 70_000, Infinity]
const chunk = (delta: JsonObject, more = ''): string =>
  `data: {"id":"c","choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":null}]${more}}\n\n`
const HELLO = chunk({ role: 'assistant', content: 'Héllo' })
const STOP = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`
const USAGE = '"usage":{"prompt_tokens":3,"completion_tokens":2}'
const DONE = 'data: [DONE]\n\n'
const DENSE = '[],'.repeat(200_000)
const LETTERS = 'é"'.repeat(200_000)

function pass(maxKeptBytes?: number): PassthroughStream {
  const { newWatcher } = upstream('openai-chat')
  if (newWatcher === null) throw new Error('chat completions cannot pass')
  return new PassthroughStream(newWatcher({ includeUsage: true }), maxKeptBytes)
}

function translate(): TranslatedStream {
  const formats = {
    upstreamCodec: upstream('openai-chat'),
    clientCodec: clientCodecOf('anthropic'),
  }
  return new TranslatedStream({ ...formats, request: REQUEST, seed: SEED })
}

function feed(translation: Translation, text: string, size: number): string {
  const bytes = Buffer.from(text)
  const out: Buffer[] = []
  const take = (output: string | Buffer): void => {
    out.push(Buffer.from(output))
    while (translation.isPending) out.push(Buffer.from(translation.more()))
  }
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) {
    take(translation.write(bytes.subarray(at, Math.min(at + size, bytes.length))))
  }
  take(translation.end())
  return Buffer.concat(out).toString()
}

void t.test('a dense event passes, and its usage counts', (t) => {
  const large = chunk({ content: LETTERS }, `,"more":[${DENSE}0],${USAGE}`)
  for (const size of SIZES) {
    const stream = pass()
    const whole = HELLO + large + STOP + DONE
    t.equal(feed(stream, whole, size) === whole, true, `in chunks of ${size}`)
    t.match(stream, { outcome: 'complete', usage: { input: 3, output: 2 }, reason: 'stop' })
    t.ok(stream.outputSize.bytes > 600_000, `${stream.outputSize.bytes} bytes of text`)
  }
  t.end()
})

void t.test('a dense event is refused in another format', (t) => {
  for (const size of SIZES) {
    const stream = translate()
    const output = feed(stream, HELLO + chunk({ content: 'never shown' }, `,"more":[${DENSE}0]`) + STOP, size)
    t.match(output, /Héllo/)
    t.notMatch(output, /never shown/)
    t.match(stream.error, {
      kind: 'upstream_malformed',
      message: /event is too complex to be translated: it has more than 200000 structural tokens/,
    })
  }
  t.end()
})

void t.test('a deep event of ordinary size is bounded too', (t) => {
  const deep = chunk({}, `,"more":${'['.repeat(6_000)}${']'.repeat(6_000)},${USAGE}`)
  const passed = pass()
  const whole = HELLO + deep + STOP + DONE
  t.equal(feed(passed, whole, Infinity), whole)
  t.match(passed, { outcome: 'complete', usage: { input: 3, output: 2 } })
  const refused = translate()
  feed(refused, HELLO + deep + STOP + DONE, Infinity)
  t.match(refused.error, { message: /more than 64 levels/ })
  t.end()
})

void t.test('a large event within the limits is translated', (t) => {
  const image = {
    images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(400_000)}` } }],
  }
  const text = chunk({ content: LETTERS })
  for (const size of SIZES) {
    const stream = translate()
    const output = feed(stream, HELLO + text + chunk(image) + chunk({ content: 'after' }) + STOP + DONE, size)
    t.equal(stream.outcome, 'complete', `in chunks of ${size}`)
    t.ok(output.includes(JSON.stringify(LETTERS)), 'the text')
    t.ok(output.indexOf('after') > output.indexOf(JSON.stringify(LETTERS)), 'in its order')
    t.ok(output.includes('message_stop'))
  }
  t.end()
})

void t.test('the error event after a cut event is one of its own', (t) => {
  const cut = (HELLO + chunk({ content: LETTERS }, `,"more":[${DENSE}0]`)).slice(0, -200)
  const stream = pass()
  const output = feed(stream, cut, 65_536)
  t.equal(output === `${cut}\n\n`, true)
  t.equal(stream.outcome, 'failed')
  t.end()
})

void t.test('an event that may be stored is read whole within the limits', (t) => {
  const seen: boolean[] = []
  const { newWatcher } = upstream('openai-responses')
  if (newWatcher === null) throw new Error('responses cannot pass')
  const onWhole = (): void => void seen.push(stream.readsOutline)
  const stream = new PassthroughStream(newWatcher({ includeUsage: true, onWhole }), 4_000_000)
  const item = { type: 'message', content: [{ type: 'output_text', text: LETTERS }] }
  const response = {
    id: 'r',
    status: 'completed',
    output: [item],
    usage: { input_tokens: 3, output_tokens: 2 },
  }
  const whole = `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response })}\n\n`
  t.equal(feed(stream, whole, 65_536) === whole, true)
  t.same(seen, [false])
  t.equal(stream.outputSize.bytes, 0, 'its text is not counted twice')
  t.end()
})
