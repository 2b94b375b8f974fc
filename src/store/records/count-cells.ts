/** Sums of any part of an hour, made of entries. */
import type { LedgerEntry } from '../../ledger/entry.js'
import type { UsageCell } from '../usage-queries.js'
import { addToSum, newSum, sumFromCounters, type SumCounters } from './count-usage.js'

/** The cells of entries, which are added one by one. */
export class EntryCells {
  private readonly stepMs: number
  private readonly cells = new Map<string, { readonly of: LedgerEntry; readonly sum: SumCounters }>()

  constructor(stepMs: number) {
    this.stepMs = stepMs
  }

  add(entry: LedgerEntry): void {
    const { accountId, keyId, model, accountPath, upstream, ingress, labels, shadowOf } = entry
    const values = [accountId, keyId, model, accountPath, upstream, ingress, labels, shadowOf === null]
    const name = `${this.startOf(entry)}\0${values.map((value) => value ?? '').join('\0')}`
    const cell = this.cells.get(name) ?? { of: entry, sum: newSum() }
    addToSum(cell.sum, entry)
    this.cells.set(name, cell)
  }

  all(): UsageCell[] {
    return Array.from(this.cells.values(), ({ of, sum }) => {
      const { accountId, keyId, model, accountPath, upstream, ingress, labels, shadowOf } = of
      const properties = { accountPath, upstream, ingress, labels, isShadow: shadowOf !== null }
      const startMs = this.startOf(of)
      return { ...sumFromCounters(sum, { startMs, accountId, keyId, model }), ...properties }
    })
  }

  private startOf({ atMs }: LedgerEntry): number {
    return Math.floor(atMs / this.stepMs) * this.stepMs
  }
}
