/**
 * What the head of an upstream's answer says before its body: its form, and whether it can be read.
 * Knows no socket and no body.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../../errors.js'

/** A 200 of another content type than this API's. */
export const OTHER_TYPE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is of another content type.',
}

/** The upstream's own name for the exchange, bounded; null where it has none. */
export function requestIdIn(headers: IncomingHttpHeaders): string | null {
  const id = fieldOf(headers['x-request-id'] ?? headers['request-id'])
  return id === undefined ? null : id.slice(0, 128)
}

/** True where the body is a stream of events. */
export function isEventStream(headers: IncomingHttpHeaders): boolean {
  return typeOf(headers).startsWith('text/event-stream')
}

/** A 200 that cannot be read: compressed though identity was asked, or not of this API. */
export function unreadable(headers: IncomingHttpHeaders): WireError | null {
  const encoding = fieldOf(headers['content-encoding'])
  if (encoding !== undefined && encoding !== 'identity') {
    return { kind: 'upstream_malformed', message: 'The upstream compressed its reply unasked.' }
  }
  const coding = fieldOf(headers['transfer-encoding'])?.toLowerCase()
  if (coding !== undefined && coding !== 'chunked') {
    const message = 'The upstream’s reply has a transfer coding that was not asked for.'
    return { kind: 'upstream_malformed', message }
  }
  const type = typeOf(headers)
  return type === '' || type.includes('json') || isEventStream(headers) ? null : OTHER_TYPE
}

function typeOf(headers: IncomingHttpHeaders): string {
  return fieldOf(headers['content-type'])?.toLowerCase() ?? ''
}

/** One value; several of one name are joined, as RFC 9110 has it. */
function fieldOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
