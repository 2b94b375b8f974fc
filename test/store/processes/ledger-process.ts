/** Another process of the same ledger, which runs the orders that it receives over IPC concurrently. */
import { openStore } from '../../../src/store/open-store.js'
import type { Admission, Demand } from '../../../src/store/ledger.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'

export type LedgerOrder =
  | { op: 'clock'; atMs: number }
  | { op: 'admit'; admissions: readonly Admission[] }
  | { op: 'settle'; rows: readonly LedgerEntry[] }
  | { op: 'expire' }
  | { op: 'look'; accountId: string; demands: readonly Demand[] }

const [url = ''] = process.argv.slice(2)
let atMs = 0
const { ledger } = await openStore(url, { nowMs: () => atMs })

process.on('message', ({ id, order }: { id: number; order: LedgerOrder }) => {
  void obey(order).then(
    (answer) => process.send?.({ id, answer }),
    (error: unknown) => process.send?.({ id, error: withCause(error) }),
  )
})
process.send?.({ ready: true })

async function obey(order: LedgerOrder): Promise<unknown> {
  switch (order.op) {
    case 'clock':
      atMs = order.atMs
      return undefined
    case 'admit': {
      const results = order.admissions.map((each) => ledger.admit(each))
      return (await Promise.all(results)).map(({ admitted }) => admitted)
    }
    case 'settle':
      return Promise.all(order.rows.map((row) => ledger.settle(row)))
    case 'expire':
      return ledger.expire()
    case 'look':
      return ledger.limitStates(order.accountId, order.demands)
  }
}

function withCause(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
  return `${String(error)} ${cause}`
}
