/**
 * Which upstream a model id goes to: first by exact id, then by the longest prefix.
 * Pure, and decides by the configuration alone: neither health nor keys count here.
 */
import type { Config, UpstreamConfig } from '../config/config.js'
import type { RouteConfig } from '../config/route.js'

/** Where a request goes. */
export interface RouteMatch {
  /** The route's own text from the configuration, `gpt-` or `o1`: a metric label. */
  readonly label: string
  readonly upstream: UpstreamConfig
  /** The model id that the upstream is asked for. */
  readonly model: string
  readonly route: RouteConfig
}

/** Routes model ids. */
export interface Router {
  /** Null where no route takes the id. */
  route(model: string): RouteMatch | null
}

/** A route with its upstream at hand. */
interface Entry {
  readonly label: string
  readonly upstream: UpstreamConfig
  readonly route: RouteConfig
}

/**
 * A router for one generation. A look-up costs one map access for exact ids and one for each
 * different length of prefix, however many routes there are.
 */
export function createRouter(config: Config): Router {
  const byModel = new Map<string, Entry>()
  const byPrefix = new Map<string, Entry>()
  for (const route of config.routes) {
    if (route.when !== null) continue
    const name = route.targets[0]?.upstream ?? ''
    const upstream = Object.hasOwn(config.upstreams, name) ? config.upstreams[name] : undefined
    // A loaded configuration has no such route; one built by hand loses it rather than failing later.
    if (upstream === undefined) continue
    const { match } = route
    if ('model' in match) byModel.set(match.model, { label: match.model, upstream, route })
    else byPrefix.set(match.prefix, { label: match.prefix, upstream, route })
  }
  const lengths = [...new Set([...byPrefix.keys()].map((prefix) => prefix.length))]
  lengths.sort((a, b) => b - a)
  return {
    route(model) {
      const exact = byModel.get(model)
      if (exact !== undefined) return matchOf(exact, model)
      for (const length of lengths) {
        if (length > model.length) continue
        const entry = byPrefix.get(model.slice(0, length))
        if (entry !== undefined) return matchOf(entry, model)
      }
      return null
    },
  }
}

function matchOf(entry: Entry, model: string): RouteMatch {
  const { label, upstream, route } = entry
  return { label, upstream, route, model: route.targets[0]?.model ?? model }
}
