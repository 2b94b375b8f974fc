/**
 * The arithmetic of limits for one transaction of the embedded engine: what demands ask of their subjects'
 * records, and what a reservation gives back. Knows no reservation.
 */
import {
  budgetStanding,
  dayOf,
  drained,
  leftOfDay,
  leftOfMonth,
  monthOf,
  placeStanding,
  rateFits,
  rateStanding,
  UNITS,
} from '../limits/bucket.js'
import type { UsageRow } from '../ledger/row.js'
import type {
  BudgetDemand,
  BudgetSpent,
  Demand,
  RateDemand,
  SlotDemand,
  Standing,
} from './ledger.js'
import type { LedgerTables } from './lmdb-ledger-tables.js'
import { PLACE_OF, readLimits, subjectName, type Hold } from './lmdb-limits.js'
import type { Recent, Subject } from './lmdb-recent.js'

const REQUESTS = PLACE_OF.requests
const TOKENS = PLACE_OF.tokens
const PLACES = PLACE_OF.places
const DAY = PLACE_OF.day
const MONTH = PLACE_OF.month

/** What became of a request's demands. */
interface Taken {
  readonly taken: boolean
  readonly standings: Standing[]
  /** What a reservation has to remember. */
  readonly holds: readonly Hold[]
}

/** A day or month of the calendar that a time is in. */
interface Period {
  readonly number: number
  readonly leftMs: number
}

/** Subjects as one transaction sees and changes them. */
export class Subjects {
  private readonly tables: LedgerTables
  private readonly recent: Recent
  private readonly nowMs: number
  private readonly day: Period
  private readonly month: Period

  constructor(tables: LedgerTables, recent: Recent, nowMs: number) {
    this.tables = tables
    this.recent = recent
    this.nowMs = nowMs
    this.day = { number: dayOf(nowMs), leftMs: leftOfDay(nowMs) }
    this.month = { number: monthOf(nowMs), leftMs: leftOfMonth(nowMs) }
  }

  /** Takes what every demand asks, or nothing; then the standings say which demand was not met. */
  take(accountId: string, demands: readonly Demand[]): Taken {
    const subjects = this.subjectsOf(accountId, demands)
    const of = (at: number) => recordOf(subjects[at])
    if (!this.fitAll(subjects, demands)) {
      // What the demands before it in the same request would have taken is not taken.
      const standings = demands.map((demand, at) => {
        const more = ahead(subjects, demands, at)
        const { retryAfterMs } = this.standing(of(at), demand, more)
        const untouched = this.standing(of(at), demand, 0)
        return untouched.retryAfterMs === retryAfterMs ? untouched : { ...untouched, retryAfterMs }
      })
      return { taken: false, standings, holds: [] }
    }
    for (const subject of subjects) this.recent.change(subject)
    demands.forEach((demand, at) => this.apply(of(at), demand))
    return {
      taken: true,
      standings: demands.map((demand, at) => met(this.standing(of(at), demand, 0))),
      holds: holdsOf(subjects, demands),
    }
  }

  /** How the demands stand, each for itself. */
  look(accountId: string, demands: readonly Demand[]): Standing[] {
    return demands.map((demand) => {
      const record = this.recent.look(this.tables, subjectName(accountId, demand))
      return this.standing(record, demand, 0)
    })
  }

  /** What the holds name; it is read before anything is written, since it may be damaged. */
  held(holds: readonly Hold[]): Subject[] {
    const subjects: Subject[] = []
    let last: Subject | null = null
    for (const [, name] of holds) {
      if (last?.name !== name) last = this.recent.subject(this.tables, name)
      subjects.push(last)
    }
    return subjects
  }

  /**
   * Replaces what was reserved by what was used; null is not known, and what is reserved stands. `subjects` is what
   * `held` gave for the holds.
   */
  release(
    subjects: readonly Subject[],
    holds: readonly Hold[],
    usedTokens: number | null,
    costNanoUsd: number | null,
  ): void {
    for (const [at, hold] of holds.entries()) {
      const subject = subjects[at]
      if (subject === undefined) continue
      this.recent.change(subject)
      const { record } = subject
      if (hold[0] === 'concurrent') {
        record[PLACES] = Math.max(0, (record[PLACES] ?? 0) - 1)
      } else if (hold[0] === 'tokens') {
        if (usedTokens === null) continue
        this.drain(record, TOKENS, hold[3])
        shift(record, TOKENS, (usedTokens - hold[2]) * UNITS)
      } else {
        // A period that is over has been forgotten, and the new one owes it nothing.
        const place = hold[0] === 'usd_day' ? DAY : MONTH
        if (record[place] !== hold[3]) continue
        shift(record, reservedAt(place), -hold[2])
        if (costNanoUsd !== null) shift(record, place + 1, costNanoUsd - hold[2])
      }
    }
  }

  /** Counts what a request spent that was let run while nobody could ask; of its own day and month. */
  charge(row: UsageRow, demands: readonly Demand[]): void {
    for (const demand of demands) {
      if (demand.kind !== 'usd_day' && demand.kind !== 'usd_month') continue
      const { record } = this.changing(subjectName(row.accountId, demand))
      const isDay = demand.kind === 'usd_day'
      const at = isDay ? DAY : MONTH
      const period = isDay ? dayOf(row.atMs) : monthOf(row.atMs)
      // A period that is over has been forgotten; one that nobody has spent in yet begins with this.
      if (period < (record[at] ?? 0)) continue
      if (isOver(record, at, period)) begin(record, at, period)
      shift(record, at + 1, row.costNanoUsd ?? demand.costNanoUsd)
    }
  }

  /** Reads what is demanded of, so that nothing can fail once the writing has begun. */
  readAll(accountId: string, demands: readonly Demand[]): void {
    this.subjectsOf(accountId, demands)
  }

  /** Puts what another ledger has counted, unless this one knows of a later day or month. */
  put({ accountId, kind, subject, period, nanoUsd }: BudgetSpent): void {
    const name = subjectName(accountId ?? '', { subject, shared: accountId === null })
    const { record } = this.changing(name)
    const at = kind === 'usd_day' ? DAY : MONTH
    if ((record[at] ?? 0) > period) return
    begin(record, at, period)
    record[at + 1] = nanoUsd
  }

  /** Each demand's subject; named once for demands of one subject that follow one another. */
  private subjectsOf(accountId: string, demands: readonly Demand[]): Subject[] {
    const subjects: Subject[] = []
    let last: Demand | null = null
    for (const demand of demands) {
      const isSame = last?.subject === demand.subject && last.shared === demand.shared
      const before = isSame ? subjects.at(-1) : undefined
      subjects.push(before ?? this.recent.asked(this.tables, accountId, demand))
      last = demand
    }
    return subjects
  }

  private changing(name: string): Subject {
    const subject = this.recent.subject(this.tables, name)
    this.recent.change(subject)
    return subject
  }

  private fitAll(subjects: readonly Subject[], demands: readonly Demand[]): boolean {
    return demands.every((demand, at) =>
      this.fits(recordOf(subjects[at]), demand, ahead(subjects, demands, at)),
    )
  }

  /** Whether the demand is met where `more` is taken besides what the record says. */
  private fits(record: Float64Array, demand: Demand, more: number): boolean {
    switch (demand.kind) {
      case 'requests':
      case 'tokens':
        return rateFits(this.units(record, demand, more), demand.perMinute, demand.cost)
      case 'concurrent':
        return (record[PLACES] ?? 0) + more < demand.limit
      case 'usd_day':
      case 'usd_month':
        return this.budget(record, demand, more).retryAfterMs === 0
    }
  }

  /** How the demand stands where `more` is taken besides what the record says. */
  private standing(record: Float64Array, demand: Demand, more: number): Standing {
    switch (demand.kind) {
      case 'requests':
      case 'tokens':
        return rateStanding(this.units(record, demand, more), demand.perMinute, demand.cost)
      case 'concurrent':
        return placeStanding((record[PLACES] ?? 0) + more, demand.limit)
      case 'usd_day':
      case 'usd_month':
        return this.budget(record, demand, more)
    }
  }

  private units(record: Float64Array, { kind, perMinute }: RateDemand, more: number): number {
    const at = kind === 'requests' ? REQUESTS : TOKENS
    const elapsedMs = this.nowMs - (record[at + 1] ?? 0)
    return drained(record[at] ?? 0, elapsedMs, perMinute) + more * UNITS
  }

  /** Lets flow back what has by now; a clock that was set back starts anew from there. */
  private drain(record: Float64Array, at: number, perMinute: number): void {
    record[at] = drained(record[at] ?? 0, this.nowMs - (record[at + 1] ?? 0), perMinute)
    record[at + 1] = this.nowMs
  }

  private budget(record: Float64Array, demand: BudgetDemand, more: number): Standing {
    const isDay = demand.kind === 'usd_day'
    const at = isDay ? DAY : MONTH
    const { number, leftMs } = isDay ? this.day : this.month
    const { limitNanoUsd, costNanoUsd } = demand
    if (isOver(record, at, number))
      return budgetStanding(more, 0, limitNanoUsd, costNanoUsd, leftMs)
    const [spent, reserved] = [record[at + 1] ?? 0, record[reservedAt(at)] ?? 0]
    return budgetStanding(spent + more, reserved, limitNanoUsd, costNanoUsd, leftMs)
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
      case 'usd_month': {
        const isDay = demand.kind === 'usd_day'
        const at = isDay ? DAY : MONTH
        const { number } = isDay ? this.day : this.month
        if (isOver(record, at, number)) begin(record, at, number)
        shift(record, at + 1, demand.costNanoUsd)
        shift(record, reservedAt(at), demand.costNanoUsd)
      }
    }
  }
}

/** Whether nothing of the record can matter any more: no place taken, and a day without a request. */
export function isIdle(bytes: Buffer, nowMs: number): boolean {
  const record = readLimits(bytes, '')
  const of = (name: keyof typeof PLACE_OF) => record[PLACE_OF[name]] ?? 0
  const [day, month] = [dayOf(nowMs), monthOf(nowMs)]
  return (
    of('places') === 0 &&
    (of('day') < day || of('daySpent') === 0) &&
    (of('month') < month || of('monthSpent') === 0) &&
    dayOf(Math.max(of('requestsAt'), of('tokensAt'))) < day - 1
  )
}

/** What demands before this one take of the same; two rules of one subject both count. */
function ahead(subjects: readonly Subject[], demands: readonly Demand[], at: number): number {
  const own = demands[at]
  let sum = 0
  for (let before = 0; before < at; before += 1) {
    const demand = demands[before]
    if (demand === undefined || demand.kind !== own?.kind) continue
    if (subjects[before] !== subjects[at]) continue
    sum += demand.kind === 'concurrent' ? 1 : amountOf(demand)
  }
  return sum
}

function amountOf(demand: Exclude<Demand, SlotDemand>): number {
  return 'cost' in demand ? demand.cost : demand.costNanoUsd
}

/** What a reservation for these demands has to remember. */
function holdsOf(subjects: readonly Subject[], demands: readonly Demand[]): Hold[] {
  const holds: Hold[] = []
  demands.forEach((demand, at) => {
    const subject = subjects[at]
    if (subject === undefined) return
    const { name } = subject
    if (demand.kind === 'tokens') {
      holds.push(['tokens', name, demand.cost, demand.perMinute])
    } else if (demand.kind === 'concurrent') {
      holds.push(['concurrent', name])
    } else if (demand.kind === 'usd_day' || demand.kind === 'usd_month') {
      const period = subject.record[demand.kind === 'usd_day' ? DAY : MONTH] ?? 0
      holds.push([demand.kind, name, demand.costNanoUsd, period])
    }
  })
  return holds
}

/**
 * Whether the day or month that a record counts is before this one. Never the other way: a clock that is set back
 * over midnight would make a budget whole twice.
 */
function isOver(record: Float64Array, at: number, period: number): boolean {
  return period > (record[at] ?? 0)
}

function begin(record: Float64Array, at: typeof DAY | typeof MONTH, period: number): void {
  record[at] = period
  record[at + 1] = 0
  record[reservedAt(at)] = 0
}

/** Where it stands how much of what the day or month has spent is reserved. */
function reservedAt(at: typeof DAY | typeof MONTH): number {
  return at === DAY ? PLACE_OF.dayReserved : PLACE_OF.monthReserved
}

/** The last place is taken, and this request has it. */
function met(standing: Standing): Standing {
  return standing.retryAfterMs === 0 ? standing : { ...standing, retryAfterMs: 0 }
}

function recordOf(subject: Subject | undefined): Float64Array {
  if (subject === undefined) throw new Error('a demand without a subject')
  return subject.record
}

function shift(record: Float64Array, at: number, by: number): void {
  record[at] = Math.max(0, (record[at] ?? 0) + by)
}
