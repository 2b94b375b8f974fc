/**
 * Checks that all targets of a route can serve its models: every dialect supports every chat format, but only
 * some support embeddings. Runs after the catalogue is loaded.
 */
import type { Catalogue, Config, DialectChoice } from '../config.js'
import type { Finding } from '../problem.js'
import type { RouteConfig, TargetName } from './route.js'

/** Dialects without embeddings, as in `wireFor` of dialects/index.ts. */
const WITHOUT_EMBEDDINGS: ReadonlySet<DialectChoice> = new Set(['anthropic'])

/** Reports each target that does not support the requests of its route. */
export function checkTranslatable(config: Config, catalogue: Catalogue): Finding[] {
  return config.routes.flatMap((route, index) => {
    if (!isForEmbeddings(route, catalogue)) return []
    return (['targets', 'fallback'] as const).flatMap((key) =>
      route[key].flatMap((target, at) => {
        const message = problemOf(target, config, catalogue)
        return message === null ? [] : [{ path: ['routes', index, key, at], message }]
      }),
    )
  })
}

function problemOf(
  { upstream, model }: TargetName,
  { upstreams }: Config,
  catalogue: Catalogue,
): string | null {
  const dialect = upstreams[upstream]?.dialect
  if (dialect !== undefined && WITHOUT_EMBEDDINGS.has(dialect)) {
    return `uses the dialect ${dialect}, which has no embeddings, but the route is for embedding models: choose another upstream`
  }
  const facts = model === null ? null : catalogue.find(model)
  if (facts === null || facts.embedding === true) return null
  return 'names a model without embeddings, but the route is for embedding models: choose an embedding model'
}

/**
 * Whether the catalogue has models of the route and all of them are embedding models. An alias counts as its
 * first target.
 */
function isForEmbeddings({ match, targets }: RouteConfig, catalogue: Catalogue): boolean {
  const first = targets[0]?.model ?? null
  if (first !== null) return catalogue.find(first)?.embedding === true
  if ('model' in match) return catalogue.find(match.model)?.embedding === true
  const { prefix } = match
  const own = catalogue.models.filter(({ id }) => id.startsWith(prefix))
  return own.length > 0 && own.every(({ embedding }) => embedding === true)
}
