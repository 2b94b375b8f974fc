/**
 * Goal: a passed-through stream has the upstream's bytes without the frames that are not for the client, and
 * a final result does not change.
 * Method: small streams, cut at the places where bytes could be lost or duplicated.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { GatewayError } from '../../../src/errors.js'
import { PassthroughStream } from '../../../src/gateway/streams/passthrough-stream.js'
import { type Translation } from '../../../src/formats/translated-stream.js'
import { translateReply } from '../../../src/gateway/streams/whole-reply.js'
import { client, PAIRS, REQUEST, SEED, upstream } from '../../properties/transcript-streams.js'

const chunk = (delta: JsonObject, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const HELLO = chunk({ role: 'assistant', content: 'Héllo' })
const STOP = chunk({}, 'stop')
const USAGE = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n`
const DONE = 'data: [DONE]\n\n'
const ERROR = `data: {"error":{"message":"gone","type":"server_error"}}\n\n`

function open(includeUsage = false): Translation {
  const { newWatcher } = upstream('openai-chat')
  if (newWatcher === null) throw new Error('chat completions cannot pass')
  return new PassthroughStream(newWatcher({ includeUsage }))
}

function feed(translation: Translation, ...chunks: string[]): string {
  const out = chunks.map((text) => Buffer.from(translation.write(Buffer.from(text))).toString())
  return out.join('') + Buffer.from(translation.end()).toString()
}

void t.test('a chunk that passes whole is not copied', (t) => {
  const translation = open()
  const bytes = Buffer.from(HELLO)
  translation.write(Buffer.from(HELLO))
  t.equal(translation.write(bytes), bytes)
  t.end()
})

void t.test('a usage frame that the client did not request is left out, and counted', (t) => {
  const translation = open(false)
  t.equal(feed(translation, HELLO, STOP, USAGE, DONE), HELLO + STOP + DONE)
  t.match(translation, { outcome: 'complete', usage: { input: 3, output: 2 }, reason: 'stop' })
  t.equal(feed(open(true), HELLO + STOP + USAGE + DONE), HELLO + STOP + USAGE + DONE)
  t.end()
})

void t.test('comments beside a frame that is held back still pass', (t) => {
  const around = `${HELLO}: one\n\n${STOP}: two\n\n${USAGE}: three\n\n${DONE}`
  const expected = around.replace(USAGE, '')
  t.equal(feed(open(), around), expected, 'in one chunk')
  t.equal(feed(open(), ...Array.from(around)), expected, 'and byte by byte')
  t.end()
})

void t.test('bytes after the terminator are dropped, for all chunk boundaries', (t) => {
  const whole = HELLO + STOP + DONE
  for (const after of [': bye\n\n', '\n\n', HELLO, ERROR, 'data: x']) {
    t.equal(feed(open(), whole + after), whole, 'in one chunk')
    t.equal(feed(open(), whole, after), whole, 'in two')
  }
  t.end()
})

void t.test('a carriage return that waits for its line feed is neither moved nor duplicated', (t) => {
  const crlf = (text: string): string => text.replaceAll('\n', '\r\n')
  const [hello, done] = [crlf(HELLO), crlf(STOP + DONE)]
  t.equal(feed(open(), hello.slice(0, -1), `\n${done}`), hello + done)
  // A chunk that begins and ends with a deferred CR has the same length as the output but differs from it.
  const lone = (text: string): string => text.replaceAll('\n', '\r')
  const [first, second] = [lone(HELLO), lone(chunk({ content: 'x' }))]
  t.equal(feed(open(), first, second, lone(STOP), lone(DONE)), first + second + lone(STOP + DONE))
  const blank = `${HELLO}\r`
  t.equal(feed(open(), blank, `${HELLO}\r`, STOP, DONE), `${blank}${HELLO}\r${STOP}${DONE}`)
  t.end()
})

void t.test('an error inside the stream never reaches the client unchanged', (t) => {
  const translation = open()
  t.equal(feed(translation, HELLO, `: still there\n\n${ERROR}: after\n\n`), `${HELLO}: still there\n\n`)
  t.match(translation, { outcome: 'failed', error: { kind: 'upstream_failed' } })
  t.end()
})

void t.test('an end without a terminator is complete with a finish reason, truncated without one', (t) => {
  const complete = open()
  t.equal(feed(complete, HELLO, STOP), HELLO + STOP + DONE, 'the client gets its terminator')
  t.match(complete, { outcome: 'complete', error: null, reason: 'stop' })
  const cut = open()
  t.equal(feed(cut, HELLO, STOP.slice(0, -9)), HELLO)
  t.match(cut, { outcome: 'failed', error: { kind: 'upstream_truncated' } })
  const done = open()
  const ended = feed(done, HELLO, DONE)
  t.ok(ended.startsWith(HELLO) && ended.endsWith(DONE), 'the terminator after content is an end')
  t.match(ended.slice(HELLO.length), /"delta":\{\},"finish_reason":"stop"/, 'with its reason')
  t.match(done, { outcome: 'complete', error: null, reason: 'stop' })
  const empty = open()
  t.equal(feed(empty, DONE), '', 'and without content it does not end the stream')
  t.match(empty, { outcome: 'failed', error: { kind: 'upstream_truncated' } })
  t.end()
})

void t.test('an event above the size limit fails in every pair, and earlier output is kept', (t) => {
  const giant = Buffer.from(`data: ${'x'.repeat(17 * 1024 * 1024)}`)
  for (const pair of PAIRS) {
    const translation = pair.open()
    translation.write(giant)
    t.match(translation, { outcome: 'failed', error: { kind: 'upstream_malformed' } }, pair.name)
    t.equal(translation.write(Buffer.from(DONE)).length, 0)
    t.equal(translation.end().length, 0)
  }
  t.end()
})

void t.test('content is output that a retry would repeat', (t) => {
  const role = chunk({ role: 'assistant', content: '' })
  for (const pair of PAIRS.filter(({ dialect }) => dialect === 'openai-chat')) {
    const translation = pair.open()
    translation.write(Buffer.from(`: comment\n\n${role}`))
    t.equal(translation.content, false, `${pair.name}: a role is not content`)
    translation.write(Buffer.from(HELLO))
    t.equal(translation.content, true)
  }
  t.end()
})

void t.test('an empty stream is never an empty success', (t) => {
  for (const pair of PAIRS) {
    for (const text of ['', ': only\n\n: comments\n\n', 'event: ping\n\n', '\n\n\n', 'data:\n\n']) {
      const translation = pair.open()
      translation.write(Buffer.from(text))
      translation.end()
      t.equal(translation.outcome, 'failed', `${pair.name}: ${JSON.stringify(text)}`)
      t.ok(translation.error?.kind.startsWith('upstream_'))
    }
  }
  t.end()
})

void t.test('an invalid whole reply fails and has no body', (t) => {
  for (const dialect of ['openai-chat', 'anthropic', 'gemini'] as const) {
    for (const body of [{}, { choices: [], content: 7, candidates: 'x' }, { error: { code: 503 } }]) {
      const reply = translateReply(body, {
        upstreamCodec: upstream(dialect),
        clientCodec: client,
        request: REQUEST,
        seed: SEED,
      })
      t.equal(reply.outcome, 'failed', `${dialect} ${JSON.stringify(body)}`)
      t.equal(reply.body, '')
      if (reply.error === null) throw new Error('failed without an error')
      t.ok(new GatewayError(reply.error.kind, reply.error.message).message.length > 0)
    }
  }
  t.end()
})
