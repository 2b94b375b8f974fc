/**
 * Which route takes a request: first by exact model id, then by the longest prefix whose conditions hold.
 * Pure, and decides by the configuration alone: the health of upstreams does not count here.
 */
import type { Config, UpstreamConfig } from '../config/config.js'
import type { AbortConfig, RouteConfig, ShadowConfig, TargetName } from '../config/routes/route.js'
import { holds, type RequestTraits } from './route-conditions.js'

/** An upstream that a route may use, and the model that is requested from it. One object for each, per generation. */
export interface RouteTarget {
  /** The label of the route. */
  readonly route: string
  readonly upstream: UpstreamConfig
  /** Null: the model that the client requested. */
  readonly model: string | null
  /** Relative to the other targets of the route; 0 for a fallback. */
  readonly weight: number
  readonly isFallback: boolean
  /** Names a target with `abort`: the index of its route and its index in `targets`, `2.1`; null for every other one. */
  readonly canary: string | null
  /** Null without `abort`. */
  readonly abort: AbortConfig | null
}

/** The target that gets copies of some requests of a route, and how many. */
export interface RouteShadow {
  readonly target: RouteTarget
  /** What its limits are counted for, in every process. */
  readonly subject: string
  readonly config: ShadowConfig
}

/** A route with its upstreams. */
export interface ModelRoute {
  /** The text of the configuration that matched, `gpt-` or `o1`: a metric label. */
  readonly label: string
  /** Its index in `routes`. */
  readonly index: number
  readonly config: RouteConfig
  /** In file order, at least one with a weight above 0. */
  readonly targets: readonly RouteTarget[]
  /** In file order. */
  readonly fallback: readonly RouteTarget[]
  /** Null: no request is copied. */
  readonly shadow: RouteShadow | null
}

/** Routes model ids. */
export interface Router {
  /** Null if no route takes the model, or none whose conditions hold. */
  find(model: string, traits: RequestTraits): ModelRoute | null
  /** All routes that take the model under some condition, in the order in which they are tried. */
  all(model: string): readonly ModelRoute[]
}

const NONE: readonly ModelRoute[] = []

/**
 * A router for one generation. A look-up costs one map access for exact ids and one for each different length
 * of prefix, however many routes there are.
 */
export function createRouter(config: Config): Router {
  const byModel = new Map<string, ModelRoute[]>()
  const byPrefix = new Map<string, ModelRoute[]>()
  config.routes.forEach((route, index) => {
    const made = routeOf(route, index, config.upstreams)
    const [map, text] =
      'model' in route.match ? [byModel, route.match.model] : [byPrefix, route.match.prefix]
    const known = map.get(text)
    if (known === undefined) map.set(text, [made])
    // Those with conditions come first, in file order.
    else if (route.when === null) known.push(made)
    else known.splice(known.findLastIndex(({ config: { when } }) => when !== null) + 1, 0, made)
  })
  const lengths = [...new Set([...byPrefix.keys()].map((prefix) => prefix.length))]
  lengths.sort((a, b) => b - a)
  const fitting = (model: string, length: number): readonly ModelRoute[] =>
    length > model.length ? NONE : (byPrefix.get(model.slice(0, length)) ?? NONE)
  return {
    find(model, traits) {
      const exact = firstOf(byModel.get(model) ?? NONE, traits)
      if (exact !== null) return exact
      for (const length of lengths) {
        const found = firstOf(fitting(model, length), traits)
        if (found !== null) return found
      }
      return null
    },
    all(model) {
      const exact = byModel.get(model) ?? NONE
      return [...exact, ...lengths.flatMap((length) => fitting(model, length))]
    },
  }
}

function firstOf(routes: readonly ModelRoute[], traits: RequestTraits): ModelRoute | null {
  for (const route of routes) {
    if (route.config.when === null || holds(route.config.when, traits)) return route
  }
  return null
}

function routeOf(
  config: RouteConfig,
  index: number,
  upstreams: Readonly<Record<string, UpstreamConfig>>,
): ModelRoute {
  const label = 'model' in config.match ? config.match.model : config.match.prefix
  const targetOf = (named: TargetName, is: Partial<RouteTarget> = {}): RouteTarget => {
    const upstream = upstreams[named.upstream]
    if (upstream === undefined) {
      throw new Error(`routes[${index}] names the unknown upstream '${named.upstream}'`)
    }
    const { weight = 0, isFallback = false, canary = null, abort = null } = is
    return { route: label, upstream, model: named.model, weight, isFallback, canary, abort }
  }
  const { shadow } = config
  return {
    label,
    index,
    config,
    targets: config.targets.map((target, at) => {
      const { weight, abort } = target
      return targetOf(target, { weight, abort, canary: abort === null ? null : `${index}.${at}` })
    }),
    fallback: config.fallback.map((target) => targetOf(target, { isFallback: true })),
    shadow:
      shadow === null
        ? null
        : { target: targetOf(shadow), subject: subjectOf(label, shadow), config: shadow },
  }
}

/** As long as the subject of a limit may be. */
const MAX_SUBJECT = 300

function subjectOf(label: string, { upstream }: ShadowConfig): string {
  return `shadow:${upstream}:${label}`.slice(0, MAX_SUBJECT)
}
