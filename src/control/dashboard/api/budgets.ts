/** The budgets of the selected accounts, of their keys and of labels. */
import { roleOf, type ApiKey, type KeyLimits } from '../../../accounts/account.js'
import { displayNameOf } from '../../../accounts/names.js'
import { LIMIT_MEMBERS } from '../../../base/limit-members.js'
import { compareNanoUsd } from '../../../base/nano-usd.js'
import { readTree, withDescendants, type TreeNode } from '../account-tree.js'
import { budgetsIn, withSince, type BudgetScope } from '../budgets.js'
import { monthAt } from '../forecast.js'
import { permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'
import type { AccountSession } from '../../sign-in/sessions.js'

/** Rows of a reply. */
const MOST_ROWS = 500
const MOST_WITHOUT = 200
const IN_DOLLARS = LIMIT_MEMBERS.filter(({ counts }) => counts === 'usd').map(({ field }) => field)
const PAGE = 1_000
/** More than any store has. */
const ALL = 1_000_000

export function budgetRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/budgets', {
      credential: 'usage',
      query: schema.budgetsQuery,
      reply: schema.budgetsReply,
      handle: (request) => list(services, request),
    }),
  ]
}

async function list(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.budgetsQuery.parse>, undefined>,
): Promise<Reply> {
  const nowMs = services.now()
  const scope = await scopeOfBudgets(services, session)
  const words = query.search?.trim().toLowerCase() ?? ''
  const isNamed = (...texts: readonly (string | null)[]): boolean =>
    words === '' || texts.some((text) => text?.toLowerCase().includes(words) === true)
  const budgets = await budgetsIn(services, scope)
  const all = budgets.rows.filter((row) => {
    const { kind = row.kind, period = row.period } = query
    return kind === row.kind && period === row.period && isNamed(row.name, row.account)
  })
  const counts = { over: 0, will_be_over: 0, near: 0, fine: 0 }
  for (const { status } of all) counts[status] += 1
  const rows = query.status === undefined ? all : all.filter(({ status }) => status === query.status)
  const without = scope.accounts
    .filter(({ account }) => account.limits?.nanoUsdPerMonth === undefined)
    .filter(({ account }) => isNamed(account.name, displayNameOf(account)))
    .sort(
      (a, b) =>
        compareNanoUsd(b.total.costNanoUsd, a.total.costNanoUsd) ||
        (a.account.name < b.account.name ? -1 : 1),
    )
  const json: schema.BudgetsReply = {
    ...{
      rows: await withSince(services, { ...budgets, rows: rows.slice(0, MOST_ROWS) }),
      total: rows.length,
      counts,
      nowMs,
    },
    without: without.slice(0, MOST_WITHOUT).map((node) => ({
      name: node.account.name,
      displayName: displayNameOf(node.account),
      spentNanoUsd: Number(node.total.costNanoUsd),
      mayChange: scope.mayChange(node, 'account'),
    })),
    withoutTotal: without.length,
  }
  return { status: 200, json }
}

function isInDollars(limits: KeyLimits): boolean {
  return IN_DOLLARS.some((field) => limits[field] !== undefined)
}

/** Whether the configuration, an account or a key has a budget. */
export async function hasBudget({ store, snapshot, now }: Services): Promise<boolean> {
  if (snapshot().config.limits.some(({ amounts }) => isInDollars(amounts))) return true
  const nowMs = now()
  const keys = await store.directory.keys({
    ...{ accountId: null, hasBudget: true, column: 'name', isDescending: false },
    ...{ after: null, limit: 1, nowMs, sinceMs: nowMs },
  })
  if (keys.total > 0) return true
  for (let after: string | null = null; ;) {
    const page = await store.listAccounts({ order: 'newest_first', after, limit: PAGE })
    if (page.items.some(({ limits }) => limits !== undefined && isInDollars(limits))) return true
    if (page.next === null) return false
    after = page.next
  }
}

/** What the user sees: members the account alone and the keys that they made, owners what is below, too. */
async function scopeOfBudgets(services: Services, session: AccountSession): Promise<BudgetScope> {
  const { store, now } = services
  const nowMs = now()
  const yes = 'yes' as const
  const [tree, readsKeys, changes, changesKeys, readsBelow] = await Promise.all([
    readTree(services, monthAt(nowMs).fromMs),
    session.isAll ? yes : permissionIn(store, session, 'read keys'),
    permissionIn(store, session, 'change limits'),
    permissionIn(store, session, 'change keys'),
    session.isAll ? yes : permissionIn(store, session, 'read account'),
  ])
  const own = tree.nodes.get(session.account.id)
  const top = own === undefined ? [] : readsBelow === 'no' ? [own] : [...withDescendants(own)]
  const accounts = session.isAll ? [...tree.nodes.values()] : top
  const isAdmin = roleOf(session.user) === 'admin'
  return {
    ...{ tree, accounts, withLabels: session.isAll },
    keys: readsKeys === 'no' ? [] : await budgetedKeys(services, session, { accounts, readsKeys }),
    mayChange: ({ parent }, of) =>
      isAdmin ||
      (of === 'account' ? changes === 'yes' && parent !== null : changesKeys === 'yes' && !session.isAll),
  }
}

async function budgetedKeys(
  { store, now }: Services,
  { isAll, user, account }: AccountSession,
  { accounts, readsKeys }: { readonly accounts: readonly TreeNode[]; readonly readsKeys: 'yes' | 'own' },
): Promise<ApiKey[]> {
  const ids = new Set(accounts.map((node) => node.account.id))
  const { items } = await store.directory.keys({
    ...{ column: 'name', isDescending: false, after: null, limit: ALL, nowMs: now(), sinceMs: now() },
    ...{ accountId: isAll || ids.size > 1 ? null : account.id, states: ['live'], hasBudget: true },
    ...(readsKeys === 'own' ? { createdBy: user.email } : {}),
  })
  return items.flatMap(({ key }) => (ids.has(key.accountId) ? [key] : []))
}
