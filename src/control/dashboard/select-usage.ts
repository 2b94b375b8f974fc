/**
 * Which usage a query is about: that of an account, of it and all below it, or of the keys that a member
 * made; and the same in the period before.
 */
import { priceAt } from '../../formats/chat/model-facts.js'
import { GatewayError } from '../../errors.js'
import { factsFor } from '../../config/catalogue.js'
import type { KeyColumn, SortedQuery } from '../../store/account-and-key-lists.js'
import type { UsageSum } from '../../store/usage-queries.js'
import type { ExactUsage, UsageOwner } from '../../usage/exact-usage.js'
import { rangeBefore, type AskedRange } from '../../usage/ranges.js'
import { withBelow } from '../../usage/account-selection.js'
import { permissionIn } from './routing/access.js'
import { keptSince, scopeOf, usageIn, type Services } from '../services.js'
import type { AccountSession } from '../sign-in/sessions.js'

/** What a query selects, besides groups. */
interface AskedUsage extends AskedRange {
  /** With all accounts below the account. */
  readonly tree?: 'true' | undefined
  /** The e-mail address of a person: the keys that this person made. */
  readonly member?: string | undefined
}

/** The usage of a query. */
interface SelectedUsage {
  readonly usage: ExactUsage
  /** The account of selections; null: every account that the usage has. */
  readonly accountId: string | null
  /** The name of the account of the query; null: all accounts. */
  readonly above: string | null
}

/** The usage that a query of this session selects. */
export async function selectUsage(
  services: Services,
  session: AccountSession,
  asked: AskedUsage,
): Promise<SelectedUsage> {
  const { tree, member } = asked
  const accountId = scopeOf(session)
  const above = session.isAll ? null : session.account.name
  const isTree = tree !== undefined && accountId !== null
  if (isTree) await assertReadsBelow(services, session)
  if (!isTree && member === undefined) return { usage: await usageIn(services, asked), accountId, above }
  const ids = isTree ? [...(await withBelow(services, accountId))] : [accountId]
  const owners =
    member === undefined
      ? ids.flatMap((id) => (id === null ? [] : [{ accountId: id }]))
      : (await Promise.all(ids.map((id) => keysMadeBy(services, id, member)))).flat()
  return { usage: await usageIn(services, asked, owners), accountId: null, above }
}

/** Members and viewers of an account see nothing of those below it: throws `forbidden`. */
export async function assertReadsBelow({ store }: Services, session: AccountSession): Promise<void> {
  if ((await permissionIn(store, session, 'read account')) !== 'no') return
  const message = 'The usage of accounts below yours is for owners of the account. Omit "tree".'
  throw new GatewayError('forbidden', message, { param: 'tree' })
}

/** The keys of an account, or of all accounts (null), that a person made. */
export async function keysMadeBy(
  { store, now }: Pick<Services, 'store' | 'now'>,
  accountId: string | null,
  createdBy: string,
): Promise<Required<UsageOwner>[]> {
  const nowMs = now()
  const keys: Required<UsageOwner>[] = []
  for (let after: SortedQuery<KeyColumn>['after'] = null; ;) {
    const { items, next } = await store.directory.keys({
      ...{ accountId, createdBy, after, limit: 500, nowMs, sinceMs: nowMs },
      ...{ column: 'createdAt', isDescending: false },
    })
    keys.push(...items.map(({ key }) => ({ accountId: key.accountId, keyId: key.id })))
    if (next === null) return keys
    after = next
  }
}

/** The same usage in the period before; null if there is none, or if it is no longer kept. */
export async function usageBefore(services: Services, usage: ExactUsage): Promise<ExactUsage | null> {
  const range = rangeBefore(usage.range, await keptSince(services))
  return range === null ? null : usage.over(range)
}

const TOKENS_OF_PRICE = 1_000_000
const NANO_PER_USD = 1e9

/**
 * What the caches of providers saved, in nano-dollars by the list prices of today: input read from them,
 * against its price without a cache and less what writing to them cost.
 */
export function savedByProviders(
  { snapshot, now }: Pick<Services, 'snapshot' | 'now'>,
  sums: readonly UsageSum[],
): number {
  const tokens = new Map<string, { read: number; written: number }>()
  for (const { model, cacheReadTokens, cacheWriteTokens } of sums) {
    const of = tokens.get(model) ?? { read: 0, written: 0 }
    tokens.set(model, { read: of.read + cacheReadTokens, written: of.written + cacheWriteTokens })
  }
  const { catalogue } = snapshot()
  let saved = 0
  for (const [model, { read, written }] of tokens) {
    const price = priceAt(factsFor(catalogue, model).price, now())
    if (price?.input === undefined) continue
    const { input, cacheRead = input, cacheWrite = input } = price
    saved += (read * (input - cacheRead) - written * (cacheWrite - input)) / TOKENS_OF_PRICE
  }
  return Math.round(saved * NANO_PER_USD)
}
