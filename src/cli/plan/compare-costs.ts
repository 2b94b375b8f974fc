/** Costs of recent requests under both configurations, at the prices of the catalogue and of upstreams. */
import type { RequestHead } from '../../gateway/observe/recent-requests.js'
import type { Destination, ComparedConfig } from './compared-config.js'

/** The costs of a model's requests, in US dollars. */
export interface ModelCost {
  readonly model: string
  readonly before_usd: number
  readonly after_usd: number
}

/** The costs of requests with a known price under both configurations. */
export interface CostDifference {
  readonly before_usd: number
  readonly after_usd: number
  readonly difference_usd: number
  /** Number of counted requests. */
  readonly requests: number
  /** Requests without reported tokens. */
  readonly without_usage: number
  /** Requests with an unknown price under one configuration. */
  readonly without_price: number
  /** Models whose costs differ, the largest difference first. */
  readonly models: readonly ModelCost[]
}

const NANO = 1e9

/** Adds up costs. */
export class Costs {
  private readonly before: ComparedConfig
  private readonly after: ComparedConfig
  private readonly models = new Map<string, { before: number; after: number }>()
  private requests = 0
  private withoutUsage = 0
  private withoutPrice = 0

  constructor(before: ComparedConfig, after: ComparedConfig) {
    this.before = before
    this.after = after
  }

  /** Adds a request that moves between these targets, by share. */
  add(head: RequestHead, from: readonly Destination[], to: readonly Destination[]): void {
    if (from.length === 0 || to.length === 0) return
    if (head.usage.input === undefined) {
      this.withoutUsage += 1
      return
    }
    const [before, after] = [expected(head, from, this.before), expected(head, to, this.after)]
    if (before === null || after === null) {
      this.withoutPrice += 1
      return
    }
    this.requests += 1
    const sum = this.models.get(head.model) ?? { before: 0, after: 0 }
    sum.before += before
    sum.after += after
    this.models.set(head.model, sum)
  }

  result(): CostDifference {
    let [before, after] = [0, 0]
    const models: ModelCost[] = []
    for (const [model, sum] of this.models) {
      before += sum.before
      after += sum.after
      if (sum.before === sum.after) continue
      models.push({ model, before_usd: usd(sum.before), after_usd: usd(sum.after) })
    }
    const gap = (one: ModelCost): number => Math.abs(one.after_usd - one.before_usd)
    return {
      before_usd: usd(before),
      after_usd: usd(after),
      difference_usd: usd(after - before),
      requests: this.requests,
      without_usage: this.withoutUsage,
      without_price: this.withoutPrice,
      models: models.sort((a, b) => gap(b) - gap(a)),
    }
  }
}

/** A service tier is specific to a vendor: at another upstream the standard price applies. */
function expected(
  head: RequestHead,
  destinations: readonly Destination[],
  side: ComparedConfig,
): number | null {
  let total = 0
  for (const destination of destinations) {
    const cost =
      side.cost(destination, head.usage, head.tier) ?? side.cost(destination, head.usage, null)
    if (cost === null) return null
    total += cost * destination.share
  }
  return total
}

function usd(nano: number): number {
  return Math.round(nano) / NANO
}
