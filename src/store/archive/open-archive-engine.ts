/** Opens the configured database of an archive; its driver is loaded only then. */
import type { ArchiveConfig } from '../../config/config.js'
import { parseArchiveUrl, type ArchiveAddress } from './archive-address.js'
import type { ArchiveEngine } from './archive-engine.js'

/** The parts of a configured archive. The address is known to be valid. */
export function addressOf(config: Pick<ArchiveConfig, 'url'>): ArchiveAddress {
  const address = parseArchiveUrl(config.url)
  if ('problem' in address) throw new Error(`archive.url ${address.problem}`)
  return address
}

/** Opens the database; connects with the first statement. */
export async function openArchiveEngine(config: ArchiveConfig): Promise<ArchiveEngine> {
  const address = addressOf(config)
  if (address.engine === 'clickhouse') {
    const { ClickhouseEngine } = await import('./clickhouse/clickhouse-engine.js')
    return new ClickhouseEngine(config, address)
  }
  const { PostgresEngine } = await import('./postgres/postgres-engine.js')
  return new PostgresEngine(config, address)
}
