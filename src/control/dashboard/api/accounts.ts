/** Accounts for administrators. */
import { roleOf, type Account } from '../../../accounts/account.js'
import { isUnproven } from '../../../accounts/address-proof.js'
import { conflictRefusal } from '../../../accounts/changes/decide.js'
import { changeAccount, checkedPlan, createAccount } from '../../../accounts/changes/change-accounts.js'
import { isObject } from '../../../base/json.js'
import {
  ACCOUNT_COLUMNS,
  NO_USE,
  useByAccount,
  type ListedAccount,
} from '../../../store/account-and-key-lists.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import { cursorAt, orderOf } from './list-page.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import { notFound } from '../routing/access.js'
import { GatewayError } from '../../../errors.js'
import { assertMayHavePassword } from '../../sign-in/bound-users.js'
import type { DraftLink } from '../../sign-in/links.js'
import type { AccountSession } from '../../sign-in/sessions.js'
import * as schema from '../schema/schema.js'
import { changingBy, entryOf, newDraft, newLink, planOf, RECENT_MS, type Services } from '../../services.js'

export function accountRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/account', {
      credential: 'usage',
      query: schema.shownAccountQuery,
      reply: schema.shownAccountReply,
      handle: (request) => shown(services, request.session),
    }),
    signedRoute('GET', '/accounts', {
      credential: 'read gateway',
      query: schema.accountsQuery,
      reply: schema.accountsReply,
      handle: ({ query }) => list(services, query),
    }),
    signedRoute('POST', '/accounts', {
      credential: 'admin',
      body: schema.createAccountBody,
      reply: schema.createdAccountReply,
      handle: (request) => create(services, request),
    }),
    signedRoute('PATCH', '/accounts/{id}', {
      credential: 'admin',
      body: schema.changeAccountBody,
      reply: schema.accountReply,
      handle: (request) => change(services, request),
    }),
    signedRoute('POST', '/accounts/{id}/reset', {
      credential: 'admin',
      body: schema.resetLinkBody,
      reply: schema.resetLinkReply,
      handle: (request) => resetLink(services, request),
    }),
  ]
}

async function shown(
  { store, snapshot }: Services,
  { account: { id, name, plan }, isAll }: AccountSession,
): Promise<Reply> {
  if (isAll) {
    const message = 'Set "account": a plan is that of one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const liveKeys = await store.countKeys(id)
  return { status: 200, json: { id, name, plan: planOf(snapshot(), plan), liveKeys } }
}

async function list(
  services: Services,
  query: ReturnType<typeof schema.accountsQuery.parse>,
): Promise<Reply> {
  const { search, plan, state = 'all', parent } = query
  const order = orderOf(query, { columns: ACCOUNT_COLUMNS, usual: '-createdAt', limit: 50 })
  if (order === null) return { status: 200, json: { accounts: [], next: null, total: 0 } }
  const nowMs = services.now()
  const page = await services.store.directory.accounts({
    ...{ ...order, nowMs, sinceMs: nowMs - RECENT_MS },
    ...(search === undefined ? {} : { search }),
    ...(plan === undefined ? {} : { plan }),
    ...(state === 'all' ? {} : { disabled: state === 'disabled' }),
    ...(parent === undefined ? {} : { parent }),
  })
  const json: schema.Sent<typeof schema.accountsReply> = {
    accounts: await Promise.all(page.items.map((item) => rowView(services, item))),
    next: cursorAt(order.sort, page.next),
    total: page.total,
  }
  return { status: 200, json }
}

async function create(
  services: Services,
  request: SignedInRequest<unknown, ReturnType<typeof schema.createAccountBody.parse>>,
): Promise<Reply> {
  const { store, now, snapshot } = services
  const { name, email, parent, role = 'owner' } = request.body
  const plan = checkedPlan(request.body.plan, snapshot().config.plans)
  const above = parent === undefined ? null : await parentNamed(services, parent)
  const wanted = {
    plan,
    role,
    password: { none: true },
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(above === null ? {} : { parentId: above.id, parentName: above.name }),
  } as const
  const { actor } = changingBy(services, request)
  const drafts: DraftLink[] = []
  const { account } = await createAccount(store, wanted, {
    ...{ now, actor },
    async link(user, made) {
      if (!isUnproven(user)) return null
      const draft = await newDraft(services, request, { user, account: made })
      drafts.push(draft)
      return draft.write
    },
  })
  const link = drafts[0]?.written(account) ?? null
  return { status: 201, json: { account: await accountRow(services, account), link } }
}

async function parentNamed({ store }: Services, nameOrId: string): Promise<Account> {
  const account = (await store.accountByName(nameOrId)) ?? (await store.accountById(nameOrId))
  if (account === null) throw conflictRefusal('no_parent', '')
  return account
}

async function change(
  services: Services,
  request: SignedInRequest<unknown, ReturnType<typeof schema.changeAccountBody.parse>>,
): Promise<Reply> {
  const { store } = services
  const { displayName, labels, ...same } = request.body
  const { disabled } = same
  if (disabled === true && request.id === request.session.account.id) {
    throw new GatewayError('malformed_request', 'You cannot disable your own account.', {
      param: 'disabled',
    })
  }
  const found = await store.accountById(request.id)
  if (found === null) throw notFound()
  const gone = Object.fromEntries(Object.keys(found.labels ?? {}).map((name) => [name, null]))
  const settings = {
    ...Object.fromEntries(Object.entries(same).filter(([, value]) => value !== undefined)),
    ...(displayName === undefined ? {} : { display_name: displayName }),
    ...(labels === undefined ? {} : { labels: isObject(labels) ? { ...gone, ...labels } : labels }),
  }
  const account = await changeAccount(changingBy(services, request), found, settings)
  // A disabled administrator of an earlier version.
  const user = disabled === false ? await store.users.byId(account.id) : null
  if (user?.disabled === true) await store.users.change(user.id, { disabled: false })
  return { status: 200, json: { account: await accountRow(services, account) } }
}

async function resetLink(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const account = await services.store.accountById(request.id)
  if (account === null) throw notFound()
  const user = await services.store.users.byId(account.id)
  if (user === null) {
    const message = 'This account was made without a login. Invite a member instead.'
    throw new GatewayError('malformed_request', message)
  }
  assertMayHavePassword(services, user)
  const auditEntries = [otherEntry(services, request, { account, action: 'account.reset-link' })]
  const link = await newLink(services, request, { user, account, auditEntries })
  return { status: 201, json: { link } }
}

async function accountRow(
  services: Services,
  account: Account,
): Promise<schema.Sent<typeof schema.accountRow>> {
  const { store, ledger, now } = services
  const { id } = account
  const toMs = now()
  const [[above], liveKeys, uses] = await Promise.all([
    store.ancestorsOf(account),
    store.countKeys(id),
    ledger.keyUse({ accountId: id, fromMs: toMs - RECENT_MS, toMs }),
  ])
  const use = useByAccount(uses).get(id) ?? NO_USE
  return rowView(services, { account, parent: above?.name ?? null, liveKeys, use })
}

async function rowView(
  { store }: Services,
  { account, parent, liveKeys, use }: ListedAccount,
): Promise<schema.Sent<typeof schema.accountRow>> {
  const { id, name, email = name, plan, disabled, createdAtMs } = account
  const user = await store.users.byId(id)
  const role = user !== null && roleOf(user) === 'admin' ? 'admin' : 'owner'
  return {
    ...{ id, name, email, parent, role, plan, disabled, createdAtMs, liveKeys },
    requests: use.requests,
    costNanoUsd: use.costNanoUsd,
    unpricedRequests: use.unpriced,
  }
}

/** An audit entry for an administrator's action on an account. */
function otherEntry(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  { account, action }: { readonly account: Account; readonly action: string },
): AuditEntry {
  const { id, email: detail = account.name } = account
  return entryOf(services, request, { accountId: id, action, target: id, detail })
}
