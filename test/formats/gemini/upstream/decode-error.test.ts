/**
 * Goal: Google's errors have the right kind, a safe message and the requested delay.
 * Method: a table of statuses and payloads.
 */
import t from 'tap'
import { decodeError, decodeStreamError } from '../../../../src/formats/gemini/upstream/decode-error.js'
import { redactUpstreamText } from '../../../../src/formats/wire/upstream-errors.js'

function payload(error: object): string {
  return JSON.stringify({ error })
}

void t.test('the status decides the kind', (t) => {
  const kinds = {
    400: 'upstream_rejected',
    401: 'upstream_denied',
    402: 'upstream_busy',
    403: 'upstream_denied',
    404: 'unknown_model',
    408: 'upstream_timeout',
    409: 'upstream_rejected',
    413: 'body_too_large',
    422: 'upstream_rejected',
    429: 'upstream_busy',
    499: 'upstream_failed',
    500: 'upstream_failed',
    501: 'upstream_failed',
    502: 'upstream_failed',
    503: 'upstream_busy',
    504: 'upstream_timeout',
    302: 'upstream_failed',
  }
  for (const [status, kind] of Object.entries(kinds)) {
    const error = decodeError(Number(status), {}, payload({ message: 'why', status: 'S' }))
    t.equal(error.kind, kind, status)
    t.equal(error.upstreamCode, 'S')
    if (kind !== 'upstream_denied') t.equal(error.message, 'why')
  }
  t.end()
})

void t.test("an error about the gateway's own key is not passed to the client", (t) => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
  const body = payload({ code: 400, message: 'API key not valid: AIzaSyD', details })
  const error = decodeError(400, {}, body)
  t.match(error, { kind: 'upstream_denied', upstreamCode: 'API_KEY_INVALID' })
  t.notMatch(error.message, /AIza|valid/)
  t.end()
})

void t.test('the delay is that of RetryInfo, else of the header, at most an hour', (t) => {
  const busy = (delay: string | null, headers = {}): number | undefined => {
    const details = delay === null ? [] : [{ '@type': 'RetryInfo', retryDelay: delay }]
    return decodeError(429, headers, payload({ message: 'm', details })).retryAfterSeconds
  }
  t.equal(busy('34.4s'), 35)
  t.equal(busy('34s', { 'retry-after': '7' }), 34)
  t.equal(busy('0s'), 0)
  t.equal(busy('86400s'), 3600)
  t.equal(busy('soon'), undefined)
  t.equal(busy(null, { 'retry-after': '7' }), 7)
  t.equal(busy(null, { 'retry-after': '99999' }), 3600)
  const date = 'Fri, 20 Nov 2026 12:00:00 GMT'
  t.equal(busy(null, { 'retry-after': 'Fri, 20 Nov 2026 12:00:09 GMT', date }), 9)
  t.equal(busy(null, { 'retry-after': 'Fri, 20 Nov 2026 12:00:09 GMT' }), undefined)
  t.equal(busy(null, { 'retry-after': 'junk' }), undefined)
  t.end()
})

void t.test('an exhausted daily quota is not retryable', (t) => {
  const details = [
    { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
    { retryDelay: '20s' },
  ]
  const error = decodeError(429, { 'retry-after': '20' }, payload({ message: 'quota', details }))
  t.match(error, { kind: 'upstream_busy', retryable: false })
  t.equal(error.retryAfterSeconds, undefined, 'a delay of seconds would be wrong')
  const minute = [{ violations: [{ quotaId: 'GenerateRequestsPerMinute' }] }]
  t.equal(decodeError(429, {}, payload({ details: minute })).retryable, undefined)
  t.end()
})

void t.test('arrays, HTML, invalid and empty bodies', (t) => {
  const inner = { code: 503, message: 'overloaded', status: 'UNAVAILABLE' }
  t.match(decodeError(503, {}, JSON.stringify([{ error: inner }])), { message: 'overloaded' })
  for (const body of [
    '',
    '<html></html>',
    '[]',
    'null',
    '{"error":7}',
    '{"error":{"message":5,"details":{}}}',
  ]) {
    const error = decodeError(502, {}, body)
    t.match(error, {
      kind: 'upstream_failed',
      message: 'The upstream answered 502 and gave no reason.',
    })
  }
  t.match(decodeError(500, {}, '{"error":"plain words"}'), { message: 'plain words' })
  t.end()
})

void t.test("inside a stream the payload's code determines the kind", (t) => {
  t.equal(decodeStreamError({ code: 429 }).kind, 'upstream_busy')
  t.equal(decodeStreamError({ status: 'UNAUTHENTICATED' }).kind, 'upstream_denied')
  t.equal(decodeStreamError({ code: 7, status: 'NOT_FOUND' }).kind, 'unknown_model')
  t.equal(decodeStreamError({ status: 'toString' }).kind, 'upstream_failed')
  t.match(decodeStreamError('words'), { kind: 'upstream_failed', message: 'words' })
  t.equal(decodeStreamError(true).kind, 'upstream_failed')
  t.end()
})

void t.test('messages carry no credentials and are bounded', (t) => {
  const dirty = [
    'AIzaSyA-1234567890_abcdefghij',
    'sk-ant-api03-abcdefgh',
    'sk_live_abcdefgh1234',
    'AQ.Ab8RN6J-1234567890abcdefghij',
    'ya29.a0AfH6SMBx-y_z12345',
    'Bearer abc.def-ghi',
  ]
  for (const secret of dirty) {
    t.notOk(
      redactUpstreamText(`key ${secret} refused`).includes(secret.replace('Bearer ', '')),
      secret.slice(0, 4),
    )
  }
  t.equal(
    redactUpstreamText('see https://x.example/v1?key=hunter2&alt=sse'),
    'see https://x.example/v1?key=[redacted]&alt=sse',
  )
  t.equal(
    redactUpstreamText('in projects/my-team-42/locations, project_number:123456789'),
    'in projects/[redacted]/locations, project_number:[redacted]',
  )
  t.equal(redactUpstreamText('x'.repeat(2048)).length, 2048)
  const cut = redactUpstreamText('x'.repeat(2046) + '🌊🌊')
  t.ok(cut.length <= 2048 && !/[\ud800-\udbff](?![\udc00-\udfff])/.test(cut), 'cut between characters')
  t.equal(redactUpstreamText('x'.repeat(1e6)).length, 2048)
  t.end()
})

void t.test('a context overflow is recognized by the whole message, not by a part of it', (t) => {
  const kind = (message: string, status = 400): string =>
    decodeError(status, {}, payload({ code: status, message, status: 'INVALID_ARGUMENT' })).kind
  const message = 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).'
  t.equal(kind(message), 'context_too_long')
  t.equal(
    kind('The input token count exceeds the maximum number of tokens allowed (1048576).'),
    'context_too_long',
  )
  t.equal(kind(`Function name is too long: "${message}"`), 'upstream_rejected')
  t.equal(kind('The description exceeds the maximum number of tokens'), 'upstream_rejected')
  t.equal(kind(message, 500), 'upstream_failed', 'only for a rejected request')
  t.end()
})
