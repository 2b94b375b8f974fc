/** The type of a canary's state (a target with `abort`), for the dashboard and metrics. */

/** The state of one target with `abort`. */
export interface CanaryState {
  /** As `RouteTarget.canary`. */
  readonly id: string
  /** The model or prefix of its route. */
  readonly route: string
  readonly upstream: string
  /** Null: the model that the client requests. */
  readonly model: string | null
  /** The configured weight. */
  readonly weight: number
  /** Its share of the route's requests while it is not aborted, 0 to 100. */
  readonly percent: number
  /** Attempts and failures in the window that ends now, or at the abort. */
  readonly attempts: number
  readonly failures: number
  readonly errorRate: number
  readonly minRequests: number
  readonly windowSeconds: number
  /** When it was aborted, in ms since 1970; null if it is in use. */
  readonly abortedAtMs: number | null
}
