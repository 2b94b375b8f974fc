/** What the phases of a request return, beside its call and its route. */
import type { Identity } from '../../accounts/account.js'
import type { LimitKind } from '../../base/limit-members.js'
import type { GatewayError } from '../../errors.js'
import type { ClientFormat } from '../../formats/chat/operations.js'
import type { DialectName, Endpoint } from '../../formats/dialect.js'
import type { ResolvedEndpoint } from '../../formats/index.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { LimitReservation } from '../../limits/reservation-types.js'
import type { ReplyListener } from '../attempts/attempt-result.js'
import type { Reservation } from '../charges/reservation.js'
import type { Call } from './call.js'

/** The endpoint of a request. */
export interface Identified {
  /** Null for native access, for a WebSocket, and if there is no such endpoint. */
  readonly resolved: ResolvedEndpoint | null
  /** The format of the reply; null if the path does not determine it. */
  readonly dialect: DialectName | null
  readonly operation: Endpoint['operation'] | 'native' | 'socket' | null
  /** The client's format, for metrics and the ledger; null if the path is unknown. */
  readonly format: ClientFormat | 'native' | null
  /** The client's own request id without unsafe characters; null if it sent none. */
  readonly clientRequestId: string | null
  /** `unknown_endpoint` or `method_not_allowed`; null if the endpoint exists. */
  readonly refusal: GatewayError | null
}

/** The account that a request runs as. */
export interface Authenticated {
  readonly identity: Identity
  readonly tookMs: number
}

/** A request that may run. */
export interface Admitted {
  readonly kind: 'admitted'
  /**
   * The received request. If it sets no maximum of output tokens and its budgets cannot pay for the longest
   * reply, a maximum is added. Null for native requests and counts, whose demands are known.
   */
  readonly call: Call | null
  readonly limitReservation: LimitReservation
  /** Null if no limit on tokens or money applies. */
  readonly reservation: Reservation | null
  /** Name, value, …: the state of the limits, for every reply. */
  readonly rateHeaders: readonly string[]
  /** Null if no limit applies. */
  readonly tookMs: number | null
}

/** A request that may not run. */
export interface Refused {
  readonly kind: 'refused'
  readonly error: GatewayError
  /** The rule that refused it, by its name in the ledger entry; null if no rule did. */
  readonly limit: string | null
  /** What the limit counts; null if no limit refused it. */
  readonly limitKind: LimitKind | null
  readonly rateHeaders: readonly string[]
  readonly tookMs: number
}

/** The delivery of a reply to its client. */
export interface Delivery {
  readonly sentBytes: number
  /** Number of written chunks of a stream. */
  readonly chunks: number
  /** Time from the arrival of the request to the head of a streamed reply, in ms; null for a whole reply. */
  readonly headMs: number | null
  /** The same for a whole reply; null for a stream or an error. */
  readonly wholeMs: number | null
  /** Time from the head to the end, in ms; null before the end, and for a whole reply. */
  readonly relayMs: number | null
  /** Time for which the stream waited for a slow client, in ms. */
  readonly clientWaitMs: number
  /** Resolves when the client has the whole reply or has left; null if it has the whole reply already. */
  readonly closed: Promise<void> | null
}

/** Records the request. */
export interface RequestRecorder extends ReplyListener {
  isKept(entry: Pick<LedgerEntry, 'outcome'>): boolean
  /** The request has ended. */
  ended(entry: LedgerEntry): void
}
