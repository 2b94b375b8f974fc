/** The state of a target with `abort`, for the dashboard and metrics. */

/** A target with `abort`, as the dashboard shows it. */
export interface CanaryState {
  /** As `RouteTarget.canary`. */
  readonly id: string
  /** The model or prefix of its route. */
  readonly route: string
  readonly upstream: string
  /** Null: the model that the client requests. */
  readonly model: string | null
  /** As the file has it. */
  readonly weight: number
  /** Of the route's requests while it is not aborted, 0 to 100. */
  readonly percent: number
  /** Attempts and failures in the window that ends now, or at the abort. */
  readonly attempts: number
  readonly failures: number
  readonly errorRate: number
  readonly minRequests: number
  readonly windowSeconds: number
  /** Ms since 1970; null: it is in use. */
  readonly abortedAtMs: number | null
}
