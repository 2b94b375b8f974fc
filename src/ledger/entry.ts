/**
 * The ledger entry of one request: account, model, upstream, tokens and cost. Contains no text of the conversation.
 */
import type { Usage } from '../chat/usage.js'
import type { DialectName } from '../dialects/dialect.js'
import type { ErrorKind } from '../errors.js'

/**
 * The source of the token counts. `reported`: by the upstream. `estimated`: by the gateway, from the bytes sent and received.
 * `none`: no tokens were used.
 */
export type UsageSource = 'reported' | 'estimated' | 'none'

/** `ok`, or the kind of the error; `lost`: the process exited before the request was settled. */
export type EntryOutcome = 'ok' | 'lost' | ErrorKind

/** The durations of the stages of a request, in ms; absent: not reached. */
export interface EntryHops {
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
  /** The gateway's own share of the duration. */
  readonly overhead?: number
}

/** A ledger entry; written once for each request id, before the client gets the end of its reply. */
export interface LedgerEntry {
  readonly requestId: string
  /** When the request arrived, ms since 1970. */
  readonly atMs: number
  readonly durationMs: number
  readonly accountId: string
  /** A key's id, or `playground`. */
  readonly keyId: string
  /** As the client sent it; null if the body could not be read. At most 256 characters. */
  readonly modelAsked: string | null
  /** The model that the upstream reported, else the requested one; null if no request was sent. */
  readonly modelAnswered: string | null
  /** The name in sums: an id of the catalogue, else a routed one, else `other`; a closed set. */
  readonly model: string
  readonly upstream: string | null
  readonly dialect: DialectName | null
  /** Attempts, also those that reached no upstream. */
  readonly attempts: number
  readonly stream: boolean
  /** HTTP status; 499 if the client had left. */
  readonly status: number
  readonly outcome: EntryOutcome
  readonly finish: string | null
  readonly usage: Usage
  readonly source: UsageSource
  /** Whole nano-dollars (1e-9 US dollars); null if a price is unknown. */
  readonly costNanoUsd: number | null
  /** The charge on budgets if `costNanoUsd` is null; absent: the reserved amount. Not stored. */
  readonly budgetNanoUsd?: number
  /** Output tokens that the upstream went on to make after the client had left. */
  readonly tokensAfterDisconnect: number
  readonly losses: readonly string[]
  readonly generation: number
  readonly hops: EntryHops
  /** The client's format (`chat`, `messages`, …); null if the path has none. */
  readonly ingress: string | null
  /** Why it was refused or failed, as the client saw it, without any of the prompt. At most 500 characters. */
  readonly errorMessage: string | null
  /** The rule that refused it, with its scope and window: `key:… requests_per_minute`. */
  readonly limit: string | null
  /** The HTTP status of the last attempt; null if no upstream replied. */
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

/** The members that explain an outcome, all unknown. */
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
} as const satisfies Partial<LedgerEntry>
