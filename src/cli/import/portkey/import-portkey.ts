/**
 * `sluice import portkey`: a config object of Portkey as files of this gateway. It becomes a route for every
 * model. Virtual keys are on Portkey's servers, so that their targets are not carried.
 */
import type { Path } from '../../../config/config-problem.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { isSet, listAt, mapAt, numberIn, textsIn } from '../litellm/context.js'
import { ImportedUpstreams } from '../litellm/upstreams.js'
import { gatewayText, type ImportResult } from '../litellm/import-litellm.js'
import { ImportReport, reportText, summaryOf, type ImportedModel } from '../report.js'
import { ImportedSecrets } from '../secrets.js'
import { readSource } from '../source.js'
import { upstreamOfProvider, type PortkeyContext } from './providers.js'

/** What the import reads. */
interface PortkeyInput {
  readonly config: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** A target of the route. */
interface Target {
  readonly name: string | null
  readonly upstream: string
  readonly model: string | null
  readonly weight: number
  readonly variables: readonly string[]
  /** Whether it shares the requests; else it is a fallback. */
  readonly isShared: boolean
}

/** Reads and converts; writes nothing. Throws `InvalidSource`. */
export function importPortkey({ config, env }: PortkeyInput): ImportResult {
  const source = readSource(config)
  const { value } = source
  const report = new ImportReport(source)
  const secrets = new ImportedSecrets(new Set())
  const context = { report, secrets, upstreams: new ImportedUpstreams() }
  const strategy = mapAt(value, 'strategy')
  const hasList = Array.isArray(value['targets'])
  const targets = hasList ? targetsIn(value, [], context) : oneTarget(value, [], context)
  const settings = routeSettings(value, report)
  const routes = routesOf(strategy, targets, { settings, report })
  report.ignored(['strategy', 'on_status_codes'], 'what follows each failure is fixed')
  for (const key of GUARDRAILS) report.notCarried([key], 'checks of Portkey: use guardrails')
  const models = modelsOf(targets, strategy, { env, secrets })
  const gateway = {
    server: { bare_paths: true },
    upstreams: context.upstreams.section(),
    routes,
  }
  const summary = summaryOf(report.items(value), models, { read: 0, carried: 0, not_carried: 0 })
  const dotenv = secrets.envText()
  return {
    summary,
    files: [
      { name: 'gateway.yaml', text: gatewayText(gateway), isSecret: false },
      ...(dotenv === null ? [] : [{ name: '.env', text: dotenv, isSecret: true }]),
      { name: 'report.md', text: reportText(config, summary), isSecret: false },
    ],
  }
}

const GUARDRAILS = [
  'input_guardrails',
  'output_guardrails',
  'before_request_hooks',
  'after_request_hooks',
] as const

/**
 * The targets of a list, with those of strategies in it: a route has one list of shares and one of fallbacks,
 * so that shares in a fallback after the first one are tried in turn.
 */
function targetsIn(config: JsonObject, at: Path, context: PortkeyContext): Target[] {
  const { report } = context
  const outer = mapAt(config, 'strategy')['mode'] ?? 'fallback'
  const usual = usualOf(config)
  if (at.length === 0) for (const name of Object.keys(usual)) report.carried([name], 'every target')
  return listAt(config, 'targets').flatMap((target, index) => {
    const path = [...at, 'targets', index]
    if (!isObject(target)) return []
    const isFirst = outer !== 'fallback' || index === 0
    if (!Array.isArray(target['targets'])) {
      return oneTarget({ ...usual, ...target }, path, context).map((each) => ({ ...each, isShared: isFirst }))
    }
    const inner = mapAt(target, 'strategy')['mode'] ?? 'fallback'
    const isKnown = [outer, inner].every((mode) => mode === 'fallback' || mode === 'loadbalance')
    if (!isKnown || at.length > MAX_NESTING) {
      report.notCarried(path, 'a strategy in another one: make a route for each')
      return []
    }
    if (inner === 'loadbalance' && isFirst) report.carried([...path, 'strategy'], 'routes.targets.weight')
    else {
      const note = inner === 'loadbalance' ? 'tried in turn: only the first targets share' : 'one list'
      report.changed([...path, 'strategy'], 'routes.fallback', note)
    }
    const all = targetsIn({ ...usual, ...target }, path, context)
    const weight = outer === 'loadbalance' ? numberIn(target['weight']) : null
    if (weight !== null) report.carried([...path, 'weight'], 'routes.targets.weight')
    return all.map((each) => ({
      ...each,
      isShared: isFirst && each.isShared,
      ...(weight === null ? {} : { weight: weight * shareOf(each, all) }),
    }))
  })
}

/** Steps of a path; each strategy has two. */
const MAX_NESTING = 12

/** The part of the requests of a group that one of its targets gets. */
function shareOf({ weight, isShared }: Target, group: readonly Target[]): number {
  const all = group.filter((each) => each.isShared).reduce((sum, each) => sum + each.weight, 0)
  return isShared && all > 0 ? weight / all : 1
}

/** What targets take over from the object around them. */
function usualOf(config: JsonObject): JsonObject {
  const names = ['override_params', 'request_timeout', 'provider', 'custom_host', 'api_key'] as const
  return Object.fromEntries(
    names.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]])),
  )
}

function oneTarget(target: JsonObject, at: Path, context: PortkeyContext): Target[] {
  const { report } = context
  const { provider } = target
  const slug = textsIn(provider)[0] ?? ''
  if (slug.startsWith('@') || (slug === '' && target['virtual_key'] !== undefined)) {
    const why = 'a virtual key is on the servers of Portkey: name the provider and its api_key'
    report.notCarried(at, why)
    return []
  }
  const overrides = mapAt(target, 'override_params')
  const found = upstreamOfProvider(slug, target, { at, context })
  if (found === null) {
    report.notCarried(at, slug === '' ? 'has no provider' : 'the provider is unknown: add custom_host')
    return []
  }
  const set = Object.entries(overrides).filter(([name]) => name !== 'model')
  for (const [name] of set) {
    report.carried([...at, 'override_params', name], `upstreams.quirks.set.${name}`)
  }
  const model = textsIn(overrides['model'])[0] ?? null
  if (model !== null) report.carried([...at, 'override_params', 'model'], 'routes.targets.model')
  const upstream = context.upstreams.for({
    label: found.label,
    values: {
      ...found.values,
      ...timeoutsOf(target, at, report),
      ...(set.length === 0 ? {} : { quirks: { set: Object.fromEntries(set) } }),
    },
    variables: found.variables,
    model: found.model ?? model,
    deployment: found.deployment,
    price: null,
  })
  report.carried([...at, 'provider'], `upstreams.${upstream.name}`)
  const weight = numberIn(target['weight'])
  if (weight !== null) report.carried([...at, 'weight'], 'routes.targets.weight')
  if (target['virtual_key'] !== undefined) {
    report.notCarried(
      [...at, 'virtual_key'],
      'a virtual key is on the servers of Portkey: set the variable of the key',
    )
  }
  report.notCarried([...at, 'retry'], 'retries are those of the route')
  report.notCarried([...at, 'cache'], 'the cache is that of the route')
  const name = textsIn(target['name'])[0] ?? null
  if (name !== null) report.ignored([...at, 'name'], 'targets have no names')
  return [
    {
      name,
      upstream: upstream.name,
      model: found.model ?? model,
      weight: weight ?? 1,
      variables: found.variables,
      isShared: true,
    },
  ]
}

function timeoutsOf(target: JsonObject, at: Path, report: ImportReport): JsonObject {
  const ms = numberIn(target['request_timeout'])
  if (ms === null || ms < 1) return {}
  report.carried([...at, 'request_timeout'], 'upstreams.timeouts')
  const whole = Math.min(86_400_000, Math.round(ms))
  return { timeouts: { first_byte_ms: whole, first_byte_whole_ms: whole } }
}

const YEAR_SECONDS = 31_536_000

/** `retry` and `cache` of every route. */
function routeSettings(config: JsonObject, report: ImportReport): JsonObject {
  const settings: JsonObject = {}
  const retry = mapAt(config, 'retry')
  const attempts = numberIn(retry['attempts'])
  if (attempts !== null) {
    settings['retry'] = { attempts: Math.min(10, Math.max(1, Math.round(attempts) + 1)) }
    report.carried(['retry', 'attempts'], 'routes.retry.attempts')
  }
  report.ignored(['retry', 'on_status_codes'], 'what follows each failure is fixed')
  report.ignored(['retry', 'use_retry_after_header'], 'the header is always read')
  const cache = mapAt(config, 'cache')
  const age = numberIn(cache['max_age'])
  if (cache['mode'] === 'semantic') {
    report.notCarried(['cache'], 'only equal requests are answered from the cache')
  } else if (Object.keys(cache).length > 0) {
    const seconds = Math.min(YEAR_SECONDS, Math.max(1, Math.round(age ?? 604_800)))
    settings['cache'] = { ttl_seconds: seconds, scope: 'shared' }
    report.forgetBelow(['cache'])
    report.carried(['cache'], 'routes.cache')
  }
  return settings
}

interface RouteParts {
  readonly settings: JsonObject
  readonly report: ImportReport
}

function routesOf(
  strategy: JsonObject,
  targets: readonly Target[],
  { settings, report }: RouteParts,
): JsonObject[] {
  const at = ['strategy', 'mode']
  if (targets.length === 0) return []
  if (strategy['mode'] === 'conditional') {
    report.changed(at, 'routes.when', 'metadata is that of the key: its labels')
    return conditionalRoutes(strategy, targets, { settings, report })
  }
  report.carried(at, strategy['mode'] === 'loadbalance' ? 'routes.targets.weight' : 'routes.fallback')
  const { shares, fallback } = partsOf(targets)
  const isWeighted = shares.length > 1 && shares.some(({ weight }) => weight > 0)
  return [
    {
      model: '*',
      targets: shares.map((each) => shown(each, isWeighted)),
      ...(fallback.length === 0 ? {} : { fallback: fallback.map((each) => shown(each, false)) }),
      ...settings,
    },
  ]
}

/** The targets that share the requests, and the others in order; without a first one the next is it. */
function partsOf(targets: readonly Target[]): { readonly shares: Target[]; readonly fallback: Target[] } {
  const all = distinct(targets)
  const shares = all.filter(({ isShared }) => isShared)
  if (shares.length === 0) return { shares: all.slice(0, 1), fallback: all.slice(1) }
  return { shares, fallback: all.filter(({ isShared }) => !isShared) }
}

/** The first of equal targets. */
function distinct(targets: readonly Target[]): Target[] {
  const found = new Map<string, Target>()
  for (const target of targets) {
    const key = `${target.upstream}\0${target.model ?? ''}`
    if (!found.has(key)) found.set(key, target)
  }
  return [...found.values()]
}

function shown({ upstream, model, weight }: Target, isShared: boolean): JsonObject {
  return { upstream, ...(model === null ? {} : { model }), ...(isShared ? { weight } : {}) }
}

/** A route with `when.labels` for each condition on metadata, and one for all other requests. */
function conditionalRoutes(
  strategy: JsonObject,
  targets: readonly Target[],
  { settings, report }: RouteParts,
): JsonObject[] {
  const named = (name: JsonValue | undefined): Target | undefined =>
    targets.find((each) => each.name === name)
  const routes = listAt(strategy, 'conditions').flatMap((condition, index): JsonObject[] => {
    const at = ['strategy', 'conditions', index]
    const target = isObject(condition) ? named(condition['then']) : undefined
    const labels = isObject(condition) ? labelsIn(mapAt(condition, 'query')) : null
    if (target === undefined || labels === null) {
      report.notCarried(at, 'only equal metadata can be a condition: use routes.when, or a plugin')
      return []
    }
    report.changed(at, 'routes.when.labels', 'labels of the key, instead of metadata of the request')
    return [{ model: '*', when: { labels }, targets: [shown(target, false)], ...settings }]
  })
  const usual = named(strategy['default']) ?? targets[0]
  report.carried(['strategy', 'default'], 'routes')
  return usual === undefined
    ? routes
    : [...routes, { model: '*', targets: [shown(usual, false)], ...settings }]
}

/** Labels for a query of equal texts; null for any other. */
function labelsIn(query: JsonObject): JsonObject | null {
  const labels: JsonObject = {}
  for (const [path, test] of Object.entries(query)) {
    const [, name = ''] = /^metadata\.([a-z0-9_.-]{1,32})$/.exec(path) ?? []
    const value = isObject(test) ? test['$eq'] : test
    if (name === '' || typeof value !== 'string' || !/^[!-+\--~]{1,64}$/.test(value)) return null
    labels[name] = value
  }
  return Object.keys(labels).length === 0 ? null : labels
}

function modelsOf(
  targets: readonly Target[],
  strategy: JsonObject,
  variables: Parameters<typeof isSet>[0],
): ImportedModel[] {
  const all = distinct(targets)
  const { shares, fallback } =
    strategy['mode'] === 'conditional'
      ? { shares: all.slice(0, 1), fallback: all.slice(1) }
      : partsOf(targets)
  const isReady = targets.some((each) => each.variables.every((name) => isSet(variables, name)))
  return [
    {
      name: '*',
      match: 'any',
      status: targets.length === 0 ? 'not_carried' : isReady ? 'ready' : 'no_key',
      targets: shares.map(({ upstream, model, weight }) => ({ upstream, model, weight })),
      fallback: fallback.map(({ upstream, model }) => ({ upstream, model })),
      note: null,
    },
  ]
}
