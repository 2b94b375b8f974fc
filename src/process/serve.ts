/**
 * The running gateway: a primary with the configuration and the ops port, and workers that share the data
 * port. With one worker a single process does both (`serve-alone.ts`). A primary loads no code of the data
 * plane.
 */
import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { generationFields, type Config, type Snapshot } from '../config/config.js'
import type { ConfigSource } from '../config/generations/config-source.js'
import { openConfig } from '../config/generations/config-at-start.js'
import type { Env } from '../config/load-config.js'
import { gatewayStatusOf, type GatewayStatus } from '../control/gateway-status.js'
import { dataFolders, makePrivate } from '../base/private-files.js'
import { newCanaryMonitor, isCanaryReport, type CanaryMonitor } from '../gateway/canary/canary-monitor.js'
import type { CanaryState } from '../gateway/routing/router.js'
import { createLogger, type Logger } from '../observe/log.js'
import { FirstValues } from '../observe/metrics/key-label-metrics.js'
import { Metrics } from '../observe/metrics/metrics.js'
import { newSealSecret } from '../store/seal.js'
import { runPrimary, type Primary } from './cluster/primary.js'
import { rollingRestarts, type Restarts } from './cluster/rolling-restart.js'
import { ArchiveRunner, archiveHealth } from '../store/archive/start-archive.js'
import type { DataPlane } from './data-plane.js'
import { LazyAdminApi } from './lazy-admin-api.js'
import { watchErrorRate } from './error-rate-watch.js'
import { serviceManager, type ServiceManager } from './notify-systemd.js'
import { Notifier } from './open-webhooks.js'
import { answerControlRequest, localConfigControl } from './ops/answer-control-requests.js'
import { configPage, followConfig, lastRefusal, readyPage } from './ops/configuration-page.js'
import { AdminTokens, answerGenerations } from './ops/generations-endpoints.js'
import { openOps, type Ops, type OpsOptions } from './ops/ops-listener.js'
import type { Readiness } from './ops/readiness.js'
import { ownProcess } from './process-identity.js'
import type { Generation } from './serve-worker.js'

/** Parts that are common to one process and several. */
interface Opened {
  readonly source: ConfigSource
  readonly log: Logger
  readonly metrics: Metrics
  readonly refused: () => GatewayStatus['refused']
  readonly manager: ServiceManager
  readonly notifier: Notifier
  readonly archive: ArchiveRunner
}

/**
 * Starts the gateway; a signal ends the process. Resolves when the first worker is ready. With `workers: 1`
 * the worker is this process. Rejects if the file is not valid (`ConfigRefused`), the ops port is in use, or
 * no worker became ready; then all parts are closed, and startup is not retried.
 */
export async function serve(path: string, env: Env): Promise<void> {
  const early: string[] = []
  let warn = (reason: string): unknown => early.push(reason)
  const source = await openConfig(path, env, {
    keepsHistory: true,
    warn: (reason) => void warn(reason),
  })
  const { config } = source.current()
  const metrics = new Metrics()
  const log = createLogger({
    ...config.log,
    onLost: (lines) => metrics.logLinesLost(lines),
  })
  warn = (reason) => log.warn('configuration history', { reason })
  early.forEach(warn)
  for (const folder of dataFolders(config.store, config.ledger.spool)) {
    makePrivate(folder, (reason) => log.warn('store', { reason }))
  }
  const refusal = config.archive === null ? null : await archiveRefusalOf(config)
  if (refusal !== null) {
    await Promise.all([source.close(), log.flush()])
    throw new Error(`the gateway cannot start: ${refusal}`)
  }
  const manager = serviceManager(env, log)
  const notifier = new Notifier(source, log, metrics)
  const archive = new ArchiveRunner({
    warn: (reason) => log.warn('archive', { reason }),
    onState: (state) => metrics.gauges.archive(state),
  })
  const opened = { source, log, metrics, refused: lastRefusal(source), manager, notifier, archive }
  const serving = (): void => {
    manager.ready(`Serving generation ${String(source.current().generation)}`)
  }
  let reloads = 0
  process.on('SIGHUP', () => {
    reloads += 1
    if (reloads === 1) manager.reloading()
    void source.reload({ takeFiles: true }).then(({ result }) => {
      const named = generationFields(source.current())
      log.info('configuration checked', { signal: 'SIGHUP', ...named, reason: result })
      reloads -= 1
      if (reloads === 0) serving()
    })
  })
  const { port, opsPort } = await (config.server.workers === 1 ? inOneProcess(opened) : inWorkers(opened))
  archive.adopt(source.current().config)
  await source.announce({ opsHost: config.server.opsHost, opsPort })
  serving()
  log.info('sluice serves', {
    ...generationFields(source.current()),
    host: config.server.host,
    port,
    ops_port: opsPort,
    workers: config.server.workers,
    store: config.store.split(':')[0],
  })
}

/** Loaded only if there is an archive. */
async function archiveRefusalOf(config: Config): Promise<string | null> {
  const { archiveRefusal } = await import('../store/archive/check-at-start.js')
  return archiveRefusal(config)
}

interface Ports {
  readonly port: number
  readonly opsPort: number
}

async function inOneProcess(opened: Opened): Promise<Ports> {
  const { source, log, metrics, refused, manager, notifier, archive } = opened
  const onDrain = (): void => manager.stopping()
  // The data plane is most of the code; a primary does not load it.
  const loading = import('./serve-alone.js')
  let plane: DataPlane | null = null
  const ops = await openOpsPort(opened, {
    metrics: (format) => metrics.text(format),
    ready: () =>
      readyPage(
        source,
        withArchive(
          plane?.ready() ?? { ready: false, degraded: [], checks: { listener: 'not open' } },
          archive,
        ),
      ),
    recentRequests: () => Promise.resolve(plane?.recentHeads() ?? []),
    workers: () => ({ ...ownProcess(), workers: [], restarts: null }),
    canaries: () => plane?.canaries() ?? [],
  })
  const closed = async (): Promise<void> => {
    await Promise.all([ops.close(), closeAll(opened)])
  }
  try {
    const { serveAlone } = await loading
    const { send: notify } = notifier
    const parts = { source, log, metrics, refused, notify, onDrain, closed, flags: V8_FLAGS }
    const running = await serveAlone(parts)
    plane = running
    source.validateWith((snapshot) => running.tryOut(snapshot))
    const apply = (snapshot: Snapshot): void => {
      running.adopt(snapshot)
      archive.adopt(snapshot.config)
    }
    followConfig(source, { log, metrics, apply })
    watchErrorRate({ source, notify: notifier.send, metrics: () => metrics.text() })
    return { port: running.port, opsPort: ops.port }
  } catch (error) {
    await Promise.all([closed(), log.flush()])
    throw error
  }
}

const NOT_STARTED: Readiness = { ready: false, degraded: [], checks: { workers: 'not started' } }

async function inWorkers(opened: Opened): Promise<Ports> {
  const { source, log, metrics, manager, notifier, archive } = opened
  const { config } = source.current()
  const shared = {
    sealSecret: newSealSecret(),
    setUpSecret: newSealSecret(),
    gatewayId: randomUUID(),
  }
  let primary: Primary<Generation> | null = null
  let restarts: Restarts | null = null
  const canaries = newCanaryMonitor(log, metrics, notifier.send)
  canaries.adopt(source.current())
  const firstValues = new FirstValues()
  const ops = await openOpsPort(opened, {
    metrics: (format) => primary?.metrics(format) ?? metrics.text(format),
    ready: () => {
      const readiness = primary?.ready() ?? NOT_STARTED
      const checks = { ...readiness.checks, canaries: canaries.text }
      return readyPage(source, withArchive({ ...readiness, checks }, archive))
    },
    recentRequests: () => primary?.recent() ?? Promise.resolve([]),
    canaries: () => canaries.states(),
    workers: () => ({
      ...ownProcess(),
      workers: primary?.workers() ?? [],
      restarts: restarts?.state ?? null,
    }),
  })
  let { port } = config.server
  cluster.on('listening', (_worker, address) => (port = address.port))
  const failure = await new Promise<string | null>((resolve) => {
    const fleet: Primary<Generation> = runPrimary<Generation>({
      workers: config.server.workers,
      execArgv: WORKER_FLAGS,
      payload: payloadOf(source.current(), shared),
      log,
      collect: () => metrics.collect(),
      onReplaced: (reason) => metrics.workerReplaced(reason),
      drainMs: () => source.current().config.server.drainMs,
      started: resolve,
      answer: (request) => replyToWorker(request, opened, { canaries, fleet, firstValues }),
      onRestartSignal: () => restarts?.request(),
      onDrain: () => manager.stopping(),
      closed: () => closeAll(opened),
    })
    primary = fleet
    restarts = rollingRestarts({
      source,
      log,
      fleet,
      ops,
      payloadOf: (snapshot) => payloadOf(snapshot, shared),
    })
    source.validateWith((snapshot) => fleet.tryOut(payloadOf(snapshot, shared)))
    const apply = (snapshot: Snapshot): void => {
      archive.adopt(snapshot.config)
      canaries.adopt(snapshot)
      fleet.publish(payloadOf(snapshot, shared))
    }
    followConfig(source, { log, metrics, apply })
    watchErrorRate({ source, notify: notifier.send, metrics: () => fleet.metrics() })
  })
  if (failure !== null) {
    await Promise.all([ops.close(), source.close(), log.flush()])
    throw new Error(`the gateway cannot start: ${failure}`)
  }
  return { port, opsPort: ops.port }
}

/** The parts of the primary that reports of workers are passed to. */
interface WorkerReceivers {
  readonly canaries: CanaryMonitor
  readonly fleet: Primary<Generation>
  /** The values of labels that have series in all workers. */
  readonly firstValues: FirstValues
}

/**
 * The primary's reply to a message of a worker: a notification, a canary report, a new value of a label, or a
 * request of the dashboard.
 */
async function replyToWorker(
  request: unknown,
  { source, log, notifier, refused }: Opened,
  { canaries, fleet, firstValues }: WorkerReceivers,
): Promise<unknown> {
  if (notifier.sendFromWorker(request)) return null
  const values = firstValues.answer(request)
  if (values !== null) return values
  if (isCanaryReport(request)) {
    const order = canaries.report(request)
    if (order !== null) fleet.order(order)
    return null
  }
  const reply = await answerControlRequest(localConfigControl(source, log), request)
  if (reply !== undefined) return reply
  return gatewayStatusOf(await fleet.metrics(), refused(), canaries.states())
}

async function closeAll({ source, notifier, archive }: Opened): Promise<void> {
  await Promise.all([source.close(), notifier.close(), archive.close()])
}

/** The readiness with the health of the archive, which never makes a gateway unready. */
function withArchive(readiness: Readiness, { state }: ArchiveRunner): Readiness {
  const archive = archiveHealth(state)
  if (archive === null) return readiness
  return { ...readiness, checks: { ...readiness.checks, archive } }
}

/** Pages of the ops port besides the configuration. */
interface OpsPages extends Pick<OpsOptions, 'metrics' | 'ready' | 'workers' | 'recentRequests'> {
  readonly canaries: () => readonly CanaryState[]
}

async function openOpsPort(opened: Opened, { canaries, ...pages }: OpsPages): Promise<Ops> {
  const { source, log, metrics } = opened
  const { opsHost: host, opsPort: port } = source.current().config.server
  const tokens = new AdminTokens(source, log)
  const admin = new LazyAdminApi({
    ...{ listen: 'ops', log, snapshot: () => source.current(), mail: opened.notifier.mail },
    async openStore() {
      // A primary that does not serve the API loads no store.
      const { openObservedStore } = await import('./store-services.js')
      const store = await openObservedStore(source.current(), log, metrics)
      const { withArchive: joined } = await import('../store/archive/archived-ledger.js')
      return joined(store, () => source.current().config, metrics.archiveRequest)
    },
    configControl: localConfigControl(source, log),
    addressOf: (req) => req.socket.remoteAddress ?? '',
  })
  const options = {
    host,
    port,
    ...pages,
    hosts: () => source.current().config.server.opsHosts,
    config: () => configPage(source, canaries()),
    generations: (req: IncomingMessage) => answerGenerations({ source, log, tokens }, req),
    isOperator: (req: IncomingMessage) => tokens.accepts(req),
    admin,
  }
  const ops = await openOps(options).catch(async (error: unknown) => {
    await source.close()
    throw error
  })
  return {
    get port() {
      return ops.port
    },
    move: (address) => ops.move(address),
    async close() {
      await ops.close()
      await admin.close()
    },
  }
}

/**
 * V8 options that can be set while a process runs. A worker has one core, so parallel garbage collection
 * threads only compete with each other. Pretenuring retains objects that short-lived objects reference.
 * Requests run through many small functions: a three times higher inlining limit saves 5 to 10 % of a reply
 * once a process is warm (bench/README.md, "Tried without gain").
 */
const V8_FLAGS = [
  '--no-parallel-scavenge',
  // V8 counts the bytes of buffers as growth of the heap, whose limit is only 1.2 times its size after
  // several collections. Without these two, it marks the whole heap for every 25 bodies of 1 MB, which costs
  // more than all other work on them. Three times the size is less than V8 allows a quiet process (four).
  '--initial-old-space-size=128',
  '--heap-growing-percent=200',
  '--no-allocation-site-pretenuring',
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=3000',
]

/**
 * The options of a worker process, which can only be set at its start. A larger nursery is collected less
 * often. Large pages for Node's own code save 9 % under virtualisation. V8's memory reducer collects garbage
 * between bursts of requests, and drops the hidden classes of all objects that only requests have, with the
 * compiled code of about 220 functions: the next seconds of load took ten times the CPU, with a p99 of 600 ms
 * instead of 50 ms (bench/README.md, "Load after a pause").
 */
export const WORKER_FLAGS = [
  '--no-memory-reducer',
  '--max-semi-space-size=32',
  '--min-semi-space-size=32',
  '--use-largepages=silent',
  ...V8_FLAGS,
]

/** Random values that the primary generates and shares with all workers and their successors. */
interface SharedValues {
  /** Used if the file sets no `escrow.key`. */
  readonly sealSecret: string
  readonly setUpSecret: string
  readonly gatewayId: string
}

/** The message for workers: the generation in force and the shared values. */
function payloadOf(snapshot: Snapshot, { sealSecret, setUpSecret, gatewayId }: SharedValues): Generation {
  const { generation, fileHash, loadedAtMs, config, catalogue } = snapshot
  const escrow = { ...config.escrow, key: config.escrow.key ?? sealSecret }
  return {
    generation,
    fileHash,
    loadedAtMs,
    config: { ...config, escrow },
    models: catalogue.models,
    changes: snapshot.changes,
    toRecord: snapshot.toRecord,
    waitingForRestart: snapshot.waitingForRestart,
    setUpSecret,
    gatewayId,
  }
}
