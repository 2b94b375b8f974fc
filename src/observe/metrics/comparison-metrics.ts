/** Metrics that compare upstreams: canaries and shadow requests. */
import type { Usage } from '../../formats/chat/usage.js'
import type { Families } from './metric-families.js'
import type { Level } from './capped-registry.js'

/** One side of a comparison of two upstreams with the same request. */
export interface ComparedRequest {
  readonly upstream: string
  readonly status: number
  /** `ok`, `lost` or an error kind. */
  readonly outcome: string
  /** Null: no content. */
  readonly firstContentMs: number | null
  readonly usage: Usage
  /** Null: unknown. */
  readonly costNanoUsd: number | null
}

/** The state of a target with `abort`. */
interface CanaryLevel {
  readonly route: string
  readonly upstream: string
  readonly isAborted: boolean
}

/** The comparison metrics of a process. */
export class ComparisonMetrics {
  private readonly families: Families
  private readonly canaryLevels = new Map<string, Level>()

  constructor(families: Families) {
    this.families = families
  }

  /** One side of a shadow request. */
  compared(route: string, side: 'primary' | 'shadow', request: ComparedRequest): void {
    const { shadowRequests, shadowFirstContent, shadowTokens, shadowCost } = this.families
    const { upstream, status, outcome, firstContentMs, usage, costNanoUsd } = request
    shadowRequests.child(route, side, upstream, String(status), outcome).add()
    if (firstContentMs !== null) {
      shadowFirstContent.child(route, side).observe(firstContentMs / 1000)
    }
    const { input = 0, output = 0 } = usage
    shadowTokens.child(route, side, 'input').add(input)
    shadowTokens.child(route, side, 'output').add(output)
    shadowCost.child(route, side).add((costNanoUsd ?? 0) / 1e9)
  }

  /** A sampled request that was not copied; `reason` is from a closed set. */
  shadowDropped(route: string, reason: string): void {
    this.families.shadowDropped.child(route, reason).add()
  }

  /** Sets the gauges of all targets with `abort`; omitted targets are set to 0. */
  canaries(levels: readonly CanaryLevel[]): void {
    const { canaryAborts, canaryAborted } = this.families
    const gone = new Map(this.canaryLevels)
    this.canaryLevels.clear()
    for (const { route, upstream, isAborted } of levels) {
      const name = JSON.stringify([route, upstream])
      gone.delete(name)
      const level = this.canaryLevels.get(name) ?? canaryAborted.child(route, upstream)
      // Two targets of a route may have the same upstream.
      if (isAborted || !this.canaryLevels.has(name)) level.set(isAborted ? 1 : 0)
      this.canaryLevels.set(name, level)
      // Exported from the start; otherwise `rate()` would miss the first abort.
      canaryAborts.child(route, upstream)
    }
    for (const level of gone.values()) level.set(0)
  }

  /** A target was taken out of use. */
  canaryAborted(route: string, upstream: string): void {
    this.families.canaryAborts.child(route, upstream).add()
  }
}
