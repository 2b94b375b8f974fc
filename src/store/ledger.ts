/**
 * The interface of a store's ledger: limits, budgets and usage. Every engine passes the suite in
 * `test/store/ledger`.
 *
 * One atomic step admits a request: it checks all its demands and takes all or none. It leaves a reservation
 * with the maximum cost, an end time, and the entry to write if the process is killed. `settle` replaces the
 * reservation by the actual usage and writes the entry, in one atomic step. All times are the engine's: Redis
 * has its own clock, SQLite uses the machine's.
 */
import type { ArchiveFeed } from './archive-feed.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { BudgetKind, QuotaKind, UnitRateKind, WindowKind } from '../base/limit-members.js'
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
} from './usage-queries.js'

/** What a request takes of one limit. */
interface DemandOf {
  /** The counter, such as `key:key_8Jq…`: the same in every process, without spaces, ≤ 300 characters. */
  readonly subject: string
  /** Whether requests of other accounts count towards the limit, too (a model's or an upstream's limit). */
  readonly shared: boolean
}

/**
 * A rate of requests, tokens or other units, as GCRA: a bucket of `perMinute`, refilled evenly. `cost` is
 * taken on admission; except for requests it is the maximum that the request may need, and `settle` corrects
 * it to what it used.
 */
export interface RateDemand extends DemandOf {
  readonly kind: 'requests' | 'tokens' | UnitRateKind
  readonly perMinute: number
  readonly cost: number
}

/**
 * A limit of concurrent requests. A request holds a slot of it until `settle` (a slot of a slice:
 * `releaseSlots`), or until its lease ends without `renew`.
 */
export interface ConcurrencyDemand extends DemandOf {
  readonly kind: 'concurrent'
  readonly limit: number
}

/** An amount of a calendar day, week or month (UTC, by the engine's clock), or one that never resets. */
interface WindowDemand extends DemandOf {
  /** How long an amount that never resets is kept without requests, in ms; absent: without end. */
  readonly keepMs?: number
}

/** A budget. */
export interface BudgetDemand extends WindowDemand {
  readonly kind: BudgetKind
  readonly limitNanoUsd: number
  /** Maximum cost of the request. */
  readonly costNanoUsd: number
}

/** An amount of tokens or requests. A request that was admitted stays counted. */
export interface QuotaDemand extends WindowDemand {
  readonly kind: QuotaKind
  readonly limit: number
  /** One request, or the maximum of tokens that it may need. */
  readonly cost: number
}

/** One limit that applies to a request. */
export type Demand = RateDemand | ConcurrencyDemand | BudgetDemand | QuotaDemand

/** A request to admit. */
export interface Admission {
  readonly requestId: string
  readonly accountId: string
  readonly demands: readonly Demand[]
  /**
   * The entry to write if the reservation ends without `settle` (its process was killed): outcome `lost`,
   * tokens and cost as reserved, `assumed`.
   */
  readonly unsettled: LedgerEntry
  /** How long the reservation lasts without `renew`. */
  readonly leaseMs: number
  /** A slice has admitted the request already: only write its reservation, check and take nothing. */
  readonly isTaken?: true
}

/**
 * How the demands of a request were counted. `reserved`: by its reservation, which is corrected. `slice`: by
 * a slice; the unused part is returned. `nothing`: the engine was unavailable; budgets are charged with its
 * cost.
 */
export type TakenFrom = 'reserved' | 'slice' | 'nothing'

/** The demands by which a settled request was admitted. */
export interface Reservation {
  readonly demands: readonly Demand[]
  readonly takenFrom: TakenFrom
}

/** The state of a limit after a decision. */
export interface LimitState {
  /** Requests, tokens, units, concurrent requests or nano-dollars. */
  readonly limit: number
  /** Never below 0. */
  readonly remaining: number
  /** Time until the limit is unused again; 0 for `concurrent`, and for an amount that never resets. */
  readonly resetMs: number
  /** 0 if the demand fits; else the time until it does, or -1 if it exceeds the whole limit. */
  readonly retryAfterMs: number
}

/** The result of an admission: all demands were taken, or none. */
export interface AdmissionResult {
  readonly admitted: boolean
  /** In the order of the demands. */
  readonly limitStates: readonly LimitState[]
  /**
   * A slice of this process admitted the request, without a command to the engine. The engine has no
   * reservation of it until `admit` is called again with `isTaken`.
   */
  readonly isSlice?: true
}

/** What a running request took beyond its reservation; `lower` returns it. */
export interface Raise {
  readonly demands: readonly (RateDemand | BudgetDemand | QuotaDemand)[]
  /** The day since 1970 (UTC) whose budgets were charged, with those of its week and month. */
  readonly day: number
}

/**
 * `already`: the ledger has an entry of this request; nothing was changed. `corrected`: it had the maximum
 * that the request may have used (outcome `lost`), and has its usage instead now. `late`: its entry may have
 * left the store, and it is settled once the archive was searched.
 */
export type SettleOutcome = 'settled' | 'already' | 'corrected' | 'late'

/** What was used of a budget or quota in the last day, week or month in which it was used, or in all. */
export interface BudgetSpent {
  /** Null if accounts share it. */
  readonly accountId: string | null
  readonly kind: WindowKind
  readonly subject: string
  /** Days, weeks or months since 1970 (UTC); 1 for an amount that never resets. */
  readonly period: number
  /** Nano-dollars, tokens or requests. */
  readonly amount: number
  /** Null or absent: it counts its whole period. */
  readonly mark?: BudgetMark | null
}

/** A budget or quota that began to count within its day, week or month, or after years of use. */
export interface BudgetMark {
  readonly period: number
  /** When its first request arrived, ms since 1970; null: what was used before needs no further reading. */
  readonly begunMs: number | null
  /** It counts what was used from this time on; null: in its whole period. */
  readonly sinceMs: number | null
  /** What was added of the use before it began. */
  readonly added: number
}

/** What is added to a budget or quota. */
export interface AddedUse {
  readonly period: number
  /** What is added in all, with what earlier calls have added. */
  readonly total: number
  /** Since when it counts with that; null: its whole period. */
  readonly sinceMs: number | null
  /** Whether later calls may add more. */
  readonly isLast: boolean
}

/** Older entries and sums are removed; ms since 1970. */
export interface Retention {
  readonly entriesBeforeMs: number
  readonly hoursBeforeMs: number
  readonly daysBeforeMs: number
  /** Entries that wait for the archive stay. */
  readonly isArchived?: boolean
}

/** How much memory entries may use. */
export interface MemoryLimit {
  /** Bytes, or up to 1 a share of the memory that the engine may use. */
  readonly max: number
  /** After this time, entries leave anyway. */
  readonly keepDays: number
}

/** The memory of the entries of an engine that holds them in memory. */
export interface LedgerMemory {
  readonly usedBytes: number
  /** Null without a limit. */
  readonly maxBytes: number | null
  /** Until the memory is used up, at the rate of the last day; null: entries leave by age. */
  readonly fullInMs: number | null
  /** The time of the oldest entry; null if there is none. */
  readonly oldestAtMs: number | null
}

/**
 * Limits, budgets and usage. Every method rejects with `GatewayError(store_unavailable)` only if the engine
 * does not reply.
 */
export interface Ledger {
  /** What the store does for the archive. */
  readonly archive: ArchiveFeed
  /**
   * Checks all demands and takes all or none, in one atomic step. If it takes them, the reservation survives
   * this process. A request id that was admitted before changes nothing and is `admitted` again.
   */
  admit(admission: Admission): Promise<AdmissionResult>
  /**
   * Writes the entry, adds it to the sums, corrects budgets to `costNanoUsd` (null: to what was reserved) and
   * token rates to the tokens used, and releases slots: one atomic step, once for each request id. Without a
   * reservation it corrects the budgets of `reservation` at the time of the entry. If the reservation has
   * expired, the entry replaces the one that `expire` wrote, with its time, account and key; then sums and
   * the budgets of `reservation` are those of the usage. A resolved result survives the death of this process
   * and of the engine.
   */
  settle(entry: LedgerEntry, reservation?: Reservation): Promise<SettleOutcome>
  /**
   * As `settle`, for a request that holds nothing of a limit. A resolved result survives the death of this
   * process, and queries find it. An engine may move the entry to its final place later, with others.
   */
  append(entry: LedgerEntry): Promise<void>
  /**
   * A request that a slice admitted has ended; called before its entry is written. Only engines with slices
   * have it.
   */
  releaseSlots?(requestId: string): void
  /**
   * Takes more of token rates and budgets for a running request: all demands, or none and null. There is no
   * reservation of it: if this process is killed, the amount stays charged.
   */
  raise(accountId: string, demands: Raise['demands']): Promise<Raise | null>
  /** Returns what `raise` took, except of a day, week or month that is over. */
  lower(accountId: string, raise: Raise): Promise<void>
  /** Renews the leases of running requests; ignores requests that ended. */
  renew(requests: readonly { requestId: string; accountId: string }[], leaseMs: number): Promise<void>
  /**
   * Settles expired reservations with their `unsettled` entry, and returns their number. Any process may call
   * it at any time. Reservations that expired within the last `overdueMs` stay: their process may only be
   * slow to settle them. After the clock has jumped forward, they expire by monotonic time for a
   * minute, so that running requests can renew theirs.
   */
  expire(overdueMs?: number): Promise<number>
  /**
   * Adds what was used in a period before the budget or quota counted; false, and nothing is added, if its
   * period is another one. A call whose reply was lost is repeated: the amount is added once. `sinceMs` never
   * moves to a later time.
   */
  addToBudget(accountId: string, demand: BudgetDemand | QuotaDemand, added: AddedUse): Promise<boolean>
  /**
   * The marks of budgets and quotas that began within their running period, in the order of the demands; null
   * for those that count it from its start, and for those without a request.
   */
  budgetMarks(
    accountId: string,
    demands: readonly (BudgetDemand | QuotaDemand)[],
  ): Promise<(BudgetMark | null)[]>
  /** The states of limits, without taking anything; in the order of the demands. */
  limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]>
  /** In order of time. */
  sums(query: SumQuery): Promise<UsageSum[]>
  /** Sums of any part of an hour, made of the entries, in no order. */
  cells(query: CellQuery): Promise<UsageCell[]>
  entries(query: EntryQuery): Promise<EntryPage>
  /** Null if it does not exist or belongs to another account (null: any account). */
  entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null>
  /** Every entry that arrived at or after `sinceMs`, oldest first, in batches. */
  export(sinceMs: number): AsyncIterable<readonly LedgerEntry[]>
  /** Each key that was used, in no order: faster than `sums` for accounts with many keys. */
  keyUse(query: KeyUseQuery): Promise<KeyUse[]>
  /** The totals of each key, model or value of a property that was used, in no order. */
  groupUse(query: GroupUseQuery): Promise<GroupUse[]>
  /**
   * Reads the use of all keys and accounts in a span of days into memory, from which the next queries for
   * about these days are answered. Absent if that would take the time of requests.
   */
  prepareGroupUse?(span: Pick<KeyUseQuery, 'fromMs' | 'toMs'>): Promise<void>
  /**
   * What accounts used, also by entries that were pruned since: each entry counts once, in the month and
   * under the path of its account at the time. In no order.
   */
  accountUse(query: AccountUseQuery): Promise<AccountUse[]>
  /**
   * Replaces the use of pruned entries of the same month, account, path, key, model and labels, for a
   * migration. No gateway may use the ledger meanwhile. Idempotent.
   */
  putAccountUse(uses: readonly AccountUse[]): Promise<void>
  /** The use of pruned entries, for a migration. */
  prunedUse(): Promise<AccountUse[]>
  /** When each key of the account, or each of these keys, was last used, ms since 1970. */
  lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * Replaces the sums of one account for the same key, model, and hour or day. A migration needs it because
   * entries are pruned earlier than sums. `lastUse` is as the source's ledger returns it. No gateway may use
   * the ledger meanwhile. Idempotent.
   */
  putSums(by: 'hour' | 'day', sums: readonly UsageSum[], lastUse: ReadonlyMap<string, number>): Promise<void>
  /** The spend of all budgets and quotas, reservations included, in batches. */
  budgets(): AsyncIterable<readonly BudgetSpent[]>
  /**
   * Replaces the spend of budgets, unless the ledger's own is of a later period. No gateway may use the
   * ledger meanwhile. Idempotent.
   */
  putBudgets(budgets: readonly BudgetSpent[]): Promise<void>
  /** Removes older entries and sums; returns the number of entries. */
  prune(retention: Retention): Promise<number>
  /** The memory of the entries, at most half a minute ago; null for an engine on disk. */
  memory(limit: MemoryLimit): Promise<LedgerMemory | null>
  /**
   * Removes the oldest entries before the limit is reached, and keeps their sums; the memory that is used
   * then. Does nothing on disk.
   */
  fitMemory(limit: MemoryLimit): Promise<LedgerMemory | null>
}
