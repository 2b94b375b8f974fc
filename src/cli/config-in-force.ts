/**
 * The configuration that a command uses beside a running gateway. A changed `store` takes effect after a
 * restart; until then the command must use the gateway's current store.
 */
import type { Catalogue, Config } from '../config/config.js'
import { loadConfig } from '../config/load-config.js'
import { maskedStore } from '../config/masked-config.js'
import { problemLines } from './check/check.js'
import { findGateway, loadGeneration } from './generations/running-gateway.js'

/** A configuration with its catalogue. */
export interface ConfigInForce {
  readonly config: Config
  readonly catalogue: Catalogue
}

/**
 * The file's configuration, with the store and spool of the gateway that runs with this file. If the file is
 * not valid, the configuration that the gateway was started with. `err` receives a line for each difference
 * and problem; null if there is no valid configuration.
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
    if (started !== null) err('sluice: using the configuration of the running gateway')
    return started
  }
  const { config, catalogue } = loaded
  if (started !== null && started.config.store !== config.store) {
    const { store, ledger } = started.config
    const [used, named] = [maskedStore(store), maskedStore(config.store)]
    err(`sluice: this command uses ${used}, the store of the running gateway`)
    err(`sluice: the file names ${named}, which waits for a restart`)
    const merged = { ...config, store, ledger: { ...config.ledger, spool: ledger.spool } }
    return { config: merged, catalogue }
  }
  const waiting = gateway?.page['waiting_for_restart']
  if (started === null && Array.isArray(waiting) && waiting.includes('store')) {
    err('sluice: the running gateway uses another store than the file: restart it first')
    return null
  }
  return loaded
}
