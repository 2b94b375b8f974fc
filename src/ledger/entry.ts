/**
 * The ledger entry of one request: account, model, upstream, tokens and cost. Contains no text of the
 * conversation.
 */
import type { Usage } from '../formats/chat/usage.js'
import type { DialectName } from '../formats/dialect.js'
import type { ErrorKind } from '../errors.js'

/**
 * The source of the token counts. `reported`: by the upstream. `estimated`: by the gateway, from the bytes
 * sent and received. `assumed`: the maximum that the request may have used, because its end was not received.
 * `none`: no tokens were used.
 */
export type UsageSource = 'reported' | 'estimated' | 'assumed' | 'none'

/** `ok`, or the kind of the error; `lost`: the process exited before the request was settled. */
export type EntryOutcome = 'ok' | 'lost' | ErrorKind

/** The durations of the stages of a request, in ms. A member is absent if the stage was not reached. */
export interface EntryHops {
  readonly authenticate?: number
  readonly receive?: number
  readonly route?: number
  readonly admit?: number
  readonly connect?: number
  readonly firstByte?: number
  readonly translate?: number
  readonly relay?: number
  /** Time from the arrival of the request to the first content for the client. */
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
  /** The id of the API key, or `playground`. */
  readonly keyId: string
  /** The model that the client requested; null if the body could not be read. At most 256 characters. */
  readonly modelAsked: string | null
  /** The model that the upstream reported, else the requested one; null if no request was sent. */
  readonly modelAnswered: string | null
  /** The name in sums: an id of the catalogue, else a route, else `other`; a closed set. */
  readonly model: string
  readonly upstream: string | null
  readonly dialect: DialectName | null
  /** Number of attempts, including those that reached no upstream. */
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
  /** What limits of tokens count if `source` is `assumed`; absent: the reserved amount. Not stored. */
  readonly rateTokens?: number
  /** Output tokens that the upstream generated after the client had left. */
  readonly tokensAfterDisconnect: number
  readonly losses: readonly string[]
  readonly generation: number
  readonly hops: EntryHops
  /** The client's format (`chat`, `messages`, …); null if the path has none. */
  readonly ingress: string | null
  /**
   * The error message of the client's reply, without any of the prompt; at most 500 characters. Null if there
   * is none.
   */
  readonly errorMessage: string | null
  /** The rule that refused it, with its scope and window: `key:… requests_per_minute`. */
  readonly limit: string | null
  /** The HTTP status of the last attempt; null if no upstream replied. */
  readonly upstreamStatus: number | null
  /** The request id that this upstream returned. */
  readonly upstreamRequestId: string | null
  /** Each attempt in order, `upstream:outcome`, separated by `, `; null if there was none. */
  readonly attempted: string | null
  /** The id of the original request, if this is a shadow request; else null. */
  readonly shadowOf: string | null
  /** The labels of the key: `k=v`, separated by spaces; null for no labels. */
  readonly labels: string | null
  /** The client's own request id (`x-request-id` or `x-client-request-id`); null if it sent none. */
  readonly clientRequestId: string | null
  /**
   * Time of each attempt until its first content or its failure, in ms, in the order of `attempted`; null if
   * unknown.
   */
  readonly attemptMs: readonly number[] | null
  /** The `retry-after` of the client's reply, in seconds; null if it had none. */
  readonly retryAfterSeconds: number | null
  /** The version of the prices for the cost (`priceVersionOf`); null if no price was used. */
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
