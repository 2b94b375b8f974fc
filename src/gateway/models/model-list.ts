/**
 * The reply to `GET /v1/models`: the models and aliases that a route matches and the key may use, as JSON
 * text in the client's format. A model without a usable upstream is left out.
 */
import { allowedModelsFilter } from '../../accounts/allowed-models.js'
import type { DialectChoice, Snapshot } from '../../config/config.js'
import { nearest } from '../../config/config-problem.js'
import { VENDOR_OF, type DialectName, type ListedModel } from '../../formats/dialect.js'
import { modelPagesOf } from '../../formats/index.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { PricesInForce } from '../../ledger/price-schedule.js'
import { describeModel } from './describe-model.js'
import type { Router } from '../routing/router.js'

/** Maximum size of the cached lists with their cache keys, in UTF-16 units. */
const MAX_CACHED_CHARS = 4 * 1024 * 1024

/** Longer names of unknown models are not compared, which bounds the work. */
const MAX_COMPARED_CHARS = 64

/** Models that upstreams list themselves, by the name of the upstream. */
export type Discovered = ReadonlyMap<string, readonly ModelFacts[]>

/** A request for the list or for one of its models. */
interface ModelQuery {
  /** The key's list of models as in `ApiKey.models`; null for all. */
  readonly allowed: readonly string[] | null
  readonly dialect: DialectName
  /** The text after the question mark. With `all=true` it includes models without a usable upstream. */
  readonly query: string
}

/**
 * Renders the list and its single entries. Each page is rendered once per generation and set of allowed
 * models, and cached up to a maximum size.
 */
export class ModelList {
  private readonly snapshot: Snapshot
  private readonly router: Router
  private readonly prices: () => PricesInForce
  /** The prices of what is cached. */
  private shown: PricesInForce | null = null
  /** The models of the catalogue, then the aliases. */
  private readonly ids: readonly string[]
  private described: readonly ListedModel[] | null = null
  private readonly lists = new Map<string, string>()
  private chars = 0

  /** `discovered`: the models that upstreams list themselves, by the name of the upstream. */
  constructor(
    snapshot: Snapshot,
    { router, prices, discovered }: { router: Router; prices: () => PricesInForce; discovered: Discovered },
  ) {
    this.snapshot = snapshot
    this.router = router
    this.prices = prices
    this.ids = idsOf(snapshot, router, discovered)
  }

  /** Size of the cached lists with their cache keys, in UTF-16 units. */
  get cachedChars(): number {
    return this.chars
  }

  /** The list for a key. Throws `GatewayError(malformed_request)` for an invalid page. */
  of({ allowed, dialect, query }: ModelQuery): string {
    this.refresh()
    const key = JSON.stringify([dialect, query, allowed])
    const cached = this.lists.get(key)
    if (cached !== undefined) return cached
    const isAllowed = allowedModelsFilter(allowed)
    const listed = isForAll(query) ? this.all() : this.all().filter(({ isAvailable }) => isAvailable)
    const models = listed.filter(({ id }) => isAllowed(id))
    const json = modelPagesOf(dialect).list(models, query)
    this.cache(key, json)
    return json
  }

  /** One model as JSON text; null if no route matches the id, or none of its upstreams is usable. */
  one(id: string, { dialect, query }: Omit<ModelQuery, 'allowed'>): string | null {
    const model = this.describe(id)
    if (model === null || (!model.isAvailable && !isForAll(query))) return null
    return modelPagesOf(dialect).one(model)
  }

  /**
   * The model or alias with the most similar name that a key with this list of models may use; null if none
   * is similar. A vendor's prefix, as in `openai/gpt-5.4`, is ignored.
   */
  similar(id: string, allowed: readonly string[] | null): string | null {
    const name = id.slice(id.lastIndexOf('/') + 1).trim()
    if (name.length > MAX_COMPARED_CHARS) return null
    const isAllowed = allowedModelsFilter(allowed)
    const usable = this.ids.filter((each) => each !== id && isAllowed(each))
    return usable.includes(name) ? name : nearest(name, usable)
  }

  /** Drops what shows former prices. */
  private refresh(): void {
    const prices = this.prices()
    if (prices === this.shown) return
    this.shown = prices
    this.described = null
    this.lists.clear()
    this.chars = 0
  }

  private all(): readonly ListedModel[] {
    this.described ??= this.ids.flatMap((id) => this.describe(id) ?? [])
    return this.described
  }

  private describe(id: string): ListedModel | null {
    return describeModel(id, {
      routes: this.router.all(id),
      snapshot: this.snapshot,
      prices: this.prices().prices,
    })
  }

  private cache(key: string, json: string): void {
    const chars = key.length + json.length
    if (chars > MAX_CACHED_CHARS) return
    if (this.chars + chars > MAX_CACHED_CHARS) {
      this.lists.clear()
      this.chars = 0
    }
    this.lists.set(key, json)
    this.chars += chars
  }
}

/**
 * The models of the catalogue that a route takes by name, those of its upstreams with the prefix that a
 * route strips in front, then the aliases. The route for every model adds only what its upstreams list.
 */
function idsOf({ catalogue, config }: Snapshot, router: Router, discovered: Discovered): string[] {
  const listedBy = new Map<string, ReadonlySet<string>>()
  for (const [name, { models }] of Object.entries(config.upstreams)) {
    listedBy.set(name, new Set([...models, ...(discovered.get(name) ?? [])].map(({ id }) => id)))
  }
  const isTaken = (id: string): boolean =>
    router
      .all(id)
      .some(
        ({ config: { match }, targets }) =>
          'model' in match ||
          match.prefix !== '' ||
          targets.some(({ upstream }) => listedBy.get(upstream.name)?.has(id) === true),
      )
  const stripped = config.routes.flatMap(({ targets, strip }) =>
    targets.flatMap(({ upstream: name, model }) => {
      if (strip === '' || model !== null) return []
      const vendor = vendorOf(config.upstreams[name]?.dialect ?? 'openai-chat')
      const own = catalogue.models.filter(({ family }) => family === vendor)
      return [...own.map(({ id }) => id), ...(listedBy.get(name) ?? [])].map((id) => strip + id)
    }),
  )
  const listed = catalogue.models.map(({ id }) => id)
  const aliases = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
  return [...new Set([...[...listed, ...stripped].filter(isTaken), ...aliases])]
}

/** The vendor whose models an upstream of a dialect has; null: chat completions are the format of many. */
function vendorOf(dialect: DialectChoice): string | null {
  if (dialect === 'openai-chat') return null
  return dialect === 'openai' ? 'openai' : VENDOR_OF[dialect]
}

function isForAll(query: string): boolean {
  return new URLSearchParams(query).get('all') === 'true'
}
