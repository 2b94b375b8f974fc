/**
 * What a failing connection means to the client. The one place that reads a transport's error codes.
 */
import { GatewayError, type WireError } from '../errors.js'

/** What a client learns of a failure that nobody foresaw; the log has the rest. */
export const UNEXPECTED_FAILURE: Readonly<WireError> = {
  kind: 'bug',
  message: 'The gateway failed; tell its operator the request id.',
}

/** What a client learns of something thrown: that there is no room for the reply, or nothing. */
export function wireErrorOf(thrown: unknown): WireError {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded'
    ? thrown.wire
    : UNEXPECTED_FAILURE
}

/** Why an answer that is read on without its client is given up. */
export const CLIENT_LEFT: Readonly<WireError> = {
  kind: 'client_gone',
  message: 'The client closed the connection.',
}

/** Every connection to the upstream was in use for as long as a connection may take. */
export const NO_FREE_CONNECTION: Readonly<WireError> = {
  kind: 'overloaded',
  message: 'All connections of the gateway to the upstream are in use; try again.',
  retryAfterSeconds: 1,
}

/** The reply took longer than it may because its client did not read. */
export const CLIENT_STALLED: Readonly<WireError> = {
  kind: 'client_stalled',
  message: 'The client read its reply too slowly.',
}

/** The body of a whole reply exceeds the limit. */
export const REPLY_TOO_LARGE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is too large.",
}

/** What the upstream did, by the timeout that has passed. */
export const TIMEOUT_TEXTS = {
  connect: 'did not accept a connection in time',
  'first byte': 'did not begin to answer in time',
  idle: 'fell silent',
  total: 'took too long',
} as const

/** A time-out, by what the upstream did. */
export function timeoutError(what: string): WireError {
  return { kind: 'upstream_timeout', message: `The upstream ${what}.` }
}

/** How far the exchange had come when its connection failed. */
type Progress = 'connecting' | 'sent' | 'in reply'

/** Never names a host; the cause is for the log. */
export function transportError(cause: unknown, progress: Progress): WireError {
  const code = codeOf(cause)
  if (progress === 'connecting') return notConnected(code)
  if (isMalformed(cause, code, progress)) {
    return {
      kind: 'upstream_malformed',
      message: 'The upstream’s answer is not valid HTTP.',
      upstreamCode: code,
    }
  }
  if (progress === 'in reply') {
    const message = 'The upstream closed the connection before its reply was complete.'
    return { kind: 'upstream_truncated', message, upstreamCode: code }
  }
  const message = 'The upstream closed the connection without an answer.'
  return { kind: 'upstream_failed', message, upstreamCode: code }
}

/** Codes of the system when the gateway itself is out of file descriptors, ports or memory. */
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
 * A reply that is not HTTP. A body shorter than its length, or than its chunks, is a reply that was cut; two different
 * lengths in a head have undici's code for the former.
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

/** The code of the error; its class where it has none, as undici's parser errors. */
function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
}
