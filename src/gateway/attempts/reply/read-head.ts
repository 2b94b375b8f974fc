/**
 * Checks the head of an upstream's reply: whether its body is a stream, and whether it can be read.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../../errors.js'

/** A 200 with a content type that is neither JSON nor an event stream. */
export const OTHER_TYPE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply has an unexpected content type.",
}

/** The upstream's request id, at most 128 characters; null if it sent none. */
export function requestIdIn(headers: IncomingHttpHeaders): string | null {
  const id = fieldOf(headers['x-request-id'] ?? headers['request-id'])
  return id === undefined ? null : id.slice(0, 128)
}

/** True if the body is a stream of events. */
export function isEventStream(headers: IncomingHttpHeaders): boolean {
  return typeOf(headers).startsWith('text/event-stream')
}

/**
 * The error of a 200 that cannot be read: compressed although `identity` was requested, or of another type.
 */
export function unreadable(headers: IncomingHttpHeaders): WireError | null {
  const encoding = fieldOf(headers['content-encoding'])
  if (encoding !== undefined && encoding !== 'identity') {
    return {
      kind: 'upstream_malformed',
      message: 'The upstream compressed its reply without a request for it.',
    }
  }
  const coding = fieldOf(headers['transfer-encoding'])?.toLowerCase()
  if (coding !== undefined && coding !== 'chunked') {
    const message = "The upstream's reply has a transfer coding that was not requested."
    return { kind: 'upstream_malformed', message }
  }
  const type = typeOf(headers)
  return type === '' || type.includes('json') || isEventStream(headers) ? null : OTHER_TYPE
}

function typeOf(headers: IncomingHttpHeaders): string {
  return fieldOf(headers['content-type'])?.toLowerCase() ?? ''
}

/** One value; several fields of one name are joined (RFC 9110, 5.2). */
function fieldOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
