/**
 * The reply to `GET /v1/models`: the models that a route matches and the key may use, as JSON text in the
 * client's format. Each page is rendered once per generation and set of allowed models, and cached up to a
 * maximum size.
 */
import { allowedModelsFilter } from '../../accounts/check-allowed-models.js'
import type { ModelFacts } from '../../chat/model.js'
import { factsFor } from '../../config/catalogue.js'
import type { Snapshot } from '../../config/config.js'
import { nearest } from '../../config/suggest-spelling.js'
import type { DialectName } from '../../dialects/dialect.js'
import { modelPagesOf } from '../../dialects/index.js'
import type { Router } from '../../routing/router.js'

/** Maximum size of the cached lists with their cache keys, in UTF-16 units. */
const MAX_CACHED_CHARS = 4 * 1024 * 1024

/** Longer names of unknown models are not compared, which bounds the work. */
const MAX_COMPARED_CHARS = 64

/** Renders the list and its single entries. */
export class ModelList {
  private readonly snapshot: Snapshot
  private readonly router: Router
  private readonly models: readonly ModelFacts[]
  private readonly lists = new Map<string, string>()
  private chars = 0

  constructor(snapshot: Snapshot, router: Router) {
    this.snapshot = snapshot
    this.router = router
    this.models = snapshot.catalogue.models.filter((model) => router.all(model.id).length > 0)
  }

  /** Size of the cached lists with their cache keys, in UTF-16 units. */
  get cachedChars(): number {
    return this.chars
  }

  /**
   * The list for a key: `allowed` is its model list as in `ApiKey.models`, null for all; `query` is the text
   * after the question mark. Throws `GatewayError(malformed_request)` for an invalid page.
   */
  of(allowed: readonly string[] | null, dialect: DialectName, query: string): string {
    const key = JSON.stringify([dialect, query, allowed])
    const cached = this.lists.get(key)
    if (cached !== undefined) return cached
    const isAllowed = allowedModelsFilter(allowed)
    const models = this.models.filter(({ id }) => isAllowed(id))
    const json = modelPagesOf(dialect).list(models, query)
    this.cache(key, json)
    return json
  }

  /** One model as JSON text; null if no route matches the id. */
  one(id: string, dialect: DialectName): string | null {
    if (this.router.all(id).length === 0) return null
    return modelPagesOf(dialect).one({ ...factsFor(this.snapshot.catalogue, id), id })
  }

  /**
   * The model or alias with the most similar name that a key with this list of models may use; null if none is
   * similar. A vendor's prefix, as in `openai/gpt-5.4`, is ignored.
   */
  similar(id: string, allowed: readonly string[] | null): string | null {
    const name = id.slice(id.lastIndexOf('/') + 1).trim()
    if (name.length > MAX_COMPARED_CHARS) return null
    const isAllowed = allowedModelsFilter(allowed)
    const aliases = this.snapshot.config.routes.flatMap(({ match }) =>
      'model' in match ? [match.model] : [],
    )
    const names = new Set([...aliases, ...this.models.map((model) => model.id)])
    names.delete(id)
    const usable = [...names].filter(isAllowed)
    return usable.includes(name) ? name : nearest(name, usable)
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
