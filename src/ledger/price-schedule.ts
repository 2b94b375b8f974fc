/**
 * The prices of one generation of the configuration over time: of a list of prices, the entry that began last
 * holds. Without lists there is one period, whose prices are computed once.
 */
import { beginningsOf, type ModelFacts } from '../formats/chat/model-facts.js'
import { Prices, type Priced } from './find-price.js'
import { priceVersionOf } from './price-version.js'

/** The prices of a period, with their version in ledger entries. */
export interface PricesInForce {
  readonly prices: Prices
  readonly version: string
}

/** The prices by the time at which a request arrives. */
export class PriceSchedule {
  private readonly models: readonly ModelFacts[]
  private readonly upstreams: readonly Priced[]
  /** When periods begin, in ms since 1970, ascending; the first has always begun. */
  private readonly beginnings: readonly number[]
  private readonly periods: (PricesInForce | undefined)[] = []

  constructor(models: readonly ModelFacts[], upstreams: readonly Priced[]) {
    this.models = models
    this.upstreams = upstreams
    const lists = [
      ...models.map(({ price }) => price),
      ...upstreams.flatMap(({ prices, vendorPrices = {} }) => [
        ...Object.values(prices),
        ...Object.values(vendorPrices),
      ]),
    ]
    const times = new Set(lists.flatMap(beginningsOf))
    this.beginnings = [-Infinity, ...[...times].sort((one, other) => one - other)]
  }

  /** The prices at a time, in ms since 1970. */
  at(ms: number): PricesInForce {
    let period = this.beginnings.length - 1
    while (period > 0 && (this.beginnings[period] ?? 0) > ms) period -= 1
    return (this.periods[period] ??= this.ofPeriod(this.beginnings[period] ?? ms))
  }

  private ofPeriod(beginMs: number): PricesInForce {
    const { models, upstreams } = this
    return {
      prices: new Prices(models, upstreams, beginMs),
      version: priceVersionOf(models, upstreams, beginMs),
    }
  }
}
