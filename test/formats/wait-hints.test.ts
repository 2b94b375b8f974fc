/**
 * Goal: an error that no wait helps has no hint of a wait, in any format and for every kind.
 * Method: every kind of error with a wait, through the encoders of errors; a provider whose quota is spent.
 */
import t from 'tap'
import { ERRORS, gatewayError, isRetryable, type ErrorKind, type WireError } from '../../src/errors.js'
import { clientCodecOf } from '../../src/formats/index.js'
import { startGateway } from '../helpers/gateway.js'
import { startRawUpstream } from '../helpers/raw-upstream.js'

const FORMATS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini'] as const

void t.test('every kind', (t) => {
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const cases: WireError[] = [
      { kind, message: 'No.', retryAfterSeconds: 77 },
      { kind, message: 'No.', retryAfterSeconds: 77, retryable: false },
    ]
    for (const wire of cases) {
      // The wait for a limit of rate is known, even if it is longer than SDKs wait.
      const helps = isRetryable(wire) || kind === 'rate_limited'
      t.equal(gatewayError(wire).wire.retryAfterSeconds, helps ? 77 : undefined, kind)
      for (const format of FORMATS) {
        const codec = clientCodecOf(format)
        const texts = [codec.encodeError(wire, 'id').body, codec.encodeStreamError(wire, 'id')]
        for (const text of texts) {
          t.equal(/RetryInfo.*77s/.test(text), helps && format === 'gemini', `${kind} in ${format}`)
          t.equal(text.includes('77'), helps && format === 'gemini')
        }
      }
    }
  }
  t.end()
})

void t.test('a spent quota of a provider with a hint of its own', async (t) => {
  const error = { type: 'insufficient_quota', code: 'insufficient_quota', message: 'Spent.' }
  const upstream = await startRawUpstream(t, () => ({
    status: 429,
    type: 'application/json',
    headers: { 'retry-after': '20' },
    chunks: [JSON.stringify({ error })],
  }))
  const gateway = await startGateway(t, { upstreams: { openai: `${upstream.origin}/v1` } })
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  const messages = [{ role: 'user', content: 'hi' }]
  for (const [path, body] of [
    ['/v1/chat/completions', { model: 'gpt-4o', messages }],
    ['/v1/responses', { model: 'gpt-4o', input: 'hi' }],
    ['/v1/messages', { model: 'gpt-4o', messages, max_tokens: 9 }],
    ['/v1beta/models/gpt-4o:generateContent', { contents }],
  ] as const) {
    const response = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    t.equal(response.headers.get('x-should-retry'), 'false', text)
    t.equal(response.headers.get('retry-after'), null, path)
    t.notMatch(text, /RetryInfo/)
  }
})
