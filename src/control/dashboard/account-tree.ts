/**
 * Accounts as a tree, each with the figures of the month for itself and for all below it. A request counts
 * for the account that it was made in, at the account's place of today: so the children and the account
 * itself add up to its row.
 */
import type { Account } from '../../accounts/account.js'
import { adminTurns } from '../../base/turn-queue.js'
import { addTotals, newTotals, sumOfTotals, type RunningTotals, type Totals } from '../../usage/totals.js'
import { usageOf, type Services } from '../services.js'

/** What an account used, has, and who is in it. */
export interface TreeFigures extends Totals {
  readonly liveKeys: number
}

/** An account in the tree. */
export interface TreeNode {
  readonly account: Account
  readonly parent: TreeNode | null
  readonly children: TreeNode[]
  /** Of the account itself. */
  readonly own: RunningTotals & TreeFigures
  /** Of the account and all below it. */
  total: TreeFigures
}

/** The accounts of the gateway with their use in a time. */
export interface AccountTree {
  readonly nodes: ReadonlyMap<string, TreeNode>
  /** Use of accounts that were removed. */
  readonly removed: Totals
}

/** More than any store has. */
const ALL = 1_000_000
/** Accounts whose members are read at once. */
const AT_ONCE = 100

/** The sum of figures. */
export function sumOf(all: readonly TreeFigures[]): TreeFigures {
  return { ...sumOfTotals(all), liveKeys: all.reduce((sum, { liveKeys }) => sum + liveKeys, 0) }
}

/** All accounts, with what they have used since a time. */
export async function readTree(
  services: Pick<Services, 'store' | 'snapshot' | 'now'>,
  fromMs: number,
): Promise<AccountTree> {
  const { store } = services
  const nowMs = services.now()
  const usage = await usageOf(services, { fromMs, toMs: Math.max(nowMs, fromMs + 1), by: 'day' })
  const order = { column: 'name', isDescending: false, after: null, limit: ALL } as const
  const [{ items }, uses] = await Promise.all([
    store.directory.accounts({ ...order, nowMs, sinceMs: nowMs }),
    usage.groups({ accountId: null, by: 'key' }),
  ])
  const nodes = new Map<string, TreeNode>()
  const accounts = new Map(items.map((item) => [item.account.id, item]))
  const place = (id: string | undefined): TreeNode | null => {
    const item = id === undefined ? undefined : accounts.get(id)
    if (item === undefined) return null
    const { account, liveKeys } = item
    const known = nodes.get(account.id)
    if (known !== undefined) return known
    const own = { ...newTotals(), liveKeys }
    const node: TreeNode = { account, parent: place(account.parentId), children: [], own, total: own }
    nodes.set(account.id, node)
    node.parent?.children.push(node)
    return node
  }
  for (const { account } of items) place(account.id)
  const removed = newTotals()
  for (const use of uses) addTotals(nodes.get(use.accountId)?.own ?? removed, use)
  for (const node of nodes.values()) if (node.parent === null) rollUp(node)
  return { nodes, removed }
}

function rollUp(node: TreeNode): TreeFigures {
  node.total = sumOf([node.own, ...node.children.map(rollUp)])
  return node.total
}

/** The account and all below it. */
export function* withDescendants(node: TreeNode): Generator<TreeNode> {
  yield node
  for (const child of node.children) yield* withDescendants(child)
}

/** The names from the top of the tree to the account. */
export function pathOf(node: TreeNode): string[] {
  return node.parent === null ? [node.account.name] : [...pathOf(node.parent), node.account.name]
}

/** The addresses of the members of each account, by its id. */
export async function membersIn(
  { store }: Pick<Services, 'store'>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const members = new Map<string, readonly string[]>()
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE)
    const lists = await Promise.all(some.map((id) => store.membersOf(id)))
    for (const [index, id] of some.entries()) {
      members.set(
        id,
        (lists[index] ?? []).map(({ email }) => email),
      )
    }
    await adminTurns.next()
  }
  return members
}
