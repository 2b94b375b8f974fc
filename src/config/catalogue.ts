/**
 * What the gateway knows of models: the look-up by id.
 * Knows no file and no schema, so that a worker does not load them; `catalogue-schema.ts` does.
 */
import type { ModelFacts } from '../chat/model.js'
import type { Catalogue, UpstreamConfig } from './config.js'

/** The catalogue of these models; ids and variants are unique. */
export function createCatalogue(models: readonly ModelFacts[]): Catalogue {
  const byId = new Map<string, ModelFacts>()
  for (const facts of models) {
    byId.set(facts.id, facts)
    for (const variant of facts.variants ?? []) byId.set(variant, facts)
  }
  // A request asks several times for the same one.
  let lastAsked = ''
  let lastFound: ModelFacts | null = null
  return {
    models,
    find(asked) {
      if (asked === lastAsked) return lastFound
      lastFound = findExtended(byId, asked)
      lastAsked = asked
      return lastFound
    },
  }
}

/** The catalogue with the models that upstreams list and that it does not have. Its own entries hold. */
export function withListed(
  catalogue: Catalogue,
  upstreams: readonly Pick<UpstreamConfig, 'models'>[],
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

/** Exact, else the longest known id that `asked` extends with `-`: one look-up per dash. */
function findExtended(byId: ReadonlyMap<string, ModelFacts>, asked: string): ModelFacts | null {
  const exact = byId.get(asked)
  if (exact !== undefined) return exact
  for (let end = asked.lastIndexOf('-'); end > 0; end = asked.lastIndexOf('-', end - 1)) {
    const facts = byId.get(asked.slice(0, end))
    if (facts !== undefined) return facts
  }
  return null
}

/** What an id says by its beginning of a model that is in no catalogue; the first that fits counts. */
const FAMILIES: readonly (readonly [RegExp, Omit<ModelFacts, 'id' | 'createdAtSeconds'>])[] = [
  [/^claude-/, { family: 'anthropic' }],
  [/^gemini-[12]\b/, { family: 'google', callSignatures: false }],
  [/^gemini-/, { family: 'google' }],
  [/^gemma-/, { family: 'google', callSignatures: false, systemInstruction: false }],
]

/**
 * The facts to work with for any id: the catalogue's, else what is true of its family, told by the
 * id's beginning, with everything else not known. An id of no known family counts as `openai`, since
 * any other upstream is one that speaks its format.
 */
export function factsFor(catalogue: Catalogue, modelId: string): ModelFacts {
  const known = catalogue.find(modelId)
  if (known !== null) return known
  return factsOfFamily(modelId, 'openai')
}

/** What the beginning of an id tells of a model; `otherwise` is the family if it tells nothing. */
export function factsOfFamily(id: string, otherwise: string): ModelFacts {
  const family = FAMILIES.find(([pattern]) => pattern.test(id))?.[1] ?? { family: otherwise }
  return { ...family, id, createdAtSeconds: 0 }
}
