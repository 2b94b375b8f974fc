/** Keys of accounts in the admin API: by their names, with generated or given secrets, and rotation. */
import type { Account, ApiKey } from '../../accounts/account.js'
import { maxKeysOf, replacedKeyEndMs, revokeReplacedKeys, settingsOfSuccessor } from '../../accounts/keys.js'
import type { JsonObject } from '../../formats/chat/json.js'
import { adminTurns } from '../../store/turn-queue.js'
import type { AccountDecision, AccountState } from '../../store/account-changes.js'
import { keyPages } from '../../store/list-all.js'
import { surplusLabels } from './accounts.js'
import {
  conflictProblem,
  decideKey,
  freshKey,
  revokedKey,
  rotation,
  type ChangeContext,
  type FreshKey,
} from './decide-changes.js'
import { unmet } from './conditional-requests.js'
import {
  choiceType,
  Faults,
  numberType,
  patchedObject,
  readObject,
  readPatch,
  textType,
  without,
  type Fields,
} from './field-types.js'
import { LABEL_FILTER, matchesLabels, readLabelFilters } from './label-filters.js'
import { DIGEST, isShownName, KEY_FIELDS, keyObject, keyState, keyTag, keyValues } from './objects.js'
import { faulty, invalid, notFound, Problem } from './problem-details.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { actorOf, cursorOf, PAGE_PARAMETERS, pageOf, timeText, type AdminServices } from './services.js'
import { accountNamed } from './token-access.js'
import { keyBeyond, limitsAbove, tokenBounds, withEnd } from './token-bounds.js'

const TRUE_OR_FALSE = textType((text) => text === 'true' || text === 'false', {
  fix: 'Send true or false.',
})

/** The body of a rotation. */
const ROTATION_FIELDS: Fields = {
  overlap_seconds: {
    type: numberType(0, 2_592_000),
    means: 'How long the old key works beside the new one; 0: not at all.',
    default: 86_400,
  },
  secret_sha256: {
    type: DIGEST,
    means: 'The SHA-256 of the new secret, instead of a generated one.',
    optional: true,
    writeOnly: true,
  },
}

export function keyRoutes(services: AdminServices): AdminRoute[] {
  const path = '/accounts/{name}/keys/{key_name}'
  const own = { path, scopes: ['keys:write'] } as const
  const read = ['accounts:read', 'keys:write'] as const
  return [
    {
      ...{ method: 'GET', path: '/accounts/{name}/keys', scopes: read },
      summary: 'The keys of an account, by name',
      query: {
        ...PAGE_PARAMETERS,
        label: LABEL_FILTER,
        state: {
          type: choiceType(['live', 'all']),
          means: '`live` (the default) omits revoked and expired keys.',
        },
      },
      replies: { 200: 'KeyList' },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'GET', path, scopes: read, summary: 'One key' },
      replies: { 200: 'Key' },
      async handle(request) {
        const account = await accountNamed(services, request.token, request.path['name'] ?? '')
        return replyOf(services, account, await named(services, account, keyName(request)))
      },
    },
    {
      ...{ method: 'PUT', ...own },
      summary: 'Create a key, whose secret only this reply has, or replace all fields of one',
      body: { name: 'Key', fields: KEY_FIELDS },
      replies: { 200: 'Key', 201: 'Key' },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'PATCH', ...own, summary: 'Change fields of a key' },
      body: { name: 'Key', fields: KEY_FIELDS, isPatch: true },
      replies: { 200: 'Key' },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'DELETE', ...own },
      summary: 'Revoke a key; with `purge=true`, remove it',
      query: { purge: { type: TRUE_OR_FALSE, means: 'Remove it.' } },
      replies: { 200: 'Key', 204: null },
      handle: (request) => revoke(services, request),
    },
    {
      ...{ method: 'POST', path: `${path}/rotate`, scopes: own.scopes },
      summary: 'Replace a key by a new one with the same name and fields; both work for a time',
      body: { name: 'Rotation', fields: ROTATION_FIELDS, isOptional: true },
      replies: { 201: 'Key' },
      handle: (request) => rotate(services, request),
    },
  ]
}

function keyName({ path }: AdminRequest): string {
  return path['key_name'] ?? ''
}

async function list(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { token, path, query } = request
  const account = await accountNamed(services, token, path['name'] ?? '')
  const { after, limit } = pageOf(request)
  const filters = readLabelFilters(query['label'])
  const isAll = query['state'] === 'all'
  const nowMs = now()
  const found: ApiKey[] = []
  for await (const page of keyPages(store, account.id)) {
    for (const key of page) {
      const isWanted = isAll || keyState(key, nowMs) === 'live'
      if (isWanted && matchesLabels(key.labels, filters) && placeOf(key) > (after ?? '')) {
        found.push(key)
      }
    }
    await adminTurns.next()
  }
  found.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  const page = found.slice(0, limit)
  const lastUse = await store.ledger.lastUse(
    account.id,
    page.map(({ id }) => id),
  )
  const items = page.map((key) => {
    const lastUsedAtMs = lastUse.get(key.id) ?? null
    return keyObject(key, { account: account.name, lastUsedAtMs, nowMs })
  })
  const last = found.length > limit ? page.at(-1) : undefined
  return {
    status: 200,
    json: { items, next_cursor: last === undefined ? null : cursorOf(placeOf(last)) },
  }
}

/** By name; several keys of one name by their id. */
function placeOf({ name, id }: ApiKey): string {
  return `${name}\0${id}`
}

/** The key that has the name, or the newest of those that had it. Throws `not_found`. */
async function named({ store }: AdminServices, { id }: Account, name: string): Promise<ApiKey> {
  const key = await store.keyByName(id, name)
  if (key !== null) return key
  let newest: ApiKey | null = null
  for await (const page of keyPages(store, id)) {
    newest = page.findLast((each) => each.name === name) ?? newest
    await adminTurns.next()
  }
  if (newest === null) throw notFound()
  return newest
}

async function objectOf(
  { store, now }: AdminServices,
  { name: account }: Account,
  key: ApiKey,
): Promise<JsonObject> {
  const lastUse = await store.ledger.lastUse(key.accountId, [key.id])
  return keyObject(key, { account, lastUsedAtMs: lastUse.get(key.id) ?? null, nowMs: now() })
}

async function replyOf(services: AdminServices, account: Account, key: ApiKey): Promise<JsonReply> {
  return { status: 200, json: await objectOf(services, account, key), etag: keyTag(key) }
}

function locationOf({ name }: Account, key: ApiKey): string {
  return `/accounts/${name}/keys/${encodeURIComponent(key.name)}`
}

/** Why nothing was written. `full`: replaced keys that have ended still count for the plan. */
type Reason = Problem | 'full' | { readonly unchanged: ApiKey }

async function put(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { token, body, conditions } = request
  const isPatch = request.req.method === 'PATCH'
  const account = await accountNamed(services, token, request.path['name'] ?? '')
  const name = keyName(request)
  if (!isShownName(name)) {
    const fix = 'Use 1 to 100 characters, without control characters and without spaces at the ends.'
    throw isPatch ? notFound() : invalid('name', 'This is no name of a key.', fix)
  }
  const found = await store.keyByName(account.id, name)
  if (found === null && isPatch) throw notFound()
  const current = found === null ? { account: account.name, name } : await objectOf(services, account, found)
  const faults = new Faults()
  const given = (isPatch ? readPatch : readObject)(KEY_FIELDS, body, { current, faults })
  if (faults.all.length > 0) throw faulty(faults.all)
  const { secret_sha256: digest, ...others } = given
  const hasGivenSecret = typeof digest === 'string'
  const fresh = freshKey(hasGivenSecret ? digest : undefined)
  const bounds = await tokenBounds(services, token)
  const most = bounds === null ? [] : await limitsAbove(services, account)
  return written(services, request, account, {
    name,
    fresh,
    decide(state, context) {
      const former = state.keys.get(name) ?? null
      if (former === null && isPatch) return { refuse: notFound() }
      const failed = unmet(conditions, former === null ? null : keyTag(former))
      if (failed !== null) return { refuse: failed }
      const before = former === null ? {} : keyValues(former)
      const isNewSecret = former === null || (hasGivenSecret && former.digest !== fresh.digest)
      const wanted = isPatch ? patchedObject(KEY_FIELDS, before, others) : others
      const values = withEnd(wanted, isNewSecret ? null : before, bounds?.endsAtMs ?? null)
      const refusal =
        surplusLabels(values) ??
        expiryInPast(values, before, now()) ??
        keyBeyond(bounds, { values, before: isNewSecret ? without(before, 'expires_at') : before, most })
      if (refusal !== null) return { refuse: refusal }
      const wish = { name, values, fresh, hasGivenSecret, imported: null }
      const { kind, item, audit, keys, newKeys } = decideKey(former, wish, context)
      if (kind === 'unchanged') return { refuse: { unchanged: item } }
      const isFull = former === null && state.liveKeys >= maxKeysOf(plansOf(services), account.plan)
      if (isFull) return { refuse: 'full' }
      return { write: { newKeys, keys, audit } }
    },
  })
}

function plansOf({ snapshot }: AdminServices) {
  return snapshot().config.plans
}

/** A key cannot be given an end in the past; one that has ended keeps its end. */
function expiryInPast(values: JsonObject, before: JsonObject, nowMs: number): Problem | null {
  const { expires_at: end } = values
  if (typeof end !== 'string' || end === before['expires_at']) return null
  if (Date.parse(end) > nowMs) return null
  return invalid('expires_at', 'A key cannot expire in the past.', 'Send a later time, or null.')
}

/** A change of the key with this name. */
interface KeyChange {
  readonly name: string
  readonly fresh: FreshKey
  readonly decide: (state: AccountState, context: ChangeContext) => AccountDecision<Reason>
}

/** Makes the change; the reply is 201 with the secret if it made the key of `fresh`. */
async function written(
  services: AdminServices,
  request: AdminRequest,
  account: Account,
  { name, fresh, decide }: KeyChange,
): Promise<JsonReply> {
  const { store, now } = services
  const nowMs = now()
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
  const change = () =>
    store.transact<Reason>({
      ...{ accountId: account.id, nowMs, reads: { keys: [name] } },
      decide: (state) => (state.account === null ? { refuse: notFound() } : decide(state, context)),
    })
  let result = await change()
  if (result.kind === 'refused' && result.reason === 'full') {
    if ((await revokeReplacedKeys(store, account.id, nowMs)) > 0) result = await change()
  }
  if (result.kind === 'conflict') throw conflictProblem(result.conflict, name)
  if (result.kind === 'refused') {
    const { reason } = result
    if (reason === 'full') throw planFull(account)
    if (reason instanceof Problem) throw reason
    return replyOf(services, account, reason.unchanged)
  }
  const { newKeys = [], keys = [] } = result.writes
  const made = newKeys.find(({ id }) => id === fresh.id)
  const item = made ?? keys[0]
  if (item === undefined) throw notFound()
  const reply = await replyOf(services, account, item)
  if (made === undefined) return reply
  const isNew = keys.length === 0
  const secret = fresh.secret === null ? {} : { secret: fresh.secret }
  const location = isNew ? { location: locationOf(account, item) } : {}
  return { ...reply, status: isNew ? 201 : 200, json: { ...reply.json, ...secret }, ...location }
}

function planFull({ plan }: Account): Problem {
  return new Problem('plan_limit', `The plan "${plan}" allows no more keys.`, {
    fix: 'Revoke a key, or choose a larger plan.',
  })
}

async function revoke(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const account = await accountNamed(services, request.token, request.path['name'] ?? '')
  const found = await named(services, account, keyName(request))
  const nowMs = now()
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
  const { name } = found
  let revoked = found
  if (found.revokedAtMs === undefined) {
    const result = await store.transact<Problem | { readonly unchanged: null }>({
      ...{ accountId: account.id, nowMs, reads: { keys: [name] } },
      decide({ keys }) {
        const key = keys.get(name)
        // Another request has revoked it in the meantime.
        if (key === undefined) return { refuse: { unchanged: null } }
        const failed = unmet(request.conditions, keyTag(key))
        if (failed !== null) return { refuse: failed }
        const { key: ended, audit } = revokedKey(key, context)
        return { write: { keys: [ended], audit: [audit] } }
      },
    })
    if (result.kind === 'conflict') throw conflictProblem(result.conflict, name)
    if (result.kind === 'refused' && result.reason instanceof Problem) throw result.reason
    revoked =
      result.kind === 'written' ? (result.writes.keys?.[0] ?? found) : await named(services, account, name)
  } else {
    const failed = unmet(request.conditions, keyTag(found))
    if (failed !== null) throw failed
  }
  await revokeReplaced(services, revoked, context)
  if (request.query['purge'] !== 'true') return replyOf(services, account, revoked)
  await removeAll(services, revoked, nowMs)
  return 'none'
}

/** Removes the key and all ended ones that had its name. */
async function removeAll(
  { store }: AdminServices,
  { accountId, name }: ApiKey,
  nowMs: number,
): Promise<void> {
  for await (const page of keyPages(store, accountId)) {
    const ended = page.filter((key) => key.name === name && keyState(key, nowMs) !== 'live')
    const ids = ended.map(({ id }) => id)
    const lastMs = Math.max(nowMs, ...ended.map(({ revokedAtMs = 0 }) => revokedAtMs))
    if (ids.length > 0) await store.removeKeys(accountId, ids, lastMs + 1)
    await adminTurns.next()
  }
}

/** Revokes the keys that this one has replaced and that still work: no name leads to them any more. */
async function revokeReplaced(
  { store }: AdminServices,
  { accountId, replaces }: ApiKey,
  context: ChangeContext,
): Promise<void> {
  const { nowMs } = context
  for (let id = replaces; id !== undefined;) {
    const old: ApiKey | null = await store.keyById(accountId, id)
    const isLive = old !== null && keyState(old, nowMs) === 'live'
    if (isLive) await store.revokeKey(old, nowMs, [revokedKey(old, context).audit])
    id = old?.replaces
  }
}

async function rotate(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const account = await accountNamed(services, request.token, request.path['name'] ?? '')
  const name = keyName(request)
  const faults = new Faults()
  const values = readObject(ROTATION_FIELDS, request.body, { current: null, faults })
  if (faults.all.length > 0) throw faulty(faults.all)
  if ((await store.keyByName(account.id, name)) === null) throw notFound()
  const bounds = await tokenBounds(services, request.token)
  const { secret_sha256: digest, overlap_seconds: overlap } = values
  const overlapMs = Number(overlap) * 1000
  const fresh = freshKey(typeof digest === 'string' ? digest : undefined)
  let previous: JsonObject = {}
  const reply = await written(services, request, account, {
    name,
    fresh,
    decide({ keys, liveKeys }, context) {
      const { nowMs } = context
      const old = keys.get(name)
      if (old === undefined) return { refuse: notFound() }
      const failed = unmet(request.conditions, keyTag(old))
      if (failed !== null) return { refuse: failed }
      if (keyState(old, nowMs) !== 'live') return { refuse: ended() }
      // A rotation may exceed the plan's number of keys by one.
      if (liveKeys > maxKeysOf(plansOf(services), account.plan)) return { refuse: 'full' }
      const endsAtMs = replacedKeyEndMs(old, nowMs, overlapMs)
      const item = successor(old, fresh, context, bounds?.endsAtMs ?? Infinity)
      const updatedAtMs = Math.max(nowMs, (old.updatedAtMs ?? 0) + 1)
      const replaced = { ...old, replacedBy: item.id, updatedAtMs, expiresAtMs: endsAtMs }
      const former = overlapMs === 0 ? { ...replaced, revokedAtMs: nowMs } : replaced
      previous = { id: old.id, expires_at: timeText(endsAtMs) }
      const audit = [rotation(context, old, item, endsAtMs)]
      return { write: { newKeys: [item], keys: [former], audit } }
    },
  })
  return {
    ...reply,
    status: 201,
    json: { ...reply.json, previous },
    location: `/accounts/${account.name}/keys/${encodeURIComponent(name)}`,
  }
}

function ended(): Problem {
  return invalid('key_name', 'This key has ended.', 'Create a new one with PUT.')
}

/** A key with the name and the rights of the old one, which ends by `latestMs`. */
function successor(old: ApiKey, fresh: FreshKey, { nowMs, actor }: ChangeContext, latestMs: number): ApiKey {
  const expiresAtMs = Math.min(old.expiresAtMs ?? Infinity, latestMs)
  return {
    ...{ id: fresh.id, accountId: old.accountId, name: old.name, digest: fresh.digest },
    ...{ prefix: fresh.prefix, lastFour: fresh.lastFour, ...settingsOfSuccessor(old) },
    ...(expiresAtMs === Infinity ? {} : { expiresAtMs }),
    ...{ createdBy: actor.actor, createdAtMs: nowMs, updatedAtMs: nowMs },
  }
}
