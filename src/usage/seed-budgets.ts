/**
 * Budgets and quotas that begin in the middle of their day, week or month, or after years of use: the store
 * marks them when they begin, and the first request that a process sees of one starts a reading of the ledger
 * in the background: what was used before in the same period is added. Requests never wait for it. A budget
 * counts each request that is admitted after its first one, so what is added are the requests that had been
 * admitted when the first one arrived, and those that had arrived a minute before it; later readings add
 * those of them that were still running, or whose entries were on the disk of a machine. The mark stays until
 * the last reading, so a gateway that starts goes on; it tells since when a budget counts whose earlier use
 * the ledger does not have, or not while the archive is away.
 */
import { Lru } from '../base/lru.js'
import { addNanoUsd, withoutNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import { GatewayError } from '../errors.js'
import type { WindowKind } from '../base/limit-members.js'
import { SHADOW_ACCOUNT, type LedgerEntry } from '../ledger/entry.js'
import type { AdmissionRequest } from '../limits/reservation-types.js'
import type { BudgetDemand, Ledger, QuotaDemand } from '../store/ledger.js'
import { isWindowed, periodOf, spanOf, WINDOWS } from '../store/limit-arithmetic.js'
import type { EntryQuery, GroupUse } from '../store/usage-queries.js'
import { ExactUsage } from './exact-usage.js'
import type { KeptTimes } from './kept-times.js'

/** What is read and written. */
export interface SeedOptions {
  /** The store's ledger with the archive. */
  readonly ledger: SeedLedger
  /** The store's ledger alone, which is read while the archive is away; absent: there is no archive. */
  readonly own?: SeedLedger
  /** From when on the ledger has everything; `ofStore`: the store alone. */
  readonly kept: (ofStore: boolean) => Promise<KeptTimes>
  /** An account, or a key of one; null if it does not exist. */
  readonly ownerOf: (of: 'account' | 'key', id: string, accountId: string) => Promise<Owner | null>
  /** Whether this process does a reading, which all processes may begin. Default: it does. */
  readonly isTurn?: (name: string) => Promise<boolean>
  /** The first reading failed, and is repeated; until then the budget counts from its first request on. */
  readonly warn: (begun: { readonly accountId: string }, cause: unknown) => void
  /** The times of readings after the budget began, in ms. */
  readonly delaysMs?: readonly number[]
  /** The time until a failed reading is repeated, longer with each failure. */
  readonly retryMs?: number
  readonly nowMs?: () => number
}

type SeedLedger = Pick<
  Ledger,
  'addToBudget' | 'budgetMarks' | 'sums' | 'groupUse' | 'cells' | 'lastUse' | 'entries' | 'export' | 'entry'
>

/** Whose requests a budget counts. */
interface Owner {
  readonly name: string
  readonly createdAtMs: number
}

/**
 * Requests that ran at the beginning have mostly ended after a minute, batches after a day; entries on the
 * disk of a machine arrive when it is back, mostly within weeks.
 */
const DELAYS_MS = [0, 10_000, 60_000, 900_000, 90_000_000, 7 * DAY_MS, 28 * DAY_MS]
const RETRY_MS = 30_000
const MOST_RETRY_MS = 900_000
/** The longest delay of a timer. */
const MOST_DELAY_MS = 20 * DAY_MS
/** Budgets that wait for a reading. */
const MOST_WAITING = 20_000
/** A budget whose requests ended longer before its period may have had no rule in between. */
const GOES_ON_MS = HOUR_MS
/** Entries that are read at once. */
const PAGE = 1_000
/** A request is admitted at most this long after it arrived; very slow uploads take longer. */
const MOST_UNTIL_ADMISSION_MS = 60_000
/** How sums are read. */
const DAYS = {
  by: 'day',
  stepMs: DAY_MS,
  zone: 'UTC',
  starts: new Map<number, number>(),
  extendedTo: null,
} as const

type Counted = BudgetDemand | QuotaDemand

/** A budget that has begun. */
interface Begun {
  readonly accountId: string
  readonly demand: Counted
  readonly period: number
  readonly name: string
  /** The person who sent a request of it. */
  readonly user: string | null
}

/** What a reading has found. */
interface Found {
  readonly total: number
  /** Null: everything in the period. */
  readonly sinceMs: number | null
}

/** Reads the ledger for budgets that begin; holds timers until `close`. */
export class BudgetSeeds {
  private readonly options: SeedOptions
  private readonly nowMs: () => number
  private readonly timers = new Set<NodeJS.Timeout>()
  /** The last period of each budget that this process has met, and its last request in it. */
  private readonly seen = new Lru<{ readonly period: number; lastMs: number }>(MOST_WAITING)
  private last: Promise<void> = Promise.resolve()

  constructor(options: SeedOptions) {
    this.options = options
    this.nowMs = options.nowMs ?? Date.now
  }

  /** Looks for the marks of budgets that this process has not met in their period. */
  admitted({ accountId, demands, unsettled }: AdmissionRequest): void {
    const nowMs = this.nowMs()
    for (const demand of demands) {
      if (!isWindowed(demand)) continue
      const period = periodOf(demand.kind, nowMs)
      const name = `${demand.kind} ${demand.shared ? '' : accountId} ${demand.subject}`
      const last = this.seen.get(name)
      if (last?.period === period) {
        last.lastMs = nowMs
        continue
      }
      this.seen.set(name, { period, lastMs: nowMs })
      // One that counted at the end of the last period goes on: at midnight all of them have a first request.
      if (last !== undefined && last.lastMs >= spanOf(demand.kind, nowMs).fromMs - GOES_ON_MS) continue
      this.schedule({ accountId, demand, period, name, user: unsettled.user }, 0)
    }
  }

  /** Resolves when no reading runs. */
  async idle(): Promise<void> {
    await this.last
  }

  /** Ends all timers. */
  close(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }

  private schedule(begun: Begun, delayMs: number, failures = 0): void {
    if (this.timers.size >= MOST_WAITING) return
    const timer = setTimeout(
      () => {
        this.timers.delete(timer)
        // In sequence: a reading must not take the store from requests.
        this.last = this.last.then(() => this.read(begun, failures))
      },
      Math.min(MOST_DELAY_MS, delayMs),
    )
    this.timers.add(timer.unref())
  }

  private async read(begun: Begun, failures: number): Promise<void> {
    const { accountId, demand, period, name } = begun
    if (periodOf(demand.kind, this.nowMs()) !== period) return
    try {
      const [mark = null] = await this.options.ledger.budgetMarks(accountId, [demand])
      const selected = selectionOf(begun)
      if (mark === null || mark.begunMs === null || selected === null) return
      const { begunMs } = mark
      const delaysMs = this.options.delaysMs ?? DELAYS_MS
      const next = delaysMs.findIndex((delayMs) => begunMs + delayMs > this.nowMs())
      const isLast = next < 0
      if ((await this.options.isTurn?.(`${name} ${period} ${next} ${failures > 0}`)) !== false) {
        const isAdded = await this.seed(begun, { begunMs, selected, isLast })
        if (!isAdded) return
      }
      if (!isLast) this.schedule(begun, begunMs + (delaysMs[next] ?? 0) - this.nowMs())
    } catch (error) {
      if (failures === 0) this.options.warn(begun, error)
      const retryMs = this.options.retryMs ?? RETRY_MS
      this.schedule(begun, Math.min(MOST_RETRY_MS, retryMs * (failures + 1)), failures + 1)
    }
  }

  /** Adds what readings did not add yet; false if the period of the budget is over. */
  private async seed({ accountId, demand, period }: Begun, seeding: Seeding): Promise<boolean> {
    const { ledger, own } = this.options
    const add = (found: Found, isLast: boolean): Promise<boolean> =>
      ledger.addToBudget(accountId, demand, { period, ...found, isLast })
    try {
      return await add(await this.found(demand, seeding, ledger), seeding.isLast)
    } catch (error) {
      if (own === undefined || !(error instanceof GatewayError) || error.kind !== 'archive_unavailable')
        throw error
      // What the store has counts at once.
      await add(await this.found(demand, seeding, own), false)
      throw error
    }
  }

  /** What the ledger has of the use before the budget began. */
  private async found(demand: Counted, { begunMs, selected }: Seeding, ledger: SeedLedger): Promise<Found> {
    const { fromMs } = spanOf(demand.kind, begunMs)
    const cutMs = Math.max(fromMs, begunMs - MOST_UNTIL_ADMISSION_MS)
    const usage = new Sum()
    // What leaves the ledger during the reading is not in it.
    const kept = await this.options.kept(ledger !== this.options.ledger)
    if (fromMs < cutMs) await this.addEarlier(usage, selected, { fromMs, toMs: cutMs }, ledger)
    for await (const entry of this.entries(selected, { fromMs: cutMs, toMs: begunMs }, ledger)) {
      if (admittedMs(entry) < begunMs) usage.addEntry(entry)
    }
    const sinceMs = await this.completeFrom(selected, kept, cutMs)
    return { total: usage.of(demand.kind), sinceMs: sinceMs <= fromMs ? null : Math.min(sinceMs, begunMs) }
  }

  /** From when on a reading has found everything; ms since 1970, 0 for always. */
  private async completeFrom(
    { of, name, accountId }: Selected,
    { entriesFromMs, sumsFromMs }: KeptTimes,
    cutMs: number,
  ): Promise<number> {
    const edgeMs = Math.floor(cutMs / HOUR_MS) * HOUR_MS
    // No sums are kept by person.
    if (of === 'user') return entriesFromMs
    const fromMs = entriesFromMs > edgeMs ? Math.max(entriesFromMs, sumsFromMs) : sumsFromMs
    if (of === 'model' || of === 'upstream' || of === 'label') return fromMs
    const owner = await this.options.ownerOf(of === 'key' ? 'key' : 'account', name, accountId)
    return owner !== null && owner.createdAtMs >= fromMs ? 0 : fromMs
  }

  /** Adds what was used by requests that arrived in a time. */
  private async addEarlier(usage: Sum, selected: Selected, time: Time, ledger: SeedLedger): Promise<void> {
    const { of, name, accountId, model } = selected
    const ofModel = model === undefined ? {} : { model }
    const exact = new ExactUsage(ledger, { ...DAYS, ...time, nowMs: this.nowMs() })
    switch (of) {
      case 'key': {
        const last = (await ledger.lastUse(accountId, [name])).get(name) ?? 0
        if (last >= time.fromMs) usage.add(await exact.sums({ ...ofModel, accountId, keyId: name }))
        return
      }
      case 'account':
        usage.add(await exact.sums({ ...ofModel, accountId: name, per: 'model' }))
        return
      case 'tree': {
        const above = (await this.options.ownerOf('account', name, name))?.name ?? null
        const all = await exact.groups({ accountId: null, by: 'account' })
        usage.add(all.filter(({ keyId }) => isWithin(keyId, name, above)))
        return
      }
      case 'model':
      case 'upstream':
      case 'label': {
        // Copies of requests have an account of their own, which no budget counts.
        const subject =
          of === 'model' ? { model: name, per: 'model' as const } : { property: `${of}=${name}` as const }
        usage.add(await exact.sums({ ...subject, accountId: null }))
        usage.add(await exact.sums({ ...subject, accountId: SHADOW_ACCOUNT }), -1)
        return
      }
      case 'user':
        // No sums are kept by person.
        for await (const entry of this.entries(selected, time, ledger)) usage.addEntry(entry)
        return
      default:
        of satisfies never
    }
  }

  /** The entries that a budget counts, of a time. */
  private async *entries(
    selected: Selected,
    time: Time,
    ledger: Pick<Ledger, 'entries'>,
  ): AsyncGenerator<LedgerEntry> {
    const of = await this.conditionOf(selected)
    for (let after: string | null = null; ;) {
      const page = await ledger.entries({ ...of, ...time, after, limit: PAGE })
      yield* page.entries
      after = page.next
      if (after === null) return
    }
  }

  private async conditionOf({
    of,
    name,
    accountId,
    model,
  }: Selected): Promise<Omit<EntryQuery, keyof Time | 'after' | 'limit'>> {
    const ofModel = model === undefined ? {} : { model }
    switch (of) {
      case 'key':
        return { accountId, keyId: name, ...ofModel }
      case 'account':
        return { accountId: name, ...ofModel }
      case 'tree': {
        const above = (await this.options.ownerOf('account', name, name))?.name ?? null
        if (above === null) return { accountId: name }
        return { accountId: null, within: { accountId: name, name: above } }
      }
      case 'label':
      case 'model':
      case 'upstream':
      case 'user':
        return { accountId: null, [of]: name }
      default:
        return of satisfies never
    }
  }
}

/** Requests, tokens and cost. */
class Sum {
  private requests = 0
  private tokens = 0
  private nanoUsd: NanoUsd = 0

  add(
    all: readonly Pick<GroupUse, 'requests' | 'failed' | 'inputTokens' | 'outputTokens' | 'costNanoUsd'>[],
    factor: 1 | -1 = 1,
  ): void {
    for (const sum of all) {
      // Of those that failed, the ledger does not tell which were admitted: most were refused before it.
      this.requests += factor * (sum.requests - sum.failed)
      this.tokens += factor * (sum.inputTokens + sum.outputTokens)
      const sumOf = factor === 1 ? addNanoUsd : withoutNanoUsd
      this.nanoUsd = sumOf(this.nanoUsd, sum.costNanoUsd)
    }
  }

  addEntry({ accountId, outcome, usage, costNanoUsd }: LedgerEntry): void {
    if (accountId === SHADOW_ACCOUNT) return
    if (outcome === 'ok') this.requests += 1
    this.tokens += (usage.input ?? 0) + (usage.output ?? 0)
    this.nanoUsd = addNanoUsd(this.nanoUsd, costNanoUsd ?? 0)
  }

  /** In requests, tokens or nano-dollars. */
  of(kind: WindowKind): number {
    switch (WINDOWS[kind].counts) {
      case 'usd':
        return Math.min(Number(this.nanoUsd), Number.MAX_SAFE_INTEGER)
      case 'tokens':
        return this.tokens
      default:
        return this.requests
    }
  }
}

/** When the request was admitted, ms since 1970; if that is not known, when it ended. */
function admittedMs({ atMs, durationMs, hops }: LedgerEntry): number {
  const { authenticate, receive, route, admit } = hops
  if (admit === undefined) return atMs + durationMs
  return atMs + (authenticate ?? 0) + (receive ?? 0) + (route ?? 0) + admit
}

/** A reading of what was used before a budget began. */
interface Seeding {
  readonly begunMs: number
  readonly selected: Selected
  readonly isLast: boolean
}

/** Whether a group by account, its id and its path, is an account or below it. */
function isWithin(group: string, id: string, name: string | null): boolean {
  const end = group.indexOf(' ')
  if (group.slice(0, end) === id) return true
  const above = group
    .slice(end + 1)
    .split('/')
    .slice(0, -1)
  return name !== null && above.includes(name)
}

/** What the entries of a budget have in common. */
interface Selected {
  readonly of: 'key' | 'account' | 'tree' | 'model' | 'upstream' | 'label' | 'user'
  readonly name: string
  /** The account of the request. */
  readonly accountId: string
  readonly model?: string
}

/** A time in ms since 1970; `toMs` is exclusive. */
interface Time {
  readonly fromMs: number
  readonly toMs: number
}

/** Additions to a subject that select no fewer requests of the ledger: those of a plan are all. */
const SAME = /^(?:own|of-plan|plan|value|key=.*|account=.*)$/

/**
 * Null for subjects whose requests the sums of the ledger do not tell apart, and for values of dimensions:
 * those begin and end all the time, and mostly with their first request.
 */
function selectionOf({ demand: { subject }, accountId, user }: Begun): Selected | null {
  const [first = '', ...more] = subject.split(';')
  const scope = first.slice(0, first.indexOf(':'))
  const name = first.slice(scope.length + 1)
  const model = more.find((each) => each.startsWith('model='))?.slice('model='.length)
  const isOfOne = scope === 'key' || scope === 'account'
  if (
    more.some(
      (each) =>
        !(SAME.test(each) && (isOfOne || each === 'value')) && !(isOfOne && each === `model=${model ?? ''}`),
    )
  )
    return null
  switch (scope) {
    case 'key':
      return { of: 'key', name, accountId, ...(model === undefined ? {} : { model }) }
    case 'account':
      if (more.includes('own')) return { of: 'tree', name, accountId }
      return { of: 'account', name, accountId, ...(model === undefined ? {} : { model }) }
    case 'user':
      return user === null ? null : { of: 'user', name: user, accountId }
    case 'model':
    case 'upstream':
    case 'label':
      return { of: scope, name, accountId }
    default:
      return null
  }
}
