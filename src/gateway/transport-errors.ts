/**
 * Maps failed connections and timeouts to the client's errors. The only module that reads error codes of the
 * transport.
 */
import type { PassedTimeout } from './timeouts.js'
import { GatewayError, rowOf, type WireError } from '../errors.js'
import { CredentialError } from './upstreams/identities/cloud-identity.js'

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
  return thrown instanceof GatewayError && thrown.kind === 'overloaded' ? thrown.wire : UNEXPECTED_FAILURE
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
const CLIENT_STALLED: Readonly<WireError> = {
  kind: 'client_stalled',
  message: 'The client read its reply too slowly.',
}

/** The body of a whole reply exceeds the limit. */
export const REPLY_TOO_LARGE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is too large.",
}

/** The predicate of the error message for each timeout. */
const TIMEOUT_TEXTS = {
  connect: 'did not accept a connection in time',
  'first byte': 'did not begin to reply in time',
  idle: 'sent nothing for too long',
  total: 'took too long',
} as const

/** The error of a timeout that has passed. */
export function timeoutErrorOf(passed: Exclude<PassedTimeout, 'linger'>): WireError {
  if (passed === 'stalled') return CLIENT_STALLED
  return { kind: 'upstream_timeout', message: `The upstream ${TIMEOUT_TEXTS[passed]}.` }
}

/**
 * The error of an attempt, with the upstream's name in the message if the upstream failed (502 or 504).
 * `status` is that of its reply; null if there is none.
 */
export function withUpstream(error: WireError, upstream: string, status: number | null): WireError {
  const isNamed = [502, 504].includes(rowOf(error.kind).status)
  if (!isNamed) return error
  return { ...error, message: namedMessage(error.message, `upstream '${upstream}'`, status) }
}

function namedMessage(message: string, named: string, status: number | null): string {
  if (message.includes(`The ${named}`)) return message
  if (message.startsWith("The upstream's reply ")) {
    return message.replace("The upstream's reply", `The reply of the ${named}`)
  }
  if (message.startsWith('The upstream ')) return message.replace('The upstream', `The ${named}`)
  // The provider's own words.
  const what = status === null || status < 400 ? 'failed' : `answered ${status}`
  return `The ${named} ${what}: ${message}`
}

/** The progress of an exchange when its connection failed. */
type Progress = 'connecting' | 'sent' | 'in reply'

/** The client's error for a failed connection. Contains no host name; `cause` is for the log. */
export function transportError(cause: unknown, progress: Progress): WireError {
  if (cause instanceof CredentialError) {
    const { message, retryAfterSeconds } = cause
    return { kind: 'upstream_credential', message, retryAfterSeconds }
  }
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
    const message = `The upstream ${lost(code)} before its reply was complete.`
    return { kind: 'upstream_truncated', message, upstreamCode: code }
  }
  const message = `The upstream ${lost(code)} without a reply.`
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
    const message = `The upstream ${TIMEOUT_TEXTS.connect}.`
    return { kind: 'upstream_timeout', message, upstreamCode: code }
  }
  // Names of classes are for the log.
  const shown = /^[A-Z][A-Z0-9_]+$/.test(code) ? ` (${code})` : ''
  const message = `The upstream ${connectFailure(code)}${shown}.`
  return { kind: 'upstream_unreachable', message, upstreamCode: code }
}

function lost(code: string): string {
  return code === 'ECONNRESET' ? 'reset the connection' : 'closed the connection'
}

/** Codes of Node and OpenSSL for a certificate or a handshake that failed. */
const TLS = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|EPROTO$)/

/** The predicate of the message for a connection that could not be opened; without addresses. */
function connectFailure(code: string): string {
  if (TLS.test(code)) return 'failed the TLS handshake'
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused the connection'
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return 'closed the connection while it was being opened'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
      return 'has a host name that could not be resolved'
    case 'EHOSTUNREACH':
    case 'EHOSTDOWN':
    case 'ENETUNREACH':
    case 'ENETDOWN':
      return 'is not reachable from the network of the gateway'
    case 'PROXY_FAILED':
      return 'could not be reached through the proxy'
    default:
      return 'could not be reached'
  }
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
