/**
 * Finds a model in the catalogue by its id. This file reads no YAML and no schema, so that workers do not
 * load them; `schema/catalogue-schema.ts` does.
 */
import { cloudModelOf } from '../formats/chat/cloud-model-id.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'

/** The models with their prices and limits. */
export interface Catalogue {
  /** In file order; listed by `GET /v1/models`. */
  readonly models: readonly ModelFacts[]
  /**
   * The facts for an id: of the exact id, else of the longest catalogue id that it extends with `-` (a dated
   * variant), else null.
   */
  find(id: string): ModelFacts | null
}

/** The catalogue of these models; ids and variants are unique. */
export function createCatalogue(models: readonly ModelFacts[]): Catalogue {
  const byId = new Map<string, ModelFacts>()
  for (const facts of models) {
    byId.set(facts.id, facts)
    for (const variant of facts.variants ?? []) byId.set(variant, facts)
  }
  // One request looks the same model up several times.
  let lastId = ''
  let lastFound: ModelFacts | null = null
  return {
    models,
    find(id) {
      if (id === lastId) return lastFound
      lastFound = findExtended(byId, id)
      lastId = id
      return lastFound
    },
  }
}

/**
 * The catalogue, with the models that upstreams list and it does not contain. The catalogue's own entries
 * win.
 */
export function withListed(
  catalogue: Catalogue,
  upstreams: readonly { readonly models: readonly ModelFacts[] }[],
): Catalogue {
  const known = new Set(catalogue.models.flatMap(({ id, variants = [] }) => [id, ...variants]))
  const more: ModelFacts[] = []
  for (const facts of upstreams.flatMap(({ models }) => models)) {
    if (known.has(facts.id)) continue
    known.add(facts.id)
    more.push(facts)
  }
  return more.length === 0 ? catalogue : createCatalogue([...catalogue.models, ...more])
}

/**
 * The exact id, else the longest id in the catalogue that `requested` extends with `-`: one lookup per dash.
 * The id of a cloud is looked up as the vendor's id in it.
 */
function findExtended(byId: ReadonlyMap<string, ModelFacts>, requested: string): ModelFacts | null {
  const exact = byId.get(requested)
  if (exact !== undefined) return exact
  for (let end = requested.lastIndexOf('-'); end > 0; end = requested.lastIndexOf('-', end - 1)) {
    const facts = byId.get(requested.slice(0, end))
    if (facts !== undefined) return facts
  }
  const cloud = cloudModelOf(requested)
  return cloud === null || cloud.id === requested ? null : findExtended(byId, cloud.id)
}

/** Facts about models that are in no catalogue, by the start of their id; the first match counts. */
const FAMILIES: readonly (readonly [RegExp, Omit<ModelFacts, 'id' | 'createdAtSeconds'>])[] = [
  [/^claude-/, { family: 'anthropic' }],
  [/^gemini-[12]\b/, { family: 'google', callSignatures: false }],
  [/^gemini-/, { family: 'google' }],
  [/^gemma-/, { family: 'google', callSignatures: false, systemInstruction: false }],
]

/**
 * The facts for any id: the catalogue's, else those of the family that the start of the id names; all other
 * facts are unknown. An id without a known family counts as `openai`, because the remaining upstreams use
 * OpenAI's format.
 */
export function factsFor(catalogue: Catalogue, modelId: string): ModelFacts {
  const known = catalogue.find(modelId)
  if (known !== null) return known
  return factsOfFamily(modelId, 'openai')
}

/** What an upstream's vendor lists of its models. */
interface VendorModels {
  readonly vendorLimits: Readonly<Record<string, Pick<ModelFacts, 'contextWindow' | 'maxOutputTokens'>>>
}

/**
 * The facts of a model at an upstream: `factsFor`, with the limits that its vendor lists for what the
 * catalogue does not have.
 */
export function factsAt(catalogue: Catalogue, { vendorLimits }: VendorModels, modelId: string): ModelFacts {
  const facts = factsFor(catalogue, modelId)
  const limits = Object.hasOwn(vendorLimits, modelId) ? vendorLimits[modelId] : undefined
  if (limits === undefined) return facts
  const { contextWindow = limits.contextWindow, maxOutputTokens = limits.maxOutputTokens } = facts
  return {
    ...facts,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  }
}

/** The facts that the start of an id implies; `otherwise` is the family if it implies none. */
export function factsOfFamily(id: string, otherwise: string): ModelFacts {
  const name = cloudModelOf(id)?.id ?? id
  const family = FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? { family: otherwise }
  return { ...family, id, createdAtSeconds: 0 }
}
