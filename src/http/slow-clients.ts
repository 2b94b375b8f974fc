/**
 * The limits on clients that send a body too slowly or do not read their reply. HTTP/1.1 and HTTP/2 measure
 * the bytes; the rules are the same.
 */
import type { HttpRequest, HttpResponse } from './message.js'
import { breachOf } from './refuse-request.js'
import { abortReply } from './respond.js'

/** Minimum rate of a body after its grace, bytes per ms. */
const MIN_BODY_RATE = 1024 / 1000

/** The refusal of a body that does not arrive at the minimum rate. */
export const LATE_BODY = breachOf('ERR_HTTP_REQUEST_TIMEOUT')

/** A body that has not arrived completely. */
interface PendingBody {
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

/** How often the progress of a reply is checked within `clientStallMs`. */
const STALL_CHECKS = 4

/**
 * Abandons replies of which the client has read no byte for `clientStallMs`. Node's timeout of a socket or
 * stream reports that no byte moved since the last time, and is silent if one did; so several reports in a
 * row count. One report of the whole time would come up to three times too late, because each write begins it
 * anew.
 */
export class SlowClients {
  /** The timeout to set in Node, in ms. */
  readonly everyMs: number
  private readonly reports = new WeakMap<HttpResponse, { count: number; atMs: number }>()

  constructor(clientStallMs: number) {
    this.everyMs = Math.ceil(clientStallMs / STALL_CHECKS)
  }

  /** Takes a report; false if there is nothing to check again: all is sent, or the reply was abandoned. */
  stalled(res: HttpResponse, unsentBytes: number): boolean {
    if (unsentBytes === 0) return false
    const nowMs = performance.now()
    const { count, atMs } = this.reports.get(res) ?? { count: 0, atMs: nowMs }
    // After a silent check, the next report comes an interval later.
    const inARow = nowMs - atMs < 1.8 * this.everyMs ? count + 1 : 1
    if (inARow < STALL_CHECKS) {
      this.reports.set(res, { count: inARow, atMs: nowMs })
      return true
    }
    abortReply(res)
    return false
  }
}
