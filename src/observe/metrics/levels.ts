/**
 * The gauges of upstreams, certificates and budgets: values that are read from somewhere else when the metrics are
 * collected, and whose subjects come and go with the configuration.
 */
import { BudgetShares } from './budget-shares.js'
import type { Families } from './families.js'

/** The state of an upstream. */
export interface UpstreamLevels {
  readonly name: string
  /** 0 closed, 1 half-open, 2 open. */
  readonly breaker: number
  /** When the breaker last opened or closed, ms since 1970; 0: it has been closed from the start. */
  readonly breakerChangedAtMs: number
  /** API keys that rest. */
  readonly resting: number
  /** Retries that its retry budget has refused since the process started. */
  readonly retriesDenied: number
  /** When the client certificate for it expires, in Unix time in seconds; null if it has none. */
  readonly certificateExpiry: number | null
}

/** The certificate of the data port, beside those of upstreams. */
const DATA_PORT = 'none'

/** Sets them. Names are those of the configuration. */
export class Levels {
  private readonly families: Families
  private readonly upstreamNames = new Set<string>()
  private readonly retriesDenied = new Map<string, number>()
  private readonly certificateNames = new Set<string>()
  private readonly budgets = new BudgetShares()

  constructor(families: Families) {
    this.families = families
  }

  /** All upstreams of the configuration; those that are left out are gone. */
  upstreams(states: readonly UpstreamLevels[]): void {
    const { breakerState, breakerChanged, credentialsResting, retriesDenied } = this.families
    const gone = new Set(this.upstreamNames)
    for (const state of states) {
      const { name, breaker, resting, retriesDenied: denied } = state
      gone.delete(name)
      this.upstreamNames.add(name)
      breakerState.child(name).set(breaker)
      breakerChanged.child(name).set(state.breakerChangedAtMs / 1_000)
      credentialsResting.child(name).set(resting)
      retriesDenied.child(name).add(denied - (this.retriesDenied.get(name) ?? 0))
      this.retriesDenied.set(name, denied)
      this.certificate(name, state.certificateExpiry)
    }
    for (const name of gone) {
      this.upstreamNames.delete(name)
      this.retriesDenied.delete(name)
      breakerState.child(name).set(0)
      breakerChanged.child(name).set(0)
      credentialsResting.child(name).set(0)
      this.certificate(name, null)
    }
  }

  /** The data port uses a certificate that expires then, in Unix time in seconds. */
  listenerCertificate(expiry: number): void {
    this.certificate(DATA_PORT, expiry)
  }

  /** One that is gone has no number: an expiry of 0 would raise an alert. */
  private certificate(name: string, expiry: number | null): void {
    if (expiry === null && !this.certificateNames.has(name)) return
    this.certificateNames.add(name)
    this.families.certificateExpiry.child(name).set(expiry ?? Number.NaN)
  }

  /** How much of a budget is spent or reserved (0 to 1); `scope` and `kind` are of closed sets. */
  budgetUsed(scope: string, kind: string, ratio: number): void {
    this.budgets.note(scope, kind, ratio, performance.now())
  }

  /** Brings what depends on the time up to date. */
  refresh(): void {
    for (const { scope, kind, ratio } of this.budgets.highest(performance.now())) {
      this.families.budgetUsed.child(scope, kind).set(ratio)
    }
  }
}
