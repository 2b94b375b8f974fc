/**
 * The budgets of accounts, keys and labels in their running day, week or month, or in all: what the ledger
 * has of the period, the limit that holds, and a forecast. A budget that is younger than its period counts
 * the whole. Of one in all the limit's own counter is shown: it outlives what the ledger keeps.
 */
import { compareNanoUsd } from '../../base/nano-usd.js'
import { HOUR_MS } from '../../base/time-units.js'
import { displayNameOf } from '../../accounts/names.js'
import type { ApiKey, KeyLimits, LimitRaise } from '../../accounts/account.js'
import { ownSubject } from '../../limits/find-limits.js'
import { LIMIT_MEMBERS, type BudgetKind, type LimitMember } from '../../base/limit-members.js'
import type { BudgetDemand } from '../../store/ledger.js'
import { isBudget, spanOf } from '../../store/limit-arithmetic.js'
import type { AccountTree, TreeNode } from './account-tree.js'
import { withDescendants } from './account-tree.js'
import { ownedLimits, rulesOf } from './api/limits.js'
import { countedSince } from './limit-levels.js'
import { dailySpend, daysOf } from './daily-spend.js'
import { linearForecast, overOn, weekdayForecast, type Span } from './forecast.js'
import type * as schema from './schema/schema.js'
import type { Services } from '../services.js'

/** The share from which a budget is nearly used up. */
const NEAR = 0.8

type BudgetMember = Extract<LimitMember, { readonly kind: BudgetKind }>
const BUDGETS = LIMIT_MEMBERS.filter((member): member is BudgetMember => member.counts === 'usd')
/** The member of limits of each kind of budget. */
const MEMBERS = new Map<BudgetKind, BudgetMember>(BUDGETS.map((member) => [member.kind, member]))

/** What is shown of the gateway. */
export interface BudgetScope {
  readonly tree: AccountTree
  readonly accounts: readonly TreeNode[]
  /** Those with a budget of their own. */
  readonly keys: readonly ApiKey[]
  /** Labels are of no account. */
  readonly withLabels: boolean
  readonly mayChange: (node: TreeNode, of: 'account' | 'key') => boolean
}

/** The account and the demand of the counter of a limit. */
interface Counter {
  readonly accountId: string
  readonly demand: BudgetDemand
}

/** A budget before its spend is known. */
interface Found extends Pick<
  schema.BudgetRow,
  'kind' | 'ofId' | 'name' | 'account' | 'source' | 'mayChange'
> {
  readonly subject: string
  readonly budget: BudgetKind
  readonly limit: number
  readonly counter: Counter
  readonly raise: schema.BudgetRow['raise']
  /** Whose spend counts, by the ids of accounts or of one key. */
  readonly counts: readonly string[]
}

/** A row before it is known since when its limit counts. */
type Row = Omit<schema.BudgetRow, 'sinceMs'>

/** Budgets, and the counters of their limits by the id of the row. */
interface CountedBudgets {
  readonly rows: readonly Row[]
  readonly counters: ReadonlyMap<string, Counter>
}

/** Rows with since when their limits count. */
export async function withSince(
  { ledger }: Pick<Services, 'ledger'>,
  { rows, counters }: CountedBudgets,
): Promise<schema.BudgetRow[]> {
  const counted = rows.flatMap(({ id }) => counters.get(id) ?? [])
  const since = await countedSince(ledger, counted)
  return rows.map((row, at) => ({ ...row, sinceMs: since[at] ?? null }))
}

/** All budgets of the scope, in the order of their urgency. */
export async function budgetsIn(services: Services, scope: BudgetScope): Promise<CountedBudgets> {
  const nowMs = services.now()
  const found = [
    ...scope.accounts.flatMap((node) => ofAccount(services, scope, node)),
    ...scope.keys.flatMap((key) => ofKey(services, scope, key)),
    ...(scope.withLabels ? await ofLabels(services, nowMs) : []),
  ]
  const keyIds = scope.keys.map(({ id }) => id)
  const [days, spent] = await Promise.all([
    found.some(hasDays) ? dailySpend(services, keyIds) : new Map<string, readonly number[]>(),
    spentIn(services, found, nowMs),
  ])
  const rows = found.map((each) => {
    return rowOf(each, { spent: spent(each), days: hasDays(each) ? daysOf(days, each.counts) : null, nowMs })
  })
  const counters = new Map(found.map((each) => [idOf(each), each.counter]))
  return { rows: rows.sort(byUrgency), counters }
}

/** Whether it has a forecast by weekday. */
function hasDays({ budget, kind }: Pick<Found, 'budget' | 'kind'>): boolean {
  return (budget === 'usd_week' || budget === 'usd_month') && kind !== 'label'
}

function ofAccount(services: Services, { mayChange }: BudgetScope, node: TreeNode): Found[] {
  const { account, parent } = node
  const nowMs = services.now()
  return ownedLimits(rulesOf(services.snapshot()), account, []).flatMap(({ claim: { demand } }) => {
    if (!isBudget(demand)) return []
    const { subject, kind: budget, limitNanoUsd } = demand
    const isOwn = subject === ownSubject(account.id)
    const counted = isOwn ? withDescendants(node) : [node]
    return [
      {
        ...{ kind: 'account', ofId: account.id, name: displayNameOf(account), subject, budget },
        account: parent === null ? null : parent.account.name,
        source: isOwn ? 'own' : subject.endsWith(';of-plan') ? 'plan' : 'configuration',
        limit: limitNanoUsd,
        counter: { accountId: account.id, demand },
        raise: isOwn ? raiseOf(account, budget, nowMs) : null,
        mayChange: isOwn && mayChange(node, 'account'),
        counts: Array.from(counted, (each) => each.account.id),
      } satisfies Found,
    ]
  })
}

function ofKey(services: Services, { tree, mayChange }: BudgetScope, key: ApiKey): Found[] {
  const node = tree.nodes.get(key.accountId)
  if (node === undefined) return []
  const nowMs = services.now()
  const owned = ownedLimits(rulesOf(services.snapshot()), node.account, [key])
  return owned.flatMap(({ claim: { demand }, key: of }) => {
    if (of === null || !isBudget(demand)) return []
    const { subject, kind: budget, limitNanoUsd: limit } = demand
    const isOwn = subject === `key:${key.id};own`
    return [
      {
        ...{ kind: 'key', ofId: key.id, name: key.name, account: node.account.name, subject, budget, limit },
        source: isOwn ? 'own' : 'configuration',
        counter: { accountId: key.accountId, demand },
        raise: isOwn ? raiseOf(key, budget, nowMs) : null,
        mayChange: isOwn && mayChange(node, 'key'),
        counts: [key.id],
      } satisfies Found,
    ]
  })
}

/** Values of one rule for all values of a label, those with the highest spend. */
const MOST_VALUES = 200

/** The budgets of labels by rules of the configuration: of the named value, or of each with spend. */
async function ofLabels(services: Services, nowMs: number): Promise<Found[]> {
  const found: Found[] = []
  const { limits } = services.snapshot().config
  for (const { scope, value, amounts, plan, account, key, model, prefix, upstream } of limits) {
    const isWhole = [plan, account, key, model, prefix, upstream].every((selector) => selector === null)
    if (!scope.startsWith('label:') || !isWhole) continue
    const label = scope.slice('label:'.length)
    for (const { kind: budget, field } of BUDGETS) {
      const limit = amounts[field]
      if (limit === undefined) continue
      const pairs =
        value === null ? await pairsWithSpend(services, { label, budget, nowMs }) : [`${label}=${value}`]
      for (const name of pairs) {
        // A rule for every value counts beside one that names it.
        const own = value === null ? '' : ';value'
        const none = { shared: true, limitNanoUsd: limit, costNanoUsd: 0 }
        const demand = { kind: budget, subject: `label:${name}${own}`, ...none }
        found.push({
          ...{ kind: 'label', ofId: name, name, account: null, source: 'configuration' },
          ...{ subject: `${name}${own}`, budget, limit, counter: { accountId: '', demand } },
          ...{ raise: null, mayChange: false, counts: [name] },
        })
      }
    }
  }
  return found
}

/** `team=red`: the values that have spent money in the running period, the highest first. */
async function pairsWithSpend(
  { ledger }: Services,
  { label, budget, nowMs }: { readonly label: string; readonly budget: BudgetKind; readonly nowMs: number },
): Promise<string[]> {
  const toMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS + HOUR_MS
  const span = { accountId: null, fromMs: spanOf(budget, nowMs).fromMs, toMs }
  const uses = await ledger.groupUse({ ...span, by: `label=${label}=` })
  const sorted = uses.toSorted((one, other) => compareNanoUsd(other.costNanoUsd, one.costNanoUsd))
  return [...new Set(sorted.map(({ keyId }) => keyId))].slice(0, MOST_VALUES)
}

function raiseOf(
  { limits = {}, raises = [] }: { readonly limits?: KeyLimits; readonly raises?: readonly LimitRaise[] },
  budget: BudgetKind,
  nowMs: number,
): schema.BudgetRow['raise'] {
  const field = MEMBERS.get(budget)?.field
  const raise = raises.find((each) => each.budget === field && nowMs < each.untilMs)
  const fromNanoUsd = raise === undefined ? undefined : limits[raise.budget]
  if (raise === undefined || fromNanoUsd === undefined) return null
  const { untilMs, reason, by, atMs } = raise
  return { fromNanoUsd, untilMs, reason, by, atMs }
}

/** The function that tells what a budget has spent in its running period. */
async function spentIn(
  services: Services,
  found: readonly Found[],
  nowMs: number,
): Promise<(of: Found) => number> {
  const { ledger } = services
  const counted = await counters(services, found)
  const sums = new Map<string, Map<string, number>>()
  const toMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS + HOUR_MS
  for (const budget of new Set(found.filter((each) => !counted.has(each)).map((each) => each.budget))) {
    const span = { accountId: null, fromMs: spanOf(budget, nowMs).fromMs, toMs }
    const spent = new Map<string, number>()
    const add = (id: string, nanoUsd: number): void => void spent.set(id, (spent.get(id) ?? 0) + nanoUsd)
    for (const { accountId, keyId, costNanoUsd } of await ledger.groupUse({ ...span, by: 'key' })) {
      add(accountId, Number(costNanoUsd))
      add(keyId, Number(costNanoUsd))
    }
    const labels = found.filter(({ kind, budget: own }) => kind === 'label' && own === budget)
    for (const name of new Set(labels.map(({ ofId }) => ofId.slice(0, ofId.indexOf('='))))) {
      for (const { keyId, costNanoUsd } of await ledger.groupUse({ ...span, by: `label=${name}=` })) {
        add(keyId, Number(costNanoUsd))
      }
    }
    sums.set(budget, spent)
  }
  return (each) => {
    const spent = sums.get(each.budget)
    return counted.get(each) ?? each.counts.reduce((sum, id) => sum + (spent?.get(id) ?? 0), 0)
  }
}

/** What the counters of budgets in all have, of those that have counted a request. */
async function counters({ ledger }: Services, found: readonly Found[]): Promise<Map<Found, number>> {
  const byAccount = new Map<string, { readonly each: Found; readonly demand: BudgetDemand }[]>()
  for (const each of found) {
    // The ledger sums up labels.
    if (each.budget !== 'usd_total' || each.kind === 'label') continue
    const { accountId, demand } = each.counter
    // A counter is shown up to its limit: this one has none.
    const asked = { ...demand, limitNanoUsd: Number.MAX_SAFE_INTEGER }
    byAccount.set(accountId, [...(byAccount.get(accountId) ?? []), { each, demand: asked }])
  }
  const spent = new Map<Found, number>()
  for (const [accountId, all] of byAccount) {
    const states = await ledger.limitStates(
      accountId,
      all.map(({ demand }) => demand),
    )
    for (const [at, { each }] of all.entries()) {
      const { limit = 0, remaining = 0 } = states[at] ?? {}
      if (limit > remaining) spent.set(each, limit - remaining)
    }
  }
  return spent
}

interface Spend {
  readonly spent: number
  readonly days: readonly number[] | null
  readonly nowMs: number
}

/** Unique in a list. */
function idOf({ subject, budget }: Pick<Found, 'subject' | 'budget'>): string {
  return `${subject} ${budget}`
}

function rowOf(found: Found, { spent, days, nowMs }: Spend): Row {
  const { budget, limit, kind, ofId, name, account, source, raise, mayChange } = found
  const { window = 'total' } = MEMBERS.get(budget) ?? {}
  const span: Span | null = window === 'total' ? null : spanOf(budget, nowMs)
  const linear = span === null ? null : linearForecast(spent, span, nowMs)
  const weekday = span === null || days === null ? null : weekdayForecast(spent, days, span, nowMs)
  const forecast = weekday ?? linear
  const isOver = spent >= limit && (spent > 0 || limit === 0)
  const willBe = !isOver && forecast !== null && forecast > limit
  return {
    ...{ id: idOf(found), kind, ofId, name, account, source, raise, mayChange },
    ...{ period: window, fromMs: span?.fromMs ?? null, toMs: span?.toMs ?? null },
    ...{ spentNanoUsd: spent, limitNanoUsd: limit, forecastNanoUsd: forecast },
    ...{ linearNanoUsd: linear, weekdayNanoUsd: weekday },
    status: isOver ? 'over' : willBe ? 'will_be_over' : spent >= NEAR * limit ? 'near' : 'fine',
    overOnMs:
      willBe && span !== null
        ? overOn({ spent, limit, ...span }, weekday === null ? null : days, nowMs)
        : null,
  }
}

const URGENCY: readonly schema.BudgetRow['status'][] = ['over', 'will_be_over', 'near', 'fine']

function byUrgency(a: Row, b: Row): number {
  const byStatus = URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status)
  if (byStatus !== 0) return byStatus
  return shareOf(b) - shareOf(a) || (a.name < b.name ? -1 : 1)
}

/** What a status is measured by. */
function shareOf({ status, spentNanoUsd, forecastNanoUsd, limitNanoUsd }: Row): number {
  const amount = status === 'will_be_over' ? (forecastNanoUsd ?? 0) : spentNanoUsd
  return limitNanoUsd === 0 ? amount : amount / limitNanoUsd
}
