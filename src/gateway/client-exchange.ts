/** A client's request with its reply: the sockets, and what the client may still do to them. */
import type { Identity } from '../accounts/account.js'
import { GatewayError } from '../errors.js'
import type { HttpRequest, HttpResponse, Upgrade } from '../http/message.js'
import { pathOf } from '../http/request-guard.js'
import { isSent } from '../http/respond.js'
import type { RunOfRequest } from './dimensions/live-values.js'
import type { Generation } from './generation.js'
import { NOT_LISTED, type InFlightItem } from './in-flight-list.js'
import { ServedRequest } from './served-request.js'
import type { ConnectionResponses } from './stored-responses/connection-responses.js'

/** A request that another part of the process has authenticated. */
export interface PreAuthenticated {
  readonly identity: Identity
  /** The requested path, in place of that in the URL; without a query. */
  readonly path: string
}

/** A turn of a client's WebSocket. */
export interface SocketTurn {
  /** The responses of earlier turns of the connection. */
  readonly kept: ConnectionResponses
  /** False: its conversation is checked and kept, and no upstream gets a request. */
  readonly generates: boolean
}

export interface ExchangeParts {
  readonly id: string
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly generation: Generation
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** Absent or null: the request's key authenticates it. */
  readonly as?: PreAuthenticated | null
  /** The connection of a WebSocket request. */
  readonly upgrade?: Upgrade | null
  readonly turn?: SocketTurn | null
  /** The batch of which it is a line. */
  readonly batch?: string | null
}

/** One request, from its head to its ledger entry. */
export class Exchange extends ServedRequest implements InFlightItem {
  listIndex = NOT_LISTED
  readonly req: HttpRequest
  readonly res: HttpResponse
  /** The client's address, taken from `X-Forwarded-For` behind trusted proxies. */
  readonly clientAddress: string
  /** Without the query. */
  readonly path: string
  readonly upgrade: Upgrade | null
  /** Null: the request came over HTTP. */
  readonly turn: SocketTurn | null
  /** Set if another part of the process has authenticated the request; null: its key authenticates it. */
  readonly runsAs: Identity | null
  /** The digest of its key after authentication: revoking the key cancels the exchange. */
  keyDigest: string | null = null
  /** The run that it belongs to: ending the run cancels the exchange. Null if there is none. */
  run: RunOfRequest | null = null
  /**
   * The reply was ended with an error, so that the close of its connection does not count as a disconnect.
   */
  endedWithError = false
  /** Called when the client leaves; true: the request continues, because others share its reply. */
  outlivesClient: (() => boolean) | null = null

  constructor(parts: ExchangeParts) {
    const {
      id,
      req,
      res,
      generation,
      startedMs,
      as = null,
      upgrade = null,
      turn = null,
      batch = null,
    } = parts
    super(id, generation, startedMs)
    this.req = req
    this.res = res
    this.clientAddress = generation.proxies.addressOf(req)
    this.path = as === null ? pathOf(req.url ?? '') : as.path
    this.runsAs = as === null ? null : as.identity
    this.upgrade = upgrade
    this.turn = turn
    this.batch = batch
    res.onClosed = () => this.closed()
    res.onRefused = (error) => this.cancellation.cancel(error)
  }

  /** A client may leave in any phase (another gateway accumulated 24,000 streams without clients). */
  private closed(): void {
    if (this.endedWithError || isSent(this.res) || this.outlivesClient?.() === true) return
    this.cancellation.cancel(new GatewayError('client_gone', 'The client closed the connection.'))
  }
}
