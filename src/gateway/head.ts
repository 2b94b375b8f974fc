/**
 * What the head of an upstream's answer says before its body: its form, and whether it can be read.
 * Knows no socket and no body.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../errors.js'

/** A 200 of another content type than this API's. */
export const OTHER_TYPE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is of another content type.',
}

/** One header as one bounded text; null where it is absent. */
export function headerText(value: string | string[] | undefined): string | null {
  if (value === undefined) return null
  return (typeof value === 'string' ? value : value.join(', ')).slice(0, 128)
}

/** True where the body is a stream of events. */
export function isEventStream(headers: IncomingHttpHeaders): boolean {
  return typeOf(headers).startsWith('text/event-stream')
}

/** A 200 that cannot be read: compressed though identity was asked, or not of this API. */
export function unreadable(headers: IncomingHttpHeaders): WireError | null {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    return { kind: 'upstream_malformed', message: 'The upstream compressed its reply unasked.' }
  }
  const type = typeOf(headers)
  return type === '' || type.includes('json') || isEventStream(headers) ? null : OTHER_TYPE
}

/** In lower case, as most write it anyway. */
function typeOf(headers: IncomingHttpHeaders): string {
  const type = headers['content-type'] ?? ''
  return type === 'application/json' ? type : type.toLowerCase()
}
