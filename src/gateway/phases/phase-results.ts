/**
 * The values that the phases of one request have returned so far. `serve` writes them, and phases do not read
 * them; the ledger entry, the metrics and the log line are derived from them.
 */
import type { GatewayError } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { AttemptResult, ReplyListener, SendResult } from '../attempts/attempt-result.js'
import type { CacheUse } from '../../policy/cache-rules.js'
import type { Admitted, Refused } from './admit.js'
import type { Authenticated } from './authenticate.js'
import type { Candidate, Route } from './choose-route.js'
import type { Identified } from './identify.js'
import type { Call, Intake } from './receive.js'
import type { Delivery } from './relay.js'
import type { Exchange } from '../client-exchange.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import type { GuardNotes } from '../../policy/guard-notes.js'
import type { ObservedExchange } from '../../policy/plugins.js'

/** Records the request. */
export interface RequestRecorder extends ReplyListener {
  isKept(entry: Pick<LedgerEntry, 'outcome'>): boolean
  /** The request has ended. */
  ended(entry: LedgerEntry): void
}

/** A member is null until its phase has returned. */
export class Results {
  identified: Identified | null = null
  authenticated: Authenticated | null = null
  /** `programOf` the client. */
  program = 'none'
  intake: Intake | null = null
  call: Call | null = null
  route: (Pick<Route, 'candidates' | 'tookMs'> & Partial<Pick<Route, 'config'>>) | null = null
  /** What the cache of the route did; null if it has none, or was not reached. */
  cached: CacheUse | null = null
  /** Null if the request is not recorded. */
  recorder: RequestRecorder | null = null
  admission: Omit<Admitted, 'call' | 'reservation'> | Refused | null = null
  sent: SendResult | null = null
  /** What guardrails did; null if none applies. */
  guard: GuardNotes | null = null
  /** The observers of plugins; null if there are none. */
  observed: ObservedExchange | null = null
  /** The shadow request; null if there is none. */
  shadow: { originalEnded(entry: LedgerEntry): void } | null = null
  delivery: Delivery | null = null
  /** The error because of which the client gets no reply, or an incomplete one. */
  error: GatewayError | null = null
  /** An exception other than `GatewayError`, for the log. */
  failure: unknown = null
  /** Time for writing the ledger entry to the ledger or the spool, in ms. */
  entryMs = 0

  /** The attempt whose reply the client gets, else the last one; null if there is none. */
  get attempt(): AttemptResult | null {
    return this.sent?.final ?? null
  }

  /** The candidate that was tried last, or would be tried first. */
  get candidate(): Candidate | null {
    return this.attempt?.candidate ?? this.route?.candidates[0] ?? null
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
}

/**
 * Time from the arrival of the request to the first content of a stream, in ms; null for a whole reply and
 * for a stream without content. The head may be sent earlier, because proxies time out without it.
 */
export function firstContentMs(
  { startedMs }: Pick<Exchange, 'startedMs'>,
  { attempt, sent, delivery }: Results,
): number | null {
  const headMs = delivery?.headMs ?? null
  if (headMs === null || attempt?.isStreamed !== true) return headMs
  const first = sent?.attempts.find(({ contentAtMs }) => contentAtMs !== null)
  const contentAtMs = first?.contentAtMs ?? null
  return contentAtMs === null ? null : Math.max(headMs, contentAtMs - startedMs)
}

/** Waiting times, in ms; null if there was no such wait. */
type Waits = Readonly<Pick<AttemptResult, 'connectMs' | 'firstByteMs' | 'replyMs'>>

const NO_WAITS: Waits = { connectMs: null, firstByteMs: null, replyMs: null }

/** The total waiting times of all attempts. */
export function waitsOf({ sent }: Results): Waits {
  return sent?.attempts.reduce<Waits>(totalOf, NO_WAITS) ?? NO_WAITS
}

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
