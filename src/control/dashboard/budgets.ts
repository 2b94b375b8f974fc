/**
 * The budgets of accounts, keys and labels in their running day, week or month: what the ledger has of the
 * period, the limit that holds, and a forecast. A budget that is younger than its period counts the whole.
 */
import { HOUR_MS } from '../../base/time-units.js'
import { displayNameOf } from '../../accounts/names.js'
import type { ApiKey, KeyLimits, LimitRaise } from '../../accounts/account.js'
import type { Config } from '../../config/config.js'
import { ownSubject } from '../../limits/find-limits.js'
import type { CalendarBudgetKind } from '../../base/limit-members.js'
import { isCalendarBudget, spanOf } from '../../store/limit-arithmetic.js'
import type { AccountTree, TreeNode } from './account-tree.js'
import { withDescendants } from './account-tree.js'
import { ownedLimits, rulesOf } from './api/limits.js'
import { dailySpend, daysOf } from './daily-spend.js'
import { linearForecast, overOn, weekdayForecast, type Span } from './forecast.js'
import type * as schema from './schema/schema.js'
import type { Services } from '../services.js'

/** The share from which a budget is nearly used up. */
const NEAR = 0.8

/** The fields of records for each kind of budget. */
const FIELDS = {
  usd_day: 'nanoUsdPerDay',
  usd_week: 'nanoUsdPerWeek',
  usd_month: 'nanoUsdPerMonth',
} as const satisfies Record<CalendarBudgetKind, keyof KeyLimits>
const PERIODS = { usd_day: 'day', usd_week: 'week', usd_month: 'month' } as const
const KINDS: readonly CalendarBudgetKind[] = ['usd_day', 'usd_week', 'usd_month']

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

/** A budget before its spend is known. */
interface Found extends Pick<
  schema.BudgetRow,
  'kind' | 'ofId' | 'name' | 'account' | 'source' | 'mayChange'
> {
  readonly subject: string
  readonly budget: CalendarBudgetKind
  readonly limit: number
  readonly raise: schema.BudgetRow['raise']
  /** Whose spend counts, by the ids of accounts or of one key. */
  readonly counts: readonly string[]
}

/** All budgets of the scope, in the order of their urgency. */
export async function budgetsIn(services: Services, scope: BudgetScope): Promise<schema.BudgetRow[]> {
  const nowMs = services.now()
  const found = [
    ...scope.accounts.flatMap((node) => ofAccount(services, scope, node)),
    ...scope.keys.flatMap((key) => ofKey(services, scope, key)),
    ...(scope.withLabels ? ofLabels(services.snapshot().config) : []),
  ]
  const keyIds = scope.keys.map(({ id }) => id)
  const [days, spent] = await Promise.all([
    found.some(({ budget, kind }) => budget !== 'usd_day' && kind !== 'label')
      ? dailySpend(services, keyIds)
      : new Map<string, readonly number[]>(),
    spentIn(services, found, nowMs),
  ])
  const rows = found.map((each) => {
    const own = each.budget === 'usd_day' || each.kind === 'label' ? null : daysOf(days, each.counts)
    return rowOf(each, { spent: spent(each), days: own, nowMs })
  })
  return rows.sort(byUrgency)
}

function ofAccount(services: Services, { mayChange }: BudgetScope, node: TreeNode): Found[] {
  const { account, parent } = node
  const nowMs = services.now()
  return ownedLimits(rulesOf(services.snapshot()), account, []).flatMap(({ claim: { demand } }) => {
    if (!isCalendarBudget(demand)) return []
    const { subject, kind: budget, limitNanoUsd } = demand
    const isOwn = subject === ownSubject(account.id)
    const counted = isOwn ? withDescendants(node) : [node]
    return [
      {
        ...{ kind: 'account', ofId: account.id, name: displayNameOf(account), subject, budget },
        account: parent === null ? null : parent.account.name,
        source: isOwn ? 'own' : subject.endsWith(';of-plan') ? 'plan' : 'configuration',
        limit: limitNanoUsd,
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
    if (of === null || !isCalendarBudget(demand)) return []
    const { subject, kind: budget, limitNanoUsd: limit } = demand
    const isOwn = subject === `key:${key.id};own`
    return [
      {
        ...{ kind: 'key', ofId: key.id, name: key.name, account: node.account.name, subject, budget, limit },
        source: isOwn ? 'own' : 'configuration',
        raise: isOwn ? raiseOf(key, budget, nowMs) : null,
        mayChange: isOwn && mayChange(node, 'key'),
        counts: [key.id],
      } satisfies Found,
    ]
  })
}

/** The budgets of values of labels that rules of the configuration name. */
function ofLabels({ limits }: Pick<Config, 'limits'>): Found[] {
  return limits.flatMap(({ scope, value, amounts, plan, account, key, model, prefix, upstream }) => {
    const isWhole = [plan, account, key, model, prefix, upstream].every((selector) => selector === null)
    if (!scope.startsWith('label:') || value === null || !isWhole) return []
    const name = `${scope.slice('label:'.length)}=${value}`
    return KINDS.flatMap((budget) => {
      const limit = amounts[FIELDS[budget]]
      if (limit === undefined) return []
      const of = { kind: 'label', ofId: name, name, account: null, source: 'configuration' } as const
      return [{ ...of, subject: name, budget, limit, raise: null, mayChange: false, counts: [name] }]
    })
  })
}

function raiseOf(
  { limits = {}, raises = [] }: { readonly limits?: KeyLimits; readonly raises?: readonly LimitRaise[] },
  budget: CalendarBudgetKind,
  nowMs: number,
): schema.BudgetRow['raise'] {
  const raise = raises.find((each) => each.budget === FIELDS[budget] && nowMs < each.untilMs)
  const fromNanoUsd = limits[FIELDS[budget]]
  if (raise === undefined || fromNanoUsd === undefined) return null
  const { untilMs, reason, by, atMs } = raise
  return { fromNanoUsd, untilMs, reason, by, atMs }
}

/** The function that tells what a budget has spent in its running period. */
async function spentIn(
  { ledger }: Services,
  found: readonly Found[],
  nowMs: number,
): Promise<(of: Found) => number> {
  const sums = new Map<string, Map<string, number>>()
  const toMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS + HOUR_MS
  for (const budget of new Set(found.map((each) => each.budget))) {
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
  return ({ budget, counts }) => {
    const spent = sums.get(budget)
    return counts.reduce((sum, id) => sum + (spent?.get(id) ?? 0), 0)
  }
}

interface Spend {
  readonly spent: number
  readonly days: readonly number[] | null
  readonly nowMs: number
}

function rowOf(found: Found, { spent, days, nowMs }: Spend): schema.BudgetRow {
  const { subject, budget, limit, kind, ofId, name, account, source, raise, mayChange } = found
  const span: Span = spanOf(budget, nowMs)
  const linear = linearForecast(spent, span, nowMs)
  const weekday = days === null ? null : weekdayForecast(spent, days, span, nowMs)
  const forecast = weekday ?? linear
  const isOver = spent >= limit && (spent > 0 || limit === 0)
  const willBe = !isOver && forecast !== null && forecast > limit
  const over = { ...{ spent, limit }, ...span }
  return {
    ...{ id: `${subject} ${budget}`, kind, ofId, name, account, source, raise, mayChange },
    ...{ period: PERIODS[budget], ...span },
    ...{ spentNanoUsd: spent, limitNanoUsd: limit, forecastNanoUsd: forecast },
    ...{ linearNanoUsd: linear, weekdayNanoUsd: weekday },
    status: isOver ? 'over' : willBe ? 'will_be_over' : spent >= NEAR * limit ? 'near' : 'fine',
    overOnMs: willBe ? overOn(over, weekday === null ? null : days, nowMs) : null,
  }
}

const URGENCY: readonly schema.BudgetRow['status'][] = ['over', 'will_be_over', 'near', 'fine']

function byUrgency(a: schema.BudgetRow, b: schema.BudgetRow): number {
  const byStatus = URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status)
  if (byStatus !== 0) return byStatus
  return shareOf(b) - shareOf(a) || (a.name < b.name ? -1 : 1)
}

/** What a status is measured by. */
function shareOf({ status, spentNanoUsd, forecastNanoUsd, limitNanoUsd }: schema.BudgetRow): number {
  const amount = status === 'will_be_over' ? (forecastNanoUsd ?? 0) : spentNanoUsd
  return limitNanoUsd === 0 ? amount : amount / limitNanoUsd
}
