/** The cost of a rehearsal: the amount spent, and whether another request is allowed. */
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest } from '../../chat/request.js'
import type { LimitingConfig } from '../../config/config.js'
import { promptSizeOf, maxInputTokens } from '../../ledger/estimate-tokens.js'
import {
  costNanoUsd,
  flatPrice,
  isComplete,
  maxCostNanoUsd,
  type Price,
} from '../../ledger/price.js'
import type { LedgerEntry } from '../../ledger/entry.js'

/** More tokens than any vendor counts for the small image of a rehearsal (OpenAI's mini models: 8,500). */
const IMAGE_TOKENS = 10_000
const NANO = 1e9

/** The next request might cost more than the remaining amount. */
export class CeilingReached extends Error {
  constructor() {
    super('the cost ceiling is reached')
    this.name = 'CeilingReached'
  }
}

/** Keeps a rehearsal below its maximum cost. */
export class CostCeiling {
  /** Whether the model's own price is known; otherwise `limiting.assumed_price` applies. */
  readonly isPriced: boolean
  private readonly maxNanoUsd: number
  private readonly price: Price
  private readonly facts: ModelFacts
  private spentNanoUsd = 0

  constructor(
    maxUsd: number,
    model: {
      readonly price: Price | null
      readonly facts: ModelFacts
      readonly limiting: LimitingConfig
    },
  ) {
    const { price, facts, limiting } = model
    this.maxNanoUsd = maxUsd * NANO
    this.isPriced = price !== null && isComplete(price)
    this.price = price !== null && isComplete(price) ? price : flatPrice(limiting.assumedPrice)
    this.facts = facts
  }

  get spentUsd(): number {
    return this.spentNanoUsd / NANO
  }

  /** Reserves the maximum cost of the request, in nano-dollars. Throws `CeilingReached` if it is too high. */
  reserve(request: ChatRequest): number {
    const bulk = promptSizeOf(request)
    const { images } = bulk
    const text = maxInputTokens({ ...bulk, images: 0 }, this.facts.family)
    const maxTokens = { input: text + images * IMAGE_TOKENS, output: request.maxOutputTokens ?? 0 }
    const nanoUsd = maxCostNanoUsd(this.price, maxTokens) ?? 0
    if (this.spentNanoUsd + nanoUsd > this.maxNanoUsd) throw new CeilingReached()
    this.spentNanoUsd += nanoUsd
    return nanoUsd
  }

  /**
   * Replaces the reservation with the actual cost; without an entry the reservation counts as spent. Returns
   * the cost.
   */
  settle(reservedNanoUsd: number, entry: LedgerEntry | null): number {
    if (entry === null) return reservedNanoUsd
    const known = this.isPriced ? entry.costNanoUsd : costNanoUsd(this.price, entry.usage)
    const cost = known ?? reservedNanoUsd
    this.spentNanoUsd += cost - reservedNanoUsd
    return cost
  }
}
