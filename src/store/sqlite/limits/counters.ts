/** The counters of one subject: a row of `limits`. `limits.ts` computes with them. */
import { randomUUID } from 'node:crypto'
import type { Demand, RateDemand } from '../../ledger.js'
import { isUnitRate, type UnitRateKind, type WindowKind } from '../../../base/limit-members.js'
import { numberIn, type Row, type Statement, type Value } from '../driver.js'
import type { Engine } from '../engine.js'
import { othersIn, othersText, type Begun, type Budget, type Rate } from './window-counters.js'

/** A row of `limits` in memory. */
export interface Counters {
  /** The row's number; null if it is not written yet. */
  id: number | null
  /** Empty for a subject that accounts share. */
  readonly accountId: string
  readonly subject: string
  readonly requests: Rate
  readonly tokens: Rate
  slots: number
  readonly day: Budget
  readonly week: Budget
  readonly month: Budget
  /** The kinds without columns of their own; null: none was used. */
  others: Map<WindowKind, Budget> | null
  /** The rates of units; null: none was used. */
  rates: Map<UnitRateKind, Rate> | null
  /** Until when amounts that never reset are kept without requests, ms since 1970; 0: without end. */
  keptUntilMs: number
  isChanged: boolean
  /** False once another process may have changed the row: it must be read again. */
  isCurrent: boolean
}

/** The account that a demand is counted for; empty if accounts share the limit. */
export function accountOf(accountId: string, { shared }: Pick<Demand, 'shared'>): string {
  return shared ? '' : accountId
}

/** The counters in a row, or counters of which nothing is taken. */
export function countersIn(accountId: string, subject: string, row: Row | undefined): Counters {
  const of = (name: string) => (row === undefined ? 0 : numberIn(row, name))
  const { budgets, rates, begun } =
    row === undefined ? { budgets: null, rates: null, begun: null } : othersIn(row)
  const budget = (name: string): Budget => {
    const figures = { period: of(name), spent: of(`${name}_spent`), reserved: of(`${name}_reserved`) }
    return { ...figures, begun: begun?.get(`usd_${name}`) }
  }
  return {
    id: row === undefined ? null : numberIn(row, 'id'),
    accountId,
    subject,
    requests: { units: of('requests'), atMs: of('requests_at_ms') },
    tokens: { units: of('tokens'), atMs: of('tokens_at_ms') },
    slots: of('places'),
    day: budget('day'),
    week: budget('week'),
    month: budget('month'),
    others: budgets,
    rates,
    keptUntilMs: of('kept_until_ms'),
    isChanged: false,
    isCurrent: true,
  }
}

/** The counter of a budget or quota. */
export function budgetOf(counters: Counters, kind: WindowKind): Budget {
  switch (kind) {
    case 'usd_day':
      return counters.day
    case 'usd_week':
      return counters.week
    case 'usd_month':
      return counters.month
    default: {
      const others = (counters.others ??= new Map<WindowKind, Budget>())
      const known = others.get(kind)
      if (known !== undefined) return known
      const unused = { period: 0, spent: 0, reserved: 0 }
      others.set(kind, unused)
      return unused
    }
  }
}

/** The counter of a rate. */
export function rateOf(counters: Counters, kind: RateDemand['kind']): Rate {
  if (!isUnitRate(kind)) return counters[kind]
  const rates = (counters.rates ??= new Map<UnitRateKind, Rate>())
  const known = rates.get(kind)
  if (known !== undefined) return known
  const unused = { units: 0, atMs: 0 }
  rates.set(kind, unused)
  return unused
}

/**
 * Starts a new period with a request that arrived at a time; never an earlier one, so that a clock that is
 * set back does not refill a budget. One that counted in the period before counts the whole period.
 */
export function startPeriod(budget: Budget, period: number, arrivedMs: number): void {
  if (period <= budget.period) return
  const goesOn = budget.period > 0 && budget.period === period - 1
  const begun: Begun = { begunMs: arrivedMs, sinceMs: goesOn ? 0 : arrivedMs, added: 0 }
  Object.assign(budget, { period, spent: 0, reserved: 0, begun })
}

/** Rows kept in memory. */
const MOST_ROWS = 20_000

const COLUMNS = `requests, requests_at_ms, tokens, tokens_at_ms, places, day, day_spent, day_reserved,
  week, week_spent, week_reserved, month, month_spent, month_reserved, others, kept_until_ms`

/** Reads the row of a subject (`countersIn`). */
export const SELECT_COUNTERS = `SELECT id, ${COLUMNS} FROM limits WHERE account_id = ? AND subject = ?`
/** Writes the values of `valuesOf` into the row with an id. */
export const UPDATE_COUNTERS = `UPDATE limits SET requests = ?, requests_at_ms = ?, tokens = ?, tokens_at_ms = ?,
  places = ?, day = ?, day_spent = ?, day_reserved = ?, week = ?, week_spent = ?, week_reserved = ?, month = ?,
  month_spent = ?, month_reserved = ?, others = ?, kept_until_ms = ? WHERE id = ?`

/** The values of the row, in the order of its columns. */
export function valuesOf(counters: Counters): Value[] {
  const { requests, tokens, slots, day, week, month, others, rates, keptUntilMs } = counters
  const placed = [['usd_day', day] as const, ['usd_week', week] as const, ['usd_month', month] as const]
  return [
    ...[requests.units, requests.atMs, tokens.units, tokens.atMs, slots],
    ...[day.period, day.spent, day.reserved, week.period, week.spent, week.reserved],
    ...[
      month.period,
      month.spent,
      month.reserved,
      othersText({ budgets: others, rates }, placed),
      keptUntilMs,
    ],
  ]
}

/**
 * The rows of one store. Its methods are for the inside of a transaction, except `read`.
 *
 * The rows of `limits` as transactions read and change them: a row is read once, changed in memory and
 * written once, at the end of the transaction.
 *
 * Rows stay in memory from one transaction to the next while no other process writes limits: `meta` names the
 * process that wrote limits last, and is read again when another connection has written (`PRAGMA
 * data_version`).
 */
export class CounterRows {
  /** By account, then by subject. */
  private readonly accounts = new Map<string, Map<string, Counters>>()
  private readonly changed: Counters[] = []
  private readonly select: Statement
  private readonly insert: Statement
  private readonly update: Statement
  private readonly dataVersion: Statement
  private readonly getWriter: Statement
  private readonly putWriter: Statement
  /** This instance among all that have the file open. */
  private readonly writer = randomUUID()
  private size = 0
  private isLastWriter = false
  private version: unknown = null

  constructor(engine: Engine) {
    this.select = engine.prepare(SELECT_COUNTERS)
    this.insert = engine.prepare(
      `INSERT INTO limits (account_id, subject, ${COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.update = engine.prepare(UPDATE_COUNTERS)
    this.getWriter = engine.prepare("SELECT value FROM meta WHERE name = 'limits_writer'")
    this.putWriter = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('limits_writer', ?)")
    this.dataVersion = engine.prepare('PRAGMA data_version')
    engine.hook({
      begun: () => this.dropStale(),
      committing: () => this.flush(),
      rolledBack: () => this.undo(),
    })
  }

  /** The counters of a subject, from memory or from the file. */
  find(accountId: string, subject: string): Counters {
    let subjects = this.accounts.get(accountId)
    if (subjects === undefined) {
      subjects = new Map<string, Counters>()
      this.accounts.set(accountId, subjects)
    }
    const found = subjects.get(subject)
    if (found !== undefined) return found
    const read = this.read(accountId, subject)
    subjects.set(subject, read)
    this.size += 1
    return read
  }

  /** The counters of a subject as committed. */
  read(accountId: string, subject: string): Counters {
    return countersIn(accountId, subject, this.select.get(accountId, subject))
  }

  /** Writes the counters at the end of the transaction. Call it before they are changed. */
  change(counters: Counters): void {
    if (counters.isChanged) return
    counters.isChanged = true
    this.changed.push(counters)
  }

  /** Drops counters whose row this transaction removes. */
  forget(accountId: string, subject: string): void {
    this.claim()
    const subjects = this.accounts.get(accountId)
    const counters = subjects?.get(subject)
    if (subjects === undefined || counters === undefined) return
    counters.isCurrent = false
    subjects.delete(subject)
    this.size -= 1
  }

  private dropStale(): void {
    const version = this.dataVersion.get()?.['data_version'] ?? null
    if (version !== this.version) {
      this.version = version
      // The background thread of this process writes, too, but not these rows.
      this.isLastWriter = this.getWriter.get()?.['value'] === this.writer
      if (!this.isLastWriter) this.clear()
    }
    if (this.size > MOST_ROWS) this.clear()
  }

  private flush(): void {
    if (this.changed.length === 0) return
    this.claim()
    for (const counters of this.changed) {
      const { id } = counters
      counters.isChanged = false
      if (id === null) {
        const { accountId, subject } = counters
        const added = this.insert.run(accountId, subject, ...valuesOf(counters))
        counters.id = Number(added.lastInsertRowid)
      } else {
        // `get` makes no object with the number of changes.
        this.update.get(...valuesOf(counters), id)
      }
    }
    this.changed.length = 0
  }

  /** Makes other processes read the rows again. */
  private claim(): void {
    if (this.isLastWriter) return
    this.putWriter.run(this.writer)
    this.isLastWriter = true
  }

  private undo(): void {
    this.clear()
    this.version = null
    this.changed.length = 0
  }

  private clear(): void {
    for (const subjects of this.accounts.values()) {
      for (const counters of subjects.values()) counters.isCurrent = false
    }
    this.accounts.clear()
    this.size = 0
  }
}
