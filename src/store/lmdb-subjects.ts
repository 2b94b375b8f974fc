/**
 * What is taken of the limits, as the embedded engine keeps it: one record for a subject with all its
 * kinds, so that a request under five limits of one key reads and writes once.
 * Knows the arithmetic of limits and no reservation.
 */
import {
  budgetStanding,
  dayOf,
  drained,
  leftOfDay,
  leftOfMonth,
  monthOf,
  placeStanding,
  rateStanding,
  UNITS,
} from '../limits/bucket.js'
import type { UsageRow } from '../ledger/row.js'
import type { BudgetDemand, BudgetSpent, Demand, SlotDemand, Standing } from './ledger.js'
import { damaged, quietly } from './lmdb-failure.js'
import { MOST_NAMES, type LedgerTables } from './lmdb-ledger-tables.js'

/** What a reservation holds of a subject, until it ends. */
export type Hold =
  | readonly [kind: 'tokens', subject: string, cost: number, perMinute: number]
  | readonly [kind: 'concurrent', subject: string]
  | readonly [kind: 'usd_day' | 'usd_month', subject: string, cost: number, period: number]

/** The record's places; all are doubles. */
const VERSION_AT = 0
const REQUESTS = 1
const REQUESTS_AT = 2
const TOKENS = 3
const TOKENS_AT = 4
const PLACES = 5
const DAY = 6
const DAY_SPENT = 7
const MONTH = 8
const MONTH_SPENT = 9
const LENGTH = 10
const VERSION = 1

/** What became of a request's demands. */
interface Taken {
  readonly taken: boolean
  readonly standings: Standing[]
  /** What a reservation has to remember. */
  readonly holds: readonly Hold[]
}

/** Subjects as one transaction sees and changes them; `write` puts what has changed. */
export class Subjects {
  private readonly tables: LedgerTables
  private readonly nowMs: number
  private readonly records = new Map<string, Float64Array>()
  private readonly changed = new Set<string>()

  constructor(tables: LedgerTables, nowMs: number) {
    this.tables = tables
    this.nowMs = nowMs
  }

  /** Takes what every demand asks, or nothing; then the standings say which demand was not met. */
  take(accountId: string, demands: readonly Demand[]): Taken {
    const names = subjectNames(accountId, demands)
    const standings = demands.map((demand, at) =>
      this.standing(this.named(names, at), demand, ahead(names, demands, at)),
    )
    if (standings.some(({ retryAfterMs }) => retryAfterMs !== 0)) {
      // What the demands before it in the same request would have taken is not taken.
      const untouched = demands.map((demand, at) => {
        const { retryAfterMs = 0 } = standings[at] ?? {}
        return { ...this.standing(this.named(names, at), demand, 0), retryAfterMs }
      })
      return { taken: false, standings: untouched, holds: [] }
    }
    demands.forEach((demand, at) => this.apply(this.named(names, at), demand))
    for (const name of names) this.changed.add(name)
    return {
      taken: true,
      standings: demands.map((demand, at) => met(this.standing(this.named(names, at), demand, 0))),
      holds: this.holds(names, demands),
    }
  }

  /** How the demands stand, each for itself. */
  look(accountId: string, demands: readonly Demand[]): Standing[] {
    return demands.map((demand) =>
      this.standing(this.record(subjectName(accountId, demand)), demand, 0),
    )
  }

  /** Replaces what was reserved by what was used; null is not known, and what is reserved stands. */
  release(holds: readonly Hold[], usedTokens: number | null, costNanoUsd: number | null): void {
    for (const hold of holds) {
      const record = this.record(hold[1])
      this.changed.add(hold[1])
      if (hold[0] === 'concurrent') {
        record[PLACES] = Math.max(0, (record[PLACES] ?? 0) - 1)
      } else if (hold[0] === 'tokens') {
        if (usedTokens === null) continue
        this.drain(record, TOKENS, hold[3])
        shift(record, TOKENS, (usedTokens - hold[2]) * UNITS)
      } else if (costNanoUsd !== null) {
        // A period that is over has been forgotten, and the new one owes it nothing.
        const at = hold[0] === 'usd_day' ? DAY : MONTH
        if (record[at] === hold[3]) shift(record, at + 1, costNanoUsd - hold[2])
      }
    }
  }

  /** Counts what a request spent that was let run while nobody could ask; of its own day and month. */
  charge(row: UsageRow, demands: readonly Demand[]): void {
    for (const demand of demands) {
      if (demand.kind !== 'usd_day' && demand.kind !== 'usd_month') continue
      const name = subjectName(row.accountId, demand)
      const record = this.record(name)
      const isDay = demand.kind === 'usd_day'
      const at = isDay ? DAY : MONTH
      const period = isDay ? dayOf(row.atMs) : monthOf(row.atMs)
      const known = record[at] ?? 0
      // A period that is over has been forgotten; one that nobody has spent in yet begins with this.
      if (period < known) continue
      if (period > known) {
        record[at] = period
        record[at + 1] = 0
      }
      shift(record, at + 1, row.costNanoUsd ?? demand.costNanoUsd)
      this.changed.add(name)
    }
  }

  /** Reads what the holds name, so that nothing can fail once the writing has begun. */
  read(holds: readonly Hold[]): void {
    for (const hold of holds) this.record(hold[1])
  }

  /** The same for what is demanded. */
  readAll(accountId: string, demands: readonly Demand[]): void {
    for (const demand of demands) this.record(subjectName(accountId, demand))
  }

  /** Puts what another ledger has counted, unless this one knows of a later day or month. */
  put({ accountId, kind, subject, period, nanoUsd }: BudgetSpent): void {
    const name = subjectName(accountId ?? '', { subject, shared: accountId === null })
    const record = this.record(name)
    const at = kind === 'usd_day' ? DAY : MONTH
    if ((record[at] ?? 0) > period) return
    record[at] = period
    record[at + 1] = nanoUsd
    this.changed.add(name)
  }

  /** Only inside a transaction, once. */
  write(): void {
    for (const name of this.changed) {
      const record = this.record(name)
      quietly(this.tables.subjects.put(name, Buffer.from(record.buffer)))
    }
  }

  /** What a reservation for these demands has to remember. */
  private holds(names: readonly string[], demands: readonly Demand[]): Hold[] {
    const holds: Hold[] = []
    demands.forEach((demand, at) => {
      const subject = names[at] ?? ''
      if (demand.kind === 'tokens') {
        holds.push(['tokens', subject, demand.cost, demand.perMinute])
      } else if (demand.kind === 'concurrent') {
        holds.push(['concurrent', subject])
      } else if (demand.kind === 'usd_day' || demand.kind === 'usd_month') {
        const period = this.record(subject)[demand.kind === 'usd_day' ? DAY : MONTH] ?? 0
        holds.push([demand.kind, subject, demand.costNanoUsd, period])
      }
    })
    return holds
  }

  private named(names: readonly string[], at: number): Float64Array {
    return this.record(names[at] ?? '')
  }

  private record(name: string): Float64Array {
    const known = this.records.get(name)
    if (known !== undefined) return known
    const record = readSubject(this.tables.subjects.get(name), name)
    this.records.set(name, record)
    return record
  }

  /** How the demand stands where `more` is taken besides what the record says. */
  private standing(record: Float64Array, demand: Demand, more: number): Standing {
    switch (demand.kind) {
      case 'requests':
      case 'tokens': {
        const at = demand.kind === 'requests' ? REQUESTS : TOKENS
        const elapsedMs = this.nowMs - (record[at + 1] ?? 0)
        const units = drained(record[at] ?? 0, elapsedMs, demand.perMinute) + more * UNITS
        return rateStanding(units, demand.perMinute, demand.cost)
      }
      case 'concurrent':
        return placeStanding((record[PLACES] ?? 0) + more, demand.limit)
      case 'usd_day':
      case 'usd_month':
        return this.budget(record, demand, more)
    }
  }

  /** Lets flow back what has by now; a clock that was set back starts anew from there. */
  private drain(record: Float64Array, at: number, perMinute: number): void {
    record[at] = drained(record[at] ?? 0, this.nowMs - (record[at + 1] ?? 0), perMinute)
    record[at + 1] = this.nowMs
  }

  private budget(record: Float64Array, demand: BudgetDemand, more: number): Standing {
    const isDay = demand.kind === 'usd_day'
    const at = isDay ? DAY : MONTH
    const period = isDay ? dayOf(this.nowMs) : monthOf(this.nowMs)
    // Never backwards: a clock that is set back over midnight would make a budget whole twice.
    if (period > (record[at] ?? 0)) {
      record[at] = period
      record[at + 1] = 0
    }
    const spent = (record[at + 1] ?? 0) + more
    const leftMs = isDay ? leftOfDay(this.nowMs) : leftOfMonth(this.nowMs)
    return budgetStanding(spent, demand.limitNanoUsd, demand.costNanoUsd, leftMs)
  }

  private apply(record: Float64Array, demand: Demand): void {
    switch (demand.kind) {
      case 'requests':
      case 'tokens': {
        const at = demand.kind === 'requests' ? REQUESTS : TOKENS
        this.drain(record, at, demand.perMinute)
        shift(record, at, demand.cost * UNITS)
        return
      }
      case 'concurrent':
        record[PLACES] = (record[PLACES] ?? 0) + 1
        return
      case 'usd_day':
      case 'usd_month':
        shift(record, demand.kind === 'usd_day' ? DAY_SPENT : MONTH_SPENT, demand.costNanoUsd)
    }
  }
}

/** What the record says was spent, by the name that `Subjects` gave it. */
export function spentOf(name: string, bytes: Buffer): BudgetSpent[] {
  const record = readSubject(bytes, name)
  const colon = name.indexOf(':')
  const end = colon + 1 + Number(name.slice(0, colon))
  const isShared = colon === 0
  const accountId = isShared ? null : name.slice(colon + 1, end)
  const subject = isShared ? name.slice(1) : name.slice(end + 1)
  const of = (kind: BudgetSpent['kind'], at: number): BudgetSpent => ({
    accountId,
    kind,
    subject,
    period: record[at] ?? 0,
    nanoUsd: record[at + 1] ?? 0,
  })
  return [of('usd_day', DAY), of('usd_month', MONTH)].filter(({ nanoUsd }) => nanoUsd > 0)
}

/** Whether nothing of the record can matter any more: no place taken, and a day without a request. */
export function isIdle(bytes: Buffer, nowMs: number): boolean {
  const record = readSubject(bytes, '')
  const [day, month] = [dayOf(nowMs), monthOf(nowMs)]
  const at = Math.max(record[REQUESTS_AT] ?? 0, record[TOKENS_AT] ?? 0)
  return (
    record[PLACES] === 0 &&
    ((record[DAY] ?? 0) < day || record[DAY_SPENT] === 0) &&
    ((record[MONTH] ?? 0) < month || record[MONTH_SPENT] === 0) &&
    dayOf(at) < day - 1
  )
}

/** What demands before this one take of the same; two rules of one subject both count. */
function ahead(names: readonly string[], demands: readonly Demand[], at: number): number {
  const own = demands[at]
  let sum = 0
  for (let before = 0; before < at; before += 1) {
    const demand = demands[before]
    if (demand === undefined || demand.kind !== own?.kind || names[before] !== names[at]) continue
    sum += demand.kind === 'concurrent' ? 1 : amountOf(demand)
  }
  return sum
}

function amountOf(demand: Exclude<Demand, SlotDemand>): number {
  return 'cost' in demand ? demand.cost : demand.costNanoUsd
}

/** The last place is taken, and this request has it. */
function met(standing: Standing): Standing {
  return standing.retryAfterMs === 0 ? standing : { ...standing, retryAfterMs: 0 }
}

/** The name of each demand's subject: one text for demands of one subject that follow one another. */
function subjectNames(accountId: string, demands: readonly Demand[]): string[] {
  const names: string[] = []
  let last: Demand | null = null
  for (const demand of demands) {
    const isSame = last?.subject === demand.subject && last.shared === demand.shared
    names.push(isSame ? (names.at(-1) ?? '') : subjectName(accountId, demand))
    last = demand
  }
  return names
}

/** An account's own subjects stand apart from everybody else's; a shared one is everybody's. */
function subjectName(accountId: string, demand: Pick<Demand, 'subject' | 'shared'>): string {
  const { subject, shared } = demand
  const name = shared ? `:${subject}` : `${accountId.length}:${accountId}:${subject}`
  if (name.length > MOST_NAMES)
    throw new Error(`a limit's subject is over ${MOST_NAMES} characters`)
  return name
}

function readSubject(bytes: Buffer | undefined, name: string): Float64Array {
  const record = new Float64Array(LENGTH)
  record[VERSION_AT] = VERSION
  if (bytes === undefined) return record
  if (bytes.length !== LENGTH * 8) throw damaged(`the limits of '${name}'`, 'its length is wrong')
  new Uint8Array(record.buffer).set(bytes)
  if (record[VERSION_AT] !== VERSION) {
    throw damaged(`the limits of '${name}'`, `its version is not ${VERSION}`)
  }
  return record
}

function shift(record: Float64Array, at: number, by: number): void {
  record[at] = Math.max(0, (record[at] ?? 0) + by)
}
