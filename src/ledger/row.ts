/**
 * One request as the ledger keeps it: who asked whom for what, what it took and what it cost.
 * Knows no engine, no price list and never a word that was said.
 */
import type { Usage } from '../chat/usage.js'
import type { DialectName } from '../dialects/dialect.js'
import type { ErrorKind } from '../errors.js'

/**
 * How the token counts came about. `reported`: the upstream said them. `estimated`: counted by us from
 * what was sent and received, because it did not. `none`: no upstream was asked, nothing was used.
 */
export type UsageSource = 'reported' | 'estimated' | 'none'

/** `ok`, or the kind of error that ended it; `lost`: the process died, or never came back to it. */
export type RowOutcome = 'ok' | 'lost' | ErrorKind

/** The stages of a request that a row tells the time of, in ms; absent is "did not get that far". */
export interface RowHops {
  readonly authenticate?: number
  readonly receive?: number
  readonly route?: number
  readonly admit?: number
  readonly connect?: number
  readonly firstByte?: number
  readonly translate?: number
  readonly relay?: number
  /** From the arrival of the request to the first content that left. */
  readonly firstContent?: number
  /** What of the whole was ours. */
  readonly overhead?: number
}

/** A line of the ledger; written once, by request id, before the client has the end of its answer. */
export interface UsageRow {
  readonly requestId: string
  /** When the request arrived, ms since 1970. */
  readonly atMs: number
  readonly durationMs: number
  readonly accountId: string
  /** A key's id, or `playground`. */
  readonly keyId: string
  /** As the client wrote it; null where the body could not be read. At most 256 characters. */
  readonly modelAsked: string | null
  /** What the upstream said that it ran, else what it was asked for; null where none was asked. */
  readonly modelAnswered: string | null
  /** What sums count it under: an id of the catalogue, else a routed one, else `other`; a closed set. */
  readonly model: string
  readonly upstream: string | null
  readonly dialect: DialectName | null
  /** Attempts, also those that reached no upstream. */
  readonly attempts: number
  readonly stream: boolean
  /** HTTP status; 499 where the client was gone first. */
  readonly status: number
  readonly outcome: RowOutcome
  readonly finish: string | null
  readonly usage: Usage
  readonly source: UsageSource
  /** Whole nano-dollars (1e-9 US dollars); null where a price is not known. */
  readonly costNanoUsd: number | null
  /** What budgets are charged if `costNanoUsd` is null; absent: what was reserved. No entry keeps it. */
  readonly budgetNanoUsd?: number
  /** Output tokens that the upstream went on to make after the client had left. */
  readonly tokensAfterDisconnect: number
  readonly losses: readonly string[]
  readonly generation: number
  readonly hops: RowHops
  /** The format that the client spoke (`chat`, `messages`, …); null if the path is none of them. */
  readonly ingress: string | null
  /** Why it was refused or failed, as the client saw it, without any of the prompt. At most 500 characters. */
  readonly errorMessage: string | null
  /** The rule that refused it, with its scope and window: `key:… requests_per_minute`. */
  readonly limit: string | null
  /** The HTTP status of the upstream that was asked last; null if none answered. */
  readonly upstreamStatus: number | null
  /** That upstream's own id of the request. */
  readonly upstreamRequestId: string | null
  /** Each attempt in order, `upstream:outcome`, with `, ` between; null if none was made. */
  readonly attempted: string | null
  /** The request that this one repeats for comparison. */
  readonly shadowOf: string | null
  /** `k=v`, with spaces between. */
  readonly labels: string | null
  /** The id that the client gave the request (`x-request-id` or `x-client-request-id`). */
  readonly clientRequestId: string | null
  /** How long each attempt took up to its first content or its failure, in the order of `attempted`; null: unknown. */
  readonly attemptMs: readonly number[] | null
  /** The `retry-after` that the client was sent, in seconds; null if there was none. */
  readonly retryAfterSeconds: number | null
  /** The version of the prices that the cost was computed with (`priceVersionOf`); null if none was. */
  readonly priceVersion: string | null
}

/** The members of a row that explain it, where nothing is known. */
export const UNEXPLAINED = {
  ingress: null,
  errorMessage: null,
  limit: null,
  upstreamStatus: null,
  upstreamRequestId: null,
  attempted: null,
  shadowOf: null,
  labels: null,
  clientRequestId: null,
  attemptMs: null,
  retryAfterSeconds: null,
  priceVersion: null,
} as const satisfies Partial<UsageRow>
