/**
 * The ledger in Redis: one script admits requests, one settles them. `RedisUsage` has the queries.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { unavailable } from '../../store-errors.js'
import { LeaseClock } from '../../lease-clock.js'
import type { Admission, AdmissionResult, Ledger, Reservation, SettleOutcome } from '../../ledger.js'
import { correctionOf } from '../../records/correct-entry.js'
import { readEntry } from '../../records/entry-text.js'
import type { StoreOptions } from '../../store.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseNumbers } from '../connection/parse-replies.js'
import { Admissions } from '../limits/admissions.js'
import { parseSharedHolds, type SliceReport } from '../limits/encode-demands.js'
import { Slices } from '../limits/slices.js'
import { RedisArchiveFeed, type SettleAsked } from './archive-feed.js'
import type { LedgerContext } from './context.js'
import { groupBy, ACCOUNTS, leaseMember, LedgerKeys, LEDGER_SCRIPTS } from './ledger-keys.js'
import { RedisAccountUse } from './account-use.js'
import { budgets, putBudgets, putLastUse, putSums } from './migrate-usage.js'
import { RedisPropertySums } from './property-sums.js'
import { EntryMemory } from './fit-memory.js'
import { UsagePruning } from './prune.js'
import { RedisUsage } from './read-usage.js'
import type { EntryNames } from './sorted-entries.js'
import { Settlement, type SettledEntry } from './settlement.js'

/** Expired reservations that are read and settled together. */
const MAX_EXPIRED = 64
const MAX_RENEWED = 256
/** Maximum number of accounts in `listed`. */
const MAX_LISTED = 100_000
const MAX_NAME_LENGTH = 400

/** The ledger of a store, on connections of the engine. */
export class RedisLedger implements Ledger {
  private readonly context: LedgerContext
  private readonly pruning: UsagePruning
  private readonly usage: RedisUsage
  private readonly entryMemory: EntryMemory
  readonly archive: RedisArchiveFeed
  private readonly uses: RedisAccountUse
  private readonly admissions: Admissions
  private readonly settlement: Settlement
  private readonly sliceReporter: SliceReporter
  /** Accounts that this process has added to those that queries over all accounts read. */
  private readonly listed = new Set<string>()
  private attempts = 0
  /** By the key of the leases: in a Cluster, servers have different clocks. */
  private readonly leaseClocks = new Map<string, LeaseClock>()
  private readonly monotonicMs: () => number

  /** `nowMs` replaces the server's clock. */
  constructor(
    { address, ledger, admin }: RedisEngine,
    { nowMs, monotonicMs }: Pick<StoreOptions, 'nowMs' | 'monotonicMs'>,
    entryNames: EntryNames,
  ) {
    this.monotonicMs = monotonicMs ?? nowMs ?? (() => performance.now())
    const names = new LedgerKeys(address.kind === 'cluster')
    const slices = new Slices((accountId, demand) => names.slice(accountId, demand))
    const processName = `${process.pid}.${Math.floor(Math.random() * 2 ** 40).toString(36)}`
    this.context = { link: ledger, names, clock: nowMs ?? (() => ''), slices, processName }
    // Queries may take longer.
    const properties = new RedisPropertySums(admin, names)
    this.usage = new RedisUsage(admin, names, { properties, entryNames, nowMs: nowMs ?? Date.now })
    this.uses = new RedisAccountUse(admin, names, this.usage)
    this.pruning = new UsagePruning({ link: admin, names }, this.usage, this.uses)
    const { usage, pruning } = this
    this.entryMemory = new EntryMemory({ link: admin, names, usage, pruning, nowMs: nowMs ?? Date.now })
    const settle: SettleAsked = (...args) => this.settleAsked(...args)
    const { clock } = this.context
    this.archive = new RedisArchiveFeed({ link: admin, names, usage, pruning, settle, clock })
    this.admissions = new Admissions(this.context)
    this.settlement = new Settlement(this.context)
    this.sliceReporter = new SliceReporter(this.context)
    this.budgets = () => budgets(admin)
  }

  readonly sums: Ledger['sums'] = (query) => this.usage.sums(query)
  readonly cells: Ledger['cells'] = (query) => this.usage.cells(query)
  readonly entries: Ledger['entries'] = (query) => this.usage.entries(query)
  readonly entry: Ledger['entry'] = (accountId, id) => this.usage.entry(accountId, id)
  readonly export: Ledger['export'] = (sinceMs) => this.usage.export(sinceMs)
  readonly keyUse: Ledger['keyUse'] = (query) => this.usage.keyUse(query)
  readonly groupUse: Ledger['groupUse'] = (query) => this.usage.groupUse(query)
  readonly accountUse: Ledger['accountUse'] = (query) => this.uses.of(query)
  readonly prunedUse: Ledger['prunedUse'] = () => this.uses.pruned()
  readonly lastUse: Ledger['lastUse'] = (accountId, ids) => this.usage.lastUse(accountId, ids)
  readonly prune: Ledger['prune'] = (retention) => this.pruning.prune(retention)
  readonly memory: Ledger['memory'] = (limit) => this.entryMemory.of(limit)
  readonly fitMemory: Ledger['fitMemory'] = (limit) => this.entryMemory.fit(limit)
  readonly budgets: Ledger['budgets']
  readonly limitStates: Ledger['limitStates'] = (accountId, demands) =>
    this.admissions.limitStates(accountId, demands)
  readonly lower: Ledger['lower'] = (accountId, raise) => this.admissions.lower(accountId, raise)

  readonly addToBudget: Ledger['addToBudget'] = (accountId, demand, added) =>
    this.admissions.addToBudget(accountId, demand, added)

  readonly budgetMarks: Ledger['budgetMarks'] = (accountId, demands) =>
    this.admissions.budgetMarks(accountId, demands)

  async admit(admission: Admission): Promise<AdmissionResult> {
    const { accountId, requestId, unsettled } = admission
    const what = 'admitting a request'
    assertNames(what, requestId, accountId, unsettled.keyId, unsettled.model)
    if (admission.isTaken) {
      await this.list(what, accountId)
      await this.admissions.note(admission)
      return { admitted: true, limitStates: [] }
    }
    const { slices, processName } = this.context
    const limitStates = slices.take(admission, performance.now())
    if (limitStates !== null) return { admitted: true, limitStates, isSlice: true }
    await this.list(what, accountId)
    // Unique to this attempt: a refusal must return only what this attempt took.
    const member = `${requestId}#${processName}.${(this.attempts += 1)}`
    const decision = await this.admissions.take(admission, member)
    return { admitted: decision.outcome !== 'refused', limitStates: decision.limitStates }
  }

  releaseSlots(requestId: string): void {
    this.context.slices.releaseSlots(requestId)
  }

  async append(entry: LedgerEntry): Promise<void> {
    await this.settle(entry)
  }

  async settle(entry: LedgerEntry, reservation?: Reservation): Promise<SettleOutcome> {
    const outcome = await this.settled({ entry, mode: '', reservation })
    if (outcome === 'late') await this.archive.addLate(entry, reservation)
    return outcome === 'already' ? this.correct(entry, reservation, null) : outcome
  }

  /** Settles an entry that was looked up in the archive; `known` is what it has. */
  private async settleAsked(
    entry: LedgerEntry,
    reservation: Reservation | undefined,
    known: LedgerEntry | null,
  ): Promise<SettleOutcome> {
    const outcome = known === null ? await this.settled({ entry, mode: 'asked', reservation }) : 'already'
    return outcome === 'already' ? this.correct(entry, reservation, known) : outcome
  }

  /** Replaces the entry that an expired reservation has left, in the log or in the archive. */
  private async correct(
    entry: LedgerEntry,
    reservation: Reservation | undefined,
    archived: LedgerEntry | null,
  ): Promise<SettleOutcome> {
    const accountId = archived?.accountId ?? entry.accountId
    const stored = await this.usage.log.stored(accountId, entry.requestId)
    const former = stored?.entry ?? archived
    const next = former === null ? null : correctionOf(former, entry)
    if (former === null || next === null) return 'already'
    const demands = reservation?.demands ?? []
    const correction = { former, member: stored?.member ?? null, entry: next, demands }
    return (await this.settlement.correct(correction)) ? 'corrected' : 'already'
  }

  readonly raise: Ledger['raise'] = (accountId, demands) => {
    assertNames('raising a reservation', accountId)
    return this.admissions.raise(accountId, demands)
  }

  async renew(requests: readonly { requestId: string; accountId: string }[], leaseMs: number): Promise<void> {
    const { link, names, clock } = this.context
    const what = 'renewing reservations'
    if (requests.length === 0) await link.opened()
    for (const [accountId, own] of groupBy(requests, (request) => request.accountId)) {
      const keys = [names.reservations(accountId), names.ends(accountId)]
      for (let from = 0; from < own.length; from += MAX_RENEWED) {
        const ids = own.slice(from, from + MAX_RENEWED).map(({ requestId }) => requestId)
        const members = ids.flatMap((id) => [id, leaseMember(accountId, id)])
        const answer = await link.run(what, LEDGER_SCRIPTS.renew, {
          keys,
          args: [clock(), leaseMs, this.leaseClockOf(names.ends(accountId)).heldBackMs, ...members],
        })
        const shared = listOf(answer).flatMap(parseSharedHolds)
        for (const [kind, key, , , member] of shared.flatMap(([, , holds]) => holds)) {
          if (kind !== 'concurrent') continue
          await link.run(what, LEDGER_SCRIPTS.renewShared, {
            keys: [key],
            args: [clock(), leaseMs, member],
          })
        }
      }
    }
  }

  async expire(overdueMs = 0): Promise<number> {
    const { link, names, clock } = this.context
    const what = 'settling expired reservations'
    let count = 0
    for (const account of names.isCluster ? await this.usage.accounts() : ['']) {
      for (;;) {
        const ends = names.ends(account)
        const args = [clock(), MAX_EXPIRED, overdueMs]
        const [nowMs, ...leases] = listOf(
          await link.run(what, LEDGER_SCRIPTS.listExpired, { keys: [ends], args }),
        )
        const latestMs = this.leaseClockOf(ends).read(Number(nowMs)) - overdueMs
        const due = leases.filter((_, at) => at % 2 === 0 && Number(leases[at + 1]) <= latestMs)
        const done = await Promise.all(due.map((member) => this.settleDue(what, String(member))))
        count += done.filter(Boolean).length
        // Reservations that could not be settled are still expired: trying again at once would not end.
        if (due.length < MAX_EXPIRED || !done.includes(true)) break
      }
    }
    return count
  }

  readonly putSums: Ledger['putSums'] = async (by, sums, lastUse) => {
    const { accountId } = sums[0] ?? {}
    if (accountId === undefined) return
    await this.list('putting sums', accountId)
    await putSums(this.context, by, sums)
    const known = await this.usage.lastUse(accountId)
    const later = Array.from(lastUse).filter(([keyId, atMs]) => atMs > (known.get(keyId) ?? 0))
    await putLastUse(this.context, accountId, new Map(later))
  }

  readonly putAccountUse: Ledger['putAccountUse'] = async (uses) => {
    for (const { accountId } of uses) await this.list('putting the use of accounts', accountId)
    await this.uses.put(uses)
  }

  readonly putBudgets: Ledger['putBudgets'] = (all) => putBudgets(this.context, all)

  /** Resolves when connected. */
  opened(): Promise<void> {
    return this.context.link.opened()
  }

  /** Returns the rest of all slices. Never rejects. */
  close(): Promise<void> {
    return this.sliceReporter.end()
  }

  private leaseClockOf(ends: string): LeaseClock {
    const known = this.leaseClocks.get(ends)
    if (known !== undefined) return known
    const made = new LeaseClock(this.monotonicMs)
    this.leaseClocks.set(ends, made)
    return made
  }

  private async settled(settled: SettledEntry): Promise<SettleOutcome> {
    const what = 'settling a request'
    const { accountId, requestId, keyId, model } = settled.entry
    assertNames(what, requestId, accountId, keyId, model)
    await this.list(what, accountId)
    return this.settlement.settle(settled)
  }

  private async settleDue(what: string, member: string): Promise<boolean> {
    const { link, names } = this.context
    const [accountId = '', requestId = ''] = member.split('\0')
    const text = await link.send(what, 'hget', [names.reservations(accountId), requestId])
    if (typeof text !== 'string') {
      await link.send(what, 'zrem', [names.ends(accountId), member])
      return false
    }
    const record = text.slice(text.lastIndexOf('\n') + 1)
    return (await this.settled({ entry: readEntry(record), mode: 'due' })) === 'settled'
  }

  /** Adds the account to those that queries over all accounts read. */
  private async list(what: string, accountId: string): Promise<void> {
    if (this.listed.has(accountId)) return
    await this.context.link.send(what, 'sadd', [ACCOUNTS, accountId])
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

/** Interval of the reports. */
const ROUND_MS = 500

/**
 * Runs a timer until `end`.
 *
 * Reports slices that no settlement has reported: it renews those of long requests and returns those that are
 * idle.
 */
class SliceReporter {
  private readonly context: LedgerContext
  private readonly timer: NodeJS.Timeout
  private isBusy = false

  constructor(context: LedgerContext) {
    this.context = context
    this.timer = setInterval(() => void this.round(), ROUND_MS).unref()
  }

  /** Returns what is left of all slices. Never rejects. */
  async end(): Promise<void> {
    clearInterval(this.timer)
    await this.report(this.context.slices.finalReports(performance.now()))
  }

  private async round(): Promise<void> {
    if (this.isBusy) return
    this.isBusy = true
    await this.report(this.context.slices.overdueReports(performance.now()))
    this.isBusy = false
  }

  /** Never rejects: reports have totals, so a lost one is repaired by the next. */
  private async report(reports: readonly SliceReport[]): Promise<void> {
    const { link, names, clock, slices, processName } = this.context
    // Keys of one slot have the same hash tag.
    const slotOf = ([key]: SliceReport) => (names.isCluster ? key.slice(0, key.indexOf('}')) : '')
    for (const group of groupBy(reports, slotOf).values()) {
      const reportedAtMs = performance.now()
      const args = [clock(), processName, JSON.stringify(group)]
      try {
        const keys = group.map(([key]) => key)
        const answer = await link.run('keeping slices', LEDGER_SCRIPTS.reportSlices, { keys, args })
        slices.applyReplies(group, parseNumbers(answer), { reportedAtMs, nowMs: performance.now() })
      } catch {
        // Redis is unavailable: slices end by themselves.
        return
      }
    }
  }
}
