/** The level of a limit: the part that is left, and the times until it is reset and until a request fits. */

/** The fields are those of `LimitState` of the ledger. */
export interface LimitLevel {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
  readonly retryAfterMs: number
}
