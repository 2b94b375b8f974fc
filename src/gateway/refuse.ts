/**
 * An exchange that ends in an error: what the client is told, and how the connection ends.
 * Every error, foreseen or not, comes through here once.
 */
import { errorFormatOf, methodsAt } from '../dialects/index.js'
import { gatewayError, GatewayError } from '../errors.js'
import { CODINGS } from '../http/content-encoding.js'
import { abandon, isGone, sendReply } from '../http/respond.js'
import { withoutSecrets } from '../wire/error-body.js'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'

/** After so long an upstream that is busy and does not say for how long may be asked again. */
const BUSY_SECONDS = 1

/** The error as it is to be told, whatever was thrown; notes it. Never throws. */
export function understood(x: Exchange, thrown: unknown): GatewayError {
  const error = thrown instanceof GatewayError ? thrown : gatewayError(UNFORESEEN, thrown)
  if (error.kind === 'bug') x.failure ??= error.cause ?? error
  x.facts.error = error
  return error
}

/** Answers with the error. Never throws. */
export function refuse(x: Exchange, error: GatewayError): void {
  const { res } = x
  // Where the head has left only a bug gets here: relay answers its own failures.
  if (error.kind === 'client_gone' || isGone(res) || res.headersSent) abandon(res)
  else send(x, error)
}

function send(x: Exchange, error: GatewayError): void {
  const { res } = x
  const format = errorFormatOf(x.dialect)
  const { status, body } = format.encodeError(withoutSecrets(error.wire), x.id)
  const headers = ['content-type', 'application/json', 'x-request-id', x.id]
  const { idHeader } = format.envelope
  if (idHeader !== null) headers.push(idHeader, x.id)
  headers.push('x-sluice-generation', String(x.generation.snapshot.generation))
  const upstream = x.facts.target?.upstream.config.name
  if (upstream !== undefined) headers.push('x-sluice-upstream', upstream)
  if (x.rateHeaders.length > 0) headers.push(...x.rateHeaders)
  if (x.facts.losses.length > 0) headers.push('x-sluice-lost', x.facts.losses.join(', '))
  const { retryable } = error.wire
  const retryAfterSeconds = error.wire.retryAfterSeconds ?? waitFor(error)
  if (retryAfterSeconds !== undefined) headers.push('retry-after', String(retryAfterSeconds))
  if (retryable === false) headers.push('x-should-retry', 'false')
  if (error.kind === 'method_not_allowed') headers.push('allow', methodsAt(x.path).join(', '))
  if (error.wire.param === 'content-encoding' && error.kind === 'unsupported_media_type') {
    headers.push('accept-encoding', CODINGS.join(', '))
  }
  if (error.kind === 'unauthenticated') headers.push('www-authenticate', 'Bearer')
  // What follows a broken request on its connection cannot be trusted to be one.
  if (error.kind === 'headers_too_large') headers.push('connection', 'close')
  x.facts.sentBytes = Buffer.byteLength(body)
  sendReply(res, status, headers, body)
}

/** What is said of a busy upstream that named no time; nothing where no other try helps. */
function waitFor({ kind, wire }: GatewayError): number | undefined {
  return kind === 'upstream_busy' && wire.retryable !== false ? BUSY_SECONDS : undefined
}
