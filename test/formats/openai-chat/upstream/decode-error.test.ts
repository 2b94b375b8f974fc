/**
 * Goal: an upstream's failure has the right kind and retry delay, and contains no secrets.
 * Method: hand-written statuses, headers and bodies, and all recorded failures.
 */
import t from 'tap'
import { stringOf } from '../../../../src/base/json.js'
import { ERRORS } from '../../../../src/errors.js'
import { decodeErrorPayload } from '../../../../src/formats/wire/openai/decode-error.js'
import { fixturesFolder, recordings } from '../../../helpers/fixtures.js'
import { upstreamCodec, clientCodec, expectObject } from '../driver.js'

const body = (error: object): string => JSON.stringify({ error })

void t.test('the status determines the kind', (t) => {
  const rows: [number, string][] = [
    [400, 'upstream_rejected'],
    [401, 'upstream_denied'],
    [402, 'upstream_busy'],
    [403, 'upstream_denied'],
    [404, 'unknown_model'],
    [405, 'upstream_rejected'],
    [408, 'upstream_timeout'],
    [409, 'upstream_rejected'],
    [413, 'body_too_large'],
    [422, 'upstream_rejected'],
    [429, 'upstream_busy'],
    [499, 'upstream_failed'],
    [500, 'upstream_failed'],
    [502, 'upstream_failed'],
    [503, 'upstream_busy'],
    [504, 'upstream_timeout'],
    [520, 'upstream_failed'],
    [529, 'upstream_busy'],
    [302, 'upstream_failed'],
  ]
  for (const [status, kind] of rows) {
    t.equal(upstreamCodec.decodeError(status, {}, body({ message: 'M' })).kind, kind, String(status))
    const html = upstreamCodec.decodeError(status, {}, '<html><title>Bad</title>long page</html>')
    t.equal(html.kind, status === 404 ? 'upstream_misconfigured' : kind, `${status} html`)
    t.notMatch(html.message, 'long page')
  }
  t.end()
})

void t.test('the code and the parameter distinguish variants; the text is not used', (t) => {
  const kind = (status: number, error: object): string =>
    upstreamCodec.decodeError(status, {}, body(error)).kind
  t.equal(kind(400, { code: 'model_not_found' }), 'unknown_model')
  t.equal(kind(404, { code: 'DeploymentNotFound' }), 'unknown_model')
  t.equal(kind(404, { param: 'file_id' }), 'upstream_rejected')
  t.equal(kind(400, { message: 'model_not_found insufficient_quota' }), 'upstream_rejected')
  const rejected = upstreamCodec.decodeError(400, {}, body({ message: 'Bad', param: 'top_p', code: 'x' }))
  const kept = { message: 'Bad', param: 'top_p', upstreamCode: 'x', code: 'x' }
  t.same(rejected, { kind: 'upstream_rejected', ...kept })
  t.end()
})

void t.test('an exhausted quota is not retryable', (t) => {
  const quota = upstreamCodec.decodeError(429, {}, body({ message: 'M', code: 'insufficient_quota' }))
  t.match(quota, { kind: 'upstream_busy', retryable: false, code: 'insufficient_quota' })
  const unpaid = upstreamCodec.decodeError(402, {}, body({ message: 'M', code: 402 }))
  t.equal(unpaid.code, 'insufficient_quota', 'a vendor that repeats the status as the code')
  t.equal(upstreamCodec.decodeError(402, {}, body({ message: 'M' })).retryable, false)
  t.equal(upstreamCodec.decodeError(429, {}, body({ message: 'M' })).retryable, undefined)
  const reported = upstreamCodec.decodeError(500, { 'x-should-retry': 'false' }, body({ message: 'M' }))
  t.equal(reported.retryable, false)
  t.end()
})

void t.test('the retry delay is that of the headers', (t) => {
  const wait = (headers: Record<string, string>): number | undefined =>
    upstreamCodec.decodeError(429, headers, '').retryAfterSeconds
  t.equal(wait({ 'retry-after': '7' }), 7)
  t.equal(wait({ 'retry-after': '1.2' }), 2)
  t.equal(wait({ 'retry-after': '0' }), 0)
  t.equal(wait({ 'retry-after-ms': '1500', 'retry-after': '9' }), 2)
  t.equal(wait({ 'retry-after': '999999' }), 3600)
  for (const bad of ['', 'soon', '-1', 'Fri, 20 Nov 2026 00:00:00 GMT', 'NaN', '1e3']) {
    t.equal(wait({ 'retry-after': bad }), undefined, bad)
  }
  t.end()
})

void t.test('messages are redacted and bounded', (t) => {
  const secrets = [
    'sk-proj-abcDEF123456',
    'sk_abcDEF1234567890',
    'gsk_abcDEF1234567890',
    'AIzaSyA1234567890abcdef',
    'org-AbCdEf123456',
    'Bearer abc.def-123456',
  ]
  for (const secret of secrets) {
    const { message } = upstreamCodec.decodeError(400, {}, body({ message: `about ${secret}.` }))
    t.notMatch(message, secret.slice(-8), secret.slice(0, 5))
    t.match(message, /^about /)
    const param = upstreamCodec.decodeError(400, {}, body({ message: 'M', param: secret, code: secret }))
    t.notMatch(JSON.stringify(param), secret.slice(-8))
  }
  const long = upstreamCodec.decodeError(400, {}, body({ message: 'é'.repeat(60_000) }))
  t.ok(long.message.length <= 2_048)
  const denied = upstreamCodec.decodeError(401, {}, body({ message: 'Wrong key sk-abc****xyz' }))
  t.equal(denied.message, "The upstream refused the gateway's own credentials.")
  t.end()
})

/** Bodies of other servers, and their words. */
const FOREIGN: readonly (readonly [body: string, words: string])[] = [
  [
    '{"detail":[{"loc":["body","top_k"],"msg":"Input is no number","type":"int"}]}',
    'body.top_k: Input is no number',
  ],
  [
    '{"object":"error","message":{"detail":[{"loc":["body",0],"msg":"Too few"}]},"code":null}',
    'body.0: Too few',
  ],
  ['{"detail":[{"msg":"One"},{"msg":"Two"}]}', 'One; Two'],
  ['{"detail":{"error":"Quota of the day"}}', 'Quota of the day'],
  ['{"error":{"detail":"Inside"}}', 'Inside'],
  ['{"success":false,"errors":[{"code":5004,"message":"No such field"}],"result":null}', 'No such field'],
  ['{"errors":["first","second"]}', 'first; second'],
  ['{"errors":{"message":"alone"}}', 'alone'],
  ['{"code":20015,"msg":"Bad size","data":null}', 'Bad size'],
  ['{"Message":"From a proxy"}', 'From a proxy'],
  ['{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}', 'invalid params'],
  [
    '{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"too many stops\\"}}"}}}',
    'Provider returned error (too many stops)',
  ],
  [
    '{"error":{"message":"Provider returned error","metadata":{"raw":"no seats left"}}}',
    'Provider returned error (no seats left)',
  ],
  ['Bad Request', 'Bad Request'],
  ['"quoted"', 'quoted'],
  ['<p>Bad Request', 'Bad Request'],
  ['{"error":{"message":"The list of tools', 'The list of tools'],
  ['{"error":{"message":"Cut \\"later\\"","param":["a', 'Cut "later"'],
]

void t.test('bodies in other forms have their words, or a generic message', (t) => {
  const read = (text: string): string => upstreamCodec.decodeError(400, {}, text).message
  t.equal(read('{"error":"plain"}'), 'plain')
  t.equal(read('[{"error":{"message":"listed"}}]'), 'listed')
  t.equal(read('{"object":"error","message":"flat"}'), 'flat')
  t.equal(read('{"detail":"detailed"}'), 'detailed')
  for (const [text, words] of FOREIGN) t.equal(read(text), words, text)
  t.equal(read('{"error":{}}'), 'The upstream answered 400 without a message.')
  for (const none of ['', 'null', '7', '""', '[]', '{', '<p></p>']) {
    t.equal(read(none), 'The upstream answered 400 without a readable error.')
  }
  t.end()
})

void t.test('recorded failures have their kinds', (t) => {
  const folder = fixturesFolder()
  let count = 0
  for (const { name, recording } of folder === null ? [] : recordings(folder)) {
    const it = expectObject(recording)
    const status = Number(it['status'])
    if (it['api'] !== 'chat.completions' || status < 400) continue
    const text = stringOf(it['response_body']) ?? ''
    const error = upstreamCodec.decodeError(status, {}, text)
    t.equal(ERRORS[error.kind].status === status || status === 401, true, `${name} ${error.kind}`)
    t.not(error.message, '')
    count += 1
  }
  t.comment(`${count} recorded failures`)
  t.end()
})

void t.test('a context overflow is recognized by its code, not by its message', (t) => {
  const long = { code: 'context_length_exceeded', message: 'Too many tokens.', param: 'messages' }
  const error = upstreamCodec.decodeError(400, {}, body(long))
  t.equal(error.kind, 'context_too_long')
  const actual = expectObject(JSON.parse(clientCodec.encodeError(error).body))['error']
  t.match(actual, { message: 'Too many tokens.', code: 'context_length_exceeded' })
  for (const message of [
    "This model's maximum context length is 8192 tokens.",
    'string too long: context_length_exceeded',
  ]) {
    const other = upstreamCodec.decodeError(400, {}, body({ code: 'string_above_max_length', message }))
    t.equal(other.kind, 'upstream_rejected', message)
  }
  t.end()
})

void t.test('an error in a body with status 200 has the status that it names', (t) => {
  const filtered = { code: 'content_filter', status: 400, param: 'prompt', message: 'Filtered.' }
  t.match(decodeErrorPayload(filtered), { kind: 'upstream_rejected', param: 'prompt' })
  t.equal(decodeErrorPayload({ code: 529, message: 'Busy.' }).kind, 'upstream_busy')
  t.equal(decodeErrorPayload({ status: 'failed', message: 'M' }).kind, 'upstream_failed')
  t.end()
})
