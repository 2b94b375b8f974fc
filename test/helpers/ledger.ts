/**
 * The ledger of a test's gateway, read by another connection to its store.
 */
import { loadConfig } from '../../src/config/load-config.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'

/** Every entry so far, oldest first. */
export async function rowsOf(gateway: { configFile: string }): Promise<LedgerEntry[]> {
  const loaded = loadConfig(gateway.configFile, process.env)
  if (!loaded.ok) throw new Error("the gateway's file does not load")
  const store = await openStore(loaded.config.store)
  try {
    const rows: LedgerEntry[] = []
    for await (const batch of store.ledger.export(0)) rows.push(...batch)
    return rows
  } finally {
    await store.close()
  }
}
