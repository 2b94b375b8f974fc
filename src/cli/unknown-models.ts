/** Finds the models in the list of a key (`--models`) that the configuration does not have. */
import { namesModel } from '../accounts/allowed-models.js'
import type { Catalogue, Config } from '../config/config.js'
import { didYouMean } from '../config/config-problem.js'
import { createRouter } from '../gateway/routing/router.js'

/** A dated or numbered id of a model in the catalogue ends like this: `-2026-04-23`, `-001`, `-latest`. */
const VERSION = /-(?:latest|\d{1,8}(?:-\d{1,4}){0,2})$/

/**
 * The models of a configuration: those of exact routes, those of the catalogue that a route matches, and as
 * patterns (`llama*`) the prefixes of routes without a model in the catalogue.
 */
export function knownModels(config: Config, catalogue: Catalogue): string[] {
  const router = createRouter(config)
  const listed = catalogue.models.flatMap(({ id, variants = [] }) => [id, ...variants])
  const known = new Set(listed.filter((id) => router.all(id).length > 0))
  for (const { match } of config.routes) {
    if ('model' in match) known.add(match.model)
    else if (match.prefix === '') known.add('*')
    else if (!listed.some((id) => id.startsWith(match.prefix))) known.add(`${match.prefix}*`)
  }
  return [...known]
}

/** A warning for each model or pattern that matches none of the known ones, with the nearest spelling. */
export function unknownModelWarnings(
  patterns: readonly string[],
  { models, upstreams }: { readonly models: readonly string[]; readonly upstreams: readonly string[] },
): string[] {
  const names = models.filter((model) => !model.endsWith('*'))
  return patterns.flatMap((pattern) => {
    if (pattern.startsWith('native:')) {
      const upstream = pattern.slice('native:'.length)
      if (upstream === '*' || upstreams.includes(upstream)) return []
      return [`no upstream has the name "${upstream}"${didYouMean(upstream, upstreams)}`]
    }
    const isKnown =
      models.includes('*') ||
      namesModel(models, pattern) ||
      namesModel(models, pattern.replace(VERSION, '')) ||
      (pattern.endsWith('*') && models.some((model) => model.startsWith(pattern.slice(0, -1))))
    if (isKnown) return []
    return [`neither a route nor the catalogue has the model "${pattern}"${didYouMean(pattern, names)}`]
  })
}
