/**
 * The data plane of one process: accepts requests, holds the current generation, and ends exchanges on
 * shutdown. The listener is in `http/server.ts`.
 */
import { getHeapStatistics } from 'node:v8'
import type { Config, Snapshot } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Marking } from '../policy/prompt-cache-marks.js'
import { newRequestId } from '../http/request-id.js'
import type { HttpRequest, HttpResponse, Upgrade } from '../http/message.js'
import type { BreakerState } from './attempts/breaker.js'
import type { DeniedKey } from './attempts/upstream-state.js'
import type { Batches } from './batches/batches.js'
import { BodyMemory } from './body-memory.js'
import { CanaryCounter, type CanaryOrder, type CanaryReport } from './canary/canary-monitor.js'
import { Timeouts } from './timeouts.js'
import { Discovery } from './models/model-discovery.js'
import { DrainedReplySlots } from './drained-replies.js'
import { InFlightList } from './in-flight-list.js'
import { Exchange, type ExchangeParts, type PreAuthenticated } from './client-exchange.js'
import type { Caching } from './cache/answer-from-cache.js'
import { Generation, generationProblem } from './generation.js'
import { OverloadMonitor, type Overload } from './overload.js'
import type { RecordingService } from './recording/record-requests.js'
import { RecentHeads, type RequestHead } from './report/recent-requests.js'
import { clientTrace } from './report/forward-client-trace.js'
import { arePluginsLoaded, loadPlugins } from '../policy/plugins.js'
import { serve, type Services } from './pipeline.js'
import type { ResponsesSockets } from './responses-socket/responses-sockets.js'
import { Shadows } from './shadow/shadows.js'
import { SocketPlaces } from './socket-places.js'
import type { IdentityWatch } from './upstreams/identities/cloud-identity.js'

/** Share of the heap for requests and whole replies with their copies; the rest is for processing them. */
const BODY_SHARE_OF_HEAP = 0.5

/** The services that the caller provides; the gateway creates the others. */
type GatewayParts = Omit<
  Services,
  | 'canaries'
  | 'timeouts'
  | 'drainedReplySlots'
  | 'bodies'
  | 'socketPlaces'
  | 'overload'
  | 'recent'
  | 'shadows'
  | 'caching'
  | 'recording'
  | 'marking'
  | 'sockets'
  | 'batches'
  | 'ended'
>

/** Serves requests with the current generation until it is closed. */
export class Gateway {
  private readonly services: Services
  private readonly discovery: Discovery
  private readonly monitor: OverloadMonitor
  private readonly identityWatch: IdentityWatch
  private readonly inFlight = new InFlightList<Exchange>()
  private current: Generation
  /** The cache of routes that have one; null before its first use. */
  private caching: Caching | null = null
  /** Marks prompts for the providers' caches; null before its first use. */
  private marking: Marking | null = null
  /** Records requests; null before its first use. */
  private recording: RecordingService | null = null
  /** Files and batches; null before their first use. */
  private batches: Batches | null = null
  private openingBatches: Promise<Batches> | null = null
  private openingCaching: Promise<Caching> | null = null
  private isDraining = false
  /** The WebSockets of Responses; null before the first is opened. */
  private sockets: ResponsesSockets | null = null
  /** The number of the generation that was adopted last. */
  private adopting = 0
  /** Set while `close` waits for the last exchange. */
  private onIdle: (() => void) | null = null
  /** Generations retire in order: an older one may share pools with those after it. */
  private retired: Promise<void> = Promise.resolve()

  /** `report` is called with the canary counts of this process. */
  constructor(parts: GatewayParts, snapshot: Snapshot, report: (report: CanaryReport) => void) {
    this.monitor = new OverloadMonitor({
      settings: () => this.current.snapshot.config.server.overload,
      inFlight: () => this.inFlight.size,
      log: parts.log,
      metrics: parts.metrics,
    })
    const shared = {
      ...parts,
      canaries: new CanaryCounter(report),
      overload: this.monitor.overload,
      recent: new RecentHeads(),
      timeouts: new Timeouts(),
      drainedReplySlots: new DrainedReplySlots(),
      bodies: new BodyMemory(getHeapStatistics().heap_size_limit * BODY_SHARE_OF_HEAP),
      socketPlaces: new SocketPlaces(),
    }
    this.services = {
      ...shared,
      shadows: new Shadows(shared),
      caching: () => this.caching ?? this.openCaching(),
      recording: () => this.recording ?? this.openRecording(),
      marking: () => this.marking ?? this.openMarking(),
      sockets: () => this.sockets ?? this.openSockets(),
      batches: () => this.batches ?? this.openBatches(),
      ended: (x) => this.ended(x),
    }
    this.current = new Generation(snapshot, parts.metrics, null)
    this.current.states.watch.onChange = (upstream, state) => {
      reportBreaker(upstream, state, parts)
    }
    this.current.states.watch.onDenied = (denied) => reportDenied(denied, parts)
    this.identityWatch = watchIdentities(parts)
    this.current.identities.start(this.identityWatch)
    parts.metrics.configLoaded(snapshot.generation)
    parts.metrics.beforeCollect(() => {
      parts.metrics.gauges.upstreams(this.current.states.gauges())
      parts.metrics.gauges.credentials(this.current.identities.all())
      if (this.caching !== null) parts.metrics.cache.size(this.caching.size)
    })
    this.discovery = new Discovery(parts.log)
    this.discovery.adopt(this.current)
    this.openUsedCache()
    parts.authenticator.watch({
      digests: () => this.digestsInUse(),
      end: (digest, why) => this.endAllOf(digest, why),
    })
    parts.values.watch({
      each: (visit) =>
        this.inFlight.each(({ run }) => {
          if (run !== null) visit(run)
        }),
      end: (digest, why) =>
        this.inFlight.each((x) => {
          if (x.run?.digest === digest) x.cancellation.cancel(why)
        }),
    })
    parts.limiter.watch((visit) => {
      this.inFlight.each(({ limitReservation }) => {
        if (limitReservation !== null) visit(limitReservation)
      })
      this.services.shadows.each(visit)
    })
  }

  /** The generation that new requests get. */
  get generation(): number {
    return this.current.snapshot.generation
  }

  /** `ok`, or the upstreams whose breakers are not closed and those with keys that rest. */
  get upstreams(): string {
    return this.current.states.text()
  }

  /** `ok`, or the upstreams whose credentials cannot be refreshed; null without identities. */
  get credentials(): string | null {
    const all = this.current.identities.all()
    if (all.length === 0) return null
    const failing = all.filter(({ isFailing }) => isFailing)
    if (failing.length === 0) return 'ok'
    return failing.map(({ upstream, state }) => `${upstream}: ${state}`).join(', ')
  }

  /** The heads of the last requests, oldest first. */
  recentHeads(): RequestHead[] {
    return this.services.recent.all()
  }

  /** The overload control of the process. */
  get overload(): Pick<Overload, 'state' | 'closesConnections'> {
    return this.monitor.overload
  }

  /** Serves a request that passed the checks of the listener. */
  handle(req: HttpRequest, res: HttpResponse, upgrade: Upgrade | null = null): void {
    this.run(req, res, { as: null, upgrade, turn: null })
  }

  /** Serves a request as an account whose session the caller has checked. */
  handleAs(req: HttpRequest, res: HttpResponse, as: PreAuthenticated): void {
    this.run(req, res, { as, upgrade: null, turn: null })
  }

  private run(
    req: HttpRequest,
    res: HttpResponse,
    { as, upgrade, turn }: Required<Pick<ExchangeParts, 'as' | 'upgrade' | 'turn'>>,
    batch: string | null = null,
  ): void {
    const generation = this.current
    const startedMs = performance.now()
    const id = newRequestId(Date.now())
    const x = new Exchange({ id, req, res, generation, startedMs, as, upgrade, turn, batch })
    x.trace = this.services.tracing?.begin(x) ?? clientTrace(req)
    generation.enter()
    this.inFlight.add(x)
    void serve(x, this.services)
  }

  /** Replies in the store are dropped with their owners, also before this process has used any. */
  private openUsedCache(): void {
    const { routes, cache, record, files } = this.current.snapshot.config
    // Batches are worked on, also before a client sends a request.
    if (files !== null) void this.openBatches()
    // Expired recordings are removed, also before a new one is made.
    if (record !== null) void this.openRecording()
    if (this.caching !== null || !cache.store) return
    if (routes.some((route) => route.cache !== null)) void this.openCaching()
  }

  private async openRecording(): Promise<RecordingService> {
    const { RecordingService: Opened } = await import('./recording/record-requests.js')
    const { cacheStore, log } = this.services
    this.recording ??= new Opened({
      store: cacheStore.store,
      secret: cacheStore.secret,
      log,
      settings: () => this.current.snapshot.config.record,
    })
    return this.recording
  }

  private async openMarking(): Promise<Marking> {
    const { Marking: Opened } = await import('../policy/prompt-cache-marks.js')
    this.marking ??= new Opened(() => Date.now())
    return this.marking
  }

  private async openSockets(): Promise<ResponsesSockets> {
    const { ResponsesSockets: Opened } = await import('./responses-socket/responses-sockets.js')
    const { bodies, timeouts, responses, socketPlaces: places } = this.services
    this.sockets ??= new Opened({
      bodies,
      places,
      timeouts,
      responses,
      run: (req, res, turn) => this.run(req, res, { as: null, upgrade: null, turn }),
    })
    if (this.isDraining) this.sockets.drain()
    return this.sockets
  }

  private openBatches(): Promise<Batches> {
    this.openingBatches ??= import('./batches/batches.js').then((module) => {
      const { cacheStore: store, log, limiter, ledgerWriter, values } = this.services
      this.batches = new module.Batches({
        ...{ store, log, limiter, ledgerWriter, values },
        config: () => this.current.snapshot.config,
        generation: () => this.current,
        lines: this.services,
        run: ({ req, res }, as, batch) => this.run(req, res, { as, upgrade: null, turn: null }, batch),
      })
      return this.batches
    })
    return this.openingBatches
  }

  private openCaching(): Promise<Caching> {
    this.openingCaching ??= import('./cache/answer-from-cache.js').then((module) => {
      const { metrics } = this.services
      const settings = (): Config['cache'] => this.current.snapshot.config.cache
      const { cacheStore } = this.services
      const maxStoreBytes = (): number => this.current.snapshot.config.escrow.maxBytes
      this.caching = new module.Caching({ metrics, settings, maxStoreBytes, cacheStore })
      return this.caching
    })
    return this.openingCaching
  }

  private ended(x: Exchange): void {
    this.inFlight.remove(x)
    x.generation.leave()
    if (this.inFlight.size === 0) this.onIdle?.()
  }

  /** The reason why a generation cannot be built, or null. Does not change the current one. */
  tryOut(snapshot: Snapshot): Promise<string | null> {
    return generationProblem(snapshot, this.services.metrics, this.current)
  }

  /** Makes the generation current. Running requests keep theirs. */
  adopt(snapshot: Snapshot): void {
    const isNewest = (): boolean => this.adopting === snapshot.generation
    this.adopting = snapshot.generation
    if (arePluginsLoaded(snapshot.config)) {
      this.replace(snapshot)
      return
    }
    // Another process has tried them out already.
    loadPlugins(snapshot.config).then(
      () => {
        if (isNewest()) this.replace(snapshot)
      },
      (error: unknown) => this.services.log.error('plugins not loaded', error),
    )
  }

  private replace(snapshot: Snapshot): void {
    const previous = this.current
    this.current = new Generation(snapshot, this.services.metrics, previous)
    this.current.identities.start(this.identityWatch)
    previous.stopProbes()
    this.services.metrics.configLoaded(snapshot.generation)
    this.discovery.adopt(this.current)
    this.caching?.adopt(this.current)
    this.openUsedCache()
    const successor = this.current
    this.retired = this.retired.then(() => previous.supersede(successor))
  }

  /** Stops using the targets of the order from the next request on, if its generation is current. */
  abortCanaries({ generation, aborted }: CanaryOrder): void {
    if (generation === this.generation) this.current.abort(aborted)
  }

  /** Closes the WebSockets of Responses, each after its turn, and opens no more. */
  drainSockets(): void {
    this.isDraining = true
    this.sockets?.drain()
  }

  /** Ends all running requests with the error `draining`; streams get it as their error event. */
  endAll(): void {
    const reason = new GatewayError('draining', 'The gateway is shutting down; please try again.', {
      retryAfterSeconds: 1,
    })
    this.inFlight.each((x) => x.cancellation.cancel(reason))
  }

  /** Starts no more shadow requests and lines of batches, and cancels the former. */
  endOwnWork(): void {
    void this.endShadows()
    void this.endBatches()
  }

  /** Resolves when the lines that run have ended. */
  private async endBatches(): Promise<void> {
    await (await this.openingBatches)?.close()
  }

  /** Resolves when the ledger has the entries of the shadow requests. */
  private endShadows(): Promise<void> {
    return this.services.shadows.close()
  }

  private digestsInUse(): Set<string> {
    const digests = new Set<string>()
    this.inFlight.each(({ keyDigest }) => {
      if (keyDigest !== null) digests.add(keyDigest)
    })
    this.sockets?.addDigests(digests)
    return digests
  }

  private endAllOf(digest: string, why: GatewayError): void {
    this.inFlight.each((x) => {
      if (x.keyDigest === digest) x.cancellation.cancel(why)
    })
    this.sockets?.endAllOf(digest, why)
  }

  /**
   * Closes every upstream connection and timer; resolves when every exchange has ended, shadow requests
   * included, and their ledger entries are written.
   */
  async close(): Promise<void> {
    await this.endShadows()
    await this.endBatches()
    this.discovery.close()
    this.monitor.close()
    this.services.timeouts.close()
    this.caching?.close()
    this.recording?.close()
    await this.current.destroy()
    if (this.inFlight.size === 0) return
    await new Promise<void>((resolve) => {
      this.onIdle = resolve
    })
  }
}

/** Logs and notifies a refused credential, by its place in the list of keys. */
function reportDenied(
  { upstream, index, status }: DeniedKey,
  { log, notify }: Pick<Services, 'log' | 'notify'>,
): void {
  const place = index + 1
  log.warn('upstream refuses a credential', { upstream, reason: `api_key ${place}: ${status}` })
  const data = { upstream, api_key: place, status, process_id: process.pid }
  notify({ type: 'credential.refused', atMs: Date.now(), data })
}

/** Logs and notifies a change of a circuit breaker. */
function reportBreaker(
  upstream: string,
  state: BreakerState,
  { log, notify }: Pick<Services, 'log' | 'notify'>,
): void {
  const shown = state.replace('_', '-')
  if (state === 'closed') log.info('circuit breaker closed', { upstream })
  else log.warn(`circuit breaker ${shown}`, { upstream })
  const data = { upstream, state, process_id: process.pid }
  notify({ type: 'breaker.changed', atMs: Date.now(), data })
}

/** Logs and counts the refreshes of credentials. */
function watchIdentities({ log, metrics }: Pick<Services, 'log' | 'metrics'>): IdentityWatch {
  return {
    refreshed: ({ cloud, upstream }) => {
      metrics.credentialRefresh(upstream, 'ok')
      log.debug('credentials refreshed', { upstream, reason: cloud })
    },
    failed: ({ cloud, upstream, state }, reason) => {
      metrics.credentialRefresh(upstream, 'failed')
      log.warn('credentials not refreshed', { upstream, reason: `${cloud}: ${reason} (${state})` })
    },
  }
}
