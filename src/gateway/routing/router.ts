/**
 * Finds the route of a request: first by exact model id, then by the longest prefix, in each case only if its
 * conditions hold. Pure; the health of upstreams has no influence.
 */
import type {
  Config,
  UpstreamConfig,
  AbortConfig,
  RouteConfig,
  ShadowConfig,
  TargetName,
  TargetDefaults,
} from '../../config/config.js'
import { matches, whenText, type RequestTraits } from './match-route-conditions.js'

/**
 * An upstream that a route may use, and the model that is requested from it. Each target is one object per
 * generation.
 */
export interface RouteTarget {
  /** The label of the route. */
  readonly route: string
  readonly upstream: UpstreamConfig
  /** Null: the model that the client requested, without `strip`. */
  readonly model: string | null
  /** The start of the requested model that the upstream does not get; often empty. */
  readonly strip: string
  /** Members of requests to it that the client left out; null: none. */
  readonly defaults: TargetDefaults | null
  /** The weight relative to the other targets of the route; 0 for a fallback. */
  readonly weight: number
  readonly isFallback: boolean
  /**
   * The id of a target with `abort`: the index of its route, a dot, and its index in `targets` (`2.1`); null
   * for all other targets.
   */
  readonly canary: string | null
  /** The `abort` settings; null if it has none. */
  readonly abort: AbortConfig | null
}

/** The target that gets copies of a share of a route's requests. */
export interface RouteShadow {
  readonly target: RouteTarget
  /** The subject of its limits, the same in every process. */
  readonly subject: string
  readonly config: ShadowConfig
}

/** A route with its upstreams. */
export interface ModelRoute {
  /** The model or prefix of the route, such as `o1` or `gpt-`; a metric label. */
  readonly label: string
  /** Its index in `routes`. */
  readonly index: number
  readonly config: RouteConfig
  /** The targets in the order of the configuration; at least one has a weight above 0. */
  readonly targets: readonly RouteTarget[]
  /** The fallbacks in the order of the configuration. */
  readonly fallback: readonly RouteTarget[]
  /** Null if no requests are copied. */
  readonly shadow: RouteShadow | null
}

/** Routes model ids. */
export interface Router {
  /** Null if no route matches the model, or the request meets the conditions of none that does. */
  find(model: string, traits: RequestTraits): ModelRoute | null
  /** All routes that match the model under any condition, in the order in which they are tried. */
  all(model: string): readonly ModelRoute[]
}

const NONE: readonly ModelRoute[] = []

/**
 * Creates the router of one generation. A lookup costs one map access for the exact id and one for each
 * distinct prefix length, regardless of the number of routes.
 */
export function createRouter(config: Config): Router {
  const byModel = new Map<string, ModelRoute[]>()
  const byPrefix = new Map<string, ModelRoute[]>()
  config.routes.forEach((route, index) => {
    const modelRoute = routeOf(route, index, config.upstreams)
    const [map, text] = 'model' in route.match ? [byModel, route.match.model] : [byPrefix, route.match.prefix]
    const routes = map.get(text)
    if (routes === undefined) map.set(text, [modelRoute])
    // Routes with conditions come first, in the order of the configuration.
    else if (route.when === null) routes.push(modelRoute)
    else routes.splice(routes.findLastIndex(({ config: { when } }) => when !== null) + 1, 0, modelRoute)
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
        const route = firstOf(fitting(model, length), traits)
        if (route !== null) return route
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
    if (route.config.when === null || matches(route.config.when, traits)) return route
  }
  return null
}

function routeOf(
  config: RouteConfig,
  index: number,
  upstreams: Readonly<Record<string, UpstreamConfig>>,
): ModelRoute {
  const label = labelOf(config.match)
  const targetOf = (target: TargetName, properties: Partial<RouteTarget> = {}): RouteTarget => {
    const upstream = upstreams[target.upstream]
    if (upstream === undefined) {
      throw new Error(`routes[${index}] names the unknown upstream '${target.upstream}'`)
    }
    const { weight = 0, isFallback = false, canary = null, abort = null } = properties
    const { model, defaults = null } = target
    const { strip } = config
    return { route: label, upstream, model, strip, defaults, weight, isFallback, canary, abort }
  }
  const { shadow } = config
  return {
    label,
    index,
    config,
    targets: config.targets.map((target, targetIndex) => {
      const { weight, abort } = target
      return targetOf(target, {
        weight,
        abort,
        canary: abort === null ? null : `${index}.${targetIndex}`,
      })
    }),
    fallback: config.fallback.map((target) => targetOf(target, { isFallback: true })),
    shadow:
      shadow === null
        ? null
        : { target: targetOf(shadow), subject: subjectOf(label, shadow), config: shadow },
  }
}

/** The model or prefix of a route, as in the file. */
export function labelOf(match: RouteConfig['match']): string {
  if ('model' in match) return match.model
  return match.prefix === '' ? '*' : match.prefix
}

/** The model that a target gets of a request: its own, or the requested one without what the route strips. */
export function modelAt(
  { model, strip }: { readonly model: string | null; readonly strip: string },
  requested: string,
): string {
  return model ?? withoutStart(requested, strip)
}

/** An upstream that a route may use for a model. */
interface Candidate {
  readonly target: RouteTarget
  /** The model that is requested from it. */
  readonly model: string
  /** The share of the requests for which it is the first choice, 0 to 1; null for a fallback. */
  readonly share: number | null
}

/** The upstreams that a route may use for a model: the targets, then the fallback, both in file order. */
export function candidatesOf(
  { targets, fallback }: Pick<ModelRoute, 'targets' | 'fallback'>,
  requested: string,
): Candidate[] {
  return [...targets, ...fallback].map((target) => ({
    target,
    model: modelAt(target, requested),
    share: target.isFallback ? null : shareOf(target, targets),
  }))
}

/** The share of a target in the weights of all, 0 to `whole`. */
export function shareOf(
  { weight }: Pick<RouteTarget, 'weight'>,
  all: readonly Pick<RouteTarget, 'weight'>[],
  whole = 1,
): number {
  const total = all.reduce((sum, each) => sum + each.weight, 0)
  return total === 0 ? 0 : (whole * weight) / total
}

/** The name of a model without the start that a route strips. */
export function withoutStart(model: string, strip: string): string {
  return model.startsWith(strip) ? model.slice(strip.length) : model
}

/** Maximum length of a limit's subject. */
const MAX_SUBJECT = 300

function subjectOf(label: string, { upstream }: ShadowConfig): string {
  return `shadow:${upstream}:${label}`.slice(0, MAX_SUBJECT)
}

/** The explanation of a routing decision. */
interface Reason {
  /** The path of the route in the configuration; null if no route matches the id. */
  readonly place: string | null
  readonly why: string
  /** Other routes that match the id, with a lower priority. */
  readonly others: readonly string[]
}

/**
 * Explains which route matches a model id, for the command line and the dashboard: `chosen`, or null for
 * none; `all` are the routes that match the id under any condition. Pure.
 */
export function reasonOf(chosen: ModelRoute | null, all: readonly ModelRoute[]): Reason {
  if (chosen === null) {
    const why =
      all.length === 0
        ? 'no model or prefix of a route matches'
        : 'the request does not meet the conditions of any route that matches'
    return { place: null, why, others: all.map(nameOf) }
  }
  const { match } = chosen.config
  const why =
    'model' in match
      ? `the id is exactly '${chosen.label}'`
      : match.prefix === ''
        ? 'no other route has the id or a prefix of it'
        : `'${chosen.label}' is the longest prefix that matches, and no route has the exact id`
  const others = all.filter((route) => route !== chosen).sort((a, b) => a.index - b.index)
  return { place: `routes[${chosen.index}]`, why, others: others.map(nameOf) }
}

function nameOf({ index, label, config: { match, when } }: ModelRoute): string {
  const kind = 'model' in match || match.prefix === '' ? 'model' : 'prefix'
  const condition = when === null ? '' : `, when ${whenText(when)}`
  return `routes[${index}] ${kind} '${label}'${condition}`
}

/** The state of one target with `abort`. */
export interface CanaryState {
  /** As `RouteTarget.canary`. */
  readonly id: string
  /** The model or prefix of its route. */
  readonly route: string
  readonly upstream: string
  /** Null: the model that the client requests. */
  readonly model: string | null
  /** The configured weight. */
  readonly weight: number
  /** Its share of the route's requests while it is not aborted, 0 to 100. */
  readonly percent: number
  /** Attempts and failures in the window that ends now, or at the abort. */
  readonly attempts: number
  readonly failures: number
  readonly errorRate: number
  readonly minRequests: number
  readonly windowSeconds: number
  /** When it was aborted, in ms since 1970; null if it is in use. */
  readonly abortedAtMs: number | null
}
