/**
 * Goal: each error of the upstream has the right kind, and the delay that the upstream requests.
 * Method: statuses, types, headers, and JSON, HTML and empty bodies.
 */
import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import type { WireError } from '../../../../src/errors.js'
import { upstreamCodec, decodeReply } from '../driver.js'

function decode(status: number, error: object | string, headers: IncomingHttpHeaders = {}): WireError {
  const body = typeof error === 'string' ? error : JSON.stringify({ type: 'error', error })
  return upstreamCodec.decodeError(status, headers, body)
}

void t.test('each status has its kind', (t) => {
  const eventTypes: [number, string][] = [
    [400, 'upstream_rejected'],
    [401, 'upstream_denied'],
    [402, 'upstream_busy'],
    [403, 'upstream_denied'],
    [404, 'unknown_model'],
    [408, 'upstream_timeout'],
    [409, 'upstream_rejected'],
    [413, 'body_too_large'],
    [422, 'upstream_rejected'],
    [429, 'upstream_busy'],
    [500, 'upstream_failed'],
    [502, 'upstream_failed'],
    [503, 'upstream_busy'],
    [504, 'upstream_timeout'],
    [529, 'upstream_busy'],
    [302, 'upstream_failed'],
  ]
  for (const [status, kind] of eventTypes) {
    const wire = decode(status, { type: 'some_error', message: 'Because.' })
    t.equal(wire.kind, kind, String(status))
    t.equal(wire.upstreamCode, 'some_error')
    for (const body of ['', '<html></html>', '[]', '{"error":""}', 'null']) {
      const bare = decode(status, body)
      t.equal(bare.kind, status === 404 ? 'upstream_misconfigured' : kind)
      t.notMatch(bare.message, /html|oops/)
      t.ok(bare.message.length > 10)
      t.equal(bare.upstreamCode, String(status))
    }
  }
  t.end()
})

void t.test("the upstream's message is passed on, except about the gateway's own key", (t) => {
  t.equal(
    decode(400, { type: 'invalid_request_error', message: 'messages: too few' }).message,
    'messages: too few',
  )
  const denied = decode(401, { type: 'authentication_error', message: 'invalid x-api-key of acme' })
  t.notMatch(denied.message, 'acme')
  const leaky = decode(400, { message: 'bad key sk-ant-api03-abcdefghijkl for org-12345678' })
  t.notMatch(leaky.message, /sk-ant|org-1/)
  t.ok(decode(400, { message: 'x'.repeat(60_000) }).message.length <= 2048)
  t.end()
})

void t.test('a reached spending limit is upstream_busy and not retryable', (t) => {
  const codes = ['enforced_spend_limit_reached', 'contract_spend_limit_reached']
  for (const error_code of codes) {
    const error = { type: 'rate_limit_error', message: 'm', details: { error_code } }
    const wire = decode(429, error, { 'retry-after': '5' })
    t.match(wire, { kind: 'upstream_busy', retryable: false, upstreamCode: error_code })
    t.equal(wire.retryAfterSeconds, undefined)
  }
  t.match(decode(402, ''), { kind: 'upstream_busy', retryable: false })
  t.match(decodeReply({ type: 'error', error: { type: 'billing_error' } }).error, {
    retryable: false,
  })
  const ramp = {
    type: 'rate_limit_error',
    message: 'm',
    details: { error_code: 'ramp_limit_exceeded' },
  }
  const wire = decode(429, ramp, { 'retry-after': '5' })
  t.match(wire, { retryAfterSeconds: 5 })
  t.equal(wire.retryable, undefined)
  t.end()
})

void t.test('retry-after is in seconds, rounded up and capped; invalid values are ignored', (t) => {
  const after = (headers: IncomingHttpHeaders): number | undefined =>
    decode(429, '', headers).retryAfterSeconds
  t.equal(after({ 'retry-after': '1.2' }), 2)
  t.equal(after({ 'retry-after': ' 0 ' }), 0)
  t.equal(after({ 'retry-after': '999999' }), 3600)
  t.equal(after({ 'retry-after-ms': '1500', 'retry-after': '9' }), 2)
  for (const bad of ['-1', 'soon', 'Fri, 20 Nov 2026 12:00:00 GMT', '1e9', '']) {
    t.equal(after({ 'retry-after': bad }), undefined, bad)
  }
  t.equal(after({}), undefined)
  t.equal(decode(529, '', { 'x-should-retry': 'false' }).retryable, false)
  t.end()
})

void t.test('a whole reply that is an error or has no content is an error', (t) => {
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Busy' } }
  t.match(decodeReply(overloaded).error, { kind: 'upstream_busy', message: 'Busy' })
  t.equal(decodeReply({}).error?.kind, 'upstream_malformed')
  t.equal(decodeReply({ content: 'x' }).error?.kind, 'upstream_malformed')
  t.equal(decodeReply({ content: [1] }).error?.kind, 'upstream_malformed')
  t.same(decodeReply({ content: [], stop_reason: 'end_turn' }).reply?.blocks, [])
  t.end()
})

void t.test('a context overflow is recognized by the whole message, not by a part of it', (t) => {
  const kind = (message: string): string => decode(400, { type: 'invalid_request_error', message }).kind
  t.equal(kind('prompt is too long: 210345 tokens > 200000 maximum'), 'context_too_long')
  t.equal(kind('prompt is too long'), 'context_too_long')
  t.equal(
    kind(
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    'context_too_long',
  )
  t.equal(kind('tools.0.name: prompt is too long: 70 > 64'), 'upstream_rejected')
  t.equal(kind('metadata.user_id: String is too long'), 'upstream_rejected')
  t.equal(decode(413, { type: 'request_too_large', message: 'too long' }).kind, 'body_too_large')
  t.end()
})

void t.test('an exhausted rate limit has the delay until its reset', (t) => {
  const headers = {
    date: 'Fri, 20 Nov 2026 12:00:00 GMT',
    'anthropic-ratelimit-requests-remaining': '12',
    'anthropic-ratelimit-requests-reset': '2026-11-20T12:30:00Z',
    'anthropic-ratelimit-input-tokens-remaining': '0',
    'anthropic-ratelimit-input-tokens-reset': '2026-11-20T12:00:41Z',
  }
  const error = { type: 'rate_limit_error', message: 'Slow down.' }
  t.equal(decode(429, error, headers).retryAfterSeconds, 41)
  t.equal(decode(429, error, { ...headers, 'retry-after': '7' }).retryAfterSeconds, 7)
  const spent = { ...error, details: { error_code: 'enforced_spend_limit_reached' } }
  const wire = decode(429, spent, headers)
  t.equal(wire.retryable, false)
  t.equal(wire.retryAfterSeconds, undefined)
  t.end()
})
