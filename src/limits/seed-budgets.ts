/**
 * Budgets and quotas that begin in the middle of their day, week or month, or after years of use: the first
 * request that one counts starts a reading of the ledger in the background, and what was used before in the
 * same period is added. Requests never wait for it. Requests that ran at the beginning and were not counted
 * are added by later readings. Exact, unless requests of the budget end all the time while the ledger is
 * read: then those that ended during the last reading are counted twice.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Lru } from '../base/lru.js'
import { addNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { HOUR_MS } from '../base/time-units.js'
import type { WindowKind } from '../base/limit-members.js'
import type { BudgetDemand, Ledger, LimitState, QuotaDemand } from '../store/ledger.js'
import { isWindowed, periodOf, spanOf, windowAmounts, WINDOWS } from '../store/limit-arithmetic.js'
import type { EntryPage, GroupUse, UsageSum } from '../store/usage-queries.js'
import type { AdmissionRequest } from './reservation-types.js'

/** What is read and written. */
export interface SeedOptions {
  /** The store's ledger with the archive. */
  readonly ledger: Pick<Ledger, 'budgetUse' | 'addToBudget' | 'sums' | 'groupUse' | 'lastUse' | 'entries'>
  /** The name of an account; null if it does not exist. */
  readonly nameOf: (accountId: string) => Promise<string | null>
  /** The first reading failed, and is repeated; until then the budget counts from its first request on. */
  readonly warn: (begun: { readonly accountId: string }, cause: unknown) => void
  /** The times of readings after the first request, in ms. */
  readonly delaysMs?: readonly number[]
  readonly nowMs?: () => number
}

/** Requests that ran at the beginning have mostly ended after a minute, batches after a day. */
const DELAYS_MS = [0, 10_000, 60_000, 900_000, 90_000_000]
const RETRY_MS = 30_000
/** The readings of a budget that counts ended requests all the time. */
const MOST_READS = 10
const PAUSE_MS = 20
/** Budgets that wait for a reading. */
const MOST_WAITING = 20_000
/** Entries that are read at once. */
const PAGE = 1_000
/** Readings of a budget that fail in sequence. */
const MOST_FAILURES = 100
/** The account of copies, which no budget counts. */
const SHADOW = 'shadow'

type Counted = BudgetDemand | QuotaDemand

/** A budget that has begun. */
interface Begun {
  readonly accountId: string
  readonly demand: Counted
  readonly period: number
  /** The person who sent its first request. */
  readonly user: string | null
}

/** What was used. */
interface Used {
  readonly requests: number
  readonly tokens: number
  readonly nanoUsd: number
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
      this.schedule({ accountId, demand, period, user: unsettled.user }, 0)
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
    const delayMs = failures === 0 ? delaysMs[step] : RETRY_MS * failures
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
      await this.seed(begun)
      this.schedule(begun, step + 1)
    } catch (error) {
      if (failures === 0) this.options.warn(begun, error)
      if (failures < MOST_FAILURES) this.schedule(begun, step, failures + 1)
    }
  }

  private async seed({ accountId, demand, period, user }: Begun): Promise<void> {
    const { ledger } = this.options
    for (let reads = 1; reads <= MOST_READS; reads += 1) {
      const known = await ledger.budgetUse(accountId, demand)
      if (known.period !== period) return
      const used = await this.usedBy(accountId, demand, user)
      const missing = used === null ? 0 : amountIn(used, demand.kind) - known.settled
      if (missing <= 0) return
      // A request may have ended between the readings of both.
      const settled = reads < MOST_READS ? { settled: known.settled } : {}
      if (await ledger.addToBudget(accountId, demand, { period, amount: missing, ...settled })) return
      await delay(reads * PAUSE_MS, undefined, { ref: false })
    }
  }

  /** What the ledger has of the running period of a budget; null if sums do not tell. */
  private async usedBy(
    accountId: string,
    { subject, kind }: Counted,
    user: string | null,
  ): Promise<Used | null> {
    const { ledger } = this.options
    const nowMs = this.nowMs()
    const { fromMs } = spanOf(kind, nowMs)
    const selected = selectionOf(subject, user)
    if (selected === null) return null
    const range = { by: 'day', fromMs, toMs: nowMs } as const
    const { of, name, model } = selected
    const ofModel = model === undefined ? {} : { model }
    switch (of) {
      case 'key': {
        const last = (await ledger.lastUse(accountId, [name])).get(name) ?? 0
        return last < fromMs
          ? NOTHING
          : added(await ledger.sums({ ...range, ...ofModel, accountId, keyId: name }))
      }
      case 'account':
        return added(await ledger.sums({ ...range, ...ofModel, accountId: name, per: 'model' }))
      case 'tree':
        return this.usedBelow(name, fromMs, nowMs)
      case 'model':
        return this.withoutCopies((own) => ledger.sums({ ...range, ...own, model: name, per: 'model' }))
      case 'upstream':
      case 'label':
        return this.withoutCopies((own) => ledger.sums({ ...range, ...own, property: `${of}=${name}` }))
      case 'user':
        return this.usedByPerson(name, fromMs, nowMs + 1)
      default:
        return of satisfies never
    }
  }

  /** What an account and those that were below it used. */
  private async usedBelow(accountId: string, fromMs: number, nowMs: number): Promise<Used> {
    const name = await this.options.nameOf(accountId)
    const toMs = Math.ceil((nowMs + 1) / HOUR_MS) * HOUR_MS
    const all = await this.options.ledger.groupUse({ accountId: null, by: 'account', fromMs, toMs })
    return added(
      all.filter(({ keyId }) => {
        const end = keyId.indexOf(' ')
        if (keyId.slice(0, end) === accountId) return true
        const above = keyId
          .slice(end + 1)
          .split('/')
          .slice(0, -1)
        return name !== null && above.includes(name)
      }),
    )
  }

  private async withoutCopies(
    read: (own: { readonly accountId: string | null }) => Promise<readonly UsageSum[]>,
  ): Promise<Used> {
    const [all, copies] = [added(await read({ accountId: null })), added(await read({ accountId: SHADOW }))]
    return {
      requests: all.requests - copies.requests,
      tokens: all.tokens - copies.tokens,
      nanoUsd: all.nanoUsd - copies.nanoUsd,
    }
  }

  /** No sums are kept by person. */
  private async usedByPerson(user: string, fromMs: number, toMs: number): Promise<Used> {
    let [requests, tokens, nanoUsd] = [0, 0, 0]
    for (let after: string | null = null; ;) {
      const query = { accountId: null, user, fromMs, toMs, after, limit: PAGE }
      const page: EntryPage = await this.options.ledger.entries(query)
      for (const { usage, costNanoUsd, outcome } of page.entries) {
        if (outcome !== 'rate_limited') requests += 1
        tokens += (usage.input ?? 0) + (usage.output ?? 0)
        nanoUsd += costNanoUsd ?? 0
      }
      after = page.next
      if (after === null) return { requests, tokens, nanoUsd }
    }
  }
}

const NOTHING: Used = { requests: 0, tokens: 0, nanoUsd: 0 }

/** Whether the budget counts this request alone. */
function isFirst(demand: Counted, { limit, remaining }: LimitState): boolean {
  const { cost } = windowAmounts(demand)
  return limit - remaining === Math.min(cost, limit)
}

/** What the entries of a budget have in common. */
interface Selected {
  readonly of: 'key' | 'account' | 'tree' | 'model' | 'upstream' | 'label' | 'user'
  readonly name: string
  readonly model?: string
}

/** Additions to a subject that select no fewer requests of the ledger: those of a plan are all. */
const SAME = /^(?:own|of-plan|plan|value|key=.*|account=.*)$/

/**
 * Null for subjects whose requests the sums of the ledger do not tell apart, and for values of dimensions:
 * those begin and end all the time, and mostly with their first request.
 */
function selectionOf(subject: string, user: string | null): Selected | null {
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
      return { of: 'key', name, ...(model === undefined ? {} : { model }) }
    case 'account':
      if (more.includes('own')) return { of: 'tree', name }
      return { of: 'account', name, ...(model === undefined ? {} : { model }) }
    case 'user':
      return user === null ? null : { of: 'user', name: user }
    case 'model':
    case 'upstream':
    case 'label':
      return { of: scope, name }
    default:
      return null
  }
}

function added(
  all: readonly (Pick<GroupUse, 'requests' | 'inputTokens' | 'outputTokens' | 'costNanoUsd'> &
    Partial<Pick<UsageSum, 'byCause'>>)[],
): Used {
  let [requests, tokens, nanoUsd]: [number, number, NanoUsd] = [0, 0, 0]
  for (const { byCause, ...sum } of all) {
    // A request that a limit refused was not admitted.
    requests += sum.requests - (byCause?.limits ?? 0)
    tokens += sum.inputTokens + sum.outputTokens
    nanoUsd = addNanoUsd(nanoUsd, sum.costNanoUsd)
  }
  return { requests, tokens, nanoUsd: Math.min(Number(nanoUsd), Number.MAX_SAFE_INTEGER) }
}

function amountIn(used: Used, kind: WindowKind): number {
  switch (WINDOWS[kind].counts) {
    case 'usd':
      return used.nanoUsd
    case 'tokens':
      return used.tokens
    default:
      return used.requests
  }
}
