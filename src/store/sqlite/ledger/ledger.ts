/**
 * The ledger in SQLite: admissions, settlements and entries. All of one turn of the event loop share a
 * transaction (engine.ts), in which the arithmetic of limits runs, so that limits hold across
 * processes. Queries run in the background thread.
 */
import { nanoUsdOf, type NanoUsd } from '../../../base/nano-usd.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type {
  Admission,
  AdmissionResult,
  BudgetMark,
  BudgetSpent,
  Demand,
  Ledger,
  LimitState,
  Raise,
  Reservation,
  Retention,
  SettleOutcome,
} from '../../ledger.js'
import type {
  AccountUse,
  AccountUseQuery,
  CellQuery,
  EntryPage,
  EntryQuery,
  GroupUse,
  GroupUseQuery,
  KeyUse,
  KeyUseQuery,
  SumQuery,
  UsageCell,
  UsageSum,
} from '../../usage-queries.js'
import { chargedNanoUsd, chargedTokens, usedTokens, usedUnits } from '../../records/count-usage.js'
import { beganAtMs, correctedUses, correctionOf } from '../../records/correct-entry.js'
import { writeEntry } from '../../records/entry-text.js'
import type { Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { holdsOf } from '../limits/holds.js'
import { Limits } from '../limits/limits.js'
import { Reservations } from '../limits/reservations.js'
import { LeaseClock } from '../../lease-clock.js'
import type { StoreOptions } from '../../store.js'
import { isName } from '../read-records.js'
import { SqliteArchiveFeed } from './archive-feed.js'
import type { Correction } from './correct-entry.js'
import { entryIn, EntryWriter, idValues, SELECT_REQUEST } from './entry-row.js'
import type { ExportPlace } from './read-entries.js'
import type { Pruned } from './roll-up.js'
import { BUCKET_MS, readCell, readSum } from './sum-columns.js'

/** Reservations settled or prolonged in one transaction; other writes run in between. */
const BATCH = 64
/** Expired reservations read at once; the next call reads the rest. */
const MOST_DUE = 10_000

/** Entries stay at least so long (`archive.hot_hours`). */
const LEAST_HOT_MS = 20_000
const SETTLING = 'settling a request'

/** The ledger of a store. */
export class SqliteLedger implements Ledger {
  private readonly engine: Engine
  private readonly nowMs: () => number
  private readonly daysBeforeMs = () => this.nowMs() - BUCKET_MS.hour
  private readonly leaseClock: LeaseClock
  private readonly limits: Limits
  private readonly reservations: Reservations
  private readonly writer: EntryWriter
  private readonly selectEntry: Statement
  private readonly touch: Statement
  readonly archive: SqliteArchiveFeed

  constructor(engine: Engine, { nowMs, monotonicMs }: Pick<StoreOptions, 'nowMs' | 'monotonicMs'>) {
    this.engine = engine
    this.nowMs = nowMs ?? Date.now
    this.leaseClock = new LeaseClock(monotonicMs ?? nowMs ?? (() => performance.now()))
    this.leaseNowMs()
    this.limits = new Limits(engine)
    this.archive = new SqliteArchiveFeed(engine, this.nowMs, (entry, reservation, known) =>
      this.settleAsked({ entry, archived: known }, reservation),
    )
    this.reservations = new Reservations(engine)
    this.writer = new EntryWriter(engine, this.nowMs)
    const nothing = () => undefined
    engine.hook({ begun: nothing, committing: nothing, rolledBack: () => this.writer.drop() })
    this.selectEntry = engine.prepare(`SELECT * FROM ledger_entries WHERE seq = (${SELECT_REQUEST})`)
    this.touch = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('proof', ?)")
  }

  async admit(admission: Admission): Promise<AdmissionResult> {
    try {
      return await this.engine.write('admitting a request', () => {
        const nowMs = this.nowMs()
        const result = this.tryToAdmit(admission, nowMs)
        if (result.admitted || !admission.demands.some(({ kind }) => kind === 'concurrent')) {
          return result
        }
        // Slots of a killed process become free when its leases end.
        return this.freeSlots(this.leaseNowMs()) > 0 ? this.tryToAdmit(admission, nowMs) : result
      })
    } catch (error) {
      this.reservations.forget(admission.requestId)
      throw error
    }
  }

  async settle(row: LedgerEntry, claim?: Reservation): Promise<SettleOutcome> {
    const outcome = await this.engine.write(SETTLING, () => this.settleNow(row, claim))
    return outcome === 'already' ? this.correct({ entry: row, archived: null }, claim) : outcome
  }

  async append(row: LedgerEntry): Promise<void> {
    await this.settle(row)
  }

  raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    return this.engine.write('raising a reservation', () =>
      this.limits.raise(accountId, demands, this.nowMs()),
    )
  }

  async lower(accountId: string, raise: Raise): Promise<void> {
    await this.engine.write('lowering a reservation', () => this.limits.lower(accountId, raise, this.nowMs()))
  }

  async renew(requests: readonly { requestId: string; accountId: string }[], leaseMs: number): Promise<void> {
    for (let from = 0; from < requests.length; from += BATCH) {
      await this.engine.write('prolonging reservations', () => {
        const [untilMs, leaseNowMs] = [this.nowMs() + leaseMs, this.leaseNowMs()]
        for (const { requestId } of requests.slice(from, from + BATCH)) {
          this.reservations.renew(requestId, untilMs, leaseNowMs)
        }
      })
    }
  }

  async expire(overdueMs = 0): Promise<number> {
    const latestMs = this.leaseNowMs() - overdueMs
    const due = this.engine.readNow('reading expired reservations', () =>
      this.reservations.due(latestMs, MOST_DUE),
    )
    // The caller takes a result as proof that the store can be written.
    await this.engine.write('writing to the store', () => this.touch.run(String(latestMs)))
    const all: Promise<boolean>[] = []
    for (let at = 0; at < due.length; at += BATCH) {
      const batch = due
        .slice(at, at + BATCH)
        .map((requestId) =>
          this.engine.write('settling an expired reservation', () => this.expireNow(requestId, latestMs)),
        )
      all.push(...batch)
      await Promise.allSettled(batch)
    }
    // A damaged reservation rejects once the others are settled.
    return (await Promise.all(all)).filter(Boolean).length
  }

  addToBudget(...args: Parameters<Ledger['addToBudget']>): Promise<boolean> {
    return this.engine.write('charging a budget', () => this.limits.add(...args))
  }

  async budgetMarks(
    ...[accountId, demands]: Parameters<Ledger['budgetMarks']>
  ): Promise<(BudgetMark | null)[]> {
    return this.engine.read('reading limits', () => this.limits.marks(accountId, demands, this.nowMs()))
  }

  async limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    return this.engine.read('reading limits', () => this.limits.look(accountId, demands, this.nowMs()))
  }

  async sums(query: SumQuery): Promise<UsageSum[]> {
    const sums = await this.engine.background.run('reading sums', 'sums', query)
    return this.engine.readNow('reading sums', () => sums.map(readSum))
  }

  async cells(query: CellQuery): Promise<UsageCell[]> {
    const cells = await this.engine.background.run('reading cells', 'cells', query)
    return this.engine.readNow('reading cells', () => cells.map(readCell))
  }

  entries(query: EntryQuery): Promise<EntryPage> {
    return this.engine.background.run('reading ledger entries', 'entries', query)
  }

  entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    return this.engine.read('reading a ledger entry', () => {
      const found = isName(requestId) ? this.selectEntry.get(...idValues(requestId)) : undefined
      if (found === undefined) return null
      const row = entryIn(found)
      return accountId === null || row.accountId === accountId ? row : null
    })
  }

  async *export(sinceMs: number): AsyncIterable<readonly LedgerEntry[]> {
    for (let after: ExportPlace = [sinceMs, '']; ;) {
      const batch = await this.engine.background.run('exporting ledger entries', 'exported', after)
      if (batch.rows.length > 0) yield batch.rows
      if (batch.next === null) return
      after = batch.next
    }
  }

  keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    return this.engine.background.run('reading the use of keys', 'keyUse', query)
  }

  async groupUse(query: GroupUseQuery): Promise<GroupUse[]> {
    const uses = await this.engine.background.run('reading the use of groups', 'groupUse', query)
    return readUses<GroupUse>(uses)
  }

  async prepareGroupUse(span: Pick<KeyUseQuery, 'fromMs' | 'toMs'>): Promise<void> {
    await this.keyUse({ ...span, accountId: null, most: 1 })
    await this.groupUse({ ...span, accountId: null, by: 'account' })
  }

  async lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return new Map(
      await this.engine.background.run('reading last uses', 'lastUse', accountId, keyIds ?? null),
    )
  }

  async accountUse(query: AccountUseQuery): Promise<AccountUse[]> {
    const uses = await this.engine.background.run('reading the use of accounts', 'accountUse', query)
    return readUses<AccountUse>(uses)
  }

  prunedUse(): Promise<AccountUse[]> {
    return this.engine.background.run('reading the use of accounts', 'prunedUse')
  }

  putAccountUse(uses: readonly AccountUse[]): Promise<void> {
    return this.engine.background.run('putting the use of accounts', 'putAccountUse', uses)
  }

  putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    return this.engine.background.run('putting sums', 'putSums', { by, sums, lastUse })
  }

  async *budgets(): AsyncIterable<readonly BudgetSpent[]> {
    for (let after: readonly [account: string, subject: string] = ['', '']; ;) {
      const batch = await this.engine.background.run('reading budgets', 'budgets', after)
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

  async prune(retention: Retention): Promise<number> {
    const { entriesBeforeMs: rowsBeforeMs, hoursBeforeMs, daysBeforeMs, isArchived = false } = retention
    await this.engine.background.run('adding up usage', 'rollUp', Math.max(hoursBeforeMs, daysBeforeMs))
    const rows = await this.pruned(isArchived ? 'archived' : 'entries', rowsBeforeMs)
    await this.moveFormer()
    await this.pruned('hour', hoursBeforeMs)
    await this.pruned('day', daysBeforeMs)
    await this.limits.prune(this.nowMs())
    return rows
  }

  memory(): Promise<null> {
    return Promise.resolve(null)
  }

  fitMemory(): Promise<null> {
    return Promise.resolve(null)
  }

  /** Moves entries of an earlier version a batch at a time, so that other tasks run in between. */
  private async moveFormer(): Promise<void> {
    for (let after: number | null = 0; after !== null;) {
      after = await this.engine.background.run('moving entries', 'moveFormer', after, this.nowMs())
    }
  }

  /** Removes a batch at a time, so that other tasks run in between; the total. */
  private async pruned(what: Pruned, beforeMs: number): Promise<number> {
    for (let count = 0; ;) {
      const removed = await this.engine.background.run('pruning', 'prune', what, beforeMs, this.nowMs())
      if (removed === 0) return count
      count += removed
    }
  }

  /** The time by which leases expire. */
  private leaseNowMs(): number {
    return this.leaseClock.read(this.nowMs())
  }

  private tryToAdmit(admission: Admission, nowMs: number): AdmissionResult {
    const { requestId, accountId, demands, leaseMs } = admission
    const counters = this.limits.countersOf(accountId, demands)
    if (this.limits.fit(demands, counters, nowMs)) {
      const holds = holdsOf(demands, counters, nowMs)
      const entry = writeEntry(admission.unsettled)
      if (this.reservations.add({ requestId, untilMs: nowMs + leaseMs, holds, entry })) {
        const arrivedMs = admission.unsettled.atMs
        return { admitted: true, limitStates: this.limits.take(demands, counters, { nowMs, arrivedMs }) }
      }
    } else if (!this.reservations.isKnown(requestId)) {
      return { admitted: false, limitStates: this.limits.states(demands, counters, nowMs) }
    }
    // A repeated request was admitted before, and takes nothing more.
    const limitStates = this.limits.states(demands, counters, nowMs)
    return {
      admitted: true,
      limitStates: limitStates.map((each) => ({ ...each, retryAfterMs: 0 })),
    }
  }

  /** Settles an entry that was looked up in the archive. */
  private async settleAsked(correction: Correction, reservation?: Reservation): Promise<SettleOutcome> {
    const { entry, archived } = correction
    const outcome =
      archived === null
        ? await this.engine.write(SETTLING, () => this.settleNow(entry, reservation, true))
        : 'already'
    return outcome === 'already' ? this.correct(correction, reservation) : outcome
  }

  /** Replaces the entry that an expired reservation has left, if that is the request's entry. */
  private async correct(correction: Correction, reservation?: Reservation): Promise<SettleOutcome> {
    const { entry, archived } = correction
    const known = archived ?? (await this.entry(null, entry.requestId))
    if (known === null || correctionOf(known, entry) === null) return 'already'
    const former = await this.engine.background.run(
      'correcting an entry',
      'correct',
      correction,
      this.nowMs(),
    )
    if (former === null) return 'already'
    const uses = correctedUses(former, entry, reservation?.demands ?? [])
    const { accountId, atMs } = former
    if (uses.length > 0) {
      await this.engine.write(SETTLING, () => this.limits.correct(accountId, atMs, uses))
    }
    return 'corrected'
  }

  private settleNow(entry: LedgerEntry, reservation?: Reservation, isChecked = false): SettleOutcome {
    const { requestId } = entry
    if (!isChecked && this.hasLeft(entry)) {
      this.archive.addLate(entry, reservation)
      return 'late'
    }
    const holds = this.reservations.remove(requestId)
    // A request with a reservation has no entry.
    if (holds === null && this.writer.has(requestId)) return 'already'
    this.writer.insert(entry, null)
    if (holds !== null) {
      const nowMs = this.nowMs()
      this.limits.release(holds, {
        tokens: usedTokens(entry),
        chargedTokens: chargedTokens(entry),
        nanoUsd: chargedNanoUsd(entry),
        unitsOf: (unit) => usedUnits(entry, unit),
        nowMs,
      })
    } else if (reservation?.takenFrom === 'nothing') {
      this.limits.charge(entry, reservation.demands)
    }
    this.engine.background.scheduleRollUp(this.daysBeforeMs)
    return 'settled'
  }

  /** Whether the archive may have an entry of the request that the store has no longer. */
  private hasLeft(entry: LedgerEntry): boolean {
    const beganMs = beganAtMs(entry)
    if (beganMs > this.nowMs() - LEAST_HOT_MS || beganMs >= this.archive.removedBeforeMs()) return false
    return !this.reservations.isKnown(entry.requestId)
  }

  /** Settles a reservation by its own entry; false if none has expired. */
  private expireNow(requestId: string, latestMs: number): boolean {
    const entry = this.reservations.expired(requestId, latestMs)
    return entry !== null && this.settleNow(entry) === 'settled'
  }

  /** Settles the first expired reservations; their number. */
  private freeSlots(nowMs: number): number {
    let freed = 0
    for (const requestId of this.reservations.dueNow(nowMs, BATCH)) {
      // The next `expire` reports a damaged one; it must not fail another request.
      if (!this.reservations.isIntact(requestId, nowMs)) continue
      if (this.expireNow(requestId, nowMs)) freed += 1
    }
    return freed
  }
}

/** The uses in a text of the thread, whose large amounts are digits. */
function readUses<Use extends GroupUse | AccountUse>(text: string): Use[] {
  const uses = JSON.parse(text) as (Use & { costNanoUsd: NanoUsd | string })[]
  for (const use of uses) {
    if (typeof use.costNanoUsd === 'string') use.costNanoUsd = nanoUsdOf(use.costNanoUsd)
  }
  return uses
}
