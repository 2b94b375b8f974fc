/**
 * What the head of an upstream's answer says before its body: its form, and whether it can be read.
 * Knows no socket and no body. Headers are name, value, … as they came.
 */
import type { WireError } from '../errors.js'
import { fieldOf } from '../wire/http-message.js'

/** A 200 of another content type than this API's. */
export const OTHER_TYPE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is of another content type.',
}

/** The upstream's own name for the exchange, bounded; null where it has none. */
export function requestIdIn(headers: readonly string[]): string | null {
  const id = fieldOf(headers, 'x-request-id') ?? fieldOf(headers, 'request-id')
  return id === undefined ? null : id.slice(0, 128)
}

/** True where the body is a stream of events. */
export function isEventStream(headers: readonly string[]): boolean {
  return typeOf(headers).startsWith('text/event-stream')
}

/** A 200 that cannot be read: compressed though identity was asked, or not of this API. */
export function unreadable(headers: readonly string[]): WireError | null {
  const encoding = fieldOf(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    return { kind: 'upstream_malformed', message: 'The upstream compressed its reply unasked.' }
  }
  const type = typeOf(headers)
  return type === '' || type.includes('json') || isEventStream(headers) ? null : OTHER_TYPE
}

/** In lower case, as most write it anyway. */
function typeOf(headers: readonly string[]): string {
  const type = fieldOf(headers, 'content-type') ?? ''
  return type === 'application/json' ? type : type.toLowerCase()
}
