/**
 * The running gateway: a primary that owns the configuration and the ops port, and workers that share the data
 * port. With one worker all of it is one process (`serve-alone.ts`). A primary loads nothing of the data plane.
 */
import cluster from 'node:cluster'
import { runPrimary, type Primary } from './cluster/cluster.js'
import type { Env } from '../config/load.js'
import { formatProblem } from '../config/problem.js'
import { maskedConfig, needsRestart } from '../config/snapshot.js'
import { isConfigured, type Snapshot } from '../config/config.js'
import { openConfig, type ConfigSource } from '../config/watch.js'
import { createLogger, type Logger } from '../observe/log/log.js'
import { Metrics } from '../observe/metrics/hops.js'
import { openOps, type Ops, type OpsOptions } from './ops-listener.js'
import { dataFolders, makePrivate } from '../files/private-files.js'
import { newSealSecret } from '../reasoning/seal.js'
import { outlookOf, type Outlook } from '../dashboard/server/outlook.js'
import type { DataPlane } from './data-plane.js'
import type { Generation } from './serve-worker.js'

/**
 * V8 options that a running process can still set. A worker has one core, so threads that collect garbage in
 * parallel only wait for each other. Pretenuring keeps alive what short-lived objects point to. Requests go through
 * many small functions: inlining three times as many saves 4 % of our own code's time (docs/decisions/0037).
 */
const V8_FLAGS = [
  '--no-parallel-scavenge',
  // Bodies of 1 MB beside a small heap: without it V8 marks the whole heap for every 30 MB of them (bench -- splice).
  '--initial-old-space-size=128',
  '--no-allocation-site-pretenuring',
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=3000',
]

/**
 * The options of a worker process. Only the start of a process can set the nursery, which is collected less often
 * when it is larger, and large pages for Node's own code, which save 9 % under virtualisation.
 */
export const WORKER_FLAGS = [
  '--max-semi-space-size=32',
  '--min-semi-space-size=32',
  '--use-largepages=silent',
  ...V8_FLAGS,
]

/** What both ways to serve are made of. */
interface Opened {
  readonly source: ConfigSource
  readonly log: Logger
  readonly metrics: Metrics
  readonly refused: () => Outlook['refused']
}

/**
 * Starts the gateway; a signal ends the process. Resolves when the first worker takes requests. With `workers: 1`
 * the worker is this process. Rejects when the file is bad (`ConfigRefused`), the ops port is taken, or no worker
 * ever became ready; then nothing that was started is left, and the start is not tried again.
 */
export async function serve(path: string, env: Env): Promise<void> {
  const source = await openConfig(path, env)
  const { config } = source.current()
  const metrics = new Metrics()
  const log = createLogger({
    level: config.log.level,
    onLost: (lines) => metrics.logLinesLost(lines),
  })
  for (const folder of dataFolders(config.store, config.ledger.spool)) {
    makePrivate(folder, (reason) => log.warn('store', { reason }))
  }
  const opened = { source, log, metrics, refused: lastRefusal(source) }
  process.on('SIGHUP', () => {
    void source.reload().then(({ result }) => {
      const { generation } = source.current()
      log.info('configuration looked at', { signal: 'SIGHUP', generation, reason: result })
    })
  })
  const { port, opsPort } = await (config.server.workers === 1
    ? inOneProcess(opened)
    : inWorkers(opened))
  log.info('sluice serves', {
    host: config.server.host,
    port,
    ops_port: opsPort,
    workers: config.server.workers,
    store: config.store.split(':')[0],
  })
}

interface Ports {
  readonly port: number
  readonly opsPort: number
}

async function inOneProcess(opened: Opened): Promise<Ports> {
  const { source, log, metrics, refused } = opened
  // The data plane is most of the code, and a primary never needs it.
  const loading = import('./serve-alone.js')
  let plane: DataPlane | null = null
  const ops = await openOpsPort(opened, {
    metrics: () => metrics.text(),
    ready: () => plane?.ready() ?? { ready: false, checks: { listener: 'not open' } },
  })
  const closed = async (): Promise<void> => {
    await Promise.all([ops.close(), source.close()])
  }
  try {
    const { serveAlone } = await loading
    const running = await serveAlone({ source, log, metrics, refused, closed, flags: V8_FLAGS })
    plane = running
    followConfig(source, log, metrics, (snapshot) => running.adopt(snapshot))
    return { port: running.port, opsPort: ops.port }
  } catch (error) {
    await Promise.all([closed(), log.flush()])
    throw error
  }
}

async function inWorkers(opened: Opened): Promise<Ports> {
  const { source, log, metrics, refused } = opened
  const { config } = source.current()
  // One for all workers, and for those that replace them.
  const made = { escrowKey: config.escrow.key ?? newSealSecret(), setUpSecret: newSealSecret() }
  let primary: Primary<Generation> | null = null
  const ops = await openOpsPort(opened, {
    metrics: () => primary?.metrics() ?? metrics.text(),
    ready: () => primary?.ready() ?? { ready: false, checks: { workers: 'not started' } },
  })
  let { port } = config.server
  cluster.on('listening', (_worker, address) => (port = address.port))
  const failure = await new Promise<string | null>((resolve) => {
    const fleet: Primary<Generation> = runPrimary<Generation>({
      workers: config.server.workers,
      execArgv: WORKER_FLAGS,
      payload: payloadOf(source.current(), made),
      log,
      collect: () => metrics.collect(),
      onReplaced: (reason) => metrics.workerReplaced(reason),
      drainMs: () => source.current().config.server.drainMs,
      started: resolve,
      answer: async () => outlookOf(await fleet.metrics(), refused()),
      closed: () => source.close(),
    })
    primary = fleet
    followConfig(source, log, metrics, (snapshot) => fleet.publish(payloadOf(snapshot, made)))
  })
  if (failure !== null) {
    await Promise.all([ops.close(), source.close(), log.flush()])
    throw new Error(`the gateway cannot start: ${failure}`)
  }
  return { port, opsPort: ops.port }
}

function openOpsPort(
  { source }: Opened,
  pages: Pick<OpsOptions, 'metrics' | 'ready'>,
): Promise<Ops> {
  const { opsHost: host, opsPort: port } = source.current().config.server
  const options = { host, port, ...pages, config: () => configPage(source) }
  return openOps(options).catch(async (error: unknown) => {
    await source.close()
    throw error
  })
}

/**
 * Hands each new generation to `apply`, and tells the operator what came of each change: in force,
 * refused and why, what waits for the next start, which upstreams have no key.
 */
export function followConfig(
  source: ConfigSource,
  log: Logger,
  metrics: Metrics,
  apply: (snapshot: Snapshot) => void,
): void {
  const started = source.current()
  metrics.configLoaded(started.generation)
  warnUnconfigured(started, log)
  source.subscribe((change) => {
    if (change.result === 'applied') {
      const { generation, config } = change.snapshot
      metrics.configReload('ok')
      metrics.configLoaded(generation)
      apply(change.snapshot)
      log.info('configuration in force', { generation })
      for (const name of needsRestart(started.config, config)) {
        log.warn('setting takes effect at the next start', { generation, reason: name })
      }
      warnUnconfigured(change.snapshot, log)
      return
    }
    metrics.configReload('refused')
    for (const problem of change.errors) {
      log.warn('configuration refused; the old one stays in force', {
        generation: source.current().generation,
        reason: formatProblem(problem),
      })
    }
  })
}

function warnUnconfigured({ config }: Snapshot, log: Logger): void {
  for (const upstream of Object.values(config.upstreams)) {
    const { name, apiKeySource, unsetKeyVariables } = upstream
    if (!isConfigured(upstream)) {
      const variable = apiKeySource ?? undefined
      log.warn('upstream unconfigured: its key is not set', { upstream: name, variable })
    } else if (unsetKeyVariables.length > 0) {
      const variable = unsetKeyVariables.join(', ')
      log.warn('upstream has fewer keys than listed', { upstream: name, variable })
    }
  }
}

/** A function that tells why the last file was not taken, if it was not. */
export function lastRefusal(source: ConfigSource): () => Outlook['refused'] {
  let refused: Outlook['refused'] = null
  source.subscribe((change) => {
    refused =
      change.result === 'refused'
        ? { atMs: Date.now(), problems: change.errors.map(formatProblem) }
        : null
  })
  return () => refused
}

/** What the first process makes, so that all workers, and those that replace them, have the same. */
interface Made {
  readonly escrowKey: string
  readonly setUpSecret: string
}

function payloadOf(snapshot: Snapshot, { escrowKey, setUpSecret }: Made): Generation {
  const { generation, fileHash, loadedAtMs, config, catalogue, changes } = snapshot
  const escrow = { ...config.escrow, key: escrowKey }
  return {
    generation,
    fileHash,
    loadedAtMs,
    config: { ...config, escrow },
    models: catalogue.models,
    changes,
    setUpSecret,
  }
}

/** What `/config` shows: the generation in force, masked, and why a newer file is not. */
export function configPage(source: ConfigSource): object {
  const last = source.lastError
  return {
    ...maskedConfig(source.current()),
    last_error: last === null ? null : last.map(formatProblem),
  }
}
