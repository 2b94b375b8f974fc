/**
 * Hedging of one request: a second attempt when the first content is late, if the hedge budget of its route
 * allows one.
 */
import type { ChatRequest } from '../../formats/chat/request.js'
import type { HedgeConfig } from '../../config/config.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { costNanoUsd } from '../../ledger/price.js'
import type { Generation } from '../generation.js'
import type { Candidate } from '../phases/route.js'
import type { ServedRequest } from '../served-request.js'
import type { HedgeBudget } from './retry-and-hedge-budgets.js'

/** The settings of a route that hedges, and its spending on hedges. */
interface HedgeRules {
  readonly config: HedgeConfig
  readonly budget: HedgeBudget
}

/** The hedge of one request. */
export class Hedging {
  private readonly x: ServedRequest
  private readonly rules: HedgeRules
  private timer: NodeJS.Timeout | null = null

  /**
   * Null if the route does not hedge. Counts the cost of the request towards the hedge budget of the route.
   */
  static of(x: ServedRequest): Hedging | null {
    const { request } = x.call
    const { candidates, handling } = x.route
    const { hedge, hedges } = handling
    if (hedge === null || hedges === null) return null
    hedges.request(costOf(candidates[0], request, x.generation))
    return new Hedging(x, { config: hedge, budget: hedges })
  }

  private constructor(x: ServedRequest, rules: HedgeRules) {
    this.x = x
    this.rules = rules
  }

  /** Calls `late` after `after_ms`, unless `stop` is called before. */
  start(late: () => void): void {
    this.timer = setTimeout(late, this.rules.config.afterMs)
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }

  /**
   * The target of a hedge: another target of the route, else the same one. `isAllowed` is false if it exceeds
   * the hedge budget.
   */
  target(first: Candidate): { readonly candidate: Candidate; readonly isAllowed: boolean } {
    const { generation, route, call } = this.x
    const { request } = call
    const other = route.candidates.find((candidate) => {
      if (candidate === first || candidate.isFallback) return false
      return generation.states.of(candidate.target.upstream.config.name).breaker.allows()
    })
    const candidate = other ?? first
    const cost = costOf(candidate, request, generation)
    const { config, budget } = this.rules
    return { candidate, isAllowed: budget.tryHedge(cost, config.extraSpend) }
  }
}

/** An estimate in nano-dollars; 0 if the price is not known. */
function costOf({ target, model }: Candidate, request: ChatRequest, generation: Generation): number {
  const price = generation.pricesAt(performance.now()).prices.find(target.upstream.config.name, model, null)
  if (price === null) return 0
  const { assumedOutputTokens } = generation.snapshot.config.limiting
  const input = inputTokens(promptSizeOf(request), generation.facts(model).family)
  const output = Math.min(request.maxOutputTokens ?? assumedOutputTokens, assumedOutputTokens)
  return costNanoUsd(price, { input, output }) ?? 0
}
