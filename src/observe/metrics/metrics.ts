/**
 * One method per counted event. Only this folder names metrics; callers pass durations and results.
 * Every label value comes from a closed set.
 */
import type { AuthResult } from '../../accounts/authentication/authentication-result.js'
import type { LimitKind } from '../../base/limit-members.js'
import type { Config } from '../../config/config.js'
import type { ErrorKind } from '../../errors.js'
import { MetricSet, type Count } from './capped-registry.js'
import { BatchMetrics } from './batch-metrics.js'
import { CacheMetrics } from './cache-metrics.js'
import { ComparisonMetrics } from './comparison-metrics.js'
import { Gauges } from './gauges.js'
import { LabelMetrics } from './key-label-metrics.js'
import type { Distribution } from './histogram.js'
import type { ClientFormatLabel, HedgeResult, Hop, Outcome } from './closed-labels.js'
import { fieldLabel } from './loss-labels.js'
import { cached, register, type Families } from './metric-families.js'
import { aggregateText, type Collected, type TextFormat } from './metric-types.js'
import { TargetSeriesMap, type TargetSeries } from './target-series.js'

/** The part of a configuration whose names are label values. */
type NamedInLabels = Pick<Config, 'upstreams' | 'routes' | 'guardrails' | 'plugins'>

/** All metrics of a process. */
export class Metrics {
  private readonly set: MetricSet
  private readonly families: Families
  /** Duration of each phase in seconds. One member per phase: a lookup by a variable name is slower in V8. */
  readonly hops: Readonly<Record<Hop, Distribution>>
  /** Canaries and shadow requests. */
  readonly comparison: ComparisonMetrics
  /** The exact cache. */
  readonly cache: CacheMetrics
  /** Batches and their lines. */
  readonly batches: BatchMetrics
  /** Counters by labels of keys. */
  readonly labels = new LabelMetrics()
  private readonly overheadSeries: Distribution
  private readonly authSeries: (result: string) => Count
  private readonly escrowSeries: (result: string) => Count
  private readonly limitSeries: (kind: string) => Count
  private readonly storeSeries: (op: string) => Distribution
  private readonly guardSeries: (guardrail: string) => Distribution
  private readonly rowSeries: (kind: string) => Count
  private readonly costSeries: (
    upstream: string,
  ) => (model: string) => { readonly cost: Count; readonly pricedTokens: Count }
  private readonly retrySeries: (upstream: string) => (reason: string) => Count
  private readonly fallbackSeries: (from: string) => (to: string) => Count
  private readonly hedgeSeries: (upstream: string) => (result: string) => Count
  /** Gauges. */
  readonly gauges: Gauges
  private refresh: () => void = () => undefined
  private readonly targets: TargetSeriesMap

  /** `processMetrics: false` omits Node's own metrics. */
  constructor(options: { processMetrics?: boolean } = {}) {
    this.set = new MetricSet()
    this.families = register(this.set)
    this.gauges = new Gauges(this.families)
    this.targets = new TargetSeriesMap(this.families, () => this.set.caps.count('upstream'))
    this.comparison = new ComparisonMetrics(this.families)
    this.cache = new CacheMetrics(this.families)
    this.batches = new BatchMetrics(this.families)
    for (const metric of this.labels.metrics()) this.registry.registerMetric(metric)
    const hop = (name: Hop): Distribution => this.families.hops.child(name)
    this.hops = {
      authenticate: hop('authenticate'),
      receive: hop('receive'),
      route: hop('route'),
      admit: hop('admit'),
      guard: hop('guard'),
      connect: hop('connect'),
      first_byte: hop('first_byte'),
      translate: hop('translate'),
      relay: hop('relay'),
      settle: hop('settle'),
    }
    this.overheadSeries = this.families.overhead.child()
    this.limitSeries = cached((kind) => this.families.limitRejections.child(kind))
    this.storeSeries = cached((op) => this.families.storeDuration.child(op))
    this.escrowSeries = cached((result) => this.families.escrow.child(result))
    this.guardSeries = cached((name) => this.families.guardrailDuration.child(name))
    this.rowSeries = cached((kind) => this.families.usageRows.child(kind))
    const { cost, pricedTokens } = this.families
    this.costSeries = cached((upstream) =>
      cached((model) => ({
        cost: cost.child(upstream, model),
        pricedTokens: pricedTokens.child(upstream, model),
      })),
    )
    const { retries, fallbacks, hedges } = this.families
    this.retrySeries = cached((upstream) => cached((reason) => retries.child(upstream, reason)))
    this.fallbackSeries = cached((from) => cached((to) => fallbacks.child(from, to)))
    this.hedgeSeries = cached((upstream) => cached((result) => hedges.child(upstream, result)))
    this.authSeries = cached((result) => this.families.auth.child(result))
    if (options.processMetrics !== false) this.set.addProcessMetrics()
  }

  /** prom-client's registry, Node's own metrics included. */
  get registry(): MetricSet['registry'] {
    return this.set.registry
  }

  /** The metrics as text. */
  async text(format: TextFormat = 'prometheus'): Promise<string> {
    if (format === 'openmetrics') return aggregateText([await this.collect()], format)
    this.refreshLevels()
    return this.registry.metrics()
  }

  /** The metrics as data, to be aggregated by another process. */
  collect(): Promise<Collected[]> {
    this.refreshLevels()
    return this.set.collect()
  }

  /** Sets a callback that runs before each collection and updates gauges. */
  beforeCollect(refresh: () => void): void {
    this.refresh = refresh
  }

  private refreshLevels(): void {
    this.refresh()
    this.gauges.refresh()
  }

  /** A retry on the same target; `reason` is the error kind of the previous attempt. */
  retry(upstream: string, reason: ErrorKind): void {
    this.retrySeries(upstream)(reason).add()
  }

  /** A fallback to the next target. */
  fallback(from: string, to: string): void {
    this.fallbackSeries(from)(to).add()
  }

  /** The result of a hedge; `upstream` is its target. */
  hedge(upstream: string, result: HedgeResult): void {
    this.hedgeSeries(upstream)(result).add()
  }

  /** The gateway's own part of a request's duration. `traceId`: its exported trace. */
  overhead(seconds: number, traceId?: string | null): void {
    this.overheadSeries.observe(seconds, traceId)
  }

  auth(result: AuthResult): void {
    this.authSeries(result).add()
  }

  /** A lookup or write of reasoning state; `result` is from a closed set. */
  escrow(result: string): void {
    this.escrowSeries(result).add()
  }

  /** A field that a translation lost. Array indices and unknown names are folded. */
  loss(from: string, to: string, field: string): void {
    this.families.losses.child(from, to, fieldLabel(field)).add()
  }

  /** A request without a route: refused, or handled by the gateway itself. */
  unrouted(status: number, outcome: Outcome, ingress: ClientFormatLabel = 'none'): void {
    this.families.requests.child(ingress, 'none', 'none', String(status), outcome).add()
  }

  /** Makes room for the series of a configuration, before the first of them. */
  configured({ upstreams, routes, guardrails, plugins }: NamedInLabels): void {
    const { caps } = this.set
    caps.add('upstream', Object.keys(upstreams))
    for (const { match, targets, fallback, shadow } of routes) {
      const all = [...targets, ...fallback, ...(shadow === null ? [] : [shadow])]
      caps.add(
        'target',
        all.map(({ upstream }) => JSON.stringify([match, upstream])),
      )
    }
    caps.add(
      'guardrail',
      guardrails.map(({ name }) => name),
    )
    caps.add(
      'plugin',
      plugins.map(({ path }) => path),
    )
  }

  configLoaded(generation: number): void {
    this.families.configGeneration.child().set(generation)
  }

  /** `upstream`: the first one that uses the identity. */
  credentialRefresh(upstream: string, result: 'ok' | 'failed'): void {
    this.families.credentialRefreshes.child(upstream, result).add()
  }

  configReload(result: 'ok' | 'refused'): void {
    this.families.configReloads.child(result).add()
  }

  /** Number of gateways in the fleet, and how many have another configuration. */
  fleet(members: number, differing: number): void {
    this.families.fleetMembers.child().set(members)
    this.families.fleetDisagreement.child().set(differing)
  }

  /** A replaced worker process: it exited, or did not respond and was killed. */
  workerReplaced(reason: 'ended' | 'silent'): void {
    this.families.workerRestarts.child(reason).add()
  }

  /** A verdict of a guardrail; all labels are from the configuration or closed sets. */
  verdict(guardrail: string, on: string, verdict: string): void {
    this.families.guardrailVerdicts.child(guardrail, on, verdict).add()
  }

  /** The duration of a judgement. */
  duration(guardrail: string, seconds: number): void {
    this.guardSeries(guardrail).observe(seconds)
  }

  /** A call of a plugin that failed; both are names from the configuration and its plugins. */
  pluginError(plugin: string, hook: string): void {
    this.families.pluginErrors.child(plugin, hook).add()
  }

  /** The state of a guardrail's breaker: 0 closed, 1 half-open, 2 open. */
  breaker(guardrail: string, state: number): void {
    this.families.guardrailBreaker.child(guardrail).set(state)
  }

  /** An export of telemetry by a program: `metrics`, `logs` or `traces`. */
  clientTelemetry(signal: string): void {
    this.families.clientTelemetry.child(signal).add()
  }

  /** The result of a webhook or of one attempt to deliver it; `event` is its group. */
  webhook(event: string, result: string): void {
    this.families.webhooks.child(event, result).add()
  }

  /** Finished spans by result. */
  traceSpans(result: 'exported' | 'failed' | 'dropped', spans: number): void {
    this.families.traceSpans.child(result).add(spans)
  }

  /** Log lines that the destination did not accept in time. */
  logLinesLost(lines: number): void {
    this.families.logLinesLost.child().add(lines)
  }

  /** A request that a limit refused. */
  limited(kind: LimitKind): void {
    this.limitSeries(kind).add()
  }

  /** Whether this process enforces its share of the limits alone because the store is unavailable. */
  limitsLocal(isLocal: boolean): void {
    this.families.limitsLocal.child().set(isLocal ? 1 : 0)
  }

  /** The overload level, 0 to 3. */
  overloadLevel(level: number): void {
    this.families.overloadLevel.child().set(level)
  }

  /** A request refused because of overload. */
  shed(resource: 'delay' | 'heap' | 'open_files' | 'in_flight'): void {
    this.families.shed.child(resource).add()
  }

  /** `op` is the name of a method of the store, never data. */
  storeOperation(op: string, seconds: number, failed: boolean): void {
    this.storeSeries(op).observe(seconds)
    if (failed) this.families.storeErrors.child(op).add()
  }

  /** A request to the archive: `insert`, `read` or `check`. */
  readonly archiveRequest = (operation: string, seconds: number): void => {
    this.families.archiveRequest.child(operation).observe(seconds)
  }

  /** The cost of a request and its tokens; `model` must be an id of the catalogue or `other`. */
  cost(upstream: string, model: string, { nanoUsd, tokens }: { nanoUsd: number; tokens: number }): void {
    const { cost, pricedTokens } = this.costSeries(upstream)(model)
    cost.add(nanoUsd / 1e9)
    pricedTokens.add(tokens)
  }

  /**
   * Ledger entries by token source, or by what happened to them on the way to the store; `kind` is from a
   * closed set.
   */
  usageRow(kind: string, rows: number): void {
    this.rowSeries(kind).add(rows)
  }

  /** Output tokens an upstream charged for after the client had left. */
  tokensAfterDisconnect(upstream: string, tokens: number): void {
    this.families.tokensAfterDisconnect.child(upstream).add(tokens)
  }

  /** A unit that a request used; its name is from a closed set. */
  units(upstream: string, unit: string, count: number): void {
    this.families.units.child(upstream, unit).add(count)
  }

  /** The series of a (route, upstream); both are names from the configuration. Get it once and keep it. */
  target(route: string, upstream: string): TargetSeries {
    return this.targets.of(route, upstream)
  }
}
