/**
 * Finds the price of a request: by the model that replied, in the upstream's own list or in the catalogue.
 */
import type { ModelFacts, ModelPrice } from '../formats/chat/model.js'
import { priceOf, type Price } from './price.js'

/** The key in an upstream's own list for the price of every model that the list does not name. */
export const ANY_MODEL = '*'

/**
 * Suffixes of an id that name the same model: a date, a version, or an alias of one. Any other suffix
 * (`-mini`, `-pro`) is another model, whose price is unknown.
 */
const SAME_MODEL = /^-(\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest|preview(-\d{2}-\d{2,4})?)$/

/** Whether a model name of an upstream is this id, or a dated form of it. */
export function isSameModel(name: string, id: string): boolean {
  return name === id || (name.startsWith(id) && SAME_MODEL.test(name.slice(id.length)))
}

/** Maximum number of cached results; further names are searched each time. */
const MAX_CACHED = 1_000
/** Maximum length of an id; longer names are not cached. */
const MAX_NAME_CHARS = 256

/** The prices of one model list, by id. */
class Listed {
  private readonly byId = new Map<string, Price>()
  /** The results for names that are not ids, such as dated names. */
  private readonly cachedPrices = new Map<string, Price | null>()

  set(id: string, price: ModelPrice): void {
    this.byId.set(id, priceOf(price))
  }

  find(model: string): Price | null {
    const exact = this.byId.get(model)
    if (exact !== undefined) return exact
    if (model.length > MAX_NAME_CHARS) return null
    const cached = this.cachedPrices.get(model)
    if (cached !== undefined) return cached
    const price = this.search(model)
    if (this.cachedPrices.size < MAX_CACHED) this.cachedPrices.set(model, price)
    return price
  }

  private search(model: string): Price | null {
    for (let end = model.lastIndexOf('-'); end > 0; end = model.lastIndexOf('-', end - 1)) {
      const price = this.byId.get(model.slice(0, end))
      if (price !== undefined && SAME_MODEL.test(model.slice(end))) return price
    }
    return null
  }
}

/** The prices of an upstream of the configuration. */
export interface Priced {
  readonly name: string
  /** Prices by model id, or `*`. */
  readonly prices: Readonly<Record<string, ModelPrice>>
}

/** All prices of one generation of the configuration. */
export class Prices {
  private readonly catalogue = new Listed()
  private readonly byUpstream = new Map<string, Listed>()

  constructor(models: readonly ModelFacts[], upstreams: readonly Priced[]) {
    for (const { id, variants = [], price } of models) {
      if (price === undefined) continue
      for (const name of [id, ...variants]) this.catalogue.set(name, price)
    }
    for (const { name, prices } of upstreams) {
      const entries = Object.entries(prices)
      if (entries.length === 0) continue
      const listed = new Listed()
      for (const [model, price] of entries) listed.set(model, price)
      this.byUpstream.set(name, listed)
    }
  }

  /**
   * The price of a reply by the model `reported` (null: not reported) to a request for the model `requested`.
   * The order is: the upstream's own price of the model that replied, its price of any model, the catalogue's
   * price. A model that is in neither list has the upstream's price of the requested model.
   */
  find(upstream: string, requested: string, reported: string | null): Price | null {
    const own = this.byUpstream.get(upstream)
    const model = reported ?? requested
    return (
      own?.find(model) ??
      own?.find(ANY_MODEL) ??
      this.catalogue.find(model) ??
      own?.find(requested) ??
      null
    )
  }
}
