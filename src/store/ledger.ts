/**
 * What the gateway asks of a store for limits, budgets and the ledger, whatever the engine.
 * Knows no engine and no configuration; every engine passes the black-box suite in `test/store`.
 *
 * A request is admitted against all its demands in one atomic step (check all, then commit all), and
 * leaves a reservation: what it may cost at most, until when, and the row that stands for it should
 * nobody come back. `settle` replaces the reservation by what happened, in one atomic step with the row.
 * The engine's clock is the only one: Redis has its own, SQLite that of the machine.
 */
import type { Cause } from '../error-cause.js'
import type { UsageRow } from '../ledger/row.js'
import type { EntryFilter } from './records/entry-filter.js'

/** What one limit asks of a request. A subject is what is counted: a key, an account, a model, an upstream. */
interface DemandOf {
  /** What is counted, such as `key:key_8Jq…`: the same in every process, without spaces, ≤ 300 characters. */
  readonly subject: string
  /** Whether other accounts count towards it too (a model's or an upstream's limit). */
  readonly shared: boolean
}

/**
 * So many requests or tokens a minute, as GCRA: a full bucket of `perMinute`, refilled evenly.
 * `cost` is taken at once; of tokens it is the most that the request may need, and `settle` gives back
 * what it did not (or takes what it needed more).
 */
export interface RateDemand extends DemandOf {
  readonly kind: 'requests' | 'tokens'
  readonly perMinute: number
  readonly cost: number
}

/** So many at the same time; the place is a lease, held until `settle` (of a slice: `releaseSlots`) or until it is not renewed. */
export interface ConcurrencyDemand extends DemandOf {
  readonly kind: 'concurrent'
  readonly limit: number
}

/** So much money in a day or month of the calendar (UTC, by the engine's clock). */
export interface BudgetDemand extends DemandOf {
  readonly kind: 'usd_day' | 'usd_month'
  readonly limitNanoUsd: number
  /** The most that the request may cost. */
  readonly costNanoUsd: number
}

/** One limit that a request falls under. */
export type Demand = RateDemand | ConcurrencyDemand | BudgetDemand

/** A request that wants to be admitted. */
export interface Admission {
  readonly requestId: string
  readonly accountId: string
  readonly demands: readonly Demand[]
  /**
   * The row that the ledger gets when the reservation ends without `settle` (its process died): outcome
   * `lost`, tokens and cost at the most that was reserved, `estimated`.
   */
  readonly unsettled: UsageRow
  /** How long the reservation stands without `renew`. */
  readonly leaseMs: number
  /** It was admitted by a slice, and only wants its reservation now: nothing is checked or taken. */
  readonly isTaken?: true
}

/**
 * What of the demands of a request the engine's counters know, where they have no reservation of it.
 * `reserved`: its reservation was written with them, and is what counts. `slice`: they were taken, and
 * what was not needed goes back. `nothing`: it was decided while the engine was away, and budgets are
 * owed what it spent.
 */
export type TakenFrom = 'reserved' | 'slice' | 'nothing'

/** What a settled request was let run by. */
export interface Reservation {
  readonly demands: readonly Demand[]
  readonly takenFrom: TakenFrom
}

/** How a demand's limit stands after the decision. */
export interface LimitState {
  /** Requests, tokens, places or nano-dollars. */
  readonly limit: number
  /** What is left of it, never below 0. */
  readonly remaining: number
  /** Until it is whole again; 0 for `concurrent`. */
  readonly resetMs: number
  /** 0 where the demand was met; else when it can be, -1 where it never can (it asks more than there ever is). */
  readonly retryAfterMs: number
}

/** What became of an admission: everything was committed, or nothing. */
export interface AdmissionResult {
  readonly admitted: boolean
  /** In the order of the demands. */
  readonly limitStates: readonly LimitState[]
  /**
   * Admitted by what this process has set aside beforehand (a slice): the engine was not asked, may even
   * be away, and has no reservation until the same is asked with `isTaken`.
   */
  readonly isSlice?: true
}

/** What a running request was granted beyond its reservation; `lower` gives it back. */
export interface Raise {
  readonly demands: readonly (RateDemand | BudgetDemand)[]
  /** Of which day and month its budgets were charged, both since 1970 (UTC). */
  readonly day: number
  readonly month: number
}

/** `already`: the ledger has a row of this request; nothing was changed. */
export type SettleOutcome = 'settled' | 'already'

/** Sums of a bucket of time for one key and model; counters only grow until the bucket is pruned. */
export interface UsageSum {
  /** Start of the hour or day (UTC), ms since 1970. */
  readonly startMs: number
  readonly accountId: string
  readonly keyId: string
  /** As in `UsageRow`. */
  readonly model: string
  readonly requests: number
  /** Outcome other than `ok`. */
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly reasoningTokens: number
  readonly costNanoUsd: number
  /** Requests that used tokens and whose price is not known. */
  readonly unpriced: number
  /** Requests whose tokens are estimated. */
  readonly estimated: number
  /** Requests by time to first content: one count for each of `FIRST_CONTENT_BOUNDS_MS`, and one above. */
  readonly firstContent: readonly number[]
  /** `errors` by cause; fewer than those for requests that an earlier version of the program counted. */
  readonly byCause: Readonly<Record<Cause, number>>
}

/** Upper bounds of the counts in `UsageSum.firstContent`, in ms. */
export const FIRST_CONTENT_BOUNDS_MS = [
  50, 100, 200, 350, 500, 750, 1_000, 1_500, 2_500, 5_000, 10_000, 30_000,
] as const

/** Which sums; both ends are moved to the bucket they are in, and both buckets are in. */
export interface SumQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly by: 'hour' | 'day'
  readonly fromMs: number
  readonly toMs: number
  /** This key's alone. */
  readonly keyId?: string
  /** This model's alone, as in `UsageRow.model`. */
  readonly model?: string
  /**
   * `key` (where left out): a sum for each key and model. `model`: one for each model, of all keys of the
   * account together, or of all accounts; what is not told apart is empty then. Not with `keyId`.
   */
  readonly per?: 'key' | 'model'
}

/** Whose use, of what, on which days (UTC); both ends are moved to the day they are in, and both are in. */
export interface KeyUseQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** These keys' alone, of one account. */
  readonly keyIds?: readonly string[]
  /** Only so many keys, those that cost most; not with `keyIds`. */
  readonly most?: number
  readonly model?: string
  readonly fromMs: number
  readonly toMs: number
}

/** What a key used. */
export interface KeyUse {
  readonly accountId: string
  readonly keyId: string
  readonly requests: number
  readonly costNanoUsd: number
  /** As in `UsageSum`. */
  readonly unpriced: number
}

/** Which rows, newest first. */
export interface EntryQuery extends Omit<EntryFilter, 'accountId' | 'requestId'> {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** Inclusive. */
  readonly fromMs?: number
  /** Exclusive. */
  readonly toMs?: number
  /** Where the page before ended; null for the first. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** A page of rows. */
export interface EntryPage {
  readonly entries: readonly UsageRow[]
  /**
   * For the next page; null where this is the last. A page may be short, or empty, and not the last:
   * an engine stops looking after a while, so that no filter can hold it up.
   */
  readonly next: string | null
}

/** What was spent of a budget in the last day or month that it was used in. */
export interface BudgetSpent {
  /** Null where accounts share it. */
  readonly accountId: string | null
  readonly kind: BudgetDemand['kind']
  readonly subject: string
  /** Days or months since 1970 (UTC). */
  readonly period: number
  readonly nanoUsd: number
}

/** Up to when rows and sums are dropped, ms since 1970. */
export interface Retention {
  readonly entriesBeforeMs: number
  readonly hoursBeforeMs: number
  readonly daysBeforeMs: number
}

/**
 * Limits, budgets and usage. Fails as the store does: every method rejects with
 * `GatewayError(store_unavailable)` when the engine does not answer, and only then.
 */
export interface Ledger {
  /**
   * Checks all demands and commits all or nothing, in one atomic step; where it commits, the reservation
   * survives this process. The same request id again changes nothing and answers as the first time
   * (`admitted`).
   */
  admit(admission: Admission): Promise<AdmissionResult>
  /**
   * Appends the row, adds it to the sums, corrects budgets to `costNanoUsd` (null: the reservation stands
   * as charged) and token rates to the row's tokens, frees the places; one atomic step, once per request
   * id. Also without a reservation: then budgets are corrected by the claim, those of the row's own day and
   * month. What is resolved survives the death of this process and the engine's.
   */
  settle(row: UsageRow, claim?: Reservation): Promise<SettleOutcome>
  /**
   * As `settle`, for a request that holds nothing which others wait for: what is resolved survives the
   * death of this process, and whoever asks for rows or sums finds it. An engine that does better with
   * many rows at a time may put it where it belongs later.
   */
  append(row: UsageRow): Promise<void>
  /** A request that a slice let in has ended, whatever becomes of its row; only engines with slices want to know. */
  releaseSlots?(requestId: string): void
  /**
   * Takes more of token rates and budgets for a request that runs: all that is demanded or, if null, nothing. There is no
   * reservation of it: if this process dies, it stays charged.
   */
  raise(accountId: string, demands: Raise['demands']): Promise<Raise | null>
  /** Gives back what `raise` took; nothing of a day or month that is over. */
  lower(accountId: string, raise: Raise): Promise<void>
  /** Prolongs reservations of requests that still run; those that ended are passed over. */
  renew(
    requests: readonly { requestId: string; accountId: string }[],
    leaseMs: number,
  ): Promise<void>
  /**
   * Settles what has run out by its `unsettled` row; how many. Any process may, at any time. `overdueMs`
   * spares what has run out since: its process may only have been kept from telling how it ended.
   */
  expire(overdueMs?: number): Promise<number>
  /** How the demands stand, without taking anything. */
  limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]>
  /** In order of time. */
  sums(query: SumQuery): Promise<UsageSum[]>
  entries(query: EntryQuery): Promise<EntryPage>
  /** Null where there is none, or where it is another account's (null: any account's). */
  entry(accountId: string | null, requestId: string): Promise<UsageRow | null>
  /** Every row that arrived at or after `sinceMs`, oldest first, in batches. */
  export(sinceMs: number): AsyncIterable<readonly UsageRow[]>
  /** Each key that was used, in no order: quick where there are many, which `sums` is not. */
  keyUse(query: KeyUseQuery): Promise<KeyUse[]>
  /** When each key of the account, or each of these keys, was last used, ms since 1970. */
  lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * Puts sums of one account in the place of what there is of their key, model and bucket: rows are dropped
   * before sums are, so that a ledger that is moved needs both. `lastUse` is as the other engine tells it.
   * No gateway may use the ledger meanwhile. Idempotent.
   */
  putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void>
  /** All that has been spent of budgets, what is set aside included, in batches. */
  budgets(): AsyncIterable<readonly BudgetSpent[]>
  /**
   * Puts it in the place of what there is, unless that is of a later day or month. No gateway may use the
   * ledger meanwhile. Idempotent.
   */
  putBudgets(budgets: readonly BudgetSpent[]): Promise<void>
  /** Drops what is older; how many rows that were. */
  prune(retention: Retention): Promise<number>
}
