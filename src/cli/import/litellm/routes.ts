/**
 * Routes from groups of deployments with one name, aliases, wildcards and fallbacks; and the limits of single
 * deployments.
 */
import { MAX_WEIGHT } from '../../../config/schema/route-schema.js'
import { isObject, type JsonObject } from '../../../base/json.js'
import { without } from '../../../accounts/changes/field-types.js'
import type { Catalogue } from '../../../config/config.js'
import { readCatalogue, readText } from '../../../config/load-config.js'
import { packageFile } from '../../../config/package-file.js'
import { priceAt } from '../../../formats/chat/model-facts.js'
import type { ImportedModel } from '../report.js'
import { isSet, numberIn, type ImportContext } from './context.js'
import type { Deployment, Deployments, LostDeployment } from './deployments.js'
import type { RouterRules } from './router-settings.js'
import { BARE_FAMILIES } from './vendors.js'

/** The sections of the new configuration that come from the models. */
interface ImportedRoutes {
  readonly routes: readonly JsonObject[]
  readonly limits: readonly JsonObject[]
  readonly models: readonly ImportedModel[]
}

/** A target as the file writes it. */
interface RouteTarget {
  readonly upstream: string
  readonly model: string | null
  readonly weight: number
  readonly defaults: JsonObject
}

/** The deployments of a name. */
interface ModelGroup {
  readonly name: string
  readonly deployments: readonly Deployment[]
  readonly targets: readonly RouteTarget[]
  /** Deployments of a higher `order`. */
  readonly later: readonly RouteTarget[]
  readonly pattern: Pattern
  /** The team whose keys alone may use it; null: all. */
  readonly team: string | null
}

/** What a name matches: a model, the models with a start, or all. */
type Pattern =
  | { readonly match: 'model' }
  | { readonly match: 'any' }
  | { readonly match: 'prefix'; readonly prefix: string; readonly strip: string }

/** Makes the routes of all names that have a deployment. */
export function makeRoutes(
  deployments: Deployments,
  rules: RouterRules,
  context: ImportContext,
): ImportedRoutes {
  const lost = [...deployments.lost]
  const groups = groupsOf(deployments.carried, lost, {
    ...{ rules, context },
    costOf: rules.isCheapestFirst ? shippedCosts(context.nowMs) : null,
  })
  // A name that all may use wins over one of a team.
  const byName = new Map(
    [...groups]
      .sort((a, b) => Number(a.team === null) - Number(b.team === null))
      .map((group) => [group.name, group]),
  )
  const maker = new RouteMaker(byName, rules, context)
  for (const group of groups) maker.add(group, group.name)
  for (const { alias, name, at, isHidden } of rules.aliases) maker.addAlias({ alias, name, at, isHidden })
  for (const group of groups) maker.addBareFamilies(group)
  maker.addAll(groups)
  for (const { name, reason } of lost) maker.addLost(name, reason)
  reportFallbacks(byName, rules, context)
  const routes = maker.inOrder()
  for (const deployment of deployments.carried) {
    if (deployment.isOfAll !== true) namePlaces(deployment, routes, context)
  }
  return { routes, limits: limitsOf(deployments, rules), models: maker.models }
}

/** Names the upstream and the target of a deployment in the report. */
function namePlaces(deployment: Deployment, routes: readonly JsonObject[], { report }: ImportContext): void {
  const { at, name, upstream } = deployment
  const index = routes.findIndex(({ model, prefix }) => {
    return model === name || (typeof prefix === 'string' && `${prefix}*` === name)
  })
  if (index === -1) return
  const place = placeIn(routes[index] ?? {}, deployment)
  const start = typeof routes[index]?.['prefix'] === 'string' ? 'prefix' : 'model'
  report.rename(at, (to) => {
    if (to.startsWith('routes.targets')) return to.replace('routes.targets', `routes[${index}].${place}`)
    if (to === 'routes.model') return `routes[${index}].${start}`
    if (to.startsWith('routes')) return to.replace('routes', `routes[${index}]`)
    return to.replace(/^upstreams(?:\.(?:vertex|bedrock|azure)(?=\.))?/, `upstreams.${upstream}`)
  })
}

/** `targets[0]`, `fallback[1]` */
function placeIn(route: JsonObject, { upstream, model }: Deployment): string {
  for (const list of ['targets', 'fallback']) {
    const entries = Array.isArray(route[list]) ? route[list] : []
    const at = entries.findIndex((each) => {
      return isObject(each) && each['upstream'] === upstream && (each['model'] ?? model) === model
    })
    if (at !== -1) return `${list}[${at}]`
  }
  return 'targets'
}

interface GroupParts {
  readonly rules: RouterRules
  readonly context: ImportContext
  /** Null unless the cheapest deployment of a name is tried first. */
  readonly costOf: CostOf | null
}

/** Adds wildcards that cannot be written to `lost`. */
function groupsOf(carried: readonly Deployment[], lost: LostDeployment[], parts: GroupParts): ModelGroup[] {
  const { context } = parts
  const keys = [...new Set(carried.map(({ name, team }) => JSON.stringify([name, team])))]
  return keys.flatMap((key): ModelGroup[] => {
    const all = carried.filter((each) => JSON.stringify([each.name, each.team]) === key)
    const { name = '', team = null } = all[0] ?? {}
    const found = all.map((each) => ({ each, pattern: patternOf(each) }))
    const fits = found.flatMap(({ each, pattern }) => (pattern === null ? [] : [{ each, pattern }]))
    for (const { each, pattern } of found) {
      if (pattern !== null) continue
      const reason = 'a wildcard that is no prefix: name the models'
      context.report.forgetBelow(each.at)
      context.report.notCarried(each.at, reason)
      if (fits.length === 0) lost.push({ at: each.at, name, reason })
    }
    const [first] = fits
    if (first === undefined) return []
    const deployments = fits.map(({ each }) => each)
    const { targets, later } = targetsOf(deployments, parts)
    return [{ name, team, deployments, targets, later, pattern: first.pattern }]
  })
}

/** What the name matches; null for a wildcard that cannot be written. */
function patternOf({ name, model }: Deployment): Pattern | null {
  if (!name.includes('*')) return model.includes('*') ? null : { match: 'model' }
  if (name === '*') return model === '*' || !model.includes('*') ? { match: 'any' } : null
  const prefix = name.slice(0, -1)
  if (!name.endsWith('*') || prefix.includes('*')) return null
  if (!model.includes('*')) return { match: 'prefix', prefix, strip: '' }
  const kept = model.slice(0, -1)
  if (!model.endsWith('*') || kept.includes('*') || !prefix.endsWith(kept)) return null
  return { match: 'prefix', prefix, strip: prefix.slice(0, prefix.length - kept.length) }
}

function targetsOf(
  deployments: readonly Deployment[],
  { rules, context, costOf }: GroupParts,
): { targets: RouteTarget[]; later: RouteTarget[] } {
  const orders = deployments.map(({ order }) => order).filter((order) => order !== null)
  const first = Math.min(...orders)
  const isFirst = ({ order }: Deployment): boolean => orders.length === 0 || order === first
  const { now, dearer } = cheapestFirst(deployments.filter(isFirst), costOf)
  const weights = weightsOf(now, context)
  const targets = merged(now.map((each, at) => targetOf(each, weights[at] ?? 1)))
  const rest = deployments.filter((each) => !isFirst(each))
  const later = [...rest].sort((a, b) => (a.order ?? MAX_ORDER) - (b.order ?? MAX_ORDER))
  for (const { at } of deployments) {
    context.report.carried([...at, 'litellm_params', 'order'], 'routes.fallback')
  }
  for (const { at, weights: own } of [...dearer, ...later]) {
    for (const kind of KINDS) {
      const path = [...at, 'litellm_params', kind]
      if (own[kind] === null || context.report.has(path)) continue
      if (kind !== 'weight' && rules.enforcesRates) context.report.carried(path, 'limits')
      else context.report.ignored(path, 'a fallback has no share of the requests')
    }
  }
  return { targets, later: [...dearer, ...later].map((each) => targetOf(each, 0)) }
}

/** The cheapest deployments and the others by their cost, if the router is set to that; else all of them. */
function cheapestFirst(
  deployments: readonly Deployment[],
  costOf: CostOf | null,
): { readonly now: readonly Deployment[]; readonly dearer: readonly Deployment[] } {
  if (costOf === null || deployments.length < 2) return { now: deployments, dearer: [] }
  const costs = deployments.map((each) => ({ each, cost: costOf(each.model, each.price) ?? Infinity }))
  const least = Math.min(...costs.map(({ cost }) => cost))
  const dearer = costs.filter(({ cost }) => cost !== least).sort((a, b) => a.cost - b.cost)
  return {
    now: costs.filter(({ cost }) => cost === least).map(({ each }) => each),
    dearer: dearer.map(({ each }) => each),
  }
}

function targetOf({ upstream, model, defaults }: Deployment, weight: number): RouteTarget {
  return { upstream, model: model.includes('*') ? null : model, weight, defaults }
}

/** One target for equal ones, which have the sum of their weights. */
function merged(targets: readonly RouteTarget[]): RouteTarget[] {
  const found = new Map<string, RouteTarget>()
  for (const target of targets) {
    const key = keyOf(target)
    const known = found.get(key)
    found.set(key, known === undefined ? target : { ...known, weight: known.weight + target.weight })
  }
  const all = [...found.values()]
  const isRest = all.every(({ weight }) => weight === 0)
  return isRest ? all.map((target) => ({ ...target, weight: 1 })) : all
}

function keyOf({ upstream, model }: Pick<RouteTarget, 'upstream' | 'model'>): string {
  return `${upstream}\0${model ?? ''}`
}

/** A deployment without an order follows those that have one. */
const MAX_ORDER = Number.MAX_SAFE_INTEGER
/**
 * What a million tokens of a prompt and of a reply cost together, by the price of the entry, else by the
 * shipped catalogue; null: unknown.
 */
type CostOf = (model: string, price: JsonObject | null) => number | null

/** Reads the shipped catalogue. */
function shippedWindows(): (model: string) => number | null {
  const catalogue = shippedCatalogue()
  return (model) => catalogue?.find(model)?.contextWindow ?? null
}

function shippedCatalogue(): Catalogue | null {
  const file = packageFile('config/models.yaml')
  return readCatalogue(file, readText(file) ?? '').catalogue
}

/** Reads the shipped catalogue. `nowMs` selects among prices with dates. */
function shippedCosts(nowMs: number): CostOf {
  const catalogue = shippedCatalogue()
  return (model, price) => {
    const [input, output] = [numberIn(price?.['input']), numberIn(price?.['output'])]
    if (input !== null || output !== null) return (input ?? 0) + (output ?? 0)
    const known = priceAt(catalogue?.find(model)?.price, nowMs)
    return known === undefined ? null : (known.input ?? 0) + (known.output ?? 0)
  }
}

/** Numbers of deployments that are shares; the first that one has counts. */
const KINDS = ['weight', 'rpm', 'tpm'] as const

/** The shares, as LiteLLM takes them: `weight`, else `rpm`, else `tpm`; one without the number has none. */
function weightsOf(deployments: readonly Deployment[], { report }: ImportContext): number[] {
  const kind = KINDS.find((each) => deployments.some(({ weights }) => weights[each] !== null)) ?? null
  for (const { at, weights } of deployments) {
    for (const each of KINDS) {
      if (weights[each] === null) continue
      const path = [...at, 'litellm_params', each]
      if (each === 'weight') report.carried(path, 'routes.targets.weight')
      else if (each === kind) {
        const note = 'a share of the requests, as LiteLLM uses it without enforce_model_rate_limits'
        report.changed(path, 'routes.targets.weight', note)
      } else report.ignored(path, `${kind ?? ''} decides the share`)
    }
  }
  if (kind === null) return deployments.map(() => 1)
  const shares = deployments.map(({ weights }) => weights[kind] ?? 0)
  const most = Math.max(...shares)
  return most > MAX_WEIGHT ? shares.map((share) => (share * MAX_WEIGHT) / most) : shares
}

class RouteMaker {
  readonly models: ImportedModel[] = []
  private readonly exact: JsonObject[] = []
  private readonly prefixes: JsonObject[] = []
  private readonly any: JsonObject[] = []
  private readonly taken = new Set<string>()
  private readonly groups: ReadonlyMap<string, ModelGroup>
  private readonly rules: RouterRules
  private readonly context: ImportContext

  /** The context window of a model in the shipped catalogue; null: unknown. */
  private readonly windowOf: (model: string) => number | null

  constructor(groups: ReadonlyMap<string, ModelGroup>, rules: RouterRules, context: ImportContext) {
    this.windowOf = rules.contextFallbacks.length > 0 ? shippedWindows() : () => null
    this.groups = groups
    this.rules = rules
    this.context = context
    for (const { pattern } of groups.values()) if (pattern.match === 'prefix') this.taken.add(pattern.prefix)
  }

  /** Exact models, then prefixes, then the route for all others. */
  inOrder(): JsonObject[] {
    return [...this.exact, ...this.prefixes, ...this.any]
  }

  add(group: ModelGroup, name: string, note: string | null = null): void {
    const { pattern, targets, deployments } = group
    const fallback = this.fallbackOf(group, name)
    const settings = {
      ...this.matchOf(pattern, name),
      ...(group.team === null ? {} : { when: { labels: { litellm_team: group.team } } }),
      targets: targets.map((target) => shownTarget(target, targets.length > 1)),
      ...(fallback.length === 0 ? {} : { fallback: fallback.map((target) => shownFallback(target)) }),
      ...this.settingsOf(group),
    }
    const list = { model: this.exact, prefix: this.prefixes, any: this.any }[pattern.match]
    const larger = this.largerOf(group)
    if (larger !== null) {
      const others = without(settings, 'fallback')
      const labels = group.team === null ? {} : { labels: { litellm_team: group.team } }
      list.push({ ...others, when: { ...labels, min_prompt_tokens: larger.above }, targets: larger.targets })
    }
    list.push(settings)
    const isReady = deployments.some(({ variables }) => variables.every((each) => isSet(this.context, each)))
    this.models.push({
      name,
      match: pattern.match,
      status: isReady ? 'ready' : 'no_key',
      targets: targets.map(({ upstream, model, weight }) => ({ upstream, model, weight })),
      fallback: fallback.map(({ upstream, model }) => ({ upstream, model })),
      note,
    })
  }

  addAlias({ alias, name, at, isHidden }: RouterRules['aliases'][number]): void {
    const { report } = this.context
    const group = this.groups.get(name)
    if (group === undefined || this.groups.has(alias)) {
      const why = group === undefined ? 'no model that was carried has this name' : 'a model has this name'
      report.notCarried(at, why)
      this.addLost(alias, why)
      return
    }
    if (isHidden) report.changed(at, 'routes.model', 'the alias is listed, too')
    else report.carried(at, 'routes.model')
    this.add(group, alias, `an alias of ${name}`)
  }

  /** A wildcard of a vendor also serves its models without the prefix. */
  addBareFamilies(group: ModelGroup): void {
    const { name, targets, pattern, deployments } = group
    // A name that `*` matches is not tried with a vendor's prefix.
    if (pattern.match !== 'prefix' || this.groups.has('*')) return
    const vendor = pattern.prefix.replace(/\/$/, '')
    const families =
      name === `${vendor}/*` && Object.hasOwn(BARE_FAMILIES, vendor) ? BARE_FAMILIES[vendor] : []
    const isWhole = deployments.every(({ model }) => model === '*')
    for (const prefix of isWhole ? (families ?? []) : []) {
      if (this.taken.has(prefix)) continue
      this.taken.add(prefix)
      const fallback = this.fallbackOf(group, name)
      this.prefixes.push({
        prefix,
        targets: targets.map((target) => shownTarget(target, targets.length > 1)),
        ...(fallback.length === 0 ? {} : { fallback: fallback.map((target) => shownFallback(target)) }),
        ...this.settingsOf({ name, deployments }),
      })
    }
  }

  /** The line of `*`, if it means all vendors. */
  addAll(groups: readonly ModelGroup[]): void {
    const all = groups.filter(({ deployments }) => deployments.some(({ isOfAll }) => isOfAll === true))
    if (all.length === 0) return
    const targets = all.flatMap((group) =>
      group.targets.map(({ upstream, model, weight }) => ({ upstream, model, weight })),
    )
    const note = 'the models of each vendor by its prefix, and the families of OpenAI, Anthropic and Google'
    this.models.push({ name: '*', match: 'any', status: 'ready', targets, fallback: [], note })
  }

  addLost(name: string, reason: string): void {
    if (this.models.some((model) => model.name === name)) return
    const match = name === '*' ? 'any' : name.endsWith('*') ? 'prefix' : 'model'
    this.models.push({ name, match, status: 'not_carried', targets: [], fallback: [], note: reason })
  }

  private matchOf(pattern: Pattern, name: string): JsonObject {
    if (pattern.match === 'any') return { model: '*' }
    if (pattern.match === 'model') return { model: name }
    return { prefix: pattern.prefix, ...(pattern.strip === '' ? {} : { strip: pattern.strip }) }
  }

  private settingsOf({ name, deployments }: Pick<ModelGroup, 'name' | 'deployments'>): JsonObject {
    const own = deployments.map(({ retries }) => retries).filter((each) => each !== null)
    const retries = own.length > 0 ? Math.max(...own) : (this.rules.retriesOf.get(name) ?? this.rules.retries)
    return {
      ...this.rules.routeSettings,
      retry: { attempts: Math.min(10, Math.floor(retries) + 1) },
    }
  }

  /** The targets of the named groups in order, without those that the group has itself. */
  private fallbackOf(group: ModelGroup, name: string): RouteTarget[] {
    const seen = new Set(group.targets.map(keyOf))
    const found: RouteTarget[] = []
    const { fallbacks, usualFallback } = this.rules
    const named = fallbacks.get(name) ?? fallbacks.get(group.name) ?? usualFallback
    const all = [
      ...group.later,
      ...named.slice(0, MAX_FALLBACKS).flatMap((other) => {
        const found = other === group.name ? null : servedBy(other, this.groups, this.rules)
        // A model of another kind cannot answer, and vectors of another model would be wrong.
        return found === null || servedOf(found.group) !== servedOf(group) ? [] : found.targets
      }),
    ]
    for (const target of all) {
      if (seen.has(keyOf(target)) || (target.model === null && group.pattern.match === 'model')) continue
      seen.add(keyOf(target))
      found.push(target)
    }
    return found
  }

  /** The targets for prompts above the window of the first model; null without such a rule. */
  private largerOf({ name, deployments }: ModelGroup): { above: number; targets: JsonObject[] } | null {
    const rule = this.rules.contextFallbacks.find((each) => each.name === name)
    if (rule === undefined) return null
    const windows = deployments.map(({ maxInput, model }) => maxInput ?? this.windowOf(model))
    const window = windows.find((each) => each !== null) ?? null
    const targets = rule.names.flatMap((each) => servedBy(each, this.groups, this.rules)?.targets ?? [])
    const { report } = this.context
    if (window === null || targets.length === 0) {
      const why =
        window === null ? 'the window of the model is unknown: add max_input_tokens' : 'no such model'
      report.notCarried(rule.at, `${why}, or add a route with when.min_prompt_tokens`)
      return null
    }
    report.changed(
      rule.at,
      'routes.when.min_prompt_tokens',
      'chosen by the size of the prompt, before a failure',
    )
    const usual = merged(targets)
    return {
      above: Math.round(window) + 1,
      targets: usual.map((each) => shownTarget(each, usual.length > 1)),
    }
  }
}

const MAX_FALLBACKS = 5

/**
 * The group that serves a name and its targets: by the name itself, an alias, or a wildcard. Null if there is
 * none.
 */
function servedBy(
  name: string,
  groups: ReadonlyMap<string, ModelGroup>,
  { aliases }: RouterRules,
): { readonly group: ModelGroup; readonly targets: readonly RouteTarget[] } | null {
  const exact = groups.get(name) ?? groups.get(aliases.find(({ alias }) => alias === name)?.name ?? '')
  if (exact !== undefined) return { group: exact, targets: [...exact.targets, ...exact.later] }
  const wild = [...groups.values()]
    .filter(({ pattern }) => pattern.match === 'prefix' && name.startsWith(pattern.prefix))
    .sort((a, b) => b.name.length - a.name.length)[0]
  if (wild?.pattern.match !== 'prefix') return null
  const model = name.slice(wild.pattern.strip.length)
  return { group: wild, targets: wild.targets.map((target) => ({ ...target, model: target.model ?? model })) }
}

function servedOf({ deployments }: ModelGroup): string {
  return deployments[0]?.served ?? 'chat'
}

function shownTarget(target: RouteTarget, isShared: boolean): JsonObject {
  return { ...shownFallback(target), ...(isShared ? { weight: target.weight } : {}) }
}

function shownFallback({ upstream, model, defaults }: RouteTarget): JsonObject {
  return {
    upstream,
    ...(model === null ? {} : { model }),
    ...(Object.keys(defaults).length === 0 ? {} : { defaults }),
  }
}

/** Names that have no deployment are reported where they are. */
function reportFallbacks(
  groups: ReadonlyMap<string, ModelGroup>,
  rules: RouterRules,
  { report }: ImportContext,
): void {
  for (const { at, from, to, position } of rules.fallbackPlaces) {
    const [first, next] = [from, to].map((name) => (name === null ? null : servedBy(name, groups, rules)))
    if (from !== null && !first) report.notCarried(at, 'no model that was carried has this name')
    else if (!next) report.notCarried(at, 'no model that was carried has the name of this fallback')
    else if (first && servedOf(first.group) !== servedOf(next.group))
      report.notCarried(
        at,
        `a model for ${servedOf(next.group)}, which cannot answer for ${servedOf(first.group)}`,
      )
    else if (position >= MAX_FALLBACKS) report.notCarried(at, 'LiteLLM tries five fallbacks at most')
    else report.carried(at, 'routes.fallback')
  }
}

function limitsOf({ carried }: Deployments, { enforcesRates }: RouterRules): JsonObject[] {
  return carried.flatMap(({ upstream, model, limits, weights }) => {
    const rates = {
      ...(weights.rpm !== null && weights.rpm >= 1 ? { requests_per_minute: Math.round(weights.rpm) } : {}),
      ...(weights.tpm !== null && weights.tpm >= 1 ? { tokens_per_minute: Math.round(weights.tpm) } : {}),
    }
    const amounts = { ...limits, ...(enforcesRates ? rates : {}) }
    if (Object.keys(amounts).length === 0) return []
    return [{ scope: 'upstream', upstream, ...(model.includes('*') ? {} : { model }), ...amounts }]
  })
}
