/**
 * The ledger in Redis: one script admits requests, one settles them. `RedisUsage` has the queries.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { unavailable } from '../../errors.js'
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
import { budgets, putBudgets } from './budgets.js'
import { AdmissionBatches, slotRequestOf } from '../limits/admission-batches.js'
import { ACCOUNTS, leaseMember, LedgerKeys } from './key-names.js'
import { parseSharedHolds } from '../limits/encode-demands.js'
import * as scripts from './scripts.js'
import type { RedisEngine } from '../connection/connections.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'
import { groupBy } from '../group-by.js'
import { listOf } from '../keys/read-records.js'
import { Settlement } from './settlement.js'
import { SliceReporter } from '../limits/slice-reporter.js'
import { Slices } from '../limits/slices.js'
import { SlotAdmissions } from '../limits/slot-admissions.js'
import { putSums } from './put-sums.js'
import { RedisUsage } from './usage.js'
import { readEntry, writeEntry } from '../../records/entry-text.js'

/** Expired reservations that are read and settled together. */
const MAX_EXPIRED = 64
const MAX_RENEWED = 256
/** Maximum number of accounts in `listed`. */
const MAX_LISTED = 100_000
const MAX_NAME_LENGTH = 400

/** The ledger of a store, on connections of the engine. */
export class RedisLedger implements Ledger {
  private readonly link: RedisLink
  private readonly names: LedgerKeys
  private readonly usage: RedisUsage
  private readonly reports: RedisLink
  /** For tests; empty for the server's clock. */
  private readonly clock: () => Argument
  private readonly listed = new Set<string>()
  private readonly slices: Slices
  private readonly admissions: AdmissionBatches
  private readonly slotAdmissions: SlotAdmissions
  private readonly settlement: Settlement
  /** The name of this process in slices and slots. */
  private readonly processName = `${process.pid}.${Math.floor(Math.random() * 2 ** 40).toString(36)}`
  private readonly sliceReporter: SliceReporter
  private attempts = 0

  /** `nowMs` replaces the server's clock. */
  constructor({ address, ledger, admin }: RedisEngine, nowMs: (() => number) | undefined) {
    this.link = ledger
    this.names = new LedgerKeys(address.kind === 'cluster')
    this.clock = nowMs ?? (() => '')
    // Queries may take longer.
    this.reports = admin
    this.usage = new RedisUsage(admin, this.names)
    this.slices = new Slices((accountId, demand) => this.names.slice(accountId, demand))
    const { link, names, clock, slices, processName: member } = this
    this.admissions = new AdmissionBatches(link, names, clock)
    this.slotAdmissions = new SlotAdmissions(link, names, clock, this.admissions)
    this.settlement = new Settlement({ link, names, clock, slices, processName: member })
    this.sliceReporter = new SliceReporter({ link, names, clock, slices, processName: member })
  }

  async admit(admission: Admission): Promise<AdmissionResult> {
    const { accountId, requestId, unsettled, demands } = admission
    const what = 'admitting a request'
    assertNames(what, requestId, accountId, unsettled.keyId, unsettled.model)
    if (admission.isTaken) {
      if (!this.listed.has(accountId)) await this.list(what, accountId)
      await this.admissions.request(slotRequestOf(admission, 'note', demands, ''))
      return { admitted: true, limitStates: [] }
    }
    const limitStates = this.slices.take(requestId, accountId, demands, performance.now())
    if (limitStates !== null) return { admitted: true, limitStates, isSlice: true }
    if (!this.listed.has(accountId)) await this.list(what, accountId)
    // Unique to this attempt: a refusal must return only what this attempt took.
    const member = `${requestId}#${this.processName}.${(this.attempts += 1)}`
    const answer = await this.slotAdmissions.take(admission, member)
    return { admitted: answer.outcome !== 'refused', limitStates: answer.limitStates }
  }

  releaseSlots(requestId: string): void {
    this.slices.releaseSlots(requestId)
  }

  async append(entry: LedgerEntry): Promise<void> {
    await this.settle(entry)
  }

  async settle(entry: LedgerEntry, reservation?: Reservation): Promise<SettleOutcome> {
    return (await this.settled(entry, writeEntry(entry), false, reservation))
      ? 'settled'
      : 'already'
  }

  raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    assertNames('raising a reservation', accountId)
    return this.slotAdmissions.raise(accountId, demands)
  }

  lower(accountId: string, raise: Raise): Promise<void> {
    return this.slotAdmissions.lower(accountId, raise)
  }

  async renew(
    requests: readonly { requestId: string; accountId: string }[],
    leaseMs: number,
  ): Promise<void> {
    const what = 'renewing reservations'
    if (requests.length === 0) await this.link.opened()
    for (const [accountId, own] of groupBy(requests, (request) => request.accountId)) {
      for (let from = 0; from < own.length; from += MAX_RENEWED) {
        const batch = own.slice(from, from + MAX_RENEWED)
        const args = batch.flatMap(({ requestId }) => [
          requestId,
          leaseMember(accountId, requestId),
        ])
        const keys = [this.names.reservations(accountId), this.names.ends(accountId)]
        const answer = await this.link.run(what, scripts.RENEW, keys, [
          this.clock(),
          leaseMs,
          ...args,
        ])
        for (const text of listOf(answer)) await this.renewShared(what, text, leaseMs)
      }
    }
  }

  async expire(overdueMs = 0): Promise<number> {
    const what = 'settling expired reservations'
    let count = 0
    const accounts = this.names.isCluster ? await this.usage.accounts() : ['']
    for (const account of accounts) {
      for (;;) {
        const args = [this.clock(), MAX_EXPIRED, overdueMs]
        const ends = [this.names.ends(account)]
        const due = listOf(await this.link.run(what, scripts.LIST_EXPIRED, ends, args)).map(String)
        const done = await Promise.all(due.map((member) => this.settleDue(what, member)))
        count += done.filter(Boolean).length
        // Reservations that could not be settled are still expired: trying again at once would not end.
        if (due.length < MAX_EXPIRED || !done.includes(true)) break
      }
    }
    return count
  }

  limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    return this.slotAdmissions.limitStates(accountId, demands)
  }

  sums(query: SumQuery): Promise<UsageSum[]> {
    return this.usage.sums(query)
  }

  entries(query: EntryQuery): Promise<EntryPage> {
    return this.usage.page(query)
  }

  entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    return this.usage.entry(accountId, requestId)
  }

  export(sinceMs: number): AsyncIterable<readonly LedgerEntry[]> {
    return this.usage.export(sinceMs)
  }

  keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    return this.usage.keyUse(query)
  }

  lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.usage.lastUse(accountId, keyIds)
  }

  async putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    for (const { accountId } of sums) await this.list('putting sums', accountId)
    await putSums(this.link, this.names, by, sums, lastUse)
  }

  budgets(): AsyncIterable<readonly BudgetSpent[]> {
    return budgets(this.reports)
  }

  putBudgets(all: readonly BudgetSpent[]): Promise<void> {
    return putBudgets(this.link, this.names, all)
  }

  prune(retention: Retention): Promise<number> {
    return this.usage.prune(retention)
  }

  /** Resolves when connected. */
  opened(): Promise<void> {
    return this.link.opened()
  }

  /** Returns what is left of slices. Never rejects. */
  close(): Promise<void> {
    return this.sliceReporter.end()
  }

  private async settled(
    entry: LedgerEntry,
    text: string,
    isDue: boolean,
    reservation?: Reservation,
  ): Promise<boolean> {
    const what = 'settling a request'
    const { accountId, requestId } = entry
    assertNames(what, requestId, accountId, entry.keyId, entry.model)
    if (!this.listed.has(accountId)) await this.list(what, accountId)
    return this.settlement.settle(entry, text, isDue, reservation)
  }

  private async settleDue(what: string, member: string): Promise<boolean> {
    const [accountId = '', requestId = ''] = member.split('\0')
    const key = this.names.reservations(accountId)
    const text = await this.link.send(what, 'hget', [key, requestId])
    if (typeof text !== 'string') {
      await this.link.send(what, 'zrem', [this.names.ends(accountId), member])
      return false
    }
    const entry = text.slice(text.lastIndexOf('\n') + 1)
    return this.settled(readEntry(entry), entry, true)
  }

  private async renewShared(what: string, text: unknown, leaseMs: number): Promise<void> {
    for (const [, , holds] of parseSharedHolds(text)) {
      for (const [kind, key, , , member] of holds) {
        if (kind !== 'concurrent') continue
        await this.link.run(what, scripts.RENEW_SHARED, [key], [this.clock(), leaseMs, member])
      }
    }
  }

  /** Adds the account to those that queries over all accounts read. */
  private async list(what: string, accountId: string): Promise<void> {
    if (this.listed.has(accountId)) return
    await this.link.send(what, 'sadd', [ACCOUNTS, accountId])
    if (this.listed.size >= MAX_LISTED) this.listed.clear()
    this.listed.add(accountId)
  }
}

/** Throws if a name could not be split into its parts again. */
function assertNames(what: string, ...names: readonly string[]): void {
  for (const name of names) {
    if (name !== '' && name.length <= MAX_NAME_LENGTH && !name.includes('\0')) continue
    throw unavailable(`${what} failed`, new Error('a name is empty, too long, or has a NUL in it'))
  }
}
