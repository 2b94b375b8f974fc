/**
 * One request with its reply: identity, sockets and cancellation. What the phases found out is in `observe/results.ts`.
 */
import type { Identity } from '../accounts/account.js'
import { GatewayError } from '../errors.js'
import type { HttpRequest, HttpResponse, Upgrade } from '../http/message.js'
import { pathOf } from '../http/request-guard.js'
import { hasLeft, REFUSED } from '../http/respond.js'
import type { LimitReservation } from '../limits/limit-reservation.js'
import { Cancellation } from './cancellation.js'
import type { Generation } from './generation/generation.js'
import type { RequestTrace } from './observe/trace-context.js'
import { NOT_LISTED, type InFlightItem } from './in-flight/in-flight-list.js'

/** What sending a request and recording it takes: an exchange with a client, or a shadow request, which has none. */
export interface RequestContext {
  readonly id: string
  readonly generation: Generation
  readonly cancellation: Cancellation
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** The trace that it belongs to; null if it has none. */
  readonly trace: RequestTrace | null
}

/** What an exchange is made of. */
export interface ExchangeParts {
  readonly id: string
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly generation: Generation
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** The account that it runs as and the path that it asks for, if another part of the process has authenticated it. */
  readonly as?: { readonly identity: Identity; readonly path: string } | null
  /** The connection of a request for a WebSocket. */
  readonly upgrade?: Upgrade | null
}

/** One request, from its head to its ledger entry. */
export class Exchange implements InFlightItem, RequestContext {
  listIndex = NOT_LISTED
  readonly id: string
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly generation: Generation
  readonly cancellation = new Cancellation()
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** The client's address, taken from `X-Forwarded-For` behind trusted proxies. */
  readonly clientAddress: string
  /** Without the query. */
  readonly path: string
  readonly upgrade: Upgrade | null
  /** Set if another part of the process has authenticated the request; null: its key decides. */
  readonly runsAs: Identity | null
  /** The digest of its key, once known: revoking the key cancels the exchange. */
  keyDigest: string | null = null
  /** The reservation of its limits while it runs: the limiter renews it. */
  limitReservation: LimitReservation | null = null
  /** The trace that it belongs to; null if it has none. */
  trace: RequestTrace | null = null
  /** The reply was ended with an error: that its connection closes does not mean that the client left. */
  endedWithError = false

  constructor({ id, req, res, generation, startedMs, as = null, upgrade = null }: ExchangeParts) {
    this.id = id
    this.req = req
    this.res = res
    this.generation = generation
    this.startedMs = startedMs
    this.clientAddress = generation.proxies.addressOf(req)
    this.path = as === null ? pathOf(req.url ?? '') : as.path
    this.runsAs = as === null ? null : as.identity
    this.upgrade = upgrade
    res.once('close', () => this.closed())
    res.once(REFUSED, (error: GatewayError) => this.cancellation.cancel(error))
  }

  /** A client may leave in any phase (another gateway once held 24,000 zombie streams). */
  private closed(): void {
    if (this.endedWithError || hasLeft(this.res)) return
    this.cancellation.cancel(new GatewayError('client_gone', 'The client closed the connection.'))
  }
}
