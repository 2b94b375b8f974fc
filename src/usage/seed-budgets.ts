/**
 * Budgets and quotas that begin in the middle of their day, week or month, or after years of use: the first
 * request that one counts starts a reading of the ledger in the background, and what was used before in the
 * same period is added. Requests never wait for it. A budget counts each request that is admitted after its
 * first one, so what is added are the requests that had ended when the first one arrived, and those that had
 * arrived a minute before it; later readings add those of them that were still running.
 */
import { Lru } from '../base/lru.js'
import { addNanoUsd, withoutNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { DAY_MS } from '../base/time-units.js'
import type { WindowKind } from '../base/limit-members.js'
import { SHADOW_ACCOUNT, type LedgerEntry } from '../ledger/entry.js'
import type { AdmissionRequest } from '../limits/reservation-types.js'
import type { BudgetDemand, Ledger, LimitState, QuotaDemand } from '../store/ledger.js'
import { isWindowed, periodOf, spanOf, windowAmounts, WINDOWS } from '../store/limit-arithmetic.js'
import type { EntryQuery, GroupUse } from '../store/usage-queries.js'
import { ExactUsage } from './exact-usage.js'

/** What is read and written. */
export interface SeedOptions {
  /** The store's ledger with the archive. */
  readonly ledger: Pick<
    Ledger,
    'addToBudget' | 'sums' | 'groupUse' | 'cells' | 'lastUse' | 'entries' | 'export' | 'entry'
  >
  /** The name of an account; null if it does not exist. */
  readonly nameOf: (accountId: string) => Promise<string | null>
  /** The first reading failed, and is repeated; until then the budget counts from its first request on. */
  readonly warn: (begun: { readonly accountId: string }, cause: unknown) => void
  /** The times of readings after the first request, in ms. */
  readonly delaysMs?: readonly number[]
  /** The time until a failed reading is repeated, longer with each failure. */
  readonly retryMs?: number
  readonly nowMs?: () => number
}

/** Requests that ran at the beginning have mostly ended after a minute, batches after a day. */
const DELAYS_MS = [0, 10_000, 60_000, 900_000, 90_000_000]
const RETRY_MS = 30_000
/** Budgets that wait for a reading. */
const MOST_WAITING = 20_000
/** Readings of a budget that fail in sequence. */
const MOST_FAILURES = 100
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
  /** The person who sent its first request. */
  readonly user: string | null
  /** When its first request arrived, ms since 1970. */
  readonly atMs: number
  /** What was added by readings. */
  readonly added: number
}

/** Reads the ledger for budgets that begin; holds timers until `close`. */
export class BudgetSeeds {
  private readonly options: SeedOptions
  private readonly nowMs: () => number
  private readonly timers = new Set<NodeJS.Timeout>()
  /** The last period of each budget that this process has met. */
  private readonly seen = new Lru<number>(MOST_WAITING)
  private last: Promise<void> = Promise.resolve()

  constructor(options: SeedOptions) {
    this.options = options
    this.nowMs = options.nowMs ?? Date.now
  }

  /** Notes the budgets whose first request this is. */
  admitted({ accountId, demands, unsettled }: AdmissionRequest, states: readonly LimitState[]): void {
    for (const [at, demand] of demands.entries()) {
      const state = states[at]
      if (state === undefined || !isWindowed(demand)) continue
      const period = periodOf(demand.kind, this.nowMs())
      const name = `${demand.kind} ${demand.shared ? '' : accountId} ${demand.subject}`
      const last = this.seen.get(name)
      if (last !== period) this.seen.set(name, period)
      // One that counted in the last period goes on: at midnight all of them have a first request.
      if (!isFirst(demand, state) || (last !== undefined && last >= period - 1)) continue
      const { user, atMs } = unsettled
      this.schedule({ accountId, demand, period, user, atMs, added: 0 }, 0)
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

  private schedule(begun: Begun, step: number, failures = 0): void {
    const delaysMs = this.options.delaysMs ?? DELAYS_MS
    const delayMs = failures === 0 ? delaysMs[step] : (this.options.retryMs ?? RETRY_MS) * failures
    if (delayMs === undefined || this.timers.size >= MOST_WAITING) return
    const timer = setTimeout(() => {
      this.timers.delete(timer)
      // In sequence: a reading must not take the store from requests.
      this.last = this.last.then(() => this.read(begun, step, failures))
    }, delayMs)
    this.timers.add(timer.unref())
  }

  private async read(begun: Begun, step: number, failures: number): Promise<void> {
    if (periodOf(begun.demand.kind, this.nowMs()) !== begun.period) return
    try {
      this.schedule({ ...begun, added: begun.added + (await this.seed(begun)) }, step + 1)
    } catch (error) {
      if (failures === 0) this.options.warn(begun, error)
      if (failures < MOST_FAILURES) this.schedule(begun, step, failures + 1)
    }
  }

  /** Adds what readings did not add yet. Returns what was added. */
  private async seed(begun: Begun): Promise<number> {
    const { accountId, demand, period } = begun
    const selected = selectionOf(begun)
    if (selected === null) return 0
    const { fromMs } = spanOf(demand.kind, begun.atMs)
    const cutMs = Math.max(fromMs, begun.atMs - MOST_UNTIL_ADMISSION_MS)
    const usage = new Sum()
    if (fromMs < cutMs) await this.addEarlier(usage, selected, { fromMs, toMs: cutMs })
    for await (const entry of this.entries(selected, { fromMs: cutMs, toMs: begun.atMs })) {
      if (entry.atMs + entry.durationMs <= begun.atMs) usage.addEntry(entry)
    }
    const { added: before } = begun
    const total = usage.of(demand.kind)
    if (total <= before) return 0
    const isAdded = await this.options.ledger.addToBudget(accountId, demand, { period, before, total })
    return isAdded ? total - before : 0
  }

  /** Adds what was used by requests that arrived in a time. */
  private async addEarlier(usage: Sum, selected: Selected, time: Time): Promise<void> {
    const { ledger } = this.options
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
        const above = await this.options.nameOf(name)
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
        for await (const entry of this.entries(selected, time)) usage.addEntry(entry)
        return
      default:
        of satisfies never
    }
  }

  /** The entries that a budget counts, of a time. */
  private async *entries(selected: Selected, time: Time): AsyncGenerator<LedgerEntry> {
    const of = await this.conditionOf(selected)
    for (let after: string | null = null; ;) {
      const page = await this.options.ledger.entries({ ...of, ...time, after, limit: PAGE })
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
        const above = await this.options.nameOf(name)
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

/** Whether the budget counts this request alone. */
function isFirst(demand: Counted, { limit, remaining }: LimitState): boolean {
  const { cost } = windowAmounts(demand)
  return limit - remaining === Math.min(cost, limit)
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
