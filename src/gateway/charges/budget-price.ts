/**
 * Selects the price that budgets use: the price of the model, or `limiting.assumed_price` if it is unknown.
 * Ledger entries never contain an assumed cost.
 */
import type { Usage } from '../../formats/chat/usage.js'
import type { LimitingConfig } from '../../config/config.js'
import {
  completedPrice,
  costNanoUsd,
  higherPrice,
  highestPrice,
  flatPrice,
  isComplete,
  tierPrice,
  type Price,
  type PriceOfOther,
} from '../../ledger/price.js'

/** The price that budgets use for one request. */
export interface BudgetPrice {
  readonly price: Price | null
  readonly isPriced: boolean
  /** Assumed tokens of a reply if the model's maximum is unknown; null: no assumption. */
  readonly unknownLength: number | null
  /** Assumed seconds of a sound whose length the gateway cannot tell. */
  readonly unknownSeconds: number
  /** Assumed nano-dollars of a call of unknown price; null: no assumption. */
  readonly unknownCall: number | null
}

/** Usage whose cost is unknown. */
interface UnpricedUse {
  readonly tier: string | null
  readonly usage: Usage
  readonly priceOfOther: PriceOfOther
}

/** The budget prices of one generation of the configuration. */
export class BudgetPrices {
  /** Null: `limiting.unknown_price` is not `assume`. */
  private readonly assumed: Price | null
  private readonly unknownLength: number | null
  private readonly unknownSeconds: number

  constructor({ unknownPrice, assumedPrice, unknownLength, unknownAudioSeconds }: LimitingConfig) {
    this.assumed = unknownPrice === 'assume' ? flatPrice(assumedPrice) : null
    this.unknownLength = unknownLength
    this.unknownSeconds = unknownAudioSeconds
  }

  /** The price for a request; `usual` is the price of its model, `tier` the requested service tier. */
  of(usual: Price | null, tier: string | null): BudgetPrice {
    const { assumed, unknownLength, unknownSeconds } = this
    const known = usual === null ? null : higherPrice(usual, tier)
    const unknown = { unknownLength, unknownSeconds, unknownCall: assumed?.otherCall ?? null }
    if (known !== null && isComplete(known)) return { price: known, isPriced: true, ...unknown }
    const price = assumed === null ? null : withAssumedPrice(usual, known, assumed)
    return { price, isPriced: false, ...unknown }
  }

  /**
   * The amount, in nano-dollars, that budgets are charged for `usage` if its cost is unknown; null: the
   * reserved amount.
   */
  charge(usual: Price | null, { tier, usage, priceOfOther }: UnpricedUse): number | null {
    const { assumed } = this
    if (assumed === null) return null
    const known = usual === null ? null : tierPrice(usual, tier)
    return costNanoUsd(withAssumedPrice(usual, known, assumed), usage, (model) =>
      completedPrice(priceOfOther(model), assumed),
    )
  }
}

/** `known` is null if the price of the model's service tier is not known. */
function withAssumedPrice(usual: Price | null, known: Price | null, assumed: Price): Price {
  if (usual !== null && known === null) return highestPrice(usual, assumed)
  return completedPrice(known, assumed)
}
