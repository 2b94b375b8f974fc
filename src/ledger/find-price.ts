/**
 * Which price a request has: by the model that really answered, from the upstream's own list or the
 * catalogue's. Knows no configuration file; both lists are handed over.
 */
import type { ModelFacts, ModelPrice } from '../chat/model.js'
import { priceOf, type Price } from './price.js'

/** In an upstream's own list: the price of every model that it does not name. */
export const ANY_MODEL = '*'

/**
 * What may follow an id without making it another model: a day, a version, or what points at one. Any
 * other suffix does (`-mini`, `-pro`), and its price is then not known.
 */
const SAME_MODEL = /^-(\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest|preview(-\d{2}-\d{2,4})?)$/

/** Whether what an upstream calls a model is the model of this id, or a dated form of it. */
export function isSameModel(name: string, id: string): boolean {
  return name === id || (name.startsWith(id) && SAME_MODEL.test(name.slice(id.length)))
}

/** More names than upstreams have; beyond, each is searched for every time. */
const MAX_FOUND = 1_000
/** An upstream may call its model anything; no id is longer. */
const MAX_NAME_CHARS = 256

/** The prices of one model list, by id. */
class Listed {
  private readonly byId = new Map<string, Price>()
  /** What was found for names that are no ids, as upstreams call most models. */
  private readonly found = new Map<string, Price | null>()

  set(id: string, price: ModelPrice): void {
    this.byId.set(id, priceOf(price))
  }

  find(model: string): Price | null {
    const exact = this.byId.get(model)
    if (exact !== undefined) return exact
    if (model.length > MAX_NAME_CHARS) return null
    const before = this.found.get(model)
    if (before !== undefined) return before
    const price = this.search(model)
    if (this.found.size < MAX_FOUND) this.found.set(model, price)
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

/** An upstream of the configuration, as far as prices go. */
export interface Priced {
  readonly name: string
  /** By model id, or `*`. */
  readonly prices: Readonly<Record<string, ModelPrice>>
}

/** All prices of one generation of the configuration. */
export class Prices {
  private readonly catalogue = new Listed()
  private readonly own = new Map<string, Listed>()

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
      this.own.set(name, listed)
    }
  }

  /**
   * The price of what `answered` (null: it did not say), where `asked` was asked for. The upstream's own
   * price of the model that answered comes first, then its price of any model, then the catalogue's. A
   * model that is in neither list costs what the upstream's list says of the one that was asked for.
   */
  find(upstream: string, asked: string, answered: string | null): Price | null {
    const own = this.own.get(upstream)
    const model = answered ?? asked
    return (
      own?.find(model) ??
      own?.find(ANY_MODEL) ??
      this.catalogue.find(model) ??
      own?.find(asked) ??
      null
    )
  }
}
