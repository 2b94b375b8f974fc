/**
 * Limits, reservations and ledger entries in SQLite: every admission and settlement of one turn of the event
 * loop shares one transaction (transactions.ts), in which their arithmetic runs, so that limits hold across processes.
 */
import type { UsageRow } from '../../../ledger/row.js'
import type {
  Admission,
  BudgetSpent,
  Reservation,
  Demand,
  KeyUse,
  KeyUseQuery,
  Ledger,
  Raise,
  Retention,
  EntryPage,
  EntryQuery,
  SettleOutcome,
  LimitState,
  SumQuery,
  UsageSum,
  AdmissionResult,
} from '../../ledger.js'
import { readEntry } from '../../records/read-entry.js'
import { writeEntry } from '../../records/write-entry.js'
import { chargedNanoUsd, usedTokens } from '../../records/count-usage.js'
import { textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { entryIn, INSERT_ENTRY, valuesOf } from './entry.js'
import { holdsIn, isWhole } from '../limits/reservations.js'
import { Limits } from '../limits/limits.js'
import type { Hold } from '../limits/counters.js'
import { intact, isName } from '../read-records.js'
import { BUCKET_MS } from './sum-columns.js'
import type { Pruned } from './roll-up.js'
import type { ExportPlace } from './read-entries.js'

/** Reservations settled, prolonged or looked at in one step; other writes come in between. */
const BATCH = 64
/** Reservations that are looked for at once; the rest is found the next time. */
const MOST_DUE = 10_000

/** The ledger of a store. */
export class SqliteLedger implements Ledger {
  private readonly engine: Engine
  private readonly nowMs: () => number
  private readonly daysBeforeMs = () => this.nowMs() - BUCKET_MS.hour
  private readonly limits: Limits
  private readonly insertEntry: Statement
  private readonly entryOf: Statement
  private readonly hasEntry: Statement
  private readonly reserve: Statement
  private readonly isReserved: Statement
  private readonly unreserve: Statement
  private readonly holdsOf: Statement
  /** Holds of requests that this process admitted and has not settled, so that their rows need not be read. */
  private readonly held = new Map<string, readonly Hold[]>()
  private readonly reservation: Statement
  private readonly prolong: Statement
  private readonly due: Statement
  private readonly touch: Statement

  constructor(engine: Engine, nowMs: () => number) {
    this.engine = engine
    this.nowMs = nowMs
    this.limits = new Limits(engine)
    this.insertEntry = engine.prepare(INSERT_ENTRY)
    this.entryOf = engine.prepare('SELECT * FROM ledger_entries WHERE request_id = ?')
    this.hasEntry = engine.prepare('SELECT 1 FROM ledger_entries WHERE request_id = ?')
    this.reserve = engine.prepare(
      `INSERT INTO reservations (request_id, until_ms, holds, entry) SELECT ?1, ?2, ?3, ?4
       WHERE NOT EXISTS (SELECT 1 FROM ledger_entries WHERE request_id = ?1)
       ON CONFLICT (request_id) DO NOTHING`,
    )
    this.isReserved = engine.prepare('SELECT 1 FROM reservations WHERE request_id = ?')
    this.unreserve = engine.prepare('DELETE FROM reservations WHERE request_id = ?')
    this.holdsOf = engine.prepare('SELECT holds FROM reservations WHERE request_id = ?')
    this.reservation = engine.prepare(
      'SELECT holds, entry FROM reservations WHERE request_id = ? AND until_ms <= ?',
    )
    this.prolong = engine.prepare(
      'UPDATE reservations SET until_ms = ? WHERE request_id = ? AND until_ms > ?',
    )
    this.touch = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('proof', ?)")
    this.due = engine.prepare(
      'SELECT request_id FROM reservations WHERE until_ms <= ? ORDER BY until_ms LIMIT ?',
    )
  }

  async admit(admission: Admission): Promise<AdmissionResult> {
    try {
      return await this.engine.write('admitting a request', () => {
        const nowMs = this.nowMs()
        const verdict = this.tryToAdmit(admission, nowMs)
        if (verdict.admitted || !admission.demands.some(({ kind }) => kind === 'concurrent')) {
          return verdict
        }
        // A process that died does not hold its places any longer than its leases last.
        return this.freePlaces(nowMs) > 0 ? this.tryToAdmit(admission, nowMs) : verdict
      })
    } catch (error) {
      this.held.delete(admission.requestId)
      throw error
    }
  }

  settle(row: UsageRow, claim?: Reservation): Promise<SettleOutcome> {
    return this.engine.write('settling a request', () => this.settleNow(row, claim))
  }

  async append(row: UsageRow): Promise<void> {
    await this.engine.write('settling a request', () => this.settleNow(row))
  }

  raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    return this.engine.write('raising a reservation', () =>
      this.limits.raise(accountId, demands, this.nowMs()),
    )
  }

  async lower(accountId: string, raise: Raise): Promise<void> {
    await this.engine.write('lowering a reservation', () =>
      this.limits.lower(accountId, raise, this.nowMs()),
    )
  }

  async renew(
    requests: readonly { requestId: string; accountId: string }[],
    leaseMs: number,
  ): Promise<void> {
    for (let from = 0; from < requests.length; from += BATCH) {
      await this.engine.write('prolonging reservations', () => {
        const nowMs = this.nowMs()
        for (const { requestId } of requests.slice(from, from + BATCH)) {
          // What has run out may have lost its place to another request already.
          this.prolong.run(nowMs + leaseMs, requestId, nowMs)
        }
      })
    }
  }

  async expire(overdueMs = 0): Promise<number> {
    const latestMs = this.nowMs() - overdueMs
    const due = this.engine.readNow('looking for reservations that have run out', () =>
      this.due.all(latestMs, MOST_DUE).map((row) => textIn(row, 'request_id')),
    )
    // Whoever asks takes the answer for proof that the store can be written.
    await this.engine.write('proving that it can be written', () =>
      this.touch.run(String(latestMs)),
    )
    const all: Promise<boolean>[] = []
    for (let at = 0; at < due.length; at += BATCH) {
      const some = due
        .slice(at, at + BATCH)
        .map((requestId) =>
          this.engine.write('settling what has run out', () => this.expireNow(requestId, latestMs)),
        )
      all.push(...some)
      await Promise.allSettled(some)
    }
    // What is damaged rejects once the others are settled.
    return (await Promise.all(all)).filter(Boolean).length
  }

  async limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    return this.engine.read('reading limits', () =>
      this.limits.look(accountId, demands, this.nowMs()),
    )
  }

  sums(query: SumQuery): Promise<UsageSum[]> {
    return this.engine.background.ask('reading sums', 'sums', query)
  }

  entries(query: EntryQuery): Promise<EntryPage> {
    return this.engine.background.ask('reading rows', 'rows', query)
  }

  entry(accountId: string | null, requestId: string): Promise<UsageRow | null> {
    return this.engine.read('reading a row', () => {
      const found = isName(requestId) ? this.entryOf.get(requestId) : undefined
      if (found === undefined) return null
      const row = entryIn(found)
      return accountId === null || row.accountId === accountId ? row : null
    })
  }

  async *export(sinceMs: number): AsyncIterable<readonly UsageRow[]> {
    for (let after: ExportPlace = [sinceMs, '']; ;) {
      const batch = await this.engine.background.ask('exporting rows', 'exported', after)
      if (batch.rows.length > 0) yield batch.rows
      if (batch.next === null) return
      after = batch.next
    }
  }

  keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    return this.engine.background.ask('reading what keys used', 'keyUse', query)
  }

  async lastUse(
    accountId: string,
    keyIds?: readonly string[],
  ): Promise<ReadonlyMap<string, number>> {
    return new Map(
      await this.engine.background.ask('reading last uses', 'lastUse', accountId, keyIds ?? null),
    )
  }

  putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    return this.engine.background.ask('putting sums', 'put', by, sums, lastUse)
  }

  async *budgets(): AsyncIterable<readonly BudgetSpent[]> {
    for (let after: readonly [account: string, subject: string] = ['', '']; ;) {
      const batch = await this.engine.background.ask('reading budgets', 'budgets', after)
      if (batch.spent.length > 0) yield batch.spent
      if (batch.next === null) return
      after = batch.next
    }
  }

  async putBudgets(budgets: readonly BudgetSpent[]): Promise<void> {
    for (let at = 0; at < budgets.length; at += BATCH) {
      await this.engine.write('putting budgets', () => {
        for (const spent of budgets.slice(at, at + BATCH)) this.limits.put(spent)
      })
    }
  }

  async prune({
    entriesBeforeMs: rowsBeforeMs,
    hoursBeforeMs,
    daysBeforeMs,
  }: Retention): Promise<number> {
    await this.engine.background.ask(
      'counting usage',
      'count',
      Math.max(hoursBeforeMs, daysBeforeMs),
    )
    const rows = await this.pruned('entries', rowsBeforeMs)
    await this.pruned('hour', hoursBeforeMs)
    await this.pruned('day', daysBeforeMs)
    await this.limits.prune(this.nowMs())
    return rows
  }

  /** Removes a batch at a time, so that other questions are answered in between. */
  private async pruned(what: Pruned, beforeMs: number): Promise<number> {
    for (let count = 0; ;) {
      const removed = await this.engine.background.ask('pruning', 'prune', what, beforeMs)
      if (removed === 0) return count
      count += removed
    }
  }

  private tryToAdmit(admission: Admission, nowMs: number): AdmissionResult {
    const { requestId, accountId, demands, leaseMs } = admission
    const checked = this.limits.check(accountId, demands, nowMs)
    if (checked.fits) {
      const holds = JSON.stringify(checked.holds)
      const entry = writeEntry(admission.unsettled)
      const { changes } = this.reserve.run(requestId, nowMs + leaseMs, holds, entry)
      if (Number(changes) === 1) {
        this.held.set(requestId, checked.holds)
        return { admitted: true, limitStates: this.limits.apply(checked, demands, nowMs) }
      }
    } else if (!this.isKnown(requestId)) {
      return { admitted: false, limitStates: checked.standings }
    }
    // The same request again: it was admitted, and takes nothing more.
    const standings = checked.standings.map((each) => ({ ...each, retryAfterMs: 0 }))
    return { admitted: true, limitStates: standings }
  }

  private isKnown(requestId: string): boolean {
    return (this.isReserved.get(requestId) ?? this.hasEntry.get(requestId)) !== undefined
  }

  private settleNow(row: UsageRow, claim?: Reservation): SettleOutcome {
    const { requestId } = row
    const held = this.held.get(requestId)
    this.held.delete(requestId)
    if (Number(this.insertEntry.run(...valuesOf(row)).changes) === 0) return 'already'
    const holds = held ?? this.readHolds(requestId)
    // Another process may have settled it: then its entry was there.
    if (holds !== null && Number(this.unreserve.run(requestId).changes) === 1) {
      const used = { tokens: usedTokens(row), nanoUsd: chargedNanoUsd(row) }
      this.limits.release(holds, used, this.nowMs())
    } else if (claim?.takenFrom === 'nothing') {
      this.limits.charge(row, claim.demands)
    }
    this.engine.background.note(this.daysBeforeMs)
    return 'settled'
  }

  /** What a request holds that another process admitted, or this one before it was restarted; null: nothing. */
  private readHolds(requestId: string): readonly Hold[] | null {
    const row = this.holdsOf.get(requestId)
    return row === undefined ? null : holdsIn(requestId, textIn(row, 'holds'))
  }

  /** Settles a reservation by its own entry; false if there is none that has run out by then. */
  private expireNow(requestId: string, latestMs: number): boolean {
    const found = this.reservation.get(requestId, latestMs)
    if (found === undefined) return false
    const row = intact(`the reservation of '${requestId}'`, () => readEntry(textIn(found, 'entry')))
    return this.settleNow(row) === 'settled'
  }

  private freePlaces(nowMs: number): number {
    let freed = 0
    for (const row of this.due.all(nowMs, BATCH)) {
      const requestId = textIn(row, 'request_id')
      const found = this.reservation.get(requestId, nowMs)
      // A damaged one is reported by the next `expire`, and must not fail another request.
      if (found === undefined || !isWhole(requestId, found['holds'], found['entry'])) continue
      if (this.expireNow(requestId, nowMs)) freed += 1
    }
    return freed
  }
}
