/** Sends the error reply of an exchange. Every error, expected or not, is sent here. */
import type { ClientCodec } from '../../formats/dialect.js'
import { allowedMethods } from '../../formats/index.js'
import { gatewayError, GatewayError, isRetryable, isTokenError, waitSecondsOf } from '../../errors.js'
import { CODINGS } from '../../http/content-encoding.js'
import { abortReply, isClosed, sendReply } from '../../http/respond.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import type { Exchange } from '../client-exchange.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'

/** `retry-after` for a busy upstream that sent none. */
const BUSY_SECONDS = 1

/** Converts a thrown value to the error for the client. */
export function toGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError ? thrown : gatewayError(UNEXPECTED_FAILURE, thrown)
}

/** The exception behind an error of kind `bug`, for the log; null for every other error. */
export function unexpectedFailureOf(error: GatewayError): unknown {
  return error.kind === 'bug' ? (error.cause ?? error) : null
}

/**
 * Replies with the error in the client's format; `headers` are name, value, …. Returns the size of the body
 * in bytes, 0 if no reply can be sent. Never throws.
 */
export function sendErrorReply(
  x: Exchange,
  error: GatewayError,
  { format, headers }: { format: ClientCodec; headers: readonly string[] },
): number {
  const { res } = x
  // If the head was sent, only a bug reaches this line: `relay` handles its own failures.
  if (error.kind === 'client_gone' || isClosed(res) || res.headersSent) {
    abortReply(res)
    return 0
  }
  const { status, body } = format.encodeError(withoutSecrets(error.wire), x.id)
  const { idHeader } = format.envelope
  const allHeaders = ['content-type', 'application/json', ...headers]
  if (idHeader !== null) allHeaders.push(idHeader, x.id)
  const retryAfterSeconds = waitSecondsOf(error.wire) ?? waitFor(error)
  if (retryAfterSeconds !== undefined) allHeaders.push('retry-after', String(retryAfterSeconds))
  if (!isRetryable(error.wire)) allHeaders.push('x-should-retry', 'false')
  if (error.kind === 'method_not_allowed') {
    const { barePaths: bare } = x.generation.snapshot.config.server
    allHeaders.push('allow', allowedMethods(x.path, { bare }).join(', '))
  }
  if (error.wire.param === 'content-encoding' && error.kind === 'unsupported_media_type') {
    allHeaders.push('accept-encoding', CODINGS.join(', '))
  }
  if (error.kind === 'unauthenticated') allHeaders.push('www-authenticate', 'Bearer')
  if (isTokenError(error.kind)) allHeaders.push('www-authenticate', 'Bearer error="invalid_token"')
  // The bytes after a request with a broken head may not be a valid request.
  if (error.kind === 'headers_too_large') allHeaders.push('connection', 'close')
  sendReply(res, { status, headers: allHeaders, body })
  return Buffer.byteLength(body)
}

/** The default `retry-after` of a busy upstream that sent none, unless the upstream forbids retries. */
function waitFor({ kind, wire }: GatewayError): number | undefined {
  return kind === 'upstream_busy' && wire.retryable !== false ? BUSY_SECONDS : undefined
}
