/** A process that opens a store, reports it, and moves the entries of an earlier version. */
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'

const [path = ''] = process.argv.slice(2)
const store = await openSqlite(path)
process.send?.('open')
await store.ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 })
await store.close()
process.exit(0)
