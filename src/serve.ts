/**
 * The running gateway: a primary that owns the configuration and the ops port, and workers that
 * share the data port. Even one worker is a process of its own, so that a crash is a respawn.
 */
import cluster from 'node:cluster'
import { runPrimary, runWorker, type Primary } from './cluster.js'
import { loadConfigText, type ConfigSources, type Env } from './config/load.js'
import { formatProblem } from './config/problem.js'
import { createSnapshot, maskedConfig } from './config/snapshot.js'
import type { Snapshot } from './config/config.js'
import { openConfig, type ConfigSource } from './config/watch.js'
import { openDataPlane, type DataPlane } from './data-plane.js'
import { createLogger, type Logger } from './log.js'
import { Metrics } from './metrics/hops.js'
import { openOps } from './ops.js'

/** What a worker needs to build the same generation as every other. Holds secrets; never logged. */
interface Generation {
  readonly sources: ConfigSources
  readonly generation: number
  readonly loadedAtMs: number
}

/**
 * Young objects die young here: with V8's default of 16 MiB a worker spends an eighth of its time
 * copying those of requests in flight (`bench/load` shows it).
 */
const WORKER_FLAGS = ['--max-semi-space-size=64', '--min-semi-space-size=16']

/** Serves until a signal ends the process. Rejects with `ConfigRefused` where the file is bad. */
export async function serve(path: string, env: Env): Promise<void> {
  if (cluster.isWorker) await serveAsWorker(env)
  else await serveAsPrimary(path, env)
}

async function serveAsPrimary(path: string, env: Env): Promise<void> {
  const source = await openConfig(path, env)
  const { config } = source.current()
  const log = createLogger({ level: config.log.level })
  const metrics = new Metrics()
  metrics.configLoaded(source.current().generation)
  cluster.setupPrimary({ execArgv: [...process.execArgv, ...WORKER_FLAGS] })
  const primary = runPrimary<Generation>({
    workers: config.server.workers,
    payload: payloadOf(source),
    log,
    collect: () => metrics.collect(),
    drainMs: config.server.drainMs,
    closed: () => source.close(),
  })
  const ops = await openOps({
    host: config.server.opsHost,
    port: config.server.opsPort,
    metrics: () => primary.metrics(),
    ready: () => primary.ready(),
    config: () => configPage(source),
  })
  followConfig(source, primary, metrics, log)
  log.info('sluice serves', {
    host: config.server.host,
    port: config.server.port,
    ops_port: ops.port,
    workers: config.server.workers,
    store: config.store.split(':')[0],
  })
}

/** Hands each new generation to the workers, and says so when a file is refused. */
function followConfig(
  source: ConfigSource,
  primary: Primary<Generation>,
  metrics: Metrics,
  log: Logger,
): void {
  source.subscribe((change) => {
    if (change.result === 'applied') {
      const { generation } = change.snapshot
      metrics.configReload('ok')
      metrics.configLoaded(generation)
      primary.publish(payloadOf(source))
      log.info('configuration in force', { generation })
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
  process.on('SIGHUP', () => void source.reload())
}

function payloadOf(source: ConfigSource): Generation {
  const { generation, loadedAtMs } = source.current()
  return { sources: source.sources(), generation, loadedAtMs }
}

/** What `/config` shows: the generation in force, masked, and why a newer file is not. */
export function configPage(source: ConfigSource): object {
  const last = source.lastError
  return {
    ...maskedConfig(source.current()),
    last_error: last === null ? null : last.map(formatProblem),
  }
}

async function serveAsWorker(env: Env): Promise<void> {
  const metrics = new Metrics()
  let plane: DataPlane | null = null
  let log = createLogger({ level: 'info' })
  await runWorker<Generation>({
    log,
    isPayload: (value): value is Generation =>
      typeof value === 'object' && value !== null && 'sources' in value && 'generation' in value,
    start: async (payload) => {
      const snapshot = snapshotOf(payload, env)
      log = createLogger({ level: snapshot.config.log.level })
      plane = await openDataPlane(snapshot, log, metrics)
    },
    apply: (payload) => plane?.adopt(snapshotOf(payload, env)),
    ready: () => plane?.ready() ?? { ready: false, checks: { listener: 'not open' } },
    collect: () => metrics.collect(),
    drain: async () => {
      await plane?.drain()
      await log.flush()
    },
  })
}

/** The primary has found the texts good; the same code finds them good here. */
function snapshotOf(payload: Generation, env: Env): Snapshot {
  const loaded = loadConfigText(payload.sources, env)
  if (!loaded.ok) throw new Error(loaded.errors.map(formatProblem).join('; '))
  return createSnapshot(loaded, payload.generation, payload.loadedAtMs)
}
