/**
 * A worker of the running gateway: one data plane, built from what the primary has read and checked.
 * Knows no file and no YAML: not loading them halves the time from a worker's start to its readiness.
 */
import { createLogger } from './log.js'
import type { ModelFacts } from './chat/model.js'
import { runWorker } from './cluster-worker.js'
import { createCatalogue } from './config/catalogue.js'
import type { Config, Snapshot } from './config/config.js'
import { createSnapshot } from './config/snapshot.js'
import { openDataPlane, type DataPlane } from './data-plane.js'
import { GatewayError } from './errors.js'
import { Metrics } from './metrics/hops.js'

/** A snapshot as it travels between processes, as JSON. Holds secrets; never logged. */
export interface Generation {
  readonly generation: number
  readonly fileHash: string
  readonly loadedAtMs: number
  readonly config: Config
  readonly models: readonly ModelFacts[]
}

/** Takes orders from the primary until it ends this process. */
export async function serveAsWorker(): Promise<void> {
  const metrics = new Metrics()
  let plane: DataPlane | null = null
  let log = createLogger({ level: 'info' })
  await runWorker<Generation>({
    log,
    isPayload: isGeneration,
    start: async (payload) => {
      const snapshot = snapshotOf(payload)
      log = createLogger({ level: snapshot.config.log.level })
      plane = await openDataPlane(snapshot, log, metrics).catch(withReason)
    },
    apply: (payload) => plane?.adopt(snapshotOf(payload)),
    ready: () => plane?.ready() ?? { ready: false, checks: { listener: 'not open' } },
    collect: () => metrics.collect(),
    drain: async () => {
      await plane?.drain()
      await log.flush()
    },
  })
}

function isGeneration(value: unknown): value is Generation {
  return typeof value === 'object' && value !== null && 'config' in value && 'models' in value
}

function snapshotOf({ config, models, fileHash, generation, loadedAtMs }: Generation): Snapshot {
  const catalogue = createCatalogue(models)
  return createSnapshot({ config, catalogue, fileHash }, generation, loadedAtMs)
}

/** A client must not see why the store cannot be opened; the operator who starts it must. */
function withReason(error: unknown): never {
  if (error instanceof GatewayError && error.kind === 'store_unavailable') {
    const { cause } = error
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    throw new GatewayError(error.kind, `${error.message}${why}`, { cause })
  }
  throw error
}
