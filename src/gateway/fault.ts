/**
 * What a failing connection means to the client. The one place that reads a transport's error codes.
 */
import { GatewayError, type WireError } from '../errors.js'

/** What a client learns of a failure that nobody foresaw; the log has the rest. */
export const UNFORESEEN: Readonly<WireError> = {
  kind: 'bug',
  message: 'The gateway failed; tell its operator the request id.',
}

/** What a client learns of something thrown: that there is no room for the reply, or nothing. */
export function wireOf(thrown: unknown): WireError {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded' ? thrown.wire : UNFORESEEN
}

/** Why an answer that is read on without its client is given up. */
export const LEFT: Readonly<WireError> = {
  kind: 'client_gone',
  message: 'The client closed the connection.',
}

/** The codes of an answer that is not HTTP. */
const MALFORMED = new Set(['HEAD_TOO_LARGE', 'BAD_HEAD', 'BAD_BODY'])

/** A time-out, by what the upstream did. */
export function tooLate(what: string): WireError {
  return { kind: 'upstream_timeout', message: `The upstream ${what}.` }
}

/** `inReply`: the head had arrived and the body was cut. Never names a host; the cause is for the log. */
export function transportError(cause: unknown, inReply: boolean): WireError {
  const code = codeOf(cause)
  if (MALFORMED.has(code)) {
    return {
      kind: 'upstream_malformed',
      message: 'The upstream’s answer is not valid HTTP.',
      upstreamCode: code,
    }
  }
  if (inReply) {
    const message = 'The upstream closed the connection before its reply was complete.'
    return { kind: 'upstream_truncated', message, upstreamCode: code }
  }
  if (code === 'CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    const message = 'The upstream did not accept a connection in time.'
    return { kind: 'upstream_timeout', message, upstreamCode: code }
  }
  if (code === 'CLOSED' || code === 'ECONNRESET' || code === 'EPIPE') {
    const message = 'The upstream closed the connection without an answer.'
    return { kind: 'upstream_failed', message, upstreamCode: code }
  }
  const message = 'The upstream could not be reached.'
  return { kind: 'upstream_unreachable', message, upstreamCode: code }
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
}
