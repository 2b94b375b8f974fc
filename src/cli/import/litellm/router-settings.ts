/** `router_settings`, and the same keys of `litellm_settings`: strategies, retries, fallbacks, aliases. */
import type { Path } from '../../../config/config-problem.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ImportReport } from '../report.js'
import { ignoreKeys, isTrue, listAt, mapAt, numberIn, refuseKeys, textsIn } from './context.js'

/** A fallback of one name to another, at its place in the file. */
interface FallbackPlace {
  readonly at: Path
  /** Null: of all names. */
  readonly from: string | null
  readonly to: string
  readonly position: number
}

/** The rules of the router. */
export interface RouterRules {
  /** Keys of every route: balance, sticky, cache. */
  readonly routeSettings: JsonObject
  /** Retries after the first attempt. */
  readonly retries: number
  readonly retriesOf: ReadonlyMap<string, number>
  readonly fallbacks: ReadonlyMap<string, readonly string[]>
  readonly usualFallback: readonly string[]
  readonly fallbackPlaces: readonly FallbackPlace[]
  readonly contextFallbacks: readonly { at: Path; name: string; names: readonly string[] }[]
  readonly aliases: readonly { alias: string; name: string; at: Path; isHidden: boolean }[]
  /** Whether `rpm` and `tpm` of a deployment are limits, too. */
  readonly enforcesRates: boolean
  /** Whether the cheapest deployment of a name is tried first. */
  readonly isCheapestFirst: boolean
  /** Keys of every upstream. */
  readonly upstream: JsonObject
  readonly timeoutSeconds: number | null
  readonly streamTimeoutSeconds: number | null
  readonly litellmParams: JsonObject
}

const ROUTER = 'router_settings'
const SETTINGS = 'litellm_settings'
const DEFAULT_RETRIES = 2

/** The value of a key that both sections may have; the router's wins. */
interface Found {
  readonly value: JsonValue | undefined
  readonly at: Path
}

/** Reads the rules; `cache` is the key of that name of each route. */
export function readRouterRules(config: JsonObject, report: ImportReport, cache: JsonObject): RouterRules {
  const router = mapAt(config, ROUTER)
  const settings = mapAt(config, SETTINGS)
  const pick = (key: string, alias = key): Found => {
    if (router[key] === undefined) return { value: settings[alias], at: [SETTINGS, alias] }
    if (settings[alias] !== undefined) report.ignored([SETTINGS, alias], `router_settings.${key} wins`)
    return { value: router[key], at: [ROUTER, key] }
  }
  const strategy = readStrategy(router, report)
  const checks = readChecks(router, report)
  const fallbacks = readFallbacks(pick, report)
  readPolicies(router, report)
  ignoreOthers(router, report)
  const timeout = pick('timeout', 'request_timeout')
  const timeoutSeconds = numberIn(timeout.value)
  if (timeoutSeconds !== null) report.carried(timeout.at, 'upstreams.timeouts')
  const streamTimeoutSeconds = numberIn(router['stream_timeout'])
  if (streamTimeoutSeconds !== null) report.carried([ROUTER, 'stream_timeout'], 'upstreams.timeouts')
  const retries = readRetries(router, pick, report)
  return {
    routeSettings: { ...strategy.route, ...checks.route, ...cache },
    ...retries,
    ...fallbacks,
    aliases: readAliases(router, report),
    enforcesRates: checks.enforcesRates || strategy.enforcesRates,
    isCheapestFirst: router['routing_strategy'] === 'cost-based-routing',
    upstream: breakerOf(router, pick, report),
    timeoutSeconds,
    streamTimeoutSeconds,
    litellmParams: defaultParams(router, report),
  }
}

type Pick = (key: string, alias?: string) => Found

function readStrategy(router: JsonObject, report: ImportReport) {
  const at = [ROUTER, 'routing_strategy']
  const plain = { route: {}, enforcesRates: false }
  report.ignored([ROUTER, 'routing_strategy_args'])
  switch (router['routing_strategy']) {
    case 'latency-based-routing':
      report.carried(at, 'routes.balance: least_latency')
      return { ...plain, route: { balance: 'least_latency' } }
    case 'least-busy':
      report.changed(at, 'routes.balance: least_latency', 'by the time to the first content')
      return { ...plain, route: { balance: 'least_latency' } }
    case 'usage-based-routing':
    case 'usage-based-routing-v2':
      report.changed(at, 'routes.balance: weighted', 'by weight; rpm and tpm are limits of the deployment')
      return { ...plain, enforcesRates: true }
    case 'cost-based-routing':
      report.changed(at, 'routes.fallback', 'the cheapest deployment first, the dearer ones after it')
      return plain
    case 'provider-budget-routing':
      report.changed(at, 'routes.balance: weighted', 'use limits with scope upstream for budgets')
      return plain
    default:
      report.carried(at, 'routes.balance: weighted')
      return plain
  }
}

function readChecks(router: JsonObject, report: ImportReport) {
  const route: JsonObject = {}
  let enforcesRates = false
  for (const [index, check] of listAt(router, 'optional_pre_call_checks').entries()) {
    const at = [ROUTER, 'optional_pre_call_checks', index]
    switch (check) {
      case 'prompt_caching':
      case 'session_affinity':
        route['sticky'] ??= 'conversation'
        report.carried(at, 'routes.sticky: conversation')
        break
      case 'deployment_affinity':
        route['sticky'] ??= 'key'
        report.carried(at, 'routes.sticky: key')
        break
      case 'enforce_model_rate_limits':
        enforcesRates = true
        report.carried(at, 'limits')
        break
      case 'responses_api_deployment_check':
      case 'encrypted_content_affinity':
        report.carried(at, 'built in')
        break
      case 'router_budget_limiting':
        report.notCarried(at, 'use limits with scope upstream')
        break
      default:
        report.notCarried(at, 'no such check here')
    }
  }
  return { route, enforcesRates }
}

function readRetries(router: JsonObject, pick: Pick, report: ImportReport) {
  const { value, at } = pick('num_retries')
  const own = numberIn(value)
  if (own !== null && own > 9) report.changed(at, 'routes.retry.attempts', 'at most 10 attempts')
  else if (own !== null) report.carried(at, 'routes.retry.attempts')
  let retries = own ?? DEFAULT_RETRIES
  const policy = Object.values(mapAt(router, 'retry_policy')).flatMap((each) => numberIn(each) ?? [])
  if (policy.length > 0) {
    retries = Math.max(...policy)
    report.changed([ROUTER, 'retry_policy'], 'routes.retry.attempts', 'the largest number, for every failure')
  }
  const retriesOf = new Map<string, number>()
  for (const [name, each] of Object.entries(mapAt(router, 'model_group_retry_policy'))) {
    const numbers = isObject(each) ? Object.values(each).flatMap((value) => numberIn(value) ?? []) : []
    if (numbers.length === 0) continue
    retriesOf.set(name, Math.max(...numbers))
    const note = 'the largest number, for every failure'
    report.changed([ROUTER, 'model_group_retry_policy', name], 'routes.retry.attempts', note)
  }
  return { retries, retriesOf }
}

function readFallbacks(pick: Pick, report: ImportReport) {
  const fallbacks = new Map<string, readonly string[]>()
  const fallbackPlaces: FallbackPlace[] = []
  let usualFallback: readonly string[] = []
  for (const { name, names, at } of namedLists(pick('fallbacks'))) {
    if (name === '*') usualFallback = names
    else fallbacks.set(name, names)
    const from = name === '*' ? null : name
    names.forEach((to, position) => fallbackPlaces.push({ at: [...at, position], from, to, position }))
  }
  const usual = pick('default_fallbacks')
  const names = textsIn(usual.value)
  // LiteLLM appends them as another list of `*`, and the last of these counts.
  if (names.length > 0) usualFallback = names
  names.forEach((to, position) => {
    fallbackPlaces.push({ at: [...usual.at, position], from: null, to, position })
  })
  const contextFallbacks = namedLists(pick('context_window_fallbacks'))
  const policy = pick('content_policy_fallbacks')
  report.notCarried(policy.at, 'a refusal is an answer here: it is passed on')
  return { fallbacks, usualFallback, fallbackPlaces, contextFallbacks }
}

/** `[{ name: [names] }]` with the places of the lists. */
function namedLists({ value, at }: Found): { name: string; names: string[]; at: Path }[] {
  const entries = Array.isArray(value) ? value : []
  return entries.flatMap((entry, index) => {
    if (!isObject(entry)) return []
    return Object.entries(entry).map(([name, names]) => ({
      name,
      names: textsIn(names),
      at: [...at, index, name],
    }))
  })
}

function readAliases(router: JsonObject, report: ImportReport): RouterRules['aliases'] {
  return Object.entries(mapAt(router, 'model_group_alias')).flatMap(([alias, value]) => {
    const at = [ROUTER, 'model_group_alias', alias]
    if (typeof value === 'string') return [{ alias, name: value, at, isHidden: false }]
    if (isObject(value) && typeof value['model'] === 'string') {
      return [{ alias, name: value['model'], at, isHidden: isTrue(value['hidden']) }]
    }
    report.notCarried(at, 'is no name of a model')
    return []
  })
}

function breakerOf(router: JsonObject, pick: Pick, report: ImportReport): JsonObject {
  const fails = pick('allowed_fails')
  const failures = numberIn(fails.value)
  const cooldown = numberIn(router['cooldown_time'])
  if (failures !== null) {
    report.changed(fails.at, 'upstreams.breaker.failures', 'consecutive failures, not those of a minute')
  }
  if (cooldown !== null) {
    const note = 'the upstream rests, and is then tested with one request'
    report.changed([ROUTER, 'cooldown_time'], 'upstreams.breaker.open_seconds', note)
  }
  if (router['disable_cooldowns'] === false) report.ignored([ROUTER, 'disable_cooldowns'])
  if (isTrue(router['disable_cooldowns'])) {
    report.changed([ROUTER, 'disable_cooldowns'], 'upstreams.breaker', 'opens after very many failures')
    return { breaker: { failures: 1_000_000 } }
  }
  const breaker = {
    ...(failures === null ? {} : { failures: Math.max(1, Math.round(failures)) }),
    ...(cooldown === null ? {} : { open_seconds: Math.min(3_600, Math.max(1, Math.round(cooldown))) }),
  }
  return Object.keys(breaker).length === 0 ? {} : { breaker }
}

function defaultParams(router: JsonObject, report: ImportReport): JsonObject {
  const params = mapAt(router, 'default_litellm_params')
  if (Object.keys(params).length > 0) report.carried([ROUTER, 'default_litellm_params'], 'every deployment')
  return params
}

function readPolicies(router: JsonObject, report: ImportReport): void {
  refuseKeys(report, [ROUTER], router, {
    allowed_fails_policy: 'one number for all failures: upstreams.breaker.failures',
    routing_groups: 'use a route for each group',
    provider_budget_config: 'use limits with scope upstream',
    enable_tag_filtering: 'use routes.when.labels',
    redis_host: 'use store: redis://HOST:PORT',
    redis_port: 'use store: redis://HOST:PORT',
    redis_password: 'use store: redis://:${REDIS_PASSWORD}@HOST:PORT',
    redis_url: 'use store: redis://HOST:PORT',
    redis_db: 'use store: redis://HOST:PORT/DB',
    deployment_affinity_ttl_seconds: 'the choice has no end',
  })
}

function ignoreOthers(router: JsonObject, report: ImportReport): void {
  ignoreKeys(report, [ROUTER], router, {
    retry_after: 'the upstream sets the wait; else waits grow',
    enable_pre_call_checks: null,
    set_verbose: null,
    debug_level: null,
    cache_responses: null,
    client_ttl: null,
    polling_interval: null,
    default_max_parallel_requests: null,
    ignore_invalid_deployments: null,
  })
  if (isTrue(router['cache_responses'])) {
    report.notCarried([ROUTER, 'cache_responses'], 'use litellm_settings.cache, or routes.cache')
  }
}
