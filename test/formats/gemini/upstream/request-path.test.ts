/**
 * Goal: a request is sent to the model's own path only, with the key in a header.
 * Method: valid and hostile model ids.
 */
import t from 'tap'
import { gemini } from '../../../../src/formats/gemini/index.js'
import { GatewayError, type WireError } from '../../../../src/errors.js'

const upstreamCodec = gemini.upstreamCodec

/** The error for a model id; null if it is accepted. */
function refusal(model: string): WireError | null {
  try {
    upstreamCodec?.target(model, true)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
}

void t.test('paths', (t) => {
  t.strictSame(upstreamCodec?.target('gemini-3.5-flash', false), {
    path: '/models/gemini-3.5-flash:generateContent',
    accept: 'application/json',
  })
  t.strictSame(upstreamCodec?.target('gemini-3.5-flash', true), {
    path: '/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
    accept: 'text/event-stream',
  })
  t.match(upstreamCodec?.target('gemini-2.0-flash@001', false), {
    path: /^\/models\/gemini-2\.0-flash%40001:/,
  })
  t.end()
})

void t.test('a model id is one segment of the path', (t) => {
  const hostile = [
    '',
    '.',
    '..',
    '../x',
    'a/b',
    'a?key=1',
    'a#b',
    'a%2f',
    'a b',
    'a\r\nb',
    'a\\b',
    'é',
    '\ud800',
    'a'.repeat(129),
  ]
  for (const model of hostile) {
    t.match(refusal(model), { kind: 'unknown_model', param: 'model' })
  }
  t.equal(
    upstreamCodec?.target('a:generateContent', false).path,
    '/models/a%3AgenerateContent:generateContent',
  )
  t.doesNotThrow(() => upstreamCodec?.target('a'.repeat(128), true))
  t.notMatch(refusal('secret/../path')?.message, /secret/, 'the message does not repeat the id')
  t.end()
})

void t.test('the dialect has both sides', (t) => {
  t.equal(gemini.name, 'gemini')
  t.strictSame(upstreamCodec?.credential('k'), { 'x-goog-api-key': 'k' })
  t.strictSame(upstreamCodec?.headers({}), {})
  t.equal(upstreamCodec?.framing, 'sse')
  t.end()
})
