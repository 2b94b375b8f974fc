/**
 * Goal: every form in which upstreams state a retry delay is read; invalid values are ignored.
 * Method: hand-written headers of every form.
 */
import t from 'tap'
import { retryAfterSeconds } from '../../../src/formats/wire/retry-after.js'

const DATE = { date: 'Fri, 20 Nov 2026 12:00:00 GMT' }

function after(wait: string, remaining = '0'): number | undefined {
  return retryAfterSeconds({
    ...DATE,
    'x-ratelimit-remaining-tokens': remaining,
    'x-ratelimit-reset-tokens': wait,
  })
}

void t.test('retry-after takes precedence', (t) => {
  t.equal(retryAfterSeconds({ 'retry-after-ms': '1500', 'retry-after': '9' }), 2)
  t.equal(retryAfterSeconds({ 'retry-after': '9' }), 9)
  t.equal(retryAfterSeconds({ 'retry-after': '0.2' }), 1)
  t.equal(retryAfterSeconds({ ...DATE, 'retry-after': 'Fri, 20 Nov 2026 12:00:05 GMT' }), 5)
  t.equal(retryAfterSeconds({ 'retry-after': 'Fri, 20 Nov 2026 12:00:05 GMT' }), undefined)
  t.equal(retryAfterSeconds({ 'retry-after': '99999' }), 3600, 'an hour at most')
  t.equal(retryAfterSeconds({ 'retry-after': 'soon' }), undefined)
  t.equal(retryAfterSeconds({}), undefined)
  t.end()
})

void t.test('else the reset of an exhausted limit, as a Go duration', (t) => {
  t.equal(after('120ms'), 1)
  t.equal(after('6m0s'), 360)
  t.equal(after('1h0m30s'), 3600)
  t.equal(after('2m59.56s'), 180)
  t.equal(after('7.66s'), 8)
  t.equal(after('0s'), undefined)
  t.equal(after('6m0s', '17'), undefined, 'a limit that is not exhausted is ignored')
  for (const nonsense of ['', 'm', '5', '5x', '-3s', '1s 2s', 's5']) {
    t.equal(after(nonsense), undefined, nonsense)
  }
  t.end()
})

void t.test("else the time of Anthropic's reset headers; the latest of several", (t) => {
  const headers = {
    ...DATE,
    'anthropic-ratelimit-requests-remaining': '0',
    'anthropic-ratelimit-requests-reset': '2026-11-20T12:00:20Z',
    'anthropic-ratelimit-output-tokens-remaining': '0',
    'anthropic-ratelimit-output-tokens-reset': '2026-11-20T12:01:00.500Z',
    'anthropic-ratelimit-input-tokens-remaining': '5',
    'anthropic-ratelimit-input-tokens-reset': '2026-11-20T13:00:00Z',
  }
  t.equal(retryAfterSeconds(headers), 61)
  t.equal(retryAfterSeconds({ ...headers, date: '' }), undefined, "only the upstream's own clock is used")
  t.end()
})
