/**
 * What the gateway counts, said in its own words: the rest of the code names no metric.
 * Knows no request; callers hand in durations and verdicts. Every label comes from a closed set.
 */
import type { Usage } from '../../chat/usage.js'
import type { ErrorKind } from '../../errors.js'
import { ComparisonMetrics } from './comparison.js'
import { MAX_MODEL_PAIRS } from './definitions.js'
import { kept, register, type Families } from './families.js'
import { fieldLabel } from './fields.js'
import type { Distribution } from './histogram.js'
import type { Collected } from './metric.js'
import { Levels } from './levels.js'
import { type Count, MAX_LINES, MetricSet } from './registry.js'

/** A phase of a request, in order of happening. */
export type Hop =
  | 'authenticate'
  | 'receive'
  | 'route'
  | 'admit'
  | 'connect'
  | 'first_byte'
  | 'translate'
  | 'relay'
  | 'settle'

/** How a streamed reply ended: as it should, by the upstream, by the client, or by the gateway. */
export type StreamEnd =
  | 'complete'
  | 'truncated'
  | 'malformed'
  | 'upstream_timeout'
  | 'upstream_error'
  | 'client_gone'
  | 'client_stalled'
  | 'key_ended'
  | 'draining'
  | 'gateway_error'

/** What became of a client's key. */
export type AuthResult =
  | 'ok'
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'disabled'
  | 'throttled'
  | 'store_unavailable'

/** What a limit is about. */
export type LimitKind = 'requests' | 'tokens' | 'concurrent' | 'usd_day' | 'usd_month'

/** Whom a transfer waited for. undici does not report how long an upstream takes to read a request. */
export type Side = 'client'

/** How a request or attempt ended. */
export type Outcome = 'ok' | ErrorKind

/** What came of a hedge; see the metric's help. */
export type HedgeResult = 'won' | 'lost' | 'failed' | 'denied'

/** The format that a client spoke; `none` if its path is unknown. */
export type IngressLabel =
  'chat' | 'completions' | 'messages' | 'responses' | 'gemini' | 'embeddings' | 'native' | 'none'

/** The series of one (route, upstream); get it once and keep it. */
export interface TargetSeries {
  /** One more or one less request with the upstream. */
  inflight(delta: 1 | -1): void
  /** One attempt at the upstream, and how it ended; `cancelled`: another attempt was faster. */
  attempt(kind: Outcome | 'cancelled'): void
  /** One client request of this format has ended with this status. */
  finished(status: number, outcome: Outcome, ingress?: IngressLabel): void
  streamEnd(end: StreamEnd): void
  chunkGap(seconds: number): void
  backpressure(side: Side, seconds: number): void
  /** A request is sent a second time, without the reasoning of earlier turns. */
  reasoningDropped(): void
  /**
   * One answered request, with what the upstream reported. `model` must be an id of the catalogue
   * or `other`; `ttftSeconds` is null for a whole (not streamed) answer.
   */
  served(model: string, seconds: number, ttftSeconds: number | null, usage: Usage): void
}

interface ModelSeries {
  readonly duration: Distribution
  readonly firstToken: Distribution
  readonly perToken: Distribution
  readonly input: Distribution
  readonly output: Distribution
}

/** All metrics of a process. */
export class Metrics {
  private readonly set: MetricSet
  private readonly families: Families
  /** How long each phase of a request took, in seconds; by a member of its own, since a name is a search for V8. */
  readonly hops: Readonly<Record<Hop, Distribution>>
  /** Canaries, and requests that were copied to shadow targets. */
  readonly comparison: ComparisonMetrics
  private readonly overheadSeries: Distribution
  private readonly authSeries: (result: string) => Count
  private readonly escrowSeries: (result: string) => Count
  private readonly limitSeries: (kind: string) => Count
  private readonly storeSeries: (op: string) => Distribution
  private readonly rowSeries: (kind: string) => Count
  private readonly costSeries: (upstream: string) => (model: string) => Count
  private readonly retrySeries: (upstream: string) => (reason: string) => Count
  private readonly fallbackSeries: (from: string) => (to: string) => Count
  private readonly hedgeSeries: (upstream: string) => (result: string) => Count
  /** Values that rise and fall with time. */
  readonly levels: Levels
  private refresh: () => void = () => undefined
  private readonly targets = new Map<string, TargetSeries>()
  private readonly models = new Map<string, ModelSeries>()

  /** `processMetrics: false` leaves Node's own out; `maxLines` lowers the cap (tests). */
  constructor(options: { processMetrics?: boolean; maxLines?: number } = {}) {
    this.set = new MetricSet(options.maxLines ?? MAX_LINES)
    this.families = register(this.set)
    this.levels = new Levels(this.families)
    this.comparison = new ComparisonMetrics(this.families)
    const hop = (name: Hop): Distribution => this.families.hops.child(name)
    this.hops = {
      authenticate: hop('authenticate'),
      receive: hop('receive'),
      route: hop('route'),
      admit: hop('admit'),
      connect: hop('connect'),
      first_byte: hop('first_byte'),
      translate: hop('translate'),
      relay: hop('relay'),
      settle: hop('settle'),
    }
    this.overheadSeries = this.families.overhead.child()
    this.limitSeries = kept((kind) => this.families.limitRejections.child(kind))
    this.storeSeries = kept((op) => this.families.storeDuration.child(op))
    this.escrowSeries = kept((result) => this.families.escrow.child(result))
    this.rowSeries = kept((kind) => this.families.usageRows.child(kind))
    this.costSeries = kept((upstream) => kept((model) => this.families.cost.child(upstream, model)))
    const { retries, fallbacks, hedges } = this.families
    this.retrySeries = kept((upstream) => kept((reason) => retries.child(upstream, reason)))
    this.fallbackSeries = kept((from) => kept((to) => fallbacks.child(from, to)))
    this.hedgeSeries = kept((upstream) => kept((result) => hedges.child(upstream, result)))
    this.authSeries = kept((result) => this.families.auth.child(result))
    if (options.processMetrics !== false) this.set.addProcessMetrics()
  }

  /** prom-client's registry, Node's own metrics included. */
  get registry(): MetricSet['registry'] {
    return this.set.registry
  }

  /** The metrics in Prometheus's text format. */
  text(): Promise<string> {
    this.refreshLevels()
    return this.registry.metrics()
  }

  /** The metrics as data, to be aggregated by another process. */
  collect(): Promise<Collected[]> {
    this.refreshLevels()
    return this.set.collect()
  }

  /** Sets what is called before each collection, for levels that change with time. */
  beforeCollect(refresh: () => void): void {
    this.refresh = refresh
  }

  private refreshLevels(): void {
    this.refresh()
    this.levels.refresh()
  }

  /** A retry on the same target, because the attempt before ended with this error. */
  retry(upstream: string, reason: ErrorKind): void {
    this.retrySeries(upstream)(reason).add()
  }

  /** A move from one upstream to the next target. */
  fallback(from: string, to: string): void {
    this.fallbackSeries(from)(to).add()
  }

  /** What came of a hedge; `upstream` is the one it was, or would have been, sent to. */
  hedge(upstream: string, result: HedgeResult): void {
    this.hedgeSeries(upstream)(result).add()
  }

  /** The part of a request's time that was ours. */
  overhead(seconds: number): void {
    this.overheadSeries.observe(seconds)
  }

  auth(result: AuthResult): void {
    this.authSeries(result).add()
  }

  /** Reasoning state looked up or kept; `result` is one of the escrow's words. */
  escrow(result: string): void {
    this.escrowSeries(result).add()
  }

  /** A field that was lost; indices in its path and names that no interface has are folded. */
  loss(from: string, to: string, field: string): void {
    this.families.losses.child(from, to, fieldLabel(field)).add()
  }

  /** A request that ended without a route: refused, or answered by the gateway itself. */
  unrouted(status: number, outcome: Outcome, ingress: IngressLabel = 'none'): void {
    this.families.requests.child(ingress, 'none', 'none', String(status), outcome).add()
  }

  configLoaded(generation: number): void {
    this.families.configGeneration.child().set(generation)
  }

  configReload(result: 'ok' | 'refused'): void {
    this.families.configReloads.child(result).add()
  }

  /** Gateways of the fleet, and how many of them have another configuration. */
  fleet(members: number, differing: number): void {
    this.families.fleetMembers.child().set(members)
    this.families.fleetDisagreement.child().set(differing)
  }

  /** A worker process that was replaced: it ended by itself, or did not answer and was killed. */
  workerReplaced(reason: 'ended' | 'silent'): void {
    this.families.workerRestarts.child(reason).add()
  }

  /** What became of a webhook, or of a try to deliver it; `event` is its group. */
  webhook(event: string, result: string): void {
    this.families.webhooks.child(event, result).add()
  }

  /** Finished spans that were exported, or not. */
  traceSpans(result: 'exported' | 'failed' | 'dropped', spans: number): void {
    this.families.traceSpans.child(result).add(spans)
  }

  /** Log lines that the log's destination did not take in time. */
  logLinesLost(lines: number): void {
    this.families.logLinesLost.child().add(lines)
  }

  /** A request that a limit of this kind refused. */
  limited(kind: LimitKind): void {
    this.limitSeries(kind).add()
  }

  /** Whether this process keeps limits by itself, the store being away. */
  limitsLocal(isLocal: boolean): void {
    this.families.limitsLocal.child().set(isLocal ? 1 : 0)
  }

  /** 0 to 3. */
  overloadLevel(level: number): void {
    this.families.overloadLevel.child().set(level)
  }

  /** A request was refused because of overload. */
  shed(resource: 'delay' | 'heap' | 'open_files' | 'in_flight'): void {
    this.families.shed.child(resource).add()
  }

  /** `op` is the name of a method of the store, never data. */
  storeOperation(op: string, seconds: number, failed: boolean): void {
    this.storeSeries(op).observe(seconds)
    if (failed) this.families.storeErrors.child(op).add()
  }

  /** What a request cost; `model` must be an id of the catalogue or `other`. */
  cost(upstream: string, model: string, nanoUsd: number): void {
    this.costSeries(upstream)(model).add(nanoUsd / 1e9)
  }

  /** Rows of the ledger, or what happened to them; `kind` is one of the books' words. */
  usageRow(kind: string, rows: number): void {
    this.rowSeries(kind).add(rows)
  }

  /** Output tokens an upstream charged for after the client had left. */
  tokensAfterDisconnect(upstream: string, tokens: number): void {
    this.families.tokensAfterDisconnect.child(upstream).add(tokens)
  }

  /** The series of a (route, upstream); both are names from the configuration. */
  target(route: string, upstream: string): TargetSeries {
    const key = JSON.stringify([route, upstream])
    const held = this.targets.get(key)
    if (held !== undefined) return held
    const made = this.makeTarget(route, upstream)
    this.targets.set(key, made)
    return made
  }

  private makeTarget(route: string, upstream: string): TargetSeries {
    const { inflight, attempts, requests, streamEnds, chunkGap, backpressure } = this.families
    const level = inflight.child(upstream)
    const gap = chunkGap.child(upstream)
    const slow = { client: backpressure.child('client') }
    const attempt = kept((kind) => attempts.child(upstream, kind))
    const models = kept((model) => this.model(upstream, model))
    const end = kept((name) => streamEnds.child(upstream, name))
    const hits = this.families.promptTokens.child(upstream, 'hit')
    const misses = this.families.promptTokens.child(upstream, 'miss')
    const ended = kept((ingress) => {
      return kept((status) => {
        return kept((outcome) => requests.child(ingress, route, upstream, status, outcome))
      })
    })
    return {
      inflight: (delta) => level.add(delta),
      attempt: (kind) => attempt(kind).add(),
      finished: (status, outcome, ingress = 'none') =>
        ended(ingress)(String(status))(outcome).add(),
      streamEnd: (name) => end(name).add(),
      chunkGap: (seconds) => gap.observe(seconds),
      backpressure: (side, seconds) => slow[side].add(seconds),
      reasoningDropped: () => this.families.reasoningDropped.child(upstream).add(),
      served: (model, seconds, ttftSeconds, usage) => {
        record(models(model), seconds, ttftSeconds, usage)
        const { input = 0, cacheRead = 0 } = usage
        hits.add(cacheRead)
        misses.add(input - cacheRead)
      },
    }
  }

  /** The first pairs get series of their own; later models, then later upstreams, share `other`. */
  private model(upstream: string, model: string): ModelSeries {
    const held = this.models.get(JSON.stringify([upstream, model]))
    if (held !== undefined) return held
    if (this.models.size < MAX_MODEL_PAIRS) return this.makeModel(upstream, model)
    if (model !== 'other') return this.model(upstream, 'other')
    if (this.models.size < MAX_MODEL_PAIRS + 2) return this.makeModel(upstream, model)
    return upstream === 'other' ? this.makeModel('other', 'other') : this.model('other', 'other')
  }

  private makeModel(upstream: string, model: string): ModelSeries {
    const names = ['chat', upstream, model]
    const { requestDuration, timeToFirstToken, timePerOutputToken, tokenUsage } = this.families
    const made: ModelSeries = {
      duration: requestDuration.child(...names),
      firstToken: timeToFirstToken.child(...names),
      perToken: timePerOutputToken.child(...names),
      input: tokenUsage.child(...names, 'input'),
      output: tokenUsage.child(...names, 'output'),
    }
    this.models.set(JSON.stringify([upstream, model]), made)
    return made
  }
}

function record(
  series: ModelSeries,
  seconds: number,
  ttftSeconds: number | null,
  usage: Usage,
): void {
  series.duration.observe(seconds)
  if (usage.input !== undefined) series.input.observe(usage.input)
  if (usage.output !== undefined) series.output.observe(usage.output)
  if (ttftSeconds === null) return
  series.firstToken.observe(ttftSeconds)
  if (usage.output === undefined || usage.output < 2) return
  series.perToken.observe((seconds - ttftSeconds) / (usage.output - 1))
}
