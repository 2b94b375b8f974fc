/**
 * What a failing connection means to the client. The one place that reads a transport's error codes.
 */
import type { WireError } from '../errors.js'

/** What a client learns of a failure that nobody foresaw; the log has the rest. */
export const UNFORESEEN: Readonly<WireError> = {
  kind: 'bug',
  message: 'The gateway failed; tell its operator the request id.',
}

/** A time-out, by what the upstream did not do in time. */
export function tooLate(what: string): WireError {
  return { kind: 'upstream_timeout', message: `The upstream ${what} in time.` }
}

/** `inReply`: the head had arrived and the body was cut. Never names a host; the cause is for the log. */
export function transportError(cause: unknown, inReply: boolean): WireError {
  const code = codeOf(cause)
  if (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW') {
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
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    const message = 'The upstream did not accept a connection in time.'
    return { kind: 'upstream_timeout', message, upstreamCode: code }
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE') {
    const message = 'The upstream closed the connection without an answer.'
    return { kind: 'upstream_failed', message, upstreamCode: code }
  }
  const message = 'The upstream could not be reached.'
  return { kind: 'upstream_unreachable', message, upstreamCode: code }
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if ('code' in cause && typeof cause.code === 'string') return cause.code
  // The parser's errors have a code of their own, but not for everything that it refuses.
  return cause.name === 'HTTPParserError' ? 'HPE_OTHER' : ''
}
