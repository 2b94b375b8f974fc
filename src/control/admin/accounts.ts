/** Accounts and their limits in the admin API. */
import { parentName } from '../../accounts/changes/audit-text.js'
import { accountBeyond } from '../../accounts/changes/bounds.js'
import { limitsAbove } from '../../accounts/changes/limits-above.js'
import { endsOf } from '../../accounts/changes/change-accounts.js'
import {
  type ChangeContext,
  changeEntry,
  conflictRefusal,
  decideAccount,
  decideLimits,
} from '../../accounts/changes/decide.js'
import {
  ACCOUNT_LIMIT_FIELDS,
  LIMIT_FIELDS,
  accountFields,
  accountNameFault,
  accountValues,
  surplusLabels,
} from '../../accounts/changes/fields.js'
import { invalid } from '../../accounts/changes/refusal.js'
import type { Account, KeyLimits } from '../../accounts/account.js'
import { randomBase62 } from '../../accounts/key-secret.js'
import type { JsonObject } from '../../base/json.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import type { AccountDecision, AccountState } from '../../store/account-changes.js'
import { unmet } from './conditional-requests.js'
import {
  patchedObject,
  textIn,
  without,
  type Fields,
  readFields,
} from '../../accounts/changes/field-types.js'
import { readLabelFilters, matchesLabels, LABEL_FILTER } from './label-filters.js'
import { accountObject, accountTag, limitsObject } from './objects.js'
import { notFound, Problem, type Refused } from '../problem-details.js'
import { fieldsObject, listForm, replyForm } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { cursorOf } from '../cursor.js'
import { actorOf, PAGE_PARAMETERS, pageOf, type AdminServices, TRUE_OR_FALSE } from './services.js'
import { accountNamed, assertNotOwn, misnamed, sees } from './token-access.js'
import { tokenBounds } from './token-bounds.js'
import { withBelow } from '../../usage/account-selection.js'
import { ANY } from './usage.js'

const ACCOUNT = replyForm('Account', () => fieldsObject(accountFields('', null)))
const LIMITS = replyForm('Limits', () => fieldsObject(ACCOUNT_LIMIT_FIELDS))
/** Repetitions of a change that another one overtook. */
const MAX_TRIES = 20

export function accountRoutes(services: AdminServices): AdminRoute[] {
  const fields = accountFields('NAME', services.snapshot().config.plans)
  const own = { path: '/accounts/{name}', scopes: ['accounts:write'] } as const
  const limits = { path: '/accounts/{name}/limits', scopes: ['accounts:write'] } as const
  return [
    {
      ...{ method: 'GET', path: '/accounts', scopes: ['accounts:read'] },
      summary: 'The accounts, by name',
      query: {
        ...PAGE_PARAMETERS,
        label: LABEL_FILTER,
        parent: { type: ANY, means: 'Only those with this parent.' },
        member: { type: ANY, means: 'Only those with this member.' },
        disabled: { type: TRUE_OR_FALSE, means: 'Only disabled ones, or only others.' },
      },
      replies: { 200: listForm(ACCOUNT) },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'GET', path: own.path, scopes: ['accounts:read'], summary: 'One account' },
      replies: { 200: ACCOUNT },
      async handle({ token, path }) {
        const account = await accountNamed(services, token, path['name'] ?? '')
        return accountReply(services, account)
      },
    },
    {
      ...{ method: 'PUT', ...own, summary: 'Create an account, or replace all its fields' },
      body: { name: 'Account', fields },
      replies: { 200: ACCOUNT, 201: ACCOUNT },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'PATCH', ...own, summary: 'Change fields of an account' },
      body: { name: 'Account', fields, isPatch: true },
      replies: { 200: ACCOUNT },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'DELETE', ...own },
      summary: 'Disable an account; with `purge=true`, remove it with its members and keys',
      query: { purge: { type: TRUE_OR_FALSE, means: 'Remove it.' } },
      replies: { 200: ACCOUNT, 204: null },
      handle: (request) =>
        request.query['purge'] === 'true' ? purge(services, request) : disable(services, request),
    },
    {
      ...{ method: 'GET', path: limits.path, scopes: ['accounts:read'] },
      summary: 'The limits of an account',
      replies: { 200: LIMITS },
      async handle({ token, path }) {
        return limitsReply(await accountNamed(services, token, path['name'] ?? ''))
      },
    },
    {
      ...{ method: 'PUT', ...limits, summary: 'Replace the limits of an account' },
      body: { name: 'Limits', fields: ACCOUNT_LIMIT_FIELDS },
      replies: { 200: LIMITS },
      handle: (request) => putLimits(services, request),
    },
    {
      ...{ method: 'PATCH', ...limits, summary: 'Change limits of an account' },
      body: { name: 'Limits', fields: ACCOUNT_LIMIT_FIELDS, isPatch: true },
      replies: { 200: LIMITS },
      handle: (request) => putLimits(services, request),
    },
    {
      ...{ method: 'DELETE', ...limits, summary: 'Remove the limits of an account' },
      replies: { 204: null },
      async handle(request) {
        await putLimits(services, { ...request, body: {} })
        return 'none'
      },
    },
  ]
}

async function list(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const { query, token } = request
  const { after, limit } = pageOf(request)
  const isWanted = await filterOf(services, token, query)
  const names = new Map<string, string>()
  const items: JsonObject[] = []
  let [last, next] = [after, after]
  do {
    const page = await store.accountsByName({ after: next, limit: limit + 1 })
    next = page.next
    for (const account of page.items) {
      if (!isWanted(account)) continue
      if (items.length === limit) {
        return { status: 200, json: { items, next_cursor: cursorOf(last ?? '') } }
      }
      items.push(accountObject(account, await nameOfParent(services, account, names)))
      last = account.name
    }
  } while (next !== null)
  return { status: 200, json: { items, next_cursor: null } }
}

async function filterOf(
  services: AdminServices,
  token: AdminToken,
  query: JsonObject,
): Promise<(account: Account) => boolean> {
  const { store } = services
  const { parent, member, disabled } = query
  const labels = readLabelFilters(query['label'])
  const seen = token.accountId === null ? null : await withBelow(services, token.accountId)
  const parentAccount = typeof parent === 'string' ? await store.accountByName(parent) : null
  const user = typeof member === 'string' ? await store.users.byEmail(member) : null
  const memberships = user === null ? [] : await store.users.memberships(user.id)
  const joined = new Set(memberships.map(({ accountId }) => accountId))
  return (account) => {
    if (seen?.has(account.id) === false) return false
    if (parent !== undefined) {
      if (parentAccount === null || account.parentId !== parentAccount.id) return false
    }
    if (member !== undefined && !joined.has(account.id)) return false
    if (disabled !== undefined && account.disabled !== (disabled === 'true')) return false
    return matchesLabels(account.labels, labels)
  }
}

/** The name of the account's parent; null for none. */
async function nameOfParent(
  { store }: Pick<AdminServices, 'store'>,
  { parentId }: Account,
  names = new Map<string, string>(),
): Promise<string | null> {
  if (parentId === undefined) return null
  const name = names.get(parentId) ?? (await store.accountById(parentId))?.name ?? parentId
  names.set(parentId, name)
  return name
}

async function accountReply(services: AdminServices, account: Account, status = 200): Promise<JsonReply> {
  const parent = await nameOfParent(services, account)
  const location = status === 201 ? { location: `/accounts/${account.name}` } : {}
  const etag = accountTag(account, parent)
  return { status, json: accountObject(account, parent), etag, ...location }
}

function limitsReply(account: Account): JsonReply {
  const json = limitsObject(account)
  return { status: 200, json, etag: textIn(json['etag']) }
}

/** Why nothing was written. `again`: what was read before the transaction has changed. */
type Reason = Refused | 'again' | { readonly unchanged: Account }

async function put(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const reply = await putOnce(services, request)
    if (reply !== 'again') return reply
  }
  throw tooBusy()
}

async function putOnce(services: AdminServices, request: AdminRequest): Promise<JsonReply | 'again'> {
  const { store, now, snapshot } = services
  const { req, token, body, conditions } = request
  const isPatch = req.method === 'PATCH'
  const name = request.path['name'] ?? ''
  const existing = await store.accountByName(name)
  if (existing === null) assertNew(name, isPatch)
  else await assertMayChange(services, token, existing, isPatch)
  const bounds = await tokenBounds(services, token)
  const fields = accountFields(name, snapshot().config.plans, bounds?.plans[0])
  const parents = new Map<string, string>()
  if (existing !== null) await nameOfParent(services, existing, parents)
  const current = existing === null ? { name } : accountObject(existing, parentName(existing, parents))
  const given = readFields(fields, body, { current, isPatch })
  const isNamed = !isPatch || 'parent' in given
  const wanted = given['parent'] ?? null
  await addParent(services, token, { wanted, isNamed }, parents)
  if (existing === null && token.accountId !== null) {
    const refusal = misnamed(await store.accountById(token.accountId), name)
    if (refusal !== null) throw refusal
  }
  const most = await limitsBelow(services, isNamed ? wanted : current['parent'])
  const nowMs = now()
  const accountId = existing?.id ?? `acc_${randomBase62(16)}`
  const context = { nowMs, actor: actorOf(request), accountId, account: name }
  const result = await store.transact<Reason>({
    ...{ accountId, nowMs },
    decide(state) {
      const { account } = state
      const isStale = (account === null) !== (existing === null)
      const isMoved = account?.parentId !== undefined && !parents.has(account.parentId)
      if (isStale || isMoved) return { refuse: 'again' }
      const tag = account === null ? null : accountTag(account, parentName(account, parents))
      const failed = unmet(conditions, tag)
      if (failed !== null) return { refuse: failed }
      const before = account === null ? {} : accountValues(account, parentName(account, parents))
      const values = isPatch ? patchedObject(fields, before, given) : given
      const refusal = surplusLabels(values) ?? accountBeyond(bounds, { values, before, most })
      if (refusal !== null) return { refuse: refusal }
      return decisionOf(account, values, parents, context)
    },
  })
  if (result.kind === 'conflict') {
    // Another request has created it in the meantime.
    if (result.conflict === 'name_taken' && existing === null) return 'again'
    throw conflictRefusal(result.conflict, name)
  }
  if (result.kind === 'refused') {
    const { reason } = result
    if (reason === 'again') return 'again'
    if (reason instanceof Error) throw reason
    return accountReply(services, reason.unchanged)
  }
  const { account } = result.writes
  if (account === undefined) throw notFound()
  return accountReply(services, account, existing === null ? 201 : 200)
}

function decisionOf(
  account: Account | null,
  values: JsonObject,
  parents: ReadonlyMap<string, string>,
  context: ChangeContext,
): AccountDecision<Reason> {
  const { kind, item, audit } = decideAccount(account, values, parents, context)
  if (kind === 'unchanged') return { refuse: { unchanged: item } }
  return { write: { account: item, ends: endsOf(account, item), audit } }
}

function assertNew(name: string, isPatch: boolean): void {
  if (isPatch) throw notFound()
  const fault = accountNameFault(name)
  if (fault !== null) throw invalid('name', ...fault)
}

/**
 * A token with an account changes what is below it, and neither the account itself nor any other: the name of
 * one elsewhere is taken.
 */
async function assertMayChange(
  services: AdminServices,
  token: AdminToken,
  existing: Account,
  isPatch: boolean,
): Promise<void> {
  if (!(await sees(services, token, existing))) {
    throw isPatch ? notFound() : conflictRefusal('name_taken', existing.name)
  }
  assertNotOwn(token, existing)
}

/** Adds the wanted parent to the names of parents, if the token sees it. */
async function addParent(
  services: AdminServices,
  token: AdminToken,
  { wanted, isNamed }: { readonly wanted: unknown; readonly isNamed: boolean },
  parents: Map<string, string>,
): Promise<void> {
  if (!isNamed) return
  const parent = typeof wanted === 'string' ? await services.store.accountByName(wanted) : null
  const isSeen = parent !== null && (await sees(services, token, parent))
  if (isSeen) parents.set(parent.id, parent.name)
  else if (token.accountId !== null) {
    throw new Problem('forbidden', 'A token with an account makes accounts only below it.', {
      field: 'parent',
      fix: 'Send its account, or one below it, as the parent.',
    })
  } else if (wanted !== null) throw conflictRefusal('no_parent', '')
}

/** The limits that hold for accounts with the parent. */
async function limitsBelow(services: AdminServices, parent: unknown): Promise<KeyLimits[]> {
  const account = typeof parent === 'string' ? await services.store.accountByName(parent) : null
  const { store, snapshot } = services
  return account === null ? [] : limitsAbove({ store, plans: snapshot().config.plans }, account)
}

/** Runs a change of an existing account that the token may make. */
async function changeAccount(
  services: AdminServices,
  request: AdminRequest,
  decide: (
    account: Account,
    context: ChangeContext,
    state: AccountState,
  ) => AccountDecision<Refused | { readonly unchanged: Account }>,
): Promise<Account> {
  const { store, now } = services
  const existing = await accountNamed(services, request.token, request.path['name'] ?? '')
  assertNotOwn(request.token, existing)
  const { id: accountId, name: account } = existing
  const nowMs = now()
  const context = { nowMs, actor: actorOf(request), accountId, account }
  const result = await store.transact<Refused | { readonly unchanged: Account }>({
    ...{ accountId, nowMs },
    decide: (state) =>
      state.account === null ? { refuse: notFound() } : decide(state.account, context, state),
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, account)
  if (result.kind === 'written') return result.writes.account ?? existing
  if (result.reason instanceof Error) throw result.reason
  return result.reason.unchanged
}

async function disable(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const named = await accountNamed(services, request.token, request.path['name'] ?? '')
  const parent = await nameOfParent(services, named)
  const account = await changeAccount(services, request, (before, context) => {
    const failed = unmet(request.conditions, accountTag(before, parent))
    if (failed !== null) return { refuse: failed }
    if (before.disabled) return { refuse: { unchanged: before } }
    const { nowMs, accountId: target, account: detail } = context
    const updatedAtMs = Math.max(nowMs, (before.updatedAtMs ?? 0) + 1)
    const change = { before: { disabled: false }, after: { disabled: true } }
    const entry = changeEntry(context, { action: 'account.disable', target, detail, ...change })
    const disabled = { ...before, disabled: true, updatedAtMs }
    return { write: { account: disabled, ends: endsOf(before, disabled), audit: [entry] } }
  })
  return accountReply(services, account)
}

async function purge(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const named = await accountNamed(services, request.token, request.path['name'] ?? '')
  const parent = await nameOfParent(services, named)
  const account = await changeAccount(services, request, (before, context) => {
    const failed = unmet(request.conditions, accountTag(before, parent))
    if (failed !== null) return { refuse: failed }
    const values = { name: before.name, ...accountValues(before, parent) }
    const { accountId: target, account: detail } = context
    const change = { before: values, after: null }
    const entry = changeEntry(context, { action: 'account.purge', target, detail, ...change })
    return { write: { purge: true, audit: [entry] } }
  })
  // They have ended with the account: what fails here stays in the list of tokens only.
  await endTokensOf(services, account.id).catch((error: unknown) => {
    services.log.error('the tokens of a purged account are not noted as revoked', error)
  })
  return 'none'
}

/** Notes that the tokens of a purged account have ended. */
async function endTokensOf({ store, now }: AdminServices, accountId: string): Promise<void> {
  for (let after: string | null = null; ;) {
    const page = await store.adminTokens.page(after, 500)
    for (const { id, accountId: owner } of page.items) {
      if (owner !== accountId) continue
      await store.adminTokens.change(id, (token) => {
        return token.revokedAtMs === undefined ? { ...token, revokedAtMs: now() } : null
      })
    }
    if (page.next === null) return
    after = page.next
  }
}

async function putLimits(services: AdminServices, request: AdminRequest): Promise<JsonReply> {
  const { body, token, conditions } = request
  const isPatch = request.req.method === 'PATCH'
  const named = await accountNamed(services, token, request.path['name'] ?? '')
  const current = limitsObject(named)
  const fields: Fields = ACCOUNT_LIMIT_FIELDS
  const given = readFields(fields, body, { current, isPatch })
  const bounds = await tokenBounds(services, token)
  const most = await limitsBelow(services, await nameOfParent(services, named))
  const account = await changeAccount(services, request, (before, context) => {
    const values = shownLimits(before)
    const failed = unmet(conditions, textIn(limitsObject(before)['etag']))
    if (failed !== null) return { refuse: failed }
    const wanted = isPatch ? merged(values, given) : given
    const whole = accountValues(before, null)
    const refusal = accountBeyond(bounds, { values: { ...whole, limits: wanted }, before: whole, most })
    if (refusal !== null) return { refuse: refusal }
    const { kind, item, audit } = decideLimits(before, wanted, context)
    return kind === 'unchanged' ? { refuse: { unchanged: item } } : { write: { account: item, audit } }
  })
  return limitsReply(account)
}

function merged(values: JsonObject, patch: JsonObject): JsonObject {
  return patchedObject(LIMIT_FIELDS, values, patch)
}

function shownLimits(account: Account): JsonObject {
  return without(limitsObject(account), 'account', 'etag')
}

/** Too many others change the same object. */
function tooBusy(): Problem {
  const detail = 'Other requests change this object all the time.'
  return new Problem('store_unavailable', detail, { fix: 'Try again.' }, ['retry-after', '1'])
}
