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

/** What rows of one key, model and hour come to, and where that is counted. */
interface Group {
  readonly added: SumCounters
  readonly sums: readonly SumCounters[]
  readonly days: DaysOfUse
}

/** Sums and days that a transaction changes. Only inside one. */
export class Counts {
  private readonly tables: LedgerTables
  private readonly groups = new Map<string, Group>()
  private readonly sums = new Map<string, SumCounters>()
  private readonly days = new Map<string, DaysOfUse>()

  constructor(tables: LedgerTables) {
    this.tables = tables
  }

  /**
   * Reads all that a row counts in, and changes nothing yet: whoever adds the row to the answer has it
   * counted. Throws what is damaged.
   */
  read(row: UsageRow): SumCounters {
    const { atMs, accountId, keyId, model } = row
    const name = `${Math.floor(atMs / BUCKET_MS.hour)} ${accountId} ${keyId} ${model}`
    const known = this.groups.get(name)
    if (known !== undefined) return known.added
    const sums = BY.flatMap((by) => [
      this.sum(sumName(by, atMs, row)),
      ...this.above(by, atMs, row),
    ])
    const group = { added: newSum(), sums, days: this.daysOf(daysName(atMs, row)) }
    this.groups.set(name, group)
    return group.added
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
    for (const { added, sums, days } of this.groups.values()) {
      for (const sum of sums) addSum(sum, added)
      addToDays(days, lastAtMs(added), dayUseOf(added))
    }
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
