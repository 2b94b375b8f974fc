/**
 * The configuration that a command uses beside a running gateway. A changed `store` takes effect after a
 * restart; until then the command must use the gateway's current store.
 */
import type { Catalogue, Config } from '../config/config.js'
import { historyOf } from '../config/generations/find-history.js'
import { recordsIn } from '../config/generations/history.js'
import { loadConfig, type Loaded, type LoadResult } from '../config/load-config.js'
import { maskedStore } from '../config/masked-config.js'
import { problemLines } from './check/check.js'
import { findGateway, loadGeneration, type FoundGateway } from './generations/running-gateway.js'

/** A configuration with its catalogue. */
export interface ConfigInForce {
  readonly config: Config
  readonly catalogue: Catalogue
}

/**
 * The file's configuration, with the store and spool of the gateway that runs with this file. If the file is
 * not valid, the generation in force in that gateway, or without one the newest of the history. `err`
 * receives a line for each difference and problem; null if there is no valid configuration.
 */
export async function configInForce(
  path: string,
  err: (line: string) => void,
): Promise<ConfigInForce | null> {
  const loaded = loadConfig(path, process.env)
  const gateway = await findGateway(loaded, process.env)
  const started =
    gateway === null ? null : await loadGeneration(loaded, gateway, gateway.startedGeneration)
  if (!loaded.ok) {
    err(problemLines(loaded.errors))
    const stored =
      gateway === null ? await newestStored(loaded, err) : await inForce(loaded, gateway, err)
    return stored === null || started === null ? stored : withStoreOf(started, stored)
  }
  const { config } = loaded
  if (started !== null && started.config.store !== config.store) {
    const [used, named] = [maskedStore(started.config.store), maskedStore(config.store)]
    err(`sluice: this command uses ${used}, the store of the running gateway`)
    err(`sluice: the file names ${named}, which waits for a restart`)
    return withStoreOf(started, loaded)
  }
  const waiting = gateway?.page['waiting_for_restart']
  if (started === null && Array.isArray(waiting) && waiting.includes('store')) {
    err('sluice: the running gateway uses another store than the file: restart it first')
    return null
  }
  return loaded
}

/** A configuration with the store and spool of the one that the gateway was started with. */
function withStoreOf(
  { config: { store, ledger } }: Loaded,
  { config, catalogue }: Loaded,
): ConfigInForce {
  return {
    config: { ...config, store, ledger: { ...config.ledger, spool: ledger.spool } },
    catalogue,
  }
}

async function inForce(
  loaded: LoadResult,
  gateway: FoundGateway,
  err: (line: string) => void,
): Promise<Loaded | null> {
  const { generation } = gateway
  const stored = await loadGeneration(loaded, gateway, generation)
  if (stored === null) {
    err('sluice: the generation in force in the running gateway cannot be loaded: correct the file')
  } else
    err(`sluice: using generation ${String(generation)}, which is in force in the running gateway`)
  return stored
}

/** The newest generation of the history that can be loaded. */
async function newestStored(
  loaded: LoadResult,
  err: (line: string) => void,
): Promise<Loaded | null> {
  const folder = historyOf(loaded, process.env)
  for (const { generation } of folder === null ? [] : recordsIn(folder)) {
    const stored = await loadGeneration(loaded, { folder }, generation)
    if (stored === null) continue
    err(
      `sluice: no gateway runs with this file: using generation ${String(generation)} of its history`,
    )
    return stored
  }
  return null
}
