/**
 * Maps failed connections and timeouts to the client's errors. The only module that reads error codes of the
 * transport.
 */
import { GatewayError, type WireError } from '../errors.js'

/** The client's error for an unexpected failure; the log has its details. */
export const UNEXPECTED_FAILURE: Readonly<WireError> = {
  kind: 'bug',
  message: 'The gateway failed unexpectedly; report the request id to its operator.',
}

/**
 * The client's error for a thrown value: `overloaded` if there is no memory for the reply, else without
 * details.
 */
export function wireErrorOf(thrown: unknown): WireError {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded'
    ? thrown.wire
    : UNEXPECTED_FAILURE
}

/** The error of a drained reply that exceeds its time limit: its client has left. */
export const CLIENT_LEFT: Readonly<WireError> = {
  kind: 'client_gone',
  message: 'The client closed the connection.',
}

/** No connection to the upstream became free within `connect_ms`. */
export const NO_FREE_CONNECTION: Readonly<WireError> = {
  kind: 'overloaded',
  message: 'All connections of the gateway to the upstream are in use; try again.',
  retryAfterSeconds: 1,
}

/** The reply exceeded `total_ms` because its client did not read. */
export const CLIENT_STALLED: Readonly<WireError> = {
  kind: 'client_stalled',
  message: 'The client read its reply too slowly.',
}

/** The body of a whole reply exceeds the limit. */
export const REPLY_TOO_LARGE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is too large.",
}

/** The predicate of the error message for each timeout. */
export const TIMEOUT_TEXTS = {
  connect: 'did not accept a connection in time',
  'first byte': 'did not begin to reply in time',
  idle: 'sent nothing for too long',
  total: 'took too long',
} as const

/** The error of a timeout; `what` is the predicate of the message. */
export function timeoutError(what: string): WireError {
  return { kind: 'upstream_timeout', message: `The upstream ${what}.` }
}

/** The progress of an exchange when its connection failed. */
type Progress = 'connecting' | 'sent' | 'in reply'

/** The client's error for a failed connection. Contains no host name; `cause` is for the log. */
export function transportError(cause: unknown, progress: Progress): WireError {
  const code = codeOf(cause)
  if (progress === 'connecting') return notConnected(code)
  if (isMalformed(cause, code, progress)) {
    return {
      kind: 'upstream_malformed',
      message: "The upstream's reply is not valid HTTP.",
      upstreamCode: code,
    }
  }
  if (progress === 'in reply') {
    const message = 'The upstream closed the connection before its reply was complete.'
    return { kind: 'upstream_truncated', message, upstreamCode: code }
  }
  const message = 'The upstream closed the connection without a reply.'
  return { kind: 'upstream_failed', message, upstreamCode: code }
}

/** System error codes for a lack of file descriptors, ports or memory in the gateway itself. */
const EXHAUSTED = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

function notConnected(code: string): WireError {
  if (code === 'DESTROYED' || code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') {
    return { kind: 'draining', message: 'The gateway is shutting down; please try again.' }
  }
  if (code === 'BAD_REQUEST') return { ...UNEXPECTED_FAILURE, upstreamCode: code }
  if (EXHAUSTED.has(code)) {
    const message = 'The gateway cannot open more connections; try again.'
    return { kind: 'overloaded', message, upstreamCode: code, retryAfterSeconds: 1 }
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    const message = 'The upstream did not accept a connection in time.'
    return { kind: 'upstream_timeout', message, upstreamCode: code }
  }
  const message = 'The upstream could not be reached.'
  return { kind: 'upstream_unreachable', message, upstreamCode: code }
}

/**
 * Whether the reply is not valid HTTP. A body that is shorter than its length, or than its chunks, is
 * truncated instead; undici uses its code for that also for two different lengths in a head.
 */
function isMalformed(cause: unknown, code: string, progress: Progress): boolean {
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return true
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return progress === 'sent'
  if (code !== 'HTTPParserError') return false
  return progress === 'sent' || !messageOf(cause).includes('EOF')
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : ''
}

/** The code of the error; the name of its class if it has none, as for undici's parser errors. */
function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
}
