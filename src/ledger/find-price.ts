/**
 * Finds the price of a request: by the model that replied, in the upstream's own list or in the catalogue.
 */
import { cloudModelOf } from '../formats/chat/cloud-model-id.js'
import { priceAt, type ModelFacts, type ModelPrice, type ModelPrices } from '../formats/chat/model-facts.js'
import { priceOf, tierPrice, type Price } from './price.js'

/** The key in an upstream's own list for the price of every model that the list does not name. */
const ANY_MODEL = '*'

/**
 * Suffixes of an id that name the same model: a date, a version, or an alias of one. Any other suffix
 * (`-mini`, `-pro`) is another model, whose price is unknown.
 */
const SAME_MODEL = /^-(\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest|preview(-\d{2}-\d{2,4})?)$/

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

  /** The price of exactly this id. */
  exact(model: string): Price | null {
    return this.byId.get(model) ?? null
  }

  find(model: string): Price | null {
    const exact = this.byId.get(model)
    if (exact !== undefined) return exact
    if (model.length > MAX_NAME_CHARS) return null
    const cached = this.cachedPrices.get(model)
    if (cached !== undefined) return cached
    const cloud = cloudModelOf(model)
    const price = cloud === null ? this.search(model) : this.find(cloud.id)
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

/** The name in `service_tiers` of the factor for inference profiles of some regions. */
const GEOGRAPHIC = 'geographic_profile'

/** Whether it is an id of Bedrock, whose replies report another name. */
function isProfile(model: string): boolean {
  return model.startsWith('arn:') || cloudModelOf(model) !== null
}

const surcharged = new WeakMap<Price, Price>()

/** The price with the surcharge of an inference profile of some regions, if `requested` is one. */
function geographic(price: Price, requested: string): Price {
  if (!Object.hasOwn(price.tiers, GEOGRAPHIC)) return price
  if (cloudModelOf(requested)?.isGeographic !== true) return price
  const known = surcharged.get(price) ?? tierPrice(price, GEOGRAPHIC) ?? price
  surcharged.set(price, known)
  return known
}

/** The prices of an upstream of the configuration. */
export interface Priced {
  readonly name: string
  /** Prices by model id, or `*`. */
  readonly prices: Readonly<Record<string, ModelPrices>>
  /** Prices of its vendor that the package ships; `prices` come first. */
  readonly vendorPrices?: Readonly<Record<string, ModelPrices>>
  /** Azure: the deployment of a model, if its name differs. */
  readonly platform?: { readonly deployments: Readonly<Record<string, string>> } | null
}

/** The prices of a list that hold at a time; null for an empty list. */
function listedAt(prices: Readonly<Record<string, ModelPrices>>, atMs: number): Listed | null {
  const entries = Object.entries(prices)
  if (entries.length === 0) return null
  const listed = new Listed()
  for (const [model, each] of entries) {
    const price = priceAt(each, atMs)
    if (price !== undefined) listed.set(model, price)
  }
  return listed
}

/** All prices of one generation of the configuration. */
export class Prices {
  private readonly catalogue = new Listed()
  private readonly byUpstream = new Map<string, Listed>()
  /** The shipped prices of the vendors of upstreams with a preset. */
  private readonly byVendor = new Map<string, Listed>()
  /** The deployments of models, by upstream, of those that have any. */
  private readonly deployments = new Map<string, Readonly<Record<string, string>>>()

  /** Of lists of prices, those that hold at this time, in ms since 1970. */
  constructor(models: readonly ModelFacts[], upstreams: readonly Priced[], atMs: number) {
    for (const { id, variants = [], price: listed } of models) {
      const price = priceAt(listed, atMs)
      if (price === undefined) continue
      for (const name of [id, ...variants]) this.catalogue.set(name, price)
    }
    for (const { name, prices, vendorPrices = {}, platform } of upstreams) {
      const { deployments = {} } = platform ?? {}
      if (Object.keys(deployments).length > 0) this.deployments.set(name, deployments)
      const own = listedAt(prices, atMs)
      if (own !== null) this.byUpstream.set(name, own)
      const shipped = listedAt(vendorPrices, atMs)
      if (shipped !== null) this.byVendor.set(name, shipped)
    }
  }

  /**
   * The price of a reply by the model `reported` (null: not reported) to a request for the model `requested`.
   * The order is: the upstream's own price of the model that replied, its price of any model, the shipped
   * price of its vendor, the catalogue's price. A model that is in no list has the upstream's or its vendor's
   * price of the requested model. Azure may report the deployment, which is the requested model. An inference
   * profile, whose replies report the model behind it, has its own price before all others; without one, the
   * catalogue's price with the surcharge of geographic profiles.
   */
  find(upstream: string, requested: string, reported: string | null): Price | null {
    const own = this.byUpstream.get(upstream)
    const isDeployment = reported !== null && this.deploymentOf(upstream, requested) === reported
    const model = isDeployment ? requested : (reported ?? requested)
    if (own !== undefined) {
      const ofProfile = isProfile(requested) ? own.exact(requested) : null
      const configured = ofProfile ?? own.find(model) ?? own.find(ANY_MODEL)
      if (configured !== null) return configured
    }
    const vendor = this.byVendor.get(upstream)
    const shipped = vendor?.find(model) ?? null
    if (shipped !== null) return shipped
    const listed = this.catalogue.find(model)
    if (listed === null) return own?.find(requested) ?? vendor?.find(requested) ?? null
    // The price of an opaque profile is not that of the model behind it.
    if (requested.startsWith('arn:') && cloudModelOf(requested) === null) return null
    return geographic(listed, requested)
  }

  private deploymentOf(upstream: string, model: string): string | null {
    const deployments = this.deployments.get(upstream)
    if (deployments === undefined || !Object.hasOwn(deployments, model)) return null
    return deployments[model] ?? null
  }
}
