/**
 * Goal: every kind of error has the documented shape, with the type for its status.
 * Method: the whole error table.
 */
import t from 'tap'
import { ERRORS } from '../../../src/errors.js'
import type { ErrorKind } from '../../../src/errors.js'
import { errorBody } from '../../../src/formats/wire/openai/error-body.js'

const TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  408: 'invalid_request_error',
  413: 'invalid_request_error',
  415: 'invalid_request_error',
  426: 'invalid_request_error',
  429: 'rate_limit_error',
  431: 'invalid_request_error',
  499: 'invalid_request_error',
  500: 'api_error',
  502: 'api_error',
  503: 'api_error',
  504: 'api_error',
}

/** `code` by kind; null for the other kinds. */
const CODES: Readonly<Record<string, string | number>> = {
  unauthenticated: 401,
  jwt_invalid: 401,
  jwt_issuer: 401,
  jwt_unknown_key: 401,
  jwt_expired: 401,
  jwt_audience: 401,
  jwt_claims: 401,
  jwt_revoked: 401,
  unknown_model: 'model_not_found',
  context_too_long: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  budget_exceeded: 'insufficient_quota',
  auth_throttled: 'rate_limit_exceeded',
  upstream_busy: 'rate_limit_exceeded',
}

void t.test('every kind has the shape and type of its status', (t) => {
  for (const [kind, { status }] of Object.entries(ERRORS)) {
    const body: unknown = JSON.parse(errorBody({ kind: kind as ErrorKind, message: 'm "x"' }))
    const code = CODES[kind] ?? null
    const error = { message: 'm "x"', type: TYPES[status], code, kind }
    t.same(body, { error }, kind)
  }
  t.end()
})

void t.test('a body has the parameter at fault, and no fields of the log', (t) => {
  const body = errorBody({
    kind: 'malformed_request',
    message: 'm',
    param: 'messages[0]',
    retryAfterSeconds: 3,
    upstreamCode: 'secret',
  })
  t.match(body, '"param":"messages[0]"')
  t.notMatch(body, /secret|retry/i)
  t.end()
})
