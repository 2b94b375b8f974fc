/**
 * Admits and settles requests of one limit as fast as it can, for the tests of slices, on orders that it
 * receives over IPC.
 */
import { openStore } from '../../../src/store/open-store.js'
import type { Demand, TakenFrom } from '../../../src/store/ledger.js'
import { anAdmission, aRow, NOON } from '../ledger/sample-entries.js'

export interface SliceOrder {
  /** Admits requests until one is refused, or up to this number. */
  readonly demands: readonly Demand[]
  readonly most: number
  readonly atOnce: number
  /** Retries after a refusal, each half a second later: a slice may have been returned. */
  readonly retries: number
  /** Returns all slices afterwards. */
  readonly close: boolean
  /** Admitted requests run until the next order. */
  readonly keep?: boolean
}

export interface Spent {
  readonly admitted: number
  readonly bySlice: number
  readonly refused: number
}

const [url = ''] = process.argv.slice(2)
const store = await openStore(url, { nowMs: () => NOON })
const { ledger } = store

process.on('message', ({ id, order }: { id: number; order: SliceOrder }) => {
  void spend(order).then(
    (answer) => process.send?.({ id, answer }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  )
})
process.send?.({ ready: true })

/** Ends the running requests. */
const kept: (() => Promise<void>)[] = []

async function spend(order: SliceOrder): Promise<Spent> {
  const { demands, most, atOnce, retries, close, keep = false } = order
  const spent = { admitted: 0, bySlice: 0, refused: 0 }
  if (!keep) await Promise.all(kept.splice(0).map((end) => end()))
  let begun = 0
  const client = async (): Promise<void> => {
    for (let left = retries; begun < most;) {
      begun += 1
      const admission = anAdmission(demands)
      const { admitted, isSlice } = await ledger.admit(admission)
      if (!admitted) {
        begun -= 1
        spent.refused += 1
        if (left === 0) return
        left -= 1
        await new Promise((resolve) => setTimeout(resolve, 500))
        continue
      }
      spent.admitted += 1
      if (isSlice) spent.bySlice += 1
      const taken: TakenFrom = isSlice ? 'slice' : 'reserved'
      const { requestId } = admission
      const end = async (): Promise<void> => {
        if (isSlice) ledger.releaseSlots?.(requestId)
        const row = aRow({ requestId, usage: { input: 80, output: 20 }, costNanoUsd: 10 })
        await ledger.settle(row, { demands, takenFrom: taken })
      }
      if (keep) kept.push(end)
      else await end()
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  if (close) await store.close()
  return spent
}
