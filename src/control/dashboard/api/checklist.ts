/** The first steps: a provider that answers, an account, a key, a request, a budget, a colleague. */
import { roleOf } from '../../../accounts/account.js'
import { isConfigured, type Snapshot } from '../../../config/config.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { PLAYGROUND, RECENT_MS, scopeOf, type Services } from '../../services.js'
import { hasBudget } from './budgets.js'
import { routerOf, usualRoute } from './models.js'

/** The newest requests that are searched for one with a key. */
const SEARCHED = 100

type StepId = schema.ChecklistStep['id']
/** What ticks a step; null if it is open. */
type Ticks = Readonly<Record<StepId, string | null>>

export function checklistRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/checklist', {
      credential: 'usage',
      query: schema.checklistQuery,
      reply: schema.checklistReply,
      passive: true,
      handle: (request) => checklist(services, request),
    }),
  ]
}

async function checklist(
  services: Services,
  { session }: SignedInRequest<unknown, undefined>,
): Promise<Reply> {
  const { store, ledger, snapshot, now } = services
  const accountId = scopeOf(session)
  const isAdmin = roleOf(session.user) === 'admin'
  const mayInvite = (await permissionIn(store, session, 'change members')) === 'yes'
  const recent = { accountId, after: null, fromMs: now() - RECENT_MS }
  const [answered, requests, key, accounts, colleague, budget] = await Promise.all([
    ledger.entries({ ...recent, outcome: 'ok', limit: 1 }),
    ledger.entries({ ...recent, limit: SEARCHED }),
    newestKey(services, accountId),
    isAdmin ? store.listAccounts({ order: 'newest_first', after: null, limit: 2 }) : null,
    colleagueOf(services, session, isAdmin),
    isAdmin ? hasBudget(services) : false,
  ])
  const first = answered.entries[0]
  const called = requests.entries.find(({ keyId }) => keyId !== PLAYGROUND)
  const ticks: Ticks = {
    provider: first === undefined ? null : textOf(first, first.upstream ?? ''),
    account: accounts === null || accounts.items.length < 2 ? null : (accounts.items[0]?.name ?? ''),
    key,
    request: called === undefined ? null : textOf(called, called.model),
    budget: budget ? '' : null,
    colleague,
  }
  const own: StepId[] = mayInvite ? ['key', 'request', 'colleague'] : ['key', 'request']
  const ids: StepId[] = isAdmin ? ['provider', 'account', 'key', 'request', 'budget', 'colleague'] : own
  const json: schema.ChecklistReply = {
    steps: ids.map((id) => ({ id, done: ticks[id] !== null, text: ticks[id] === '' ? null : ticks[id] })),
    test: isAdmin ? testOf(snapshot()) : null,
  }
  return { status: 200, json }
}

/** `openai, 200, 24 ms`. */
function textOf({ status, durationMs }: LedgerEntry, name: string): string {
  return [...(name === '' ? [] : [name]), String(status), `${Math.round(durationMs)} ms`].join(', ')
}

async function newestKey({ store, now }: Services, accountId: string | null): Promise<string | null> {
  const nowMs = now()
  const { items } = await store.directory.keys({
    ...{ accountId, after: null, limit: 1, nowMs, sinceMs: nowMs },
    ...{ column: 'createdAt', isDescending: true, states: ['live'] },
  })
  const [listed] = items
  return listed === undefined ? null : `${listed.key.name} of ${listed.accountName}`
}

/** Another user: of the gateway for an administrator, of the account for its owner. */
async function colleagueOf(
  { store }: Services,
  { user, account }: SignedInRequest<unknown, undefined>['session'],
  isAdmin: boolean,
): Promise<string | null> {
  if (isAdmin) {
    const { items } = await store.users.list({ after: null, limit: 2 })
    return items.find(({ id }) => id !== user.id)?.email ?? null
  }
  const members = await store.membersOf(account.id)
  const other = members.find(({ userId }) => userId !== user.id)
  return other === undefined ? null : ((await store.users.byId(other.userId))?.email ?? null)
}

/** The first model of the catalogue whose route has a provider with a credential. */
function testOf(snapshot: Snapshot): { model: string; upstream: string } | null {
  const router = routerOf(snapshot)
  for (const { id, embedding } of snapshot.catalogue.models) {
    const target = embedding === true ? undefined : usualRoute(router, id)?.targets[0]
    if (target !== undefined && isConfigured(target.upstream)) {
      return { model: id, upstream: target.upstream.name }
    }
  }
  return null
}
