/**
 * One process of the data plane: assembles store, authentication, gateway and listener. It receives
 * configuration snapshots from its caller.
 */
import { randomUUID } from 'node:crypto'
import { roleOf, type Account } from '../accounts/account.js'
import { withArchive } from '../store/archive/archived-ledger.js'
import { accountPart } from '../accounts/authentication/authentication-result.js'
import type { Identity } from '../accounts/account.js'
import type { Authenticator } from '../accounts/authentication/authenticator.js'
import { NO_LABELS } from '../accounts/labels.js'
import { type ServerConfig, type Snapshot, type TelemetryConfig, shownHash } from '../config/config.js'
import { remoteConfigControl, type ConfigControl } from '../control/config-control.js'
import type { GatewayStatus } from '../control/gateway-status.js'
import { causeOf, rowOf, type ErrorKind } from '../errors.js'
import {
  newCanaryMonitor,
  type CanaryMonitor,
  type CanaryOrder,
  type CanaryReport,
} from '../gateway/canary/canary-monitor.js'
import type { PreAuthenticated } from '../gateway/client-exchange.js'
import { Gateway } from '../gateway/gateway.js'
import { isWebSocket } from '../gateway/phases/identify.js'
import type { Services } from '../gateway/pipeline.js'
import type { RequestHead } from '../gateway/report/recent-requests.js'
import type { CanaryState } from '../gateway/routing/router.js'
import { TrustedProxies } from '../http/client-address.js'
import { corsHeaders } from '../http/cors.js'
import { expiryOf, whenExpired } from '../http/read-tls-files.js'
import { MAX_HEAD_BYTES_WITH_TOKEN } from '../http/request-guard.js'
import { identifyRequest } from '../gateway/phases/authenticate.js'
import type { HttpRequest } from '../http/message.js'
import { openServer, type ServerOptions, type GatewayServer } from '../http/server.js'
import { BudgetWatch, type BudgetOwners } from '../limits/budget-watch.js'
import type { Logger } from '../observe/log.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import type { Notify } from '../observe/notification.js'
import { loadPlugins } from '../policy/plugins.js'
import type { Store, Fleet, FleetMember } from '../store/store.js'
import { DASHBOARD_WORDS } from '../control/dashboard/problem-words.js'
import { refusalBody } from '../control/problem-details.js'
import { LazyAdminApi } from './lazy-admin-api.js'
import { LazyDashboard } from './lazy-dashboard.js'
import { Logins } from './logins.js'
import { MailSender } from './mail-sender.js'
import { WorkloadIdentities } from './workload-identities.js'
import { readinessOf, type Readiness } from './ops/readiness.js'
import {
  openObservedStore,
  partsOf,
  probing,
  release,
  logUnmatchedRules,
  removingEndedKeys,
  type Observers,
} from './store-services.js'
import { packageVersion } from '../config/package-file.js'
import { recordGeneration } from './record-generation.js'
import type { Tracing } from '../gateway/report/request-spans.js'

/** One running data plane. */
export interface DataPlane {
  /** The port in use, also if port 0 was configured. */
  readonly port: number
  /** Puts a newer generation in force; running requests keep theirs. */
  adopt(snapshot: Snapshot): void
  /** Takes these canaries out of use, by order of the primary's monitor. */
  abortCanaries(order: CanaryOrder): void
  /** The canaries of this process's monitor; empty if another process monitors them. */
  canaries(): CanaryState[]
  /**
   * Builds a generation without applying it. Resolves to the reason if that fails, else to null.
   */
  tryOut(snapshot: Snapshot): Promise<string | null>
  ready(): Readiness
  /** The heads of the last requests, oldest first. */
  recentHeads(): RequestHead[]
  /** As `LazyDashboard.open`. */
  openDashboard(): Promise<void>
  /**
   * Accepts no more connections, lets requests finish within `drain_ms`, ends the rest with the error
   * `draining`, and closes everything. With `isReplaced` another process listens on the same address.
   */
  drain(options?: { readonly isReplaced?: boolean }): Promise<void>
}

/** Options of a data plane, from the process that starts it. */
interface DataPlaneOptions extends Observers {
  /** The secret of the link that creates the first administrator; without it no link is offered. */
  readonly setUpSecret?: string
  /** Receives that link, once for all processes with the same secret. */
  readonly onSetUp?: (url: string) => void
  readonly gatewayStatus?: () => Promise<GatewayStatus | null>
  /** Whether the dashboard labels its data as samples, as those of `sluice demo`. */
  readonly hasSampleData?: boolean
  /** The process that reads the configuration. */
  readonly configControl?: ConfigControl
  /**
   * Receives the canary counts of this process; without it, this process decides alone when to abort a
   * canary.
   */
  readonly reportCanaries?: (report: CanaryReport) => void
  /** The id of this gateway in the fleet, the same for all its workers. */
  readonly gatewayId?: string
  /** Sends webhooks; without it none are sent. */
  readonly notify?: Notify
}

/** Opens the listener. Rejects with `GatewayError` if the store or the port cannot be opened. */
export async function openDataPlane(snapshot: Snapshot, options: DataPlaneOptions): Promise<DataPlane> {
  const { log, metrics, reportCanaries, notify } = options
  let current = snapshot
  await loadPlugins(snapshot.config)
  const store = await openObservedStore(snapshot, log, metrics)
  const tracing = await openTracing(snapshot.config.telemetry, log, metrics)
  const notices = watchFor(notify, store, () => current)
  const { gatewayId = randomUUID() } = options
  const joint = withArchive(store, () => current.config, metrics.archiveRequest)
  const ofStore = await partsOf(store, () => current, { log, metrics, gatewayId, ledger: joint.ledger })
  const parts = { ...ofStore, ...notices, tracing }
  const tokens = await acceptTokens(ofStore.authenticator, store, { snapshot, log })
  const monitor = reportCanaries === undefined ? newCanaryMonitor(log, metrics, notify) : null
  monitor?.adopt(snapshot)
  const report = reportCanaries ?? canaryReporter(monitor, (order) => gateway.abortCanaries(order))
  const gateway = new Gateway({ ...parts, metrics, log }, snapshot, report)
  const mails = new MailSender(log)
  mails.adopt(snapshot.config.smtp)
  const mail = mails.send.bind(mails)
  let proxies = new TrustedProxies(snapshot.config.server.trustedProxies)
  const dashboard = new LazyDashboard({
    ...{ store: joint, log, snapshot: () => current, mail, ...statusSources(options) },
    fleet: () => fleet.members,
    chat: ({ req, res }, { account, ancestors, path }) =>
      gateway.handleAs(req, res, playgroundOf(account, ancestors, path)),
    addressOf: (req) => proxies.addressOf(req),
    identify: (req) => sender(req, proxies.addressOf(req), current, ofStore),
    countTelemetry: (signal) => metrics.clientTelemetry(signal),
  })
  const admin = new LazyAdminApi({
    ...{ listen: 'data', openStore: () => joint, log, snapshot: () => current, mail },
    configControl: statusSources(options).configControl,
    addressOf: (req) => proxies.addressOf(req),
  })
  const fleet = new FleetWatch({
    fleet: store.fleet,
    id: gatewayId,
    snapshot: () => current,
    metrics,
  })
  const probe = probing(store, parts.limiter)
  const removal = removingEndedKeys(store)
  // Last: what fails before it ends the process, and no request is accepted that could not be recorded.
  const server = await openServer({
    ...listenerOf(snapshot.config.server, log, metrics),
    ...(snapshot.config.identity.length === 0 ? {} : { maxHeadBytes: MAX_HEAD_BYTES_WITH_TOKEN }),
    ...requestHandlers({ dashboard, admin, gateway }, () => current),
    onRefused: countRefusal(metrics, log),
    closesConnections: () => gateway.overload.closesConnections,
  })
  noteGeneration(store, snapshot, { log, gatewayId })
  await offerSetUp(dashboard, server.port, options)
  return {
    port: server.port,
    adopt(next) {
      current = next
      proxies = new TrustedProxies(next.config.server.trustedProxies)
      gateway.adopt(next)
      mails.adopt(next.config.smtp)
      void tokens.adopt(next)
      monitor?.adopt(next)
      fleet.publish()
      noteGeneration(store, next, { log, gatewayId })
    },
    abortCanaries: (order) => gateway.abortCanaries(order),
    canaries: () => monitor?.states() ?? [],
    tryOut: (next) => gateway.tryOut(next),
    ready: () => readyState({ probe, parts, gateway, server, monitor, fleet }, current),
    recentHeads: () => gateway.recentHeads(),
    openDashboard: () => dashboard.open(),
    async drain({ isReplaced = false } = {}) {
      gateway.endOwnWork()
      gateway.drainSockets()
      await drainRequests(server, gateway, { ...current.config.server, isReplaced })
      for (const timer of [probe.timer, removal]) clearInterval(timer)
      await Promise.all([dashboard.close(), fleet.close(), mails.close()])
      await gateway.close()
      await release(parts, joint)
    },
  }
}

/** What one process of the gateway does once for a generation that is in force. */
function noteGeneration(
  store: Store,
  snapshot: Snapshot,
  options: { readonly log: Logger; readonly gatewayId: string },
): void {
  void logUnmatchedRules(store, snapshot, options)
  void recordGeneration(store, snapshot, options)
}

/** Tokens that are credentials beside keys: of workloads, and of programs whose users have signed in. */
async function acceptTokens(
  authenticator: Authenticator,
  store: Store,
  { snapshot, log }: { readonly snapshot: Snapshot; readonly log: Logger },
): Promise<{ readonly adopt: (next: Snapshot) => Promise<unknown> }> {
  const identities = new WorkloadIdentities(authenticator, store, log)
  const logins = new Logins(authenticator, store)
  const adopt = ({ config }: Snapshot) => Promise.all([identities.adopt(config), logins.adopt(config)])
  await adopt(snapshot)
  return { adopt }
}

/** Who sent a request that is none of the gateway's. Rejects with `GatewayError`. */
async function sender(
  req: HttpRequest,
  clientAddress: string,
  { config }: Snapshot,
  { authenticator }: { readonly authenticator: Authenticator },
): Promise<Identity> {
  const [path = ''] = (req.url ?? '').split('?', 1)
  return identifyRequest({ req, path, clientAddress, config }, authenticator)
}

/** The parts of the data plane that decide whether it is ready. */
interface ReadinessSources {
  readonly probe: ReturnType<typeof probing>
  readonly parts: Awaited<ReturnType<typeof partsOf>>
  readonly gateway: Gateway
  readonly server: Awaited<ReturnType<typeof openServer>>
  readonly monitor: ReturnType<typeof newCanaryMonitor> | null
  readonly fleet: FleetWatch
}

function readyState(from: ReadinessSources, { config }: Snapshot): Readiness {
  const { probe, parts, gateway, server, monitor, fleet } = from
  const nowMs = performance.now()
  const awayMs = nowMs - (probe.failingSinceMs ?? nowMs)
  const { freshSeconds, staleSeconds } = config.auth
  return readinessOf({
    ...{ store: probe.state, ledger: parts.ledgerWriter.state },
    isStoreAwayTooLong: awayMs > Math.max(freshSeconds, staleSeconds) * 1000,
    isLimiterAway: parts.limiter.isAway,
    isLedgerRefusing: parts.ledgerWriter.isRefusing,
    ...{ upstreams: gateway.upstreams, overload: gateway.overload.state },
    credentials: gateway.credentials,
    canaries: monitor?.text ?? null,
    fleet: fleet.state,
    isDraining: server.draining,
  })
}

/** Offers the link for the first administrator. Requests are served already, so a failure is only logged. */
async function offerSetUp(
  dashboard: LazyDashboard,
  port: number,
  { setUpSecret, onSetUp, log }: DataPlaneOptions,
): Promise<void> {
  if (setUpSecret === undefined || onSetUp === undefined) return
  try {
    await dashboard.offerSetUp(setUpSecret, port, onSetUp)
  } catch (error) {
    log.error('no link for the first administrator: sluice users create makes one', error)
  }
}

/** Reports counts to the canary monitor of this process; `abort` receives its orders. */
function canaryReporter(
  monitor: CanaryMonitor | null,
  abort: (order: CanaryOrder) => void,
): (counted: CanaryReport) => void {
  return (counted) => {
    const order = monitor?.report(counted) ?? null
    if (order !== null) abort(order)
  }
}

/** Functions by which the dashboard queries other processes; null without them. */
function statusSources({ gatewayStatus, configControl, hasSampleData }: DataPlaneOptions) {
  return {
    hasSampleData: hasSampleData ?? false,
    gatewayStatus: gatewayStatus ?? ((): Promise<null> => Promise.resolve(null)),
    configControl: configControl ?? remoteConfigControl(() => Promise.resolve(null)),
  }
}

/** Routes a request to the dashboard, the admin API or the gateway, and sets the headers of its reply. */
function requestHandlers(
  to: {
    readonly dashboard: LazyDashboard
    readonly admin: LazyAdminApi
    readonly gateway: Gateway
  },
  snapshot: () => Snapshot,
): Pick<ServerOptions, 'handler' | 'takesUpgrade' | 'replyHeaders' | 'refusalBody'> {
  const { dashboard, admin, gateway } = to
  return {
    takesUpgrade: (req) => isWebSocket(req, snapshot().config.server.barePaths),
    handler: (req, res, upgrade) => {
      if (dashboard.handles(req)) dashboard.handle(req, res)
      else if (admin.handles(req)) admin.handle(req, res)
      else if (isProbe(req)) {
        res.writeHead(200)
        res.end()
      } else gateway.handle(req, res, upgrade)
    },
    replyHeaders: (req) => {
      const { origins } = snapshot().config.server.cors
      if (origins.length === 0 || dashboard.handles(req) || admin.handles(req)) return []
      return corsHeaders(req, origins)
    },
    refusalBody: (req, error, id) => {
      if (admin.handles(req)) return refusalBody(error, id)
      return dashboard.handlesApi(req) ? refusalBody(error, id, DASHBOARD_WORDS) : null
    },
  }
}

/**
 * Claude Code tests at its start whether the address replies: 2.1.332 with `HEAD /api/hello`, others with
 * `HEAD /`.
 */
function isProbe({ method, url }: HttpRequest): boolean {
  return method === 'HEAD' && (url === '/' || url === '/api/hello')
}

function listenerOf(server: ServerConfig, log: Logger, metrics: Metrics): Omit<ServerOptions, 'handler'> {
  let endWait = (): void => undefined
  return {
    onCertificate(pem) {
      const expirySeconds = expiryOf(pem)
      metrics.gauges.listenerCertificate(expirySeconds)
      const reason = `expired at ${new Date(expirySeconds * 1000).toISOString()}; clients refuse it`
      endWait()
      endWait = whenExpired(expirySeconds, () =>
        log.warn('the certificate has expired', { file: server.tls?.cert, reason }),
      )
    },
    onTlsProblem: (problem) => log.error('the changed certificate is not used', problem),
    host: server.host,
    port: server.port,
    headersTimeoutMs: server.headersTimeoutMs,
    keepAliveTimeoutMs: server.keepAliveMs,
    clientStallMs: server.clientStallMs,
    maxConnections: server.maxConnections,
    tls: server.tls,
  }
}

/** Counts and logs requests that the listener refused. */
function countRefusal(metrics: Metrics, log: Logger): (kind: ErrorKind, id: string | null) => void {
  return (kind, id) => {
    const { status } = rowOf(kind)
    metrics.unrouted(status, kind)
    if (id !== null) {
      const cause = causeOf(kind) ?? undefined
      log.exchangeLine({ request_id: id, status, outcome: kind, cause, duration_ms: 0 })
    }
  }
}

/** A chat of an account in the dashboard, on a path of the data plane: without a key, metered like one. */
function playgroundOf(account: Account, ancestors: readonly Account[], path: string): PreAuthenticated {
  const identity = {
    keyId: 'playground',
    ...accountPart(account, ancestors),
    digest: null,
    expiresAtMs: null,
    models: null,
    allowTools: null,
    limits: null,
    labels: NO_LABELS,
  }
  return { identity, path }
}

/**
 * The share of `drain_ms`, and its maximum, in which clients and load balancers notice that the gateway is
 * not ready: until its end connections are accepted and idle ones stay open.
 */
const LAME_DUCK = { share: 1 / 10, maxMs: 5000 }
/** For a worker that is replaced: longer, since only idle connections delay its end. */
const LAME_DUCK_REPLACED = { share: 1 / 3, maxMs: 10_000 }

/** How the requests of a listener end. */
interface DrainRequestsOptions {
  /** The time for all requests, in ms; the lame-duck phase is a part of it. */
  readonly drainMs: number
  /** Another process listens on the same address. */
  readonly isReplaced: boolean
}

/**
 * Lets the requests of the listener end: first the lame-duck phase, then the rest of `drainMs`, after which
 * the gateway ends the open ones with an error. Never rejects.
 */
async function drainRequests(
  server: GatewayServer,
  gateway: Gateway,
  { drainMs, isReplaced }: DrainRequestsOptions,
): Promise<void> {
  const { share, maxMs } = isReplaced ? LAME_DUCK_REPLACED : LAME_DUCK
  const lameDuckMs = Math.min(maxMs, drainMs * share)
  const onDeadline = (): void => gateway.endAll()
  await server.drain(drainMs - lameDuckMs, { lameDuckMs, isReplaced, onDeadline })
}

/** Without `notify` no budget is watched. */
function watchFor(
  notify: Notify | undefined,
  store: Pick<Store, 'throttle' | 'accountById' | 'membersOf'>,
  snapshot: () => Snapshot,
): Pick<Services, 'budgets' | 'notify'> {
  if (notify === undefined) return { budgets: null, notify: () => undefined }
  const isWanted = (): boolean => {
    const { config } = snapshot()
    return config.smtp !== null || config.notify.some(({ events }) => events.includes('budget'))
  }
  const ownersOf = async (accountId: string): Promise<BudgetOwners | null> => {
    const account = await store.accountById(accountId)
    if (account === null) return null
    const members = await store.membersOf(accountId)
    const owners = members.filter((member) => roleOf(member) === 'owner')
    return { account: account.name, owners: owners.map(({ email }) => email) }
  }
  return {
    budgets: new BudgetWatch({ attempts: store.throttle, notify, isWanted, ownersOf }),
    notify,
  }
}

// Opens the export of traces if the configuration or the environment names a receiver; otherwise loads
// nothing.

/** The variables that name a receiver. */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']
/** Minimum time between log lines about a failing receiver. */
const LOG_EVERY_MS = 60_000

/** Null if no traces are exported. */
async function openTracing(
  { otlp }: TelemetryConfig,
  log: Pick<Logger, 'warn'>,
  metrics: Pick<Metrics, 'traceSpans'>,
): Promise<Tracing | null> {
  if (!isEnabled(otlp, process.env)) return null
  warnProtocol(process.env, log)
  const [{ openTraceExport }, { Traces }] = await Promise.all([
    import('../observe/export-spans.js'),
    import('../gateway/report/request-spans.js'),
  ])
  let loggedMs = Number.NEGATIVE_INFINITY
  const opened = await openTraceExport({
    otlp,
    version: packageVersion(),
    onSpans: (result, count) => metrics.traceSpans(result, count),
    onFailure: (reason) => {
      const nowMs = performance.now()
      if (nowMs - loggedMs < LOG_EVERY_MS) return
      loggedMs = nowMs
      log.warn('traces are not exported: the receiver refuses them', { reason })
    },
  })
  return new Traces(opened.tracer, () => opened.close())
}

/** OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none turn traces off even if a receiver is named. */
function isEnabled(otlp: string | null, env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false
  if (env['OTEL_TRACES_EXPORTER'] === 'none') return false
  return otlp !== null || ENDPOINTS.some((name) => (env[name] ?? '') !== '')
}

function warnProtocol(env: NodeJS.ProcessEnv, log: Pick<Logger, 'warn'>): void {
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL']
  if (protocol === undefined || protocol === 'http/protobuf' || protocol === 'http/json') return
  const variable = 'OTEL_EXPORTER_OTLP_PROTOCOL'
  log.warn('traces are exported as http/protobuf: the protocol that is set is not supported', {
    variable,
  })
}

// Publishes the configuration of this gateway to the fleet, and compares it with those of the other gateways.
// All workers of a gateway publish the same member, so the loss of one worker leaves no gap.

const PUBLISH_MS = 5_000
/** Longer than two rounds, so that two failures do not remove this gateway from the fleet. */
const TTL_MS = 16_000

/** Options of a `FleetWatch`. */
interface FleetWatchOptions {
  /** Null if the store is for one machine. */
  readonly fleet: Fleet | null
  /** The gateway, the same for all its workers. */
  readonly id: string
  readonly snapshot: () => Snapshot
  readonly metrics: Metrics
}

/** Runs until `close`. Does not keep the process running. */
class FleetWatch {
  private readonly options: FleetWatchOptions
  private readonly timer: NodeJS.Timeout | null
  private known: readonly FleetMember[] | null = null
  private publishing: Promise<void> = Promise.resolve()

  constructor(options: FleetWatchOptions) {
    this.options = options
    this.timer = options.fleet === null ? null : setInterval(() => this.publish(), PUBLISH_MS)
    this.timer?.unref()
    this.publish()
  }

  /** The gateways of the fleet with this one; null without a fleet, or while the store is unavailable. */
  get members(): readonly FleetMember[] | null {
    return this.known
  }

  /** `ok`, or the gateways with another configuration. */
  get state(): string {
    const others = this.differing()
    if (others.length === 0) return 'ok'
    const all = this.known?.length ?? 0
    const names = others.slice(0, 5).map(({ host, hash }) => `${host} (${shownHash(hash)})`)
    const more = others.length > names.length ? ', …' : ''
    return `${others.length} of ${all} gateways have another configuration: ${names.join(', ')}${more}`
  }

  /** Publishes at once, for a new generation. */
  publish(): void {
    const { fleet, id, snapshot } = this.options
    if (fleet === null) return
    this.publishing = this.publishing.then(async () => {
      const { generation, fileHash: hash, config } = snapshot()
      const { name: host } = config.server
      try {
        this.known = await fleet.publish({ id, host, generation, hash }, TTL_MS)
      } catch {
        // The probe of the store reports the failure.
        this.known = null
      }
      const { metrics } = this.options
      metrics.fleet(this.known?.length ?? 0, this.differing().length)
    })
  }

  /** Leaves the fleet. Other workers of this gateway publish it again. */
  async close(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer)
    await this.publishing
    await this.options.fleet?.leave(this.options.id).catch(() => undefined)
  }

  private differing(): FleetMember[] {
    const { id, snapshot } = this.options
    const { fileHash } = snapshot()
    return (this.known ?? []).filter((member) => member.id !== id && member.hash !== fileHash)
  }
}
