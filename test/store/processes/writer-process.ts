/**
 * Admits and settles requests and appends entries, eight concurrently, and reports each acknowledgement,
 * unbuffered, until it is killed; with `full`, until the disk is full.
 */
import { writeSync } from 'node:fs'
import { openStore } from '../../../src/store/open-store.js'
import { anAdmission, aRow, NOON } from '../ledger/sample-entries.js'
import { writerDemands, WRITER_COST } from '../ledger/kills.js'

const AT_ONCE = 8
const [url = '', until = 'killed'] = process.argv.slice(2)
const store = await openStore(url, { nowMs: () => NOON })
let failures = 0

await Promise.all(Array.from({ length: AT_ONCE }, () => client()))
const { entries: rows } = await store.ledger.entries({ accountId: null, after: null, limit: 1 })
writeSync(1, `read ${rows.length}\n`)
await store.close()

async function client(): Promise<void> {
  while (failures < 3) {
    const admission = anAdmission(writerDemands())
    const { requestId } = admission
    try {
      const { admitted } = await store.ledger.admit(admission)
      writeSync(1, `${admitted ? 'admitted' : 'refused'} ${requestId}\n`)
      await store.ledger.settle(aRow({ requestId, costNanoUsd: WRITER_COST }))
      writeSync(1, `settled ${requestId}\n`)
      const row = aRow({ costNanoUsd: 0 })
      await store.ledger.append(row)
      writeSync(1, `appended ${row.requestId}\n`)
    } catch (error) {
      if (until !== 'full') throw error
      failures += 1
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : null
      writeSync(1, `failed ${String(error)} ${cause?.message ?? ''}\n`)
    }
  }
}
