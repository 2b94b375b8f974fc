/**
 * What one transaction of the embedded engine's ledger adds up: of each hour and day for a key and model,
 * for an account's model, and for a model of all accounts; and the days of each key. Read once, changed in
 * memory, written at the end. Knows no row's place and no limit.
 */
import type { UsageRow } from '../ledger/row.js'
import type { UsageSum } from './ledger.js'
import { damaged, quietly } from './lmdb-failure.js'
import { BUCKET_MS, daysName, sumName, type LedgerTables } from './lmdb-ledger-tables.js'
import { addToDays, newDays, putDay, readDays, writeDays, type DaysOfUse } from './usage-days.js'
import {
  addSum,
  dayUseOf,
  lastAtMs,
  newSum,
  readSum,
  shownCounters,
  writeSum,
  type SumCounters,
} from './usage-sum.js'

const BY = ['hour', 'day'] as const

/** Sums and days that a transaction changes. Only inside one. */
export class Counts {
  private readonly tables: LedgerTables
  private readonly sums = new Map<string, SumCounters>()
  private readonly days = new Map<string, DaysOfUse>()

  constructor(tables: LedgerTables) {
    this.tables = tables
  }

  /** Adds what rows of a key, a model and an hour come to. Throws what is damaged, and has added nothing then. */
  add(of: Pick<UsageRow, 'atMs' | 'accountId' | 'keyId' | 'model'>, added: SumCounters): void {
    const { atMs } = of
    const sums = BY.flatMap((by) => [this.sum(sumName(by, atMs, of)), ...this.above(by, atMs, of)])
    const days = this.daysOf(daysName(atMs, of))
    for (const sum of sums) addSum(sum, added)
    addToDays(days, lastAtMs(added), dayUseOf(added))
  }

  /** Puts a sum in the place of what there is of it; `usedMs` is when its key was used last. */
  put(by: 'hour' | 'day', shown: UsageSum, usedMs: number): void {
    const { startMs } = shown
    const isHere = usedMs >= startMs && usedMs < startMs + BUCKET_MS[by]
    const name = sumName(by, startMs, shown)
    const old = this.sum(name)
    const sum = shownCounters(shown, Math.max(lastAtMs(old), isHere ? usedMs : 0))
    for (const above of this.above(by, startMs, shown)) {
      addSum(above, old, -1)
      addSum(above, sum)
    }
    this.sums.set(name, sum)
    if (by === 'day') putDay(this.daysOf(daysName(startMs, shown)), startMs, shown, lastAtMs(sum))
  }

  /** Puts what has changed; after the last of it. */
  write(): void {
    for (const [name, sum] of this.sums) quietly(this.tables.sums.put(name, writeSum(sum)))
    for (const [name, days] of this.days) quietly(this.tables.days.put(name, writeDays(days)))
  }

  /** The account's sum of the model, and everybody's. */
  private above(
    by: 'hour' | 'day',
    atMs: number,
    { accountId, model }: Pick<UsageRow, 'accountId' | 'model'>,
  ): SumCounters[] {
    return [accountId, ''].map((owner) => {
      return this.sum(sumName(by, atMs, { accountId: owner, keyId: '', model }))
    })
  }

  private sum(name: string): SumCounters {
    const known = this.sums.get(name)
    if (known !== undefined) return known
    const bytes = this.tables.sums.get(name)
    const sum = bytes === undefined ? newSum() : intact(`the sum '${name}'`, () => readSum(bytes))
    this.sums.set(name, sum)
    return sum
  }

  private daysOf(name: string): DaysOfUse {
    const known = this.days.get(name)
    if (known !== undefined) return known
    const bytes = this.tables.days.get(name)
    const days =
      bytes === undefined ? newDays() : intact(`the days '${name}'`, () => readDays(bytes))
    this.days.set(name, days)
    return days
  }
}

function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}
