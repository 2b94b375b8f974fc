/**
 * The embedded engine's ledger: an LMDB environment of its own beside the accounts', so that nothing of
 * a request's cost can hold keys up or harm them. Knows no table; `Turn` writes, `UsageReader` reads.
 *
 * Whatever is asked while a transaction runs goes into the next one, together: all admissions and
 * settlements of one turn of the event loop share one. Transactions begin and commit off the loop, so
 * a process that waits for another's lock, or for the disk, goes on serving.
 */
import type { UsageRow } from '../ledger/row.js'
import { writeRow } from './usage-record.js'
import type {
  Admission,
  BudgetSpent,
  Claim,
  Demand,
  KeyUse,
  KeyUseQuery,
  Ledger,
  Retention,
  RowPage,
  RowQuery,
  SettleOutcome,
  Standing,
  SumQuery,
  UsageSum,
  Verdict,
} from './ledger.js'
import { budgets, putBudgets } from './lmdb-budgets.js'
import { unavailable } from './lmdb-failure.js'
import { LedgerFile } from './lmdb-ledger-file.js'
import { Leases } from './lmdb-leases.js'
import { assertNames, isName, type LedgerTables } from './lmdb-ledger-tables.js'
import { pruneDays, pruneRows, pruneSubjects, pruneSums } from './lmdb-prune.js'
import { Subjects } from './lmdb-subjects.js'
import { putSums } from './lmdb-sums.js'
import { keyUse, lastUse } from './lmdb-days.js'
import { exported, pageOf, rowOf, sumsOf } from './lmdb-usage.js'

/** Reservations prolonged in one step; others may come in between. */
const LEASES_AT_ONCE = 64
/** Rows or sums dropped in one step. */
const PRUNED_AT_ONCE = 128

/** Opened on first use; `close` may be called in any state. */
export class LmdbLedger implements Ledger {
  private readonly file: LedgerFile
  private readonly leases: Leases
  private readonly nowMs: () => number

  /** `nowMs` is the engine's clock; `boot` names the machine's start, where a test pretends another. */
  constructor(path: string, nowMs: () => number, boot?: string) {
    this.file = new LedgerFile(path, nowMs, boot)
    this.leases = new Leases(this.file, nowMs)
    this.nowMs = nowMs
  }

  async admit(admission: Admission): Promise<Verdict> {
    const verdict = await this.tryToAdmit(admission)
    if (verdict.admitted || !admission.demands.some(({ kind }) => kind === 'concurrent'))
      return verdict
    return (await this.leases.freePlaces()) > 0 ? this.tryToAdmit(admission) : verdict
  }

  settle(row: UsageRow, claim?: Claim): Promise<SettleOutcome> {
    return this.file.write('settling a request', (turn) => {
      assertNames(row)
      return turn.settle(row, writeRow(row), claim)
    })
  }

  append(row: UsageRow): Promise<void> {
    try {
      assertNames(row)
      return this.file.append(row)
    } catch (cause) {
      return Promise.reject(unavailable('settling a request failed', cause))
    }
  }

  async renew(
    requests: readonly { requestId: string; accountId: string }[],
    leaseMs: number,
  ): Promise<void> {
    for (let from = 0; from < requests.length; from += LEASES_AT_ONCE) {
      await this.file.write('prolonging reservations', (turn) => {
        for (const { requestId } of requests.slice(from, from + LEASES_AT_ONCE)) {
          if (isName(requestId)) turn.renew(requestId, leaseMs)
        }
      })
    }
    if (requests.length === 0) await this.file.read('prolonging reservations', () => undefined)
  }

  async expire(overdueMs = 0): Promise<number> {
    // What a dead process has settled is not lost, and so not settled as lost.
    await this.file.adopt('orphans')
    await this.file.countOrphans()
    return this.leases.expire(overdueMs)
  }

  async look(accountId: string, demands: readonly Demand[]): Promise<Standing[]> {
    return this.file.readRecent('reading limits', (tables, recent) =>
      new Subjects(tables, recent, this.nowMs()).look(accountId, demands),
    )
  }

  async sums(query: SumQuery): Promise<UsageSum[]> {
    await this.file.catchUp('sums')
    return sumsOf(this.file, query)
  }

  async rows(query: RowQuery): Promise<RowPage> {
    await this.file.catchUp(query.accountId === null ? 'rows' : 'sums')
    return pageOf(this.file, query)
  }

  async row(accountId: string | null, requestId: string): Promise<UsageRow | null> {
    await this.file.catchUp('rows')
    return this.file.read('reading a row', (tables) => rowOf(tables, accountId, requestId))
  }

  async *export(sinceMs: number): AsyncIterable<readonly UsageRow[]> {
    await this.file.catchUp('rows')
    yield* exported(this.file, sinceMs)
  }

  async keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    await this.file.catchUp('sums')
    return keyUse(this.file, query)
  }

  async lastUse(
    accountId: string,
    keyIds?: readonly string[],
  ): Promise<ReadonlyMap<string, number>> {
    await this.file.catchUp('sums')
    return lastUse(this.file, accountId, keyIds)
  }

  putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    return putSums(this.file, by, sums, lastUse)
  }

  budgets(): AsyncIterable<readonly BudgetSpent[]> {
    return budgets(this.file)
  }

  putBudgets(all: readonly BudgetSpent[]): Promise<void> {
    return putBudgets(this.file, all)
  }

  async prune(retention: Retention): Promise<number> {
    const rows = await this.inSteps((tables) => {
      return pruneRows(tables, retention.rowsBeforeMs, PRUNED_AT_ONCE)
    })
    for (const by of ['hour', 'day'] as const) {
      const before = by === 'hour' ? retention.hoursBeforeMs : retention.daysBeforeMs
      for (const kind of ['key', 'model'] as const) {
        await this.inSteps((tables) => pruneSums(tables, by, kind, before, PRUNED_AT_ONCE))
      }
    }
    await this.inSteps((tables) => pruneDays(tables, retention.daysBeforeMs, PRUNED_AT_ONCE))
    await pruneSubjects(this.file, this.nowMs())
    return rows
  }

  async close(): Promise<void> {
    try {
      await this.file.close()
    } catch (cause) {
      throw unavailable('closing the ledger failed', cause)
    }
  }

  private tryToAdmit(admission: Admission): Promise<Verdict> {
    return this.file.write('admitting a request', (turn) => {
      assertNames(admission.unsettled)
      return turn.admit(admission)
    })
  }

  /** Step after step until one finds nothing; how much they did. */
  private async inSteps(step: (tables: LedgerTables) => number): Promise<number> {
    for (let count = 0; ;) {
      const done = await this.file.change('pruning', step)
      if (done === 0) return count
      count += done
    }
  }
}
