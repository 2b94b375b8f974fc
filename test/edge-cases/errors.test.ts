/**
 * Goal: known bugs of other gateways in error replies do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's error body through the codecs.
 */
import t from 'tap'
import type { JsonObject } from '../../src/base/json.js'
import { upstream } from './drive-codecs.js'

function openai(status: number, error: JsonObject) {
  return upstream('openai-chat').decodeError(status, {}, JSON.stringify({ error }))
}

void t.test('61: any text with “too long” was taken for a full context window', (t) => {
  // https://github.com/BerriAI/litellm/issues/17904; https://github.com/OpenHands/OpenHands/issues/7167
  const message = "Invalid 'tools[0].function.name': string too long, maximum context length 64"
  const param = 'tools[0].function.name'
  const name = openai(400, { message, param, code: 'string_above_max_length' })
  t.match(name, { kind: 'upstream_rejected', upstreamCode: 'string_above_max_length', param })
  const full = openai(400, { message: 'Too much.', code: 'context_length_exceeded' })
  t.match(full, { kind: 'context_too_long', upstreamCode: 'context_length_exceeded' })
  t.end()
})

void t.test('62: a spent quota was retried as a rate limit', (t) => {
  // https://platform.openai.com/docs/guides/error-codes
  for (const error of [{ code: 'insufficient_quota' }, { type: 'insufficient_quota' }]) {
    t.match(openai(429, { message: 'You exceeded your current quota', ...error }), {
      kind: 'upstream_busy',
      retryable: false,
    })
  }
  t.not(openai(429, { message: 'Slow down', code: 'rate_limit_exceeded' }).retryable, false)
  t.end()
})

void t.test("63: Anthropic's spending limit was retried for hours", (t) => {
  // https://docs.anthropic.com/en/api/errors
  for (const error_code of ['enforced_spend_limit_reached', 'contract_spend_limit_reached']) {
    const error = { type: 'rate_limit_error', message: 'Limit', details: { error_code } }
    const body = JSON.stringify({ type: 'error', error })
    const received = upstream('anthropic').decodeError(429, {}, body)
    t.match(received, { kind: 'upstream_busy', retryable: false })
    t.equal(received.retryAfterSeconds, undefined)
  }
  const error = {
    type: 'rate_limit_error',
    message: 'Limit',
    details: { error_code: 'ramp_limit_exceeded' },
  }
  const received = upstream('anthropic').decodeError(429, { 'retry-after': '9' }, JSON.stringify({ error }))
  t.not(received.retryable, false)
  t.equal(received.retryAfterSeconds, 9)
  t.end()
})
