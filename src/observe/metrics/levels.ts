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
  /** API keys that rest. */
  readonly resting: number
  /** Retries that its retry budget has refused since the process started. */
  readonly retriesDenied: number
}

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
    const { breakerState, credentialsResting, retriesDenied } = this.families
    const gone = new Set(this.upstreamNames)
    for (const { name, breaker, resting, retriesDenied: denied } of states) {
      gone.delete(name)
      this.upstreamNames.add(name)
      breakerState.child(name).set(breaker)
      credentialsResting.child(name).set(resting)
      retriesDenied.child(name).add(denied - (this.retriesDenied.get(name) ?? 0))
      this.retriesDenied.set(name, denied)
    }
    for (const name of gone) {
      this.upstreamNames.delete(name)
      this.retriesDenied.delete(name)
      breakerState.child(name).set(0)
      credentialsResting.child(name).set(0)
    }
  }

  /**
   * All certificates in use, by upstream (`none`: of the data port), with the Unix time in seconds at which each
   * expires. One that is gone has no number: an expiry of 0 would raise an alert.
   */
  certificatesExpire(expiries: ReadonlyMap<string, number>): void {
    const { certificateExpiry } = this.families
    for (const name of this.certificateNames) {
      if (!expiries.has(name)) certificateExpiry.child(name).set(Number.NaN)
    }
    for (const [name, seconds] of expiries) {
      this.certificateNames.add(name)
      certificateExpiry.child(name).set(seconds)
    }
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
