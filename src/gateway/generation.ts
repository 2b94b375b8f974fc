/**
 * The runtime objects of one generation of the configuration: router, upstreams, model list, prebuilt headers
 * and metric series. A request keeps the generation that it started with; the connection pools of a
 * superseded generation close when its last request has ended.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { factsAt, factsFor, withListed } from '../config/catalogue.js'
import {
  type QuirksConfig,
  type RouteConfig,
  type Snapshot,
  type UpstreamConfig,
  isConfigured,
  shownHash,
} from '../config/config.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import type { ChatRequest } from '../formats/chat/request.js'
import type { DialectName, UpstreamCodec, WireFormat } from '../formats/dialect.js'
import { compactsItself } from '../formats/openai-responses/compact.js'
import { upstreamCodecOf, isEmbeddings, isTaskFormat, taskFormat, upstreamFormat } from '../formats/index.js'
import { taskChatFormat } from '../formats/task-chats.js'
import { TrustedProxies } from '../http/client-address.js'
import { promptSizeOf, inputTokens } from '../ledger/estimate-tokens.js'
import { PriceSchedule, type PricesInForce } from '../ledger/price-schedule.js'
import type { Identity } from '../accounts/account.js'
import { Rules, type Limit } from '../limits/find-limits.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import type { TargetSeries } from '../observe/metrics/target-series.js'
import { arePluginsLoaded, loadPlugins, Plugins, type CalledFor } from '../policy/plugins.js'
import { policyOf, type Policy } from '../policy/applied-guardrails.js'
import { hideSecrets } from '../hide-secrets.js'
import { PLAIN } from '../config/quirks.js'
import { startHealthProbes, type HealthProbe } from './attempts/health-probe.js'
import { UpstreamStates } from './attempts/upstream-state.js'
import { BudgetPrices } from './charges/budget-price.js'
import { traitsOf } from './routing/match-route-conditions.js'
import { stickyKeyOf, orderTargets } from './routing/order-targets.js'
import {
  modelAt,
  createRouter,
  withoutStart,
  type ModelRoute,
  type Router,
  type RouteTarget,
} from './routing/router.js'
import { ModelList, type Discovered } from './models/model-list.js'
import { fixedHeaders, ownHeaders } from './upstream-headers.js'
import { openAiEndpoint } from './upstreams/choose-openai-endpoint.js'
import { MediaFetcher } from './upstreams/media-fetcher.js'
import type { CloudIdentities } from './upstreams/identities/cloud-identity.js'
import { Upstreams, type Upstream } from './upstreams/upstreams.js'

/** A target in one wire format: the values that all its requests share. */
export interface Target {
  readonly route: string
  /** The start of the requested model that the route strips; often empty. */
  readonly strip: string
  readonly upstream: Upstream
  readonly dialect: DialectName
  /** The format in which the upstream receives requests; for chats it is the dialect itself. */
  readonly wire: WireFormat
  readonly quirks: QuirksConfig
  readonly upstreamCodec: UpstreamCodec
  /** For each credential of the upstream: name, value, … of the headers of every request. */
  readonly headers: readonly (readonly string[])[]
  /** Name, value, …: the gateway's headers for every reply of this upstream. */
  readonly replyHeaders: readonly string[]
  /** What serves requests that the upstream has no endpoint for; null if it has one. */
  readonly emulated: string | null
  readonly series: TargetSeries
}

/** The properties of an API key that routes can match. */
interface RoutedKey {
  readonly keyId: string | null
  readonly labels: Readonly<Record<string, string>>
  /** For conditions of plugins. */
  readonly calledFor?: CalledFor
}

/** The route of a request, and its targets in the order in which they are tried. */
interface Routed {
  readonly route: ModelRoute
  readonly order: readonly RouteTarget[]
  /** Requests with the same key prefer the same target and credential; null: no preference. */
  readonly stickyKey: string | null
}

/**
 * One configuration at run time. Counts its requests, and closes its pools when it is superseded and its last
 * request has ended.
 */
export class Generation {
  readonly snapshot: Snapshot
  /** Replaced when upstreams with `discover: true` report their models. */
  models: ModelList
  /** Null if the configuration does not allow fetching media. */
  readonly media: MediaFetcher | null
  private readonly schedule: PriceSchedule
  /** The hash in ledger entries and log lines. */
  readonly hash: string
  readonly budgetPrices: BudgetPrices
  readonly limits: Rules
  /** Null without plugins. */
  readonly plugins: Plugins | null
  /** Null without guardrails. */
  readonly policy: Policy | null
  /** The proxies whose `X-Forwarded-For` header is trusted. */
  readonly proxies: TrustedProxies
  private readonly router: Router
  private readonly upstreams: Upstreams
  /** Circuit breakers, retry budgets, credentials, latencies, hedge budgets. */
  readonly states: UpstreamStates
  /** The same for shadow requests, which must not affect requests of clients. */
  readonly shadowStates: UpstreamStates
  private readonly probes: readonly HealthProbe[]
  private readonly metrics: Metrics
  /** Targets by wire format and route target. */
  private readonly targets = new Map<WireFormat, Map<RouteTarget, Target>>()
  private readonly unlisted = new UnlistedModels()
  /** `factsAt`, by upstream and model. */
  private readonly vendorFacts = new Map<string, ModelFacts>()
  /** Warnings that were logged once and are not repeated. */
  private readonly loggedNotes = new Set<string>()
  /** The `RouteTarget.canary` ids of aborted targets. */
  private aborted: ReadonlySet<string> = new Set()
  private active = 0
  private successor: Generation | null | undefined = undefined
  private onRetired: (() => void) | null = null

  constructor(snapshot: Snapshot, metrics: Metrics, previous: Generation | null) {
    this.snapshot = snapshot
    this.metrics = metrics
    metrics.configured(snapshot.config)
    this.router = createRouter(snapshot.config)
    this.upstreams = new Upstreams(snapshot.config.upstreams, previous?.upstreams ?? null)
    this.states = new UpstreamStates(snapshot.config, previous?.states ?? null)
    this.shadowStates = new UpstreamStates(snapshot.config, previous?.shadowStates ?? null)
    this.probes = startHealthProbes(snapshot.config, this.upstreams, this.states)
    const priced = Object.values(snapshot.config.upstreams)
    this.schedule = new PriceSchedule(snapshot.catalogue.models, priced)
    this.models = this.listOf(snapshot, new Map())
    this.hash = shownHash(snapshot.fileHash)
    this.budgetPrices = new BudgetPrices(snapshot.config.limiting)
    this.limits = new Rules(snapshot.config)
    const { config } = snapshot
    this.plugins = config.plugins.length === 0 ? null : new Plugins(config.plugins, metrics)
    this.policy = policyOf(config, metrics, this.plugins)
    this.proxies = new TrustedProxies(snapshot.config.server.trustedProxies)
    const { fetchMedia } = snapshot.config
    this.media = fetchMedia.enabled ? new MediaFetcher(fetchMedia) : null
  }

  /** The upstreams with `discover: true`. */
  discovering(): Upstream[] {
    const names = Object.values(this.snapshot.config.upstreams)
      .filter((config) => config.discover && isConfigured(config))
      .map(({ name }) => name)
    return names.flatMap((name) => this.upstreams.get(name) ?? [])
  }

  /**
   * Adds models of upstreams, by the name of the upstream, to the model list if the catalogue lacks them and
   * a route sends them to that upstream.
   */
  addDiscovered(discovered: Discovered): void {
    const routed = [...discovered].map(([name, models]) => ({
      models: models.filter(({ id }) =>
        this.router
          .all(id)
          .some(({ targets, fallback }) =>
            [...targets, ...fallback].some(({ upstream }) => upstream.name === name),
          ),
      ),
    }))
    const catalogue = withListed(this.snapshot.catalogue, routed)
    this.models = this.listOf({ ...this.snapshot, catalogue }, discovered)
  }

  private listOf(snapshot: Snapshot, discovered: Discovered): ModelList {
    const prices = (): PricesInForce => this.pricesAt(performance.now())
    return new ModelList(snapshot, { router: this.router, prices, discovered })
  }

  /** The prices of a request that arrived at this time of `performance.now()`. */
  pricesAt(startedMs: number): PricesInForce {
    return this.schedule.at(performance.timeOrigin + startedMs)
  }

  /**
   * The route for a request and its targets in the order in which they are tried, never empty; null if no
   * route matches the model and its conditions. Targets without an API key are left out unless there are no
   * others.
   */
  route(request: ChatRequest, key: RoutedKey): Routed | null {
    const { model } = request
    const promptTokens = (): number => inputTokens(promptSizeOf(request), this.facts(model).family)
    const { labels, calledFor } = key
    const { plugins } = this
    const plugin = (hook: string): boolean =>
      plugins !== null && calledFor !== undefined && plugins.matches(hook, request, calledFor)
    const route = this.router.find(model, traitsOf(request, labels, promptTokens, plugin))
    if (route === null) return null
    const stickyKey = stickyKeyOf(route.config.sticky, request, key.keyId)
    const { random } = this.states.clock
    const latencyMs = (target: RouteTarget): number => this.states.latencyMs(target)
    const order = orderTargets(route, { random, stickyKey, aborted: this.aborted, latencyMs })
    const configured = order.filter(({ upstream }) => isConfigured(upstream))
    return { route, order: configured.length === 0 ? order : configured, stickyKey }
  }

  /**
   * The target of a route for a request in a format, created once per generation and format; null if the
   * upstream does not support the operation.
   */
  target(routeTarget: RouteTarget, request: ChatRequest, client: RequestFormat): Target | null {
    const facts = this.facts(modelAt(routeTarget, request.model))
    const format = formatFor(routeTarget, { request, client, facts })
    if (format === null) return null
    const { dialect, wire } = format
    const targets = this.targets.get(wire)
    const existing = targets?.get(routeTarget)
    if (existing !== undefined) return existing
    const target = this.makeTarget(routeTarget, dialect, wire)
    if (targets === undefined) this.targets.set(wire, new Map([[routeTarget, target]]))
    else targets.set(routeTarget, target)
    return target
  }

  /**
   * The target of native requests to an upstream; null if there is no such upstream. Its dialect is not used.
   */
  nativeTarget(name: string): Target | null {
    const choice = this.upstreams.get(name)?.config.dialect
    const dialect = choice === 'openai' ? 'openai-chat' : choice
    const upstream = this.snapshot.config.upstreams[name]
    if (dialect === undefined || upstream === undefined) return null
    return this.makeTarget({ route: `native:${name}`, strip: '', upstream }, dialect)
  }

  /** The facts of a model from the catalogue, or those of its family. */
  facts(model: string): ModelFacts {
    return factsFor(this.snapshot.catalogue, model)
  }

  /** The same with the limits that the upstream's vendor lists for what the catalogue does not have. */
  factsAt(upstream: UpstreamConfig, model: string): ModelFacts {
    if (!Object.hasOwn(upstream.vendorLimits, model)) return this.facts(model)
    const name = `${upstream.name} ${model}`
    const known = this.vendorFacts.get(name)
    if (known !== undefined) return known
    const facts = factsAt(this.snapshot.catalogue, upstream, model)
    this.vendorFacts.set(name, facts)
    return facts
  }

  /** The id of a model in the catalogue, else `other`: metric labels never contain a client's text. */
  modelLabel(model: string, target: Pick<Target, 'strip'> | null = null): string {
    return this.snapshot.catalogue.find(withoutStart(model, target?.strip ?? ''))?.id ?? 'other'
  }

  /**
   * Whether the configuration names the model for the upstream itself: in a route, its prices or models, or
   * the catalogue. A route for any model names none.
   */
  namesModel(upstream: string, model: string): boolean {
    const { config, catalogue } = this.snapshot
    const { models = [], prices = {} } = config.upstreams[upstream] ?? {}
    if (Object.hasOwn(prices, model) || models.some(({ id }) => id === model)) return true
    if (catalogue.models.some(({ id, variants = [] }) => id === model || variants.includes(model)))
      return true
    const sends = ({ targets, fallback, shadow }: RouteConfig, name: string | null): boolean =>
      [...targets, ...fallback, ...(shadow === null ? [] : [shadow])].some(
        (target) => target.upstream === upstream && target.model === name,
      )
    return (
      config.routes.some((route) => sends(route, model)) ||
      this.router.all(model).some(({ config: route }) => !isForAny(route) && sends(route, null))
    )
  }

  /** The name under which limits count a model: its id in the catalogue, else the route. */
  limitedAs(model: string, { route, strip }: Target): string {
    return this.snapshot.catalogue.find(withoutStart(model, strip))?.id ?? route
  }

  /** The limits of a request for a model, by any of its names. */
  limitsOf(identity: Identity, model: string, target: Target): readonly Limit[] {
    const modelName = this.limitedAs(model, target)
    const upstream = target.upstream.config.name
    return this.limits.of({
      ...{ identity, model, modelName, upstream },
      strippedModel: withoutStart(model, target.strip),
    })
  }

  /** Whether `note` is passed for the first time. It must be from a closed set, never a client's text. */
  isFirst(note: string): boolean {
    if (this.loggedNotes.has(note)) return false
    this.loggedNotes.add(note)
    return true
  }

  /**
   * The name under which usage sums count a model: its id in the catalogue, else its own name if the upstream
   * served it, else the route.
   */
  countedAs(model: string, target: Target, isServed: boolean): string {
    const name = this.limitedAs(model, target)
    return name === target.route && isServed && this.unlisted.counts(model) ? model : name
  }

  /** Takes exactly these targets out of use. */
  abort(canaries: readonly string[]): void {
    this.aborted = new Set(canaries)
  }

  /** The gateway's identities at clouds. */
  get identities(): CloudIdentities {
    return this.upstreams.identities
  }

  /** Stops the active health checks; the successor has its own. */
  stopProbes(): void {
    for (const probe of this.probes) probe.stop()
  }

  enter(): void {
    this.active += 1
  }

  leave(): void {
    this.active -= 1
    this.retireIfIdle()
  }

  /** Resolves when the last request of this generation has ended and its own pools are closed. */
  async supersede(successor: Generation | null): Promise<void> {
    this.successor = successor
    await new Promise<void>((resolve) => {
      this.onRetired = resolve
      this.retireIfIdle()
    })
    await this.media?.destroy()
    await this.policy?.close()
    await this.upstreams.retire(successor?.upstreams ?? null)
  }

  /** Closes every connection at once, when the process exits. */
  async destroy(): Promise<void> {
    this.stopProbes()
    await this.media?.destroy()
    await this.policy?.close()
    await this.upstreams.destroy()
  }

  private retireIfIdle(): void {
    if (this.active > 0 || this.successor === undefined) return
    this.onRetired?.()
    this.onRetired = null
  }

  private makeTarget(
    routeTarget: Pick<RouteTarget, 'route' | 'upstream' | 'strip'>,
    dialect: DialectName,
    wire: WireFormat = dialect,
  ): Target {
    const config = routeTarget.upstream
    const upstream = this.upstreams.get(config.name)
    const upstreamCodec = upstreamCodecOf(wire, config, dialect)
    if (upstream === undefined || upstreamCodec === null) {
      throw new Error(`no upstream '${config.name}' of dialect ${dialect}`)
    }
    const keys = config.apiKeys.length === 0 ? [null] : config.apiKeys
    const generation = String(this.snapshot.generation)
    const emulated = wire === 'chat-moderations' ? 'chat' : null
    return {
      route: routeTarget.route,
      strip: routeTarget.strip,
      upstream,
      dialect,
      wire,
      quirks: quirksFor(wire, config),
      upstreamCodec,
      headers: keys.map((key) => fixedHeaders(config, upstreamCodec, key)),
      replyHeaders: ['x-sluice-upstream', config.name, 'x-sluice-generation', generation],
      emulated,
      series: this.metrics.target(routeTarget.route, config.name),
    }
  }
}

/** The edits of bodies in the format: those of a preset are for chats. */
export function quirksFor(wire: WireFormat, config: UpstreamConfig): QuirksConfig {
  if (isTaskFormat(wire) && wire !== 'chat-moderations') return PLAIN
  return isEmbeddings(wire) ? config.embeddingQuirks : config.quirks
}

/** Whether the route is for every model that no other route has. */
function isForAny({ match }: RouteConfig): boolean {
  return 'prefix' in match && match.prefix === ''
}

/** Models of OpenAI that are available only at the legacy completions endpoint. */
const COMPLETION_MODELS = /^(?:gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/

/** A dialect and the wire format of one of its operations. */
interface RequestFormat {
  readonly dialect: DialectName
  readonly wire: WireFormat
}

/** A request whose format at the upstream is chosen. */
interface ReceivedRequest {
  readonly request: ChatRequest
  /** The format in which it arrived. */
  readonly client: RequestFormat
  /** The facts of the model that is requested from the upstream. */
  readonly facts: ModelFacts
}

/**
 * The format in which a request is sent to a target; null if the upstream does not support the operation.
 * Pure.
 */
export function formatFor(
  { upstream, model, strip }: Pick<RouteTarget, 'upstream' | 'model' | 'strip'>,
  { request, client, facts }: ReceivedRequest,
): RequestFormat | null {
  const choice = upstream.dialect
  const { task } = request
  if (task !== undefined) {
    const wire = taskFormat(task.kind, upstream.operations)
    return wire === null ? null : { dialect: choice === 'openai' ? 'openai-chat' : choice, wire }
  }
  if (isTaskFormat(client.wire)) return null
  const ofChat = taskChatFormat({ request, client: client.wire, facts, forms: upstream.operations })
  if (ofChat !== null) return { dialect: choice === 'openai' ? 'openai-chat' : choice, wire: ofChat }
  const dialect = choice === 'openai' ? openAiEndpoint(request, facts, client.dialect) : choice
  const hasCompletions =
    upstream.completions || COMPLETION_MODELS.test(modelAt({ model, strip }, request.model))
  const compacts = compactsItself(upstream)
  const wire = upstreamFormat(client.wire, dialect, { hasCompletions, compacts })
  return wire === null ? null : { dialect, wire }
}

/** Maximum per process and generation, because clients choose the names. */
const MAX_NAMES = 200
const MODEL_NAME = /^[\w.:/@-]{1,128}$/

/** The first served names, up to a maximum. */
class UnlistedModels {
  private readonly names = new Set<string>()

  /** Whether sums count a served model under its own name. Adds the name if the maximum is not reached. */
  counts(model: string): boolean {
    if (!MODEL_NAME.test(model)) return false
    if (this.names.size < MAX_NAMES) this.names.add(model)
    return this.names.has(model)
  }
}

/**
 * The reason why the generation cannot be built, or null: builds a trial beside the current one, so that such
 * a configuration is refused before any worker uses it. Sends nothing, and closes all resources of the trial.
 */
export async function generationProblem(
  snapshot: Snapshot,
  metrics: Metrics,
  current: Generation,
): Promise<string | null> {
  let trial: Generation | null = null
  try {
    if (!arePluginsLoaded(snapshot.config)) await loadPlugins(snapshot.config)
    trial = new Generation(snapshot, metrics, current)
    trial.stopProbes()
    Object.values(snapshot.config.upstreams).forEach(checkHeaders)
    return null
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return hideSecrets(`the generation cannot be built: ${why}`)
  } finally {
    await trial?.supersede(current)
  }
}

function checkHeaders(config: UpstreamConfig): void {
  const { name, dialect, apiKeys } = config
  const upstreamCodec = upstreamCodecOf(dialect === 'openai' ? 'openai-chat' : dialect, config)
  if (upstreamCodec === null) throw new Error(`upstream "${name}" has no dialect "${dialect}"`)
  for (const key of apiKeys.length === 0 ? [null] : apiKeys) {
    for (const [header, value] of Object.entries(ownHeaders(config, upstreamCodec, key))) {
      validateHeaderName(header)
      validateHeaderValue(header, value)
    }
  }
}
