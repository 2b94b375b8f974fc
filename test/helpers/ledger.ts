/**
 * The ledger of a test's gateway, read by another connection to its store.
 */
import { t as root } from 'tap'
import { loadConfig } from '../../src/config/load-config.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'

/** Connections to SQLite files, which stay open: each starts a thread for a fifth of a second of CPU time. */
const opened = new Map<string, Promise<Store>>()
root.teardown(async () => {
  for (const store of opened.values()) await (await store).close()
})

/** Every entry so far, oldest first. */
export async function rowsOf(gateway: { configFile: string }): Promise<LedgerEntry[]> {
  const { configFile } = gateway
  const known = opened.get(configFile)
  if (known !== undefined) return exported(await known)
  const loaded = loadConfig(configFile, process.env)
  if (!loaded.ok) throw new Error("the gateway's file does not load")
  const { store: url } = loaded.config
  const store = openStore(url)
  if (url.startsWith('sqlite:')) {
    opened.set(configFile, store)
    return exported(await store)
  }
  try {
    return await exported(await store)
  } finally {
    await (await store).close()
  }
}

async function exported(store: Store): Promise<LedgerEntry[]> {
  const rows: LedgerEntry[] = []
  for await (const batch of store.ledger.export(0)) rows.push(...batch)
  return rows
}
