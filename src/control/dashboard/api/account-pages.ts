/** The tree of accounts with their figures, the page of one account, and the change of its limits. */
import { compareNanoUsd } from '../../../base/nano-usd.js'
import { roleOf } from '../../../accounts/account.js'
import { displayNameOf } from '../../../accounts/names.js'
import { changeAccount } from '../../../accounts/changes/change-accounts.js'
import { raiseAccountLimit } from '../../../accounts/changes/raise-limit.js'
import { Refusal } from '../../../accounts/changes/refusal.js'
import { byMember } from '../../../base/limit-members.js'
import { GatewayError } from '../../../errors.js'
import {
  membersIn,
  pathOf,
  readTree,
  sumOf,
  withDescendants,
  type AccountTree,
  type TreeFigures,
  type TreeNode,
} from '../account-tree.js'
import { linearForecast, monthAt } from '../forecast.js'
import { namedLimits, wishIn } from '../problem-words.js'
import { notFound, permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { changingBy, planOf, type Services } from '../../services.js'
import type { AccountSession, Session } from '../../sign-in/sessions.js'

/** Rows of a reply. */
const MOST_ROWS = 500

export function accountPageRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/account-tree', {
      credential: 'session',
      query: schema.accountTreeQuery,
      reply: schema.accountTreeReply,
      handle: (request) => tree(services, request),
    }),
    signedRoute('GET', '/accounts/{id}', {
      credential: 'read account',
      reply: schema.accountPageReply,
      handle: (request) => page(services, request.session),
    }),
    signedRoute('PUT', '/accounts/{id}/limits', {
      credential: 'change limits',
      body: schema.accountLimitsBody,
      reply: schema.accountLimitsReply,
      handle: (request) => putLimits(services, request),
    }),
    signedRoute('POST', '/accounts/{id}/limits/raise', {
      credential: 'change limits',
      body: schema.raiseBody,
      reply: schema.accountLimitsReply,
      handle: (request) => raise(services, request),
    }),
  ]
}

/** The part of the tree that a user sees. */
interface SeenTree {
  readonly tree: AccountTree
  readonly roots: readonly TreeNode[]
  readonly month: { readonly fromMs: number; readonly toMs: number }
  readonly nowMs: number
  readonly members: ReadonlyMap<string, readonly string[]>
}

async function seenTree(services: Services, session: Session): Promise<SeenTree> {
  const nowMs = services.now()
  const month = monthAt(nowMs)
  const tree = await readTree(services, month.fromMs)
  const all = [...tree.nodes.values()]
  const isOwned = ownedBy(session)
  const isTop = (node: TreeNode): boolean =>
    roleOf(session.user) === null ? isOwned(node) && !isBelow(node, isOwned) : node.parent === null
  const roots = all.filter(isTop)
  const ids = roots.flatMap((root) => [...withDescendants(root)].map(({ account }) => account.id))
  return { tree, roots, month, nowMs, members: await membersIn(services, ids) }
}

function ownedBy({ members }: Session): (node: TreeNode) => boolean {
  const owned = new Set(members.filter((each) => roleOf(each) === 'owner').map((each) => each.accountId))
  return ({ account }) => owned.has(account.id)
}

function isBelow({ parent }: TreeNode, isMeant: (node: TreeNode) => boolean): boolean {
  return parent !== null && (isMeant(parent) || isBelow(parent, isMeant))
}

async function tree(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.accountTreeQuery.parse>, undefined>,
): Promise<Reply> {
  const seen = await seenTree(services, session)
  const { roots, month, nowMs, members } = seen
  const all = roots.flatMap((root) => [...withDescendants(root)])
  const rows = chosen(query, { roots, all, members })
  const sorted = rows.sort((a, b) => {
    const bySpend =
      compareNanoUsd(b.total.costNanoUsd, a.total.costNanoUsd) || b.total.requests - a.total.requests
    return bySpend || (a.account.name < b.account.name ? -1 : 1)
  })
  const json: schema.Sent<typeof schema.accountTreeReply> = {
    rows: sorted.slice(0, MOST_ROWS).map((node) => rowView(node, seen)),
    total: rows.length,
    sum: { ...figuresOf(sumOf(roots.map(({ total }) => total))), members: countOf(all, members) },
    ...{ ...month, nowMs },
  }
  return { status: 200, json }
}

function chosen(
  { parent, search = '' }: ReturnType<typeof schema.accountTreeQuery.parse>,
  { roots, all, members }: Pick<SeenTree, 'roots' | 'members'> & { readonly all: readonly TreeNode[] },
): TreeNode[] {
  const words = search.trim().toLowerCase()
  if (words !== '') {
    return all.filter(({ account }) => {
      const labels = Object.entries(account.labels ?? {}).map(([name, value]) => `${name}=${value}`)
      const texts = [account.name, displayNameOf(account), account.email ?? '', ...labels]
      const people = members.get(account.id) ?? []
      return account.id === search || [...texts, ...people].some((text) => text.toLowerCase().includes(words))
    })
  }
  if (parent === undefined) return [...roots]
  const above = all.find(({ account }) => account.name === parent || account.id === parent)
  return [...(above?.children ?? [])]
}

function countOf(nodes: Iterable<TreeNode>, members: SeenTree['members']): number {
  const people = new Set<string>()
  for (const { account } of nodes) for (const email of members.get(account.id) ?? []) people.add(email)
  return people.size
}

function rowView(
  node: TreeNode,
  { month, nowMs, members }: Omit<SeenTree, 'roots' | 'tree'>,
): schema.Sent<typeof schema.treeRow> {
  const { account, children, own, total } = node
  const { id, name, labels = {}, disabled, limits } = account
  return {
    ...{ id, name, displayName: displayNameOf(account), labels: { ...labels }, disabled },
    above: pathOf(node).slice(0, -1),
    children: children.length,
    ...figuresOf(total),
    members: countOf(withDescendants(node), members),
    budgetNanoUsd: limits?.nanoUsdPerMonth ?? null,
    forecastNanoUsd: linearForecast(Number(total.costNanoUsd), month, nowMs),
    itself: children.length === 0 ? null : { ...figuresOf(own), members: members.get(id)?.length ?? 0 },
  }
}

function figuresOf({ requests, failed, costNanoUsd, unpriced, liveKeys }: TreeFigures) {
  return { requests, failed, costNanoUsd, unpricedRequests: unpriced, liveKeys }
}

async function page(services: Services, session: AccountSession): Promise<Reply> {
  const { store, snapshot, now } = services
  if (session.isAll) throw notFound()
  const { account } = session
  const nowMs = now()
  const month = monthAt(nowMs)
  const [{ nodes }, above, permission, people] = await Promise.all([
    readTree(services, month.fromMs),
    store.ancestorsOf(account),
    permissionIn(store, session, 'change limits'),
    store.membersOf(account.id),
  ])
  const node = nodes.get(account.id)
  if (node === undefined) throw notFound()
  const ids = Array.from(withDescendants(node), ({ account: { id } }) => id)
  const row = rowView(node, { month, nowMs, members: await membersIn(services, ids) })
  const { plan, createdAtMs, email = null, limits = {} } = account
  const json: schema.Sent<typeof schema.accountPageReply> = {
    account: { ...row, plan, createdAtMs, email },
    owners: people.filter((member) => roleOf(member) === 'owner').map((member) => member.email),
    limits: { ...limits },
    planLimits: planOf(snapshot(), plan).limits,
    inherited: above.map(({ name, limits: own = {} }) => ({ name, limits: { ...own } })),
    mayChangeLimits: permission !== 'no' && (roleOf(session.user) === 'admin' || above.length > 0),
    ...{ ...month, nowMs },
  }
  return { status: 200, json }
}

/** Replaces the limits: an administrator of every account, an owner of those below others. */
async function putLimits(
  services: Services,
  request: SignedInRequest<unknown, ReturnType<typeof schema.accountLimitsBody.parse>>,
): Promise<Reply> {
  const { account } = request.session
  assertMayLimit(request.session)
  const removed = byMember('field', () => null)
  const limits = namedLimits({ ...removed, ...request.body })
  const changed = await changeAccount(changingBy(services, request), account, { limits }).catch(
    (error: unknown) => {
      throw error instanceof Refusal
        ? error.named((field) => field.replace(/^limits\.(?:units_per_minute\.)?/, ''))
        : error
    },
  )
  const json: schema.AccountLimitsReply = { limits: { ...changed.limits } }
  return { status: 200, json }
}

/** Raises a budget until a time. */
async function raise(
  services: Services,
  request: SignedInRequest<unknown, schema.RaiseBody>,
): Promise<Reply> {
  assertMayLimit(request.session)
  const { account } = request.session
  const changed = await raiseAccountLimit(changingBy(services, request), account, wishIn(request.body))
  const json: schema.AccountLimitsReply = { limits: { ...changed.limits } }
  return { status: 200, json }
}

/** Owners limit only accounts below others. */
function assertMayLimit({ user, account }: Pick<AccountSession, 'user' | 'account'>): void {
  if (roleOf(user) === 'admin' || account.parentId !== undefined) return
  const message = 'The limits of an account at the top are set by an administrator.'
  throw new GatewayError('forbidden', message)
}
