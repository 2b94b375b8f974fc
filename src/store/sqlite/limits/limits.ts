/**
 * What is taken of limits, in SQLite: the rows of `limits` as one transaction reads and changes them, with the
 * arithmetic that every engine shares (src/limits/bucket.ts).
 *
 * A row is read once in a transaction and written once, at its end. Rows stay in memory from one transaction to the
 * next as long as no other process has written limits: `meta` names the last that did, and it is read again when
 * another connection has written anything (`PRAGMA data_version`).
 */
import { randomUUID } from 'node:crypto'
import type { UsageRow } from '../../../ledger/row.js'
import { chargedNanoUsd } from '../../records/count-usage.js'
import { dayOf, monthOf, UNITS } from '../../../limits/bucket.js'
import type { BudgetSpent, Demand, Raise, LimitState } from '../../ledger.js'
import { textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import {
  accountOf,
  ahead,
  begin,
  budgetOf,
  drain,
  holdsOf,
  nameOf,
  periodOf,
  standingOf,
  subjectOf,
  type Hold,
  type Subject,
} from './counters.js'

/** Rows kept in memory. */
const MOST_ROWS = 20_000

/** What became of a request's demands; `subjects` are those of the demands, for `apply`. */
export interface Checked {
  readonly fits: boolean
  readonly standings: readonly LimitState[]
  readonly subjects: readonly Subject[]
  readonly holds: readonly Hold[]
}

/** Rows looked at in one step of pruning; other writes come in between. */
const PRUNED_AT_ONCE = 500
const DAY_MS = 86_400_000

const COLUMNS = `requests, requests_at_ms, tokens, tokens_at_ms, places, day, day_spent, day_reserved,
  month, month_spent, month_reserved`

/** The limits of a store. Its methods are for the inside of a transaction, except `look`. */
export class Limits {
  private readonly rows = new Map<string, Subject>()
  private readonly changed: Subject[] = []
  private readonly select: Statement
  private readonly insert: Statement
  private readonly update: Statement
  private readonly dataVersion: Statement
  private readonly getWriter: Statement
  private readonly putWriter: Statement
  private readonly engine: Engine
  /** This instance among all that have the file open. */
  private readonly writer = randomUUID()
  private isLastWriter = false
  private version: unknown = null

  constructor(engine: Engine) {
    this.engine = engine
    this.select = engine.prepare(
      `SELECT id, ${COLUMNS} FROM limits WHERE account_id = ? AND subject = ?`,
    )
    this.insert = engine.prepare(
      `INSERT INTO limits (account_id, subject, ${COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.update = engine.prepare(
      `UPDATE limits SET requests = ?, requests_at_ms = ?, tokens = ?, tokens_at_ms = ?, places = ?, day = ?,
         day_spent = ?, day_reserved = ?, month = ?, month_spent = ?, month_reserved = ? WHERE id = ?`,
    )
    this.getWriter = engine.prepare("SELECT value FROM meta WHERE name = 'limits_writer'")
    this.putWriter = engine.prepare(
      "INSERT OR REPLACE INTO meta (name, value) VALUES ('limits_writer', ?)",
    )
    this.dataVersion = engine.prepare('PRAGMA data_version')
    engine.hook({
      begun: () => this.begun(),
      committing: () => this.flush(),
      rolledBack: () => this.forget(),
    })
  }

  /** Whether all demands can be met, and how each stands. KeyChanges nothing. */
  check(accountId: string, demands: readonly Demand[], nowMs: number): Checked {
    const subjects = demands.map((demand) =>
      this.subject(accountOf(accountId, demand), demand.subject),
    )
    const standings = demands.map((demand, at) => {
      const more = ahead(subjects, demands, at)
      const untouched = standingOf(subjects[at], demand, 0, nowMs)
      if (more === 0) return untouched
      const { retryAfterMs } = standingOf(subjects[at], demand, more, nowMs)
      // What the demands before it in the same request would have taken is not taken.
      return untouched.retryAfterMs === retryAfterMs ? untouched : { ...untouched, retryAfterMs }
    })
    const fits = standings.every(({ retryAfterMs }) => retryAfterMs === 0)
    const holds = fits ? holdsOf(accountId, demands, subjects, nowMs) : []
    return { fits, standings, subjects, holds }
  }

  /** Takes what was checked; how each demand stands then. */
  apply({ subjects }: Checked, demands: readonly Demand[], nowMs: number): LimitState[] {
    demands.forEach((demand, at) => {
      const subject = this.change(subjects[at])
      switch (demand.kind) {
        case 'requests':
        case 'tokens':
          drain(subject[demand.kind], demand.perMinute, nowMs)
          subject[demand.kind].units += demand.cost * UNITS
          return
        case 'concurrent':
          subject.places += 1
          return
        case 'usd_day':
        case 'usd_month': {
          const budget = budgetOf(subject, demand.kind)
          begin(budget, periodOf(demand.kind, nowMs))
          budget.spent += demand.costNanoUsd
          budget.reserved += demand.costNanoUsd
          return
        }
        default:
          demand satisfies never
      }
    })
    return demands.map((demand, at) => {
      const standing = standingOf(subjects[at], demand, 0, nowMs)
      // The last place is taken, and this request has it.
      return standing.retryAfterMs === 0 ? standing : { ...standing, retryAfterMs: 0 }
    })
  }

  /** How the demands stand, each for itself, as committed. */
  look(accountId: string, demands: readonly Demand[], nowMs: number): LimitState[] {
    return demands.map((demand) => {
      const subject = this.read(accountOf(accountId, demand), demand.subject)
      return standingOf(subject, demand, 0, nowMs)
    })
  }

  /** Replaces what was reserved by what was used; null is unknown, and the reservation stands as charged. */
  release(
    holds: readonly Hold[],
    used: { readonly tokens: number | null; readonly nanoUsd: number | null },
    nowMs: number,
  ): void {
    for (const hold of holds) {
      const subject = this.change(this.subject(hold[1], hold[2]))
      if (hold[0] === 'concurrent') {
        subject.places = Math.max(0, subject.places - 1)
      } else if (hold[0] === 'tokens') {
        if (used.tokens === null) continue
        drain(subject.tokens, hold[4], nowMs)
        subject.tokens.units = Math.max(0, subject.tokens.units + (used.tokens - hold[3]) * UNITS)
      } else {
        const budget = budgetOf(subject, hold[0])
        // A day or month that is over has been forgotten, and the new one owes it nothing.
        if (budget.period !== hold[4]) continue
        budget.reserved = Math.max(0, budget.reserved - hold[3])
        if (used.nanoUsd !== null) {
          budget.spent = Math.max(0, budget.spent + used.nanoUsd - hold[3])
        }
      }
    }
  }

  /** Takes all demands without a reservation, or none: then null. */
  raise(accountId: string, demands: Raise['demands'], nowMs: number): Raise | null {
    const checked = this.check(accountId, demands, nowMs)
    if (!checked.fits) return null
    this.apply(checked, demands, nowMs)
    return { demands, day: dayOf(nowMs), month: monthOf(nowMs) }
  }

  /** Gives back what `raise` took. */
  lower(accountId: string, { demands, day, month }: Raise, nowMs: number): void {
    const holds = demands.map((demand): Hold => {
      const account = accountOf(accountId, demand)
      const { subject } = demand
      if ('cost' in demand) return ['tokens', account, subject, demand.cost, demand.perMinute]
      const period = demand.kind === 'usd_day' ? day : month
      return [demand.kind, account, subject, demand.costNanoUsd, period]
    })
    this.release(holds, { tokens: 0, nanoUsd: 0 }, nowMs)
  }

  /** Charges budgets, of the request's own day and month, for what ran without a reservation. */
  charge(row: UsageRow, demands: readonly Demand[]): void {
    for (const demand of demands) {
      if (demand.kind !== 'usd_day' && demand.kind !== 'usd_month') continue
      const subject = this.change(this.subject(accountOf(row.accountId, demand), demand.subject))
      const budget = budgetOf(subject, demand.kind)
      const period = periodOf(demand.kind, row.atMs)
      if (period < budget.period) continue
      begin(budget, period)
      budget.spent += chargedNanoUsd(row) ?? demand.costNanoUsd
    }
  }

  /** Puts what another ledger has counted, unless this one has a later day or month. */
  put({ accountId, kind, subject, period, nanoUsd }: BudgetSpent): void {
    const row = this.change(this.subject(accountId ?? '', subject))
    const budget = budgetOf(row, kind)
    if (budget.period > period) return
    Object.assign(budget, { period, spent: nanoUsd, reserved: 0 })
  }

  /** Removes what no limit needs any more: nothing is held or spent, and it was not used for a day. */
  async prune(nowMs: number): Promise<void> {
    const page = this.engine.prepare(
      `SELECT account_id, subject, places = 0 AND (day < ? OR day_spent = 0)
         AND (month < ? OR month_spent = 0) AND max(requests_at_ms, tokens_at_ms) < ? AS is_idle
       FROM limits WHERE (account_id, subject) > (?, ?) ORDER BY account_id, subject LIMIT ?`,
    )
    const remove = this.engine.prepare('DELETE FROM limits WHERE account_id = ? AND subject = ?')
    const idle = [dayOf(nowMs), monthOf(nowMs), nowMs - DAY_MS] as const
    for (let after: [string, string] | null = ['', '']; after !== null;) {
      const from: [string, string] = after
      after = await this.engine.write('pruning limits', () => {
        const rows = page.all(...idle, ...from, PRUNED_AT_ONCE)
        for (const row of rows) {
          if (row['is_idle'] !== 1) continue
          this.claim()
          const [account, subject] = [textIn(row, 'account_id'), textIn(row, 'subject')]
          remove.run(account, subject)
          this.rows.delete(nameOf({ account, subject }))
        }
        const last = rows.length < PRUNED_AT_ONCE ? undefined : rows.at(-1)
        return last === undefined ? null : [textIn(last, 'account_id'), textIn(last, 'subject')]
      })
    }
  }

  private begun(): void {
    const version = this.dataVersion.get()?.['data_version'] ?? null
    if (version !== this.version) {
      this.version = version
      // The thread of this process writes, too, but no limits.
      this.isLastWriter = this.getWriter.get()?.['value'] === this.writer
      if (!this.isLastWriter) this.rows.clear()
    }
    if (this.rows.size > MOST_ROWS) this.rows.clear()
  }

  private flush(): void {
    if (this.changed.length === 0) return
    this.claim()
    for (const row of this.changed.splice(0)) {
      const { requests, tokens, places, day, month } = row
      const rates = [requests.units, requests.atMs, tokens.units, tokens.atMs] as const
      const budgets = [
        day.period,
        day.spent,
        day.reserved,
        month.period,
        month.spent,
        month.reserved,
      ]
      row.isChanged = false
      if (row.id === null) {
        const added = this.insert.run(row.account, row.subject, ...rates, places, ...budgets)
        row.id = Number(added.lastInsertRowid)
      } else {
        // `get` makes no object of what has changed.
        this.update.get(...rates, places, ...budgets, row.id)
      }
    }
  }

  /** Makes other processes read the rows again. */
  private claim(): void {
    if (this.isLastWriter) return
    this.putWriter.run(this.writer)
    this.isLastWriter = true
  }

  private forget(): void {
    this.rows.clear()
    this.version = null
    this.changed.length = 0
  }

  private subject(account: string, subject: string): Subject {
    const name = nameOf({ account, subject })
    const held = this.rows.get(name)
    if (held !== undefined) return held
    const read = this.read(account, subject)
    this.rows.set(name, read)
    return read
  }

  private read(account: string, subject: string): Subject {
    return subjectOf(account, subject, this.select.get(account, subject))
  }

  private change(subject: Subject | undefined): Subject {
    if (subject === undefined) throw new Error('a demand without a subject')
    if (!subject.isChanged) {
      subject.isChanged = true
      this.changed.push(subject)
    }
    return subject
  }
}
