/** Search over keys, accounts, models and requests, within what the user may see: for the command palette. */
import { roleOf } from '../../../accounts/account.js'
import { stateOfKey } from '../../../store/account-and-key-lists.js'
import { permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { AccountSession } from '../../sign-in/sessions.js'
import { RECENT_MS, scopeOf, type Services } from '../../services.js'

/** Of each kind. */
const MOST = 8

export function searchRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/search', {
      credential: 'usage',
      query: schema.searchQuery,
      reply: schema.searchReply,
      handle: (request) => search(services, request),
    }),
  ]
}

async function search(
  services: Services,
  { session, query: { q = '' } }: SignedInRequest<ReturnType<typeof schema.searchQuery.parse>, undefined>,
): Promise<Reply> {
  if (q === '') {
    const nothing: schema.SearchReply = { keys: [], accounts: [], models: [], requests: [] }
    return { status: 200, json: nothing }
  }
  const [keys, accounts, requests] = await Promise.all([
    keysOf(services, session, q),
    accountsOf(services, session, q),
    requestsOf(services, scopeOf(session), q),
  ])
  const words = q.toLowerCase()
  const { models } = services.snapshot().catalogue
  const named = models.filter(({ id }) => id.toLowerCase().includes(words))
  const json: schema.SearchReply = {
    keys,
    accounts,
    models: named.slice(0, MOST).map(({ id }) => ({ id })),
    requests,
  }
  return { status: 200, json }
}

async function keysOf(
  { store, now }: Services,
  session: AccountSession,
  q: string,
): Promise<schema.SearchReply['keys']> {
  const permission = await permissionIn(store, session, 'read keys')
  if (permission === 'no') return []
  const nowMs = now()
  const { items } = await store.directory.keys({
    ...{ column: 'name', isDescending: false, after: null, limit: MOST },
    ...{ accountId: scopeOf(session), search: q, nowMs, sinceMs: nowMs },
    ...(permission === 'own' ? { createdBy: session.user.email } : {}),
  })
  return items.map(({ key, accountName }) => {
    const { id, name, accountId, lastFour } = key
    return { id, name, accountId, accountName, lastFour, state: stateOfKey(key, nowMs) }
  })
}

/** Administrators and auditors find all accounts, others their own. */
async function accountsOf(
  { store, now }: Services,
  { user, accounts }: AccountSession,
  q: string,
): Promise<schema.SearchReply['accounts']> {
  const nowMs = now()
  const found =
    roleOf(user) === null
      ? accounts.filter(({ id, name }) => id === q || name.includes(q.toLowerCase()))
      : (
          await store.directory.accounts({
            ...{ column: 'name', isDescending: false, after: null, limit: MOST },
            ...{ search: q, nowMs, sinceMs: nowMs },
          })
        ).items.map(({ account }) => account)
  return found.slice(0, MOST).map(({ id, name, email = name, disabled }) => {
    return { id, name, email, disabled }
  })
}

/** A request by its id, else the newest ones to which the client gave the id. */
async function requestsOf(
  { ledger, now }: Services,
  accountId: string | null,
  q: string,
): Promise<schema.SearchReply['requests']> {
  const row = await ledger.entry(accountId, q)
  const entries =
    row === null
      ? (
          await ledger.entries({
            ...{ accountId, clientRequestId: q, fromMs: now() - RECENT_MS },
            ...{ after: null, limit: MOST },
          })
        ).entries
      : [row]
  return entries.map((entry) => {
    const { requestId, clientRequestId, accountId: owner, atMs, model, status, outcome } = entry
    return { requestId, clientRequestId, accountId: owner, atMs, model, status, outcome }
  })
}
