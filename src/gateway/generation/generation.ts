/**
 * All that one generation of the configuration needs at run time: router, upstreams, model list,
 * prebuilt headers and metric series. A request holds the generation it started with; the pools of a
 * superseded one close when its last request has ended.
 */
import { isConfigured, type QuirksConfig, type Snapshot } from '../../config/config.js'
import { factsFor, withListed } from '../../config/catalogue.js'
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest } from '../../chat/request.js'
import type { DialectName, Egress, WireFormat } from '../../dialects/dialect.js'
import { egressOf, isEmbeddings } from '../../dialects/index.js'
import { TrustedProxies } from '../../http/client-address.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { priceVersionOf } from '../../ledger/price-version.js'
import { Prices } from '../../ledger/find-price.js'
import { Rules } from '../../limits/rules.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import type { TargetSeries } from '../../observe/metrics/target-series.js'
import { traitsOf } from '../../routing/route-conditions.js'
import {
  createRouter,
  type ModelRoute,
  type Router,
  type RouteTarget,
} from '../../routing/router.js'
import { stickyKeyOf } from '../../routing/sticky.js'
import { orderTargets } from '../../routing/order-targets.js'
import { MediaFetcher } from '../../upstreams/media-fetcher.js'
import { Upstreams, type Upstream } from '../../upstreams/upstreams.js'
import { UpstreamStates } from '../attempts/health/upstream-state.js'
import type { HealthProbe } from '../attempts/health/health-probe.js'
import { startHealthProbes } from './start-health-probes.js'
import { UnlistedModels } from './unlisted-models.js'
import { fixedHeaders } from './upstream-headers.js'
import { ModelList } from './model-list.js'
import { formatFor, type RequestFormat } from './choose-dialect.js'
import { BudgetPrices } from '../reservation/budget-price.js'

/** The target of a request: the values that all requests of a route in one dialect share. */
export interface Target {
  readonly route: string
  readonly upstream: Upstream
  readonly dialect: DialectName
  /** What the upstream is sent: the dialect itself for chats. */
  readonly wire: WireFormat
  readonly quirks: QuirksConfig
  readonly egress: Egress
  /** Name, value, name, value: what every request to this upstream carries, for each of its credentials. */
  readonly headers: readonly (readonly string[])[]
  /** Name, value, …: what every reply of this upstream tells of the gateway. */
  readonly replyHeaders: readonly string[]
  readonly series: TargetSeries
}

/** What of an API key matters for the choice of a route. */
export interface RoutedKey {
  readonly keyId: string | null
  readonly labels: Readonly<Record<string, string>>
}

/** A route, and its targets in the order in which they are tried. */
export interface Routed {
  readonly route: ModelRoute
  readonly order: readonly RouteTarget[]
  /** Null: no choice has to be stable. */
  readonly stickyKey: string | null
}

/** One configuration at run time. Counts its requests, and closes its pools when it is superseded and has none. */
export class Generation {
  readonly snapshot: Snapshot
  /** Renewed when upstreams tell which models they have. */
  models: ModelList
  /** Null where the configuration does not allow it. */
  readonly media: MediaFetcher | null
  readonly prices: Prices
  /** What ledger entries name these prices by. */
  readonly priceVersion: string
  readonly budgetPrices: BudgetPrices
  readonly limits: Rules
  /** Whose `X-Forwarded-For` counts. */
  readonly proxies: TrustedProxies
  private readonly router: Router
  private readonly upstreams: Upstreams
  /** Circuit breakers, retry budgets, credentials, latencies, hedge budgets. */
  readonly states: UpstreamStates
  /** The same for shadow requests, which change nothing for those of clients. */
  readonly shadowStates: UpstreamStates
  private readonly probes: readonly HealthProbe[]
  private readonly metrics: Metrics
  /** By the format that the upstream is sent. */
  private readonly targets = new Map<WireFormat, Map<RouteTarget, Target>>()
  private readonly unlisted = new UnlistedModels()
  /** What has been logged and is not to be logged again. */
  private readonly noted = new Set<string>()
  /** The targets that were aborted, as `RouteTarget.canary` names them. */
  private aborted: ReadonlySet<string> = new Set()
  private active = 0
  private successor: Generation | null | undefined = undefined
  private onRetired: (() => void) | null = null

  constructor(snapshot: Snapshot, metrics: Metrics, previous: Generation | null) {
    this.snapshot = snapshot
    this.metrics = metrics
    this.router = createRouter(snapshot.config)
    this.upstreams = new Upstreams(snapshot.config.upstreams, previous?.upstreams ?? null)
    this.states = new UpstreamStates(snapshot.config, previous?.states ?? null)
    this.shadowStates = new UpstreamStates(snapshot.config, previous?.shadowStates ?? null)
    this.probes = startHealthProbes(snapshot.config, this.upstreams, this.states)
    this.models = new ModelList(snapshot, this.router)
    const priced = Object.values(snapshot.config.upstreams)
    this.prices = new Prices(snapshot.catalogue.models, priced)
    this.priceVersion = priceVersionOf(snapshot.catalogue.models, priced)
    this.budgetPrices = new BudgetPrices(snapshot.config.limiting)
    this.limits = new Rules(snapshot.config)
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

  /** Adds these models to the model list if the catalogue lacks them and a route takes them to their upstream. */
  addDiscovered(found: ReadonlyMap<string, readonly ModelFacts[]>): void {
    const routed = [...found].map(([name, models]) => ({
      models: models.filter(({ id }) =>
        this.router
          .all(id)
          .some(({ targets, fallback }) =>
            [...targets, ...fallback].some(({ upstream }) => upstream.name === name),
          ),
      ),
    }))
    const catalogue = withListed(this.snapshot.catalogue, routed)
    this.models = new ModelList({ ...this.snapshot, catalogue }, this.router)
  }

  /**
   * The route for a request and its targets in the order in which they are tried, never empty; null if no route
   * takes the model, or none whose conditions hold. Targets without a key are left out unless there are no others.
   */
  route(request: ChatRequest, key: RoutedKey): Routed | null {
    const { model } = request
    const promptTokens = (): number => inputTokens(promptSizeOf(request), this.facts(model).family)
    const route = this.router.find(model, traitsOf(request, key.labels, promptTokens))
    if (route === null) return null
    const stickyKey = stickyKeyOf(route.config.sticky, request, key.keyId)
    const { random } = this.states.clock
    const latencyMs = (target: RouteTarget): number => this.states.latencyMs(target)
    const order = orderTargets(route, { random, stickyKey, aborted: this.aborted, latencyMs })
    const configured = order.filter(({ upstream }) => isConfigured(upstream))
    return { route, order: configured.length === 0 ? order : configured, stickyKey }
  }

  /**
   * The target of a route for a request in a format, made once per generation and format; null if the upstream has no
   * such operation.
   */
  target(of: RouteTarget, request: ChatRequest, client: RequestFormat): Target | null {
    const format = formatFor(of, request, client, this.facts(of.model ?? request.model))
    if (format === null) return null
    const { dialect, wire } = format
    const known = this.targets.get(wire)
    const held = known?.get(of)
    if (held !== undefined) return held
    const made = this.makeTarget(of, dialect, wire)
    if (known === undefined) this.targets.set(wire, new Map([[of, made]]))
    else known.set(of, made)
    return made
  }

  /** The target of native requests to an upstream; null if there is no such upstream. Its dialect is not used. */
  nativeTarget(name: string): Target | null {
    const choice = this.upstreams.get(name)?.config.dialect
    const dialect = choice === 'openai' ? 'openai-chat' : choice
    const upstream = this.snapshot.config.upstreams[name]
    if (dialect === undefined || upstream === undefined) return null
    return this.makeTarget({ route: `native:${name}`, upstream }, dialect)
  }

  /** The catalogue's facts of a model, or those of its family. */
  facts(model: string): ModelFacts {
    return factsFor(this.snapshot.catalogue, model)
  }

  /** The model's name where it is one of ours, else `other`: a client's string is never a label. */
  modelLabel(model: string): string {
    return this.snapshot.catalogue.find(model)?.id ?? 'other'
  }

  /** What limits count a model as: one of the catalogue's, else the route that takes it. */
  limitedAs(model: string, { route }: Target): string {
    return this.snapshot.catalogue.find(model)?.id ?? route
  }

  /** Whether this is the first time; `note` is from a closed set, never a client's text. */
  isFirst(note: string): boolean {
    if (this.noted.has(note)) return false
    this.noted.add(note)
    return true
  }

  /**
   * What sums count a model as: one of the catalogue's, else its own name if the upstream served it, else the route.
   */
  countedAs(model: string, target: Target, isServed: boolean): string {
    const name = this.limitedAs(model, target)
    return name === target.route && isServed && this.unlisted.counts(model) ? model : name
  }

  /** Takes these targets out of use, and no others. */
  abort(canaries: readonly string[]): void {
    this.aborted = new Set(canaries)
  }

  /** Ends the active health checks; those of the successor take over. */
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
    await this.upstreams.retire(successor?.upstreams ?? null)
  }

  /** Ends every connection at once; for the end of the process. */
  async destroy(): Promise<void> {
    this.stopProbes()
    await this.media?.destroy()
    await this.upstreams.destroy()
  }

  private retireIfIdle(): void {
    if (this.active > 0 || this.successor === undefined) return
    this.onRetired?.()
    this.onRetired = null
  }

  private makeTarget(
    of: Pick<RouteTarget, 'route' | 'upstream'>,
    dialect: DialectName,
    wire: WireFormat = dialect,
  ): Target {
    const config = of.upstream
    const upstream = this.upstreams.get(config.name)
    const egress = egressOf(wire)
    if (upstream === undefined || egress === null) {
      throw new Error(`no upstream '${config.name}' of dialect ${dialect}`)
    }
    const keys = config.apiKeys.length === 0 ? [null] : config.apiKeys
    const generation = String(this.snapshot.generation)
    return {
      route: of.route,
      upstream,
      dialect,
      wire,
      quirks: isEmbeddings(wire) ? config.embeddingQuirks : config.quirks,
      egress,
      headers: keys.map((key) => fixedHeaders(config, egress, key)),
      replyHeaders: ['x-sluice-upstream', config.name, 'x-sluice-generation', generation],
      series: this.metrics.target(of.route, config.name),
    }
  }
}
