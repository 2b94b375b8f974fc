/**
 * One request while it is served. Its slots get what the phases return, in the order of this class; the
 * ledger entry, the metrics and the log line are derived from them.
 */
import type { Identity } from '../accounts/account.js'
import type { GatewayError } from '../errors.js'
import type { ReplyResult } from '../formats/translated-stream.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { LimitReservation } from '../limits/reservation-types.js'
import type { CacheUse } from '../policy/cache-rules.js'
import type { GuardNotes } from '../policy/guard-notes.js'
import type { ObservedExchange } from '../policy/plugins.js'
import type { AttemptResult, SendResult } from './attempts/attempt-result.js'
import type { HeldMemory } from './body-memory.js'
import type { CalledTools } from './dimensions/called-tools.js'
import type { Generation } from './generation.js'
import type { Call, Intake } from './phases/call.js'
import type { Candidate, Route } from './phases/route.js'
import type {
  Admitted,
  Authenticated,
  Delivery,
  Identified,
  Refused,
  RequestRecorder,
} from './phases/phase-results.js'
import type { RequestTrace } from './report/forward-client-trace.js'
import { Cancellation, type RequestContext } from './request-context.js'

/**
 * A request of a client, a copy of one, or a line of a batch. A slot is null until its phase has returned.
 */
export class ServedRequest implements RequestContext {
  readonly id: string
  readonly generation: Generation
  readonly cancellation = new Cancellation()
  /** Monotonic, in ms. */
  startedMs: number
  /** The trace of the request; null if it has none. */
  trace: RequestTrace | null = null
  isInBatch = false
  batch: string | null = null
  calledTools: CalledTools | null = null
  identified: Identified | null = null
  /** `programOf` the client. */
  program = 'none'
  authenticated: Authenticated | null = null
  intake: Intake | null = null
  /** The checked request, as the last phase has changed it. */
  received: Call | null = null
  /** Null if the request is not recorded. */
  recorder: RequestRecorder | null = null
  routed: Route | null = null
  admitted: Admitted | Refused | null = null
  /** The reservation of its limits, which the limiter renews while the request runs. */
  limitReservation: LimitReservation | null = null
  /** What guardrails did; null if none applies. */
  guard: GuardNotes | null = null
  /** The observers of plugins; null if there are none. */
  observed: ObservedExchange | null = null
  /** What the cache of the route did; null if it has none, or was not reached. */
  cached: CacheUse | null = null
  attempts: SendResult | null = null
  /** The shadow request that copies it; null if there is none. */
  copied: { originalEnded(entry: LedgerEntry): void } | null = null
  delivered: Delivery | null = null
  /** The error because of which the client gets no reply, or an incomplete one. */
  error: GatewayError | null = null
  /** An exception other than `GatewayError`, for the log. */
  failure: unknown = null
  /** Time for writing the ledger entry to the ledger or the spool, in ms. */
  entryMs = 0
  /**
   * Writes the ledger entry before the client gets the end of its reply. Resolves when the end may be sent;
   * null: at once.
   */
  ending: () => Promise<void> | null = NO_ENTRY

  constructor(id: string, generation: Generation, startedMs = performance.now()) {
    this.id = id
    this.generation = generation
    this.startedMs = startedMs
  }

  /** The key that the request runs as. This and the next three throw before their phase has returned. */
  get identity(): Identity {
    return filled(this.authenticated).identity
  }

  /** The checked request. */
  get call(): Call {
    return filled(this.received)
  }

  /** The route, with the candidates. */
  get route(): Route {
    return filled(this.routed)
  }

  /** The memory of its bodies. */
  get held(): HeldMemory {
    return filled(this.intake).held
  }

  /** The attempt whose reply the client gets, else the last one; null if there is none. */
  get attempt(): AttemptResult | null {
    return this.attempts?.final ?? null
  }

  /** The candidate that was tried last, or would be tried first. */
  get candidate(): Candidate | null {
    return this.attempt?.candidate ?? this.routed?.candidates[0] ?? null
  }

  /** The model that is requested from the upstream; null for native requests. */
  get upstreamModel(): string | null {
    const model = this.candidate?.model ?? ''
    return model === '' ? null : model
  }

  /** The result of the reply of `attempt`. */
  get replyResult(): ReplyResult | null {
    return this.attempt?.replyResult ?? this.cached?.replyResult ?? null
  }

  /**
   * Time from the arrival of the request to the first content of a stream, in ms; null for a whole reply and
   * for a stream without content. The head may be sent earlier, because proxies time out without it.
   */
  get firstContentMs(): number | null {
    const headMs = this.delivered?.headMs ?? null
    if (headMs === null || this.attempt?.isStreamed !== true) return headMs
    const first = this.attempts?.list.find(({ contentAtMs }) => contentAtMs !== null)
    const contentAtMs = first?.contentAtMs ?? null
    return contentAtMs === null ? null : Math.max(headMs, contentAtMs - this.startedMs)
  }

  /** The total waiting times of all attempts. */
  get waits(): Waits {
    return this.attempts?.list.reduce<Waits>(totalOf, NO_WAITS) ?? NO_WAITS
  }
}

/** What routes and the rules of keys read: a checked request, its key and its configuration. */
export type CheckedRequest = Pick<ServedRequest, 'call' | 'identity' | 'generation'>

function filled<Slot>(slot: Slot | null): Slot {
  if (slot === null) throw new Error('a phase has not returned')
  return slot
}

/** Of requests whose entry is written after their reply. */
const NO_ENTRY = (): null => null

/** Waiting times, in ms; null if there was no such wait. */
type Waits = Readonly<Pick<AttemptResult, 'connectMs' | 'firstByteMs' | 'replyMs'>>

const NO_WAITS: Waits = { connectMs: null, firstByteMs: null, replyMs: null }

function totalOf(one: Waits, other: Waits): Waits {
  if (one === NO_WAITS) return other
  return {
    connectMs: sum(one.connectMs, other.connectMs),
    firstByteMs: sum(one.firstByteMs, other.firstByteMs),
    replyMs: sum(one.replyMs, other.replyMs),
  }
}

function sum(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : one + other
}
