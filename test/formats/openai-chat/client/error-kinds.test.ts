/**
 * Goal: each kind of error has the status, `type` and `code` that clients depend on.
 * Method: the whole table is written out, because a changed row breaks clients.
 */
import t from 'tap'
import { objectOf } from '../../../../src/base/json.js'
import { ERRORS, type ErrorKind } from '../../../../src/errors.js'
import { encodeError, encodeStreamError } from '../../../../src/formats/openai-chat/client/encode-error.js'

const REPORTED = new Map<string, [status: number, type: string]>([
  ['malformed_request', [400, 'invalid_request_error']],
  ['untranslatable', [400, 'invalid_request_error']],
  ['guardrail_blocked', [400, 'invalid_request_error']],
  ['unauthenticated', [401, 'authentication_error']],
  ['dimension_required', [400, 'invalid_request_error']],
  ['invalid_dimension', [400, 'invalid_request_error']],
  ['jwt_invalid', [401, 'authentication_error']],
  ['jwt_issuer', [401, 'authentication_error']],
  ['jwt_unknown_key', [401, 'authentication_error']],
  ['jwt_expired', [401, 'authentication_error']],
  ['jwt_audience', [401, 'authentication_error']],
  ['jwt_claims', [401, 'authentication_error']],
  ['jwt_revoked', [401, 'authentication_error']],
  ['budget_exceeded', [402, 'insufficient_quota']],
  ['forbidden', [403, 'permission_error']],
  ['run_ended', [403, 'permission_error']],
  ['unknown_price', [403, 'permission_error']],
  ['plan_limit', [403, 'permission_error']],
  ['not_found', [404, 'invalid_request_error']],
  ['unknown_endpoint', [404, 'invalid_request_error']],
  ['unknown_model', [404, 'invalid_request_error']],
  ['unknown_response', [404, 'invalid_request_error']],
  ['unknown_object', [404, 'invalid_request_error']],
  ['method_not_allowed', [405, 'invalid_request_error']],
  ['request_timeout', [408, 'invalid_request_error']],
  ['body_too_large', [413, 'invalid_request_error']],
  ['no_websocket', [426, 'invalid_request_error']],
  ['unsupported_media_type', [415, 'invalid_request_error']],
  ['rate_limited', [429, 'rate_limit_error']],
  ['auth_throttled', [429, 'rate_limit_error']],
  ['headers_too_large', [431, 'invalid_request_error']],
  ['client_gone', [499, 'invalid_request_error']],
  ['client_stalled', [499, 'invalid_request_error']],
  ['bug', [500, 'api_error']],
  ['cannot_listen', [500, 'api_error']],
  ['store_unavailable', [503, 'api_error']],
  ['archive_unavailable', [503, 'api_error']],
  ['store_unconfirmed', [503, 'api_error']],
  ['draining', [503, 'api_error']],
  ['overloaded', [503, 'api_error']],
  ['identity_unavailable', [503, 'api_error']],
  ['guardrail_unavailable', [503, 'api_error']],
  ['upstream_unconfigured', [503, 'api_error']],
  ['upstream_credential', [503, 'api_error']],
  ['upstream_rejected', [400, 'invalid_request_error']],
  ['context_too_long', [400, 'invalid_request_error']],
  ['upstream_unreachable', [502, 'api_error']],
  ['upstream_denied', [502, 'api_error']],
  ['upstream_misconfigured', [502, 'api_error']],
  ['upstream_busy', [429, 'rate_limit_error']],
  ['upstream_failed', [502, 'api_error']],
  ['upstream_malformed', [502, 'api_error']],
  ['upstream_truncated', [502, 'api_error']],
  ['upstream_timeout', [504, 'api_error']],
])

/** `code` of the kinds that have one. */
const CODES = new Map<string, string | number>([
  ['unauthenticated', 401],
  ['jwt_invalid', 401],
  ['jwt_issuer', 401],
  ['jwt_unknown_key', 401],
  ['jwt_expired', 401],
  ['jwt_audience', 401],
  ['jwt_claims', 401],
  ['jwt_revoked', 401],
  ['unknown_model', 'model_not_found'],
  ['context_too_long', 'context_length_exceeded'],
  ['budget_exceeded', 'insufficient_quota'],
  ['rate_limited', 'rate_limit_exceeded'],
  ['auth_throttled', 'rate_limit_exceeded'],
  ['upstream_busy', 'rate_limit_exceeded'],
])

function isKind(name: string): name is ErrorKind {
  return name in ERRORS
}

/** The `error` member of a body. */
function errorOf(body: string): Record<string, unknown> {
  return objectOf(objectOf(JSON.parse(body))['error'])
}

const kinds = Object.keys(ERRORS).filter(isKind)

void t.test('the table contains every kind of error', (t) => {
  t.strictSame([...REPORTED.keys()].sort(), [...kinds].sort())
  t.end()
})

for (const kind of kinds) {
  void t.test(`${kind} has its status, type, code and kind`, (t) => {
    const [status, type] = REPORTED.get(kind) ?? []
    const answer = encodeError({ kind, message: 'Why.', param: 'a[0]' })
    t.equal(answer.status, status)
    const code = CODES.get(kind) ?? null
    t.match(errorOf(answer.body), { type, kind, param: 'a[0]', message: /^Why\.$/ })
    t.equal(errorOf(answer.body)['code'], kind === 'untranslatable' ? 'unsupported_parameter' : code)
    const frame = encodeStreamError({ kind, message: 'Why.' })
    t.match(frame, /^data: [^\n]+\n\n$/, 'one frame')
    const reported = errorOf(frame.slice('data: '.length))
    t.match(reported, { type, kind })
    t.equal(reported['code'], code)
    t.notOk('param' in reported, 'an error without a field has no param')
    t.end()
  })
}
