/**
 * The running gateway: a primary that owns the configuration and the ops port, and workers that
 * share the data port. Even one worker is a process of its own, so that a crash is a respawn.
 * Loads nothing of the data plane, which lives in the workers (`serve-worker.ts`).
 */
import cluster from 'node:cluster'
import { runPrimary, type Primary } from './cluster.js'
import type { Env } from './config/load.js'
import { formatProblem } from './config/problem.js'
import { maskedConfig, needsRestart } from './config/snapshot.js'
import { isConfigured, type Snapshot } from './config/config.js'
import { openConfig, type ConfigSource } from './config/watch.js'
import { createLogger, type Logger } from './log.js'
import { Metrics } from './metrics/hops.js'
import { openOps } from './ops.js'
import { dataFolders, makePrivate } from './private-files.js'
import { newSealSecret } from './reasoning/seal.js'
import { outlookOf, type Outlook } from './dashboard/outlook.js'
import type { Generation } from './serve-worker.js'

/**
 * Young objects die young here: a larger nursery is collected less often. And a worker has one core, so
 * helper threads that collect in parallel only wait for each other: 10 % of its processor time with V8's
 * defaults (`npm run bench -- load`). Nothing is put among the old because its like has lived for long:
 * dead, it keeps alive what it points to, and that is what the like of it then lives for
 * (docs/decisions/0037). A request goes through many small functions, of which V8 puts no more than a few
 * into each other: three times as many of them save 4 % of our own code's time. Node's own code in large
 * pages saves 9 % more where the kernel has them, most of all under virtualisation, where a missed page
 * table entry costs two walks.
 */
export const WORKER_FLAGS = [
  '--max-semi-space-size=32',
  '--min-semi-space-size=32',
  '--no-parallel-scavenge',
  // Bodies of 1 MB beside a small heap: without it V8 marks the whole heap for every 30 MB of them (bench -- splice).
  '--initial-old-space-size=128',
  '--no-allocation-site-pretenuring',
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=3000',
  '--use-largepages=silent',
]

/**
 * Starts the gateway; a signal ends the process. Resolves when the first worker takes requests.
 * Rejects, with nothing left running, where the file is bad (`ConfigRefused`), the ops port cannot
 * be had, or a worker dies before any was ever ready: what never worked is not tried again.
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
  // One for all workers, and for those that replace them.
  const made = { escrowKey: config.escrow.key ?? newSealSecret(), setUpSecret: newSealSecret() }
  const refused = lastRefusal(source)
  let primary: Primary<Generation> | null = null
  const ops = await openOps({
    host: config.server.opsHost,
    port: config.server.opsPort,
    metrics: () => primary?.metrics() ?? metrics.text(),
    ready: () => primary?.ready() ?? { ready: false, checks: { workers: 'not started' } },
    config: () => configPage(source),
  }).catch(async (error: unknown) => {
    await source.close()
    throw error
  })
  let port = config.server.port
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
    process.on('SIGHUP', () => {
      void source.reload().then(({ result }) => {
        const { generation } = source.current()
        log.info('configuration looked at', { signal: 'SIGHUP', generation, reason: result })
      })
    })
  })
  if (failure !== null) {
    await Promise.all([ops.close(), source.close(), log.flush()])
    throw new Error(`the gateway cannot start: ${failure}`)
  }
  log.info('sluice serves', {
    host: config.server.host,
    port,
    ops_port: ops.port,
    workers: config.server.workers,
    store: config.store.split(':')[0],
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
    if (isConfigured(upstream)) continue
    log.warn('upstream unconfigured: its key is not set', {
      upstream: upstream.name,
      variable: upstream.apiKeySource ?? undefined,
    })
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
