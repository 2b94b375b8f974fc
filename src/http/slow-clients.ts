/**
 * The limits on clients that send a body too slowly or do not read their reply. HTTP/1.1 and HTTP/2 measure
 * the bytes; the rules are the same.
 */
import { breachOf } from './refuse-request.js'
import type { HttpRequest, HttpResponse } from './message.js'
import { abortReply } from './respond.js'

/** Minimum rate of a body after its grace, bytes per ms. */
const MIN_BODY_RATE = 1024 / 1000

/** The refusal of a body that does not arrive at the minimum rate. */
export const LATE_BODY = breachOf('ERR_HTTP_REQUEST_TIMEOUT')

/** A body that has not arrived completely. */
export interface PendingBody {
  readonly req: HttpRequest
  /** When the wait for the body began, by `performance.now`. */
  readonly sinceMs: number
  /** The bytes that have arrived since then. */
  readonly bytes: number
  /** Time in ms after which the body must arrive at the minimum rate. */
  readonly graceMs: number
}

/** Whether a body arrives more slowly than allowed. A body that its handler does not read is never late. */
export function isBodyLate({ req, sinceMs, bytes, graceMs }: PendingBody, nowMs: number): boolean {
  return req.readableFlowing === true && nowMs - sinceMs > graceMs + bytes / MIN_BODY_RATE
}

/** Abandons a reply of which the client has read no byte for `clientStallMs`, if bytes wait to be read. */
export function abandonIfStalled(res: HttpResponse, unsentBytes: number): void {
  if (unsentBytes > 0) abortReply(res)
}
