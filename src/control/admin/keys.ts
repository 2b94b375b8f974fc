/** Keys of accounts in the admin API: by their names, with generated or given secrets, and rotation. */
import * as z from 'zod'
import { withEnd } from '../../accounts/changes/bounds.js'
import { limitsAbove } from '../../accounts/changes/limits-above.js'
import {
  type ChangeContext,
  type FreshKey,
  conflictRefusal,
  decideKey,
  decideRevocation,
  decideRotation,
  freshKey,
} from '../../accounts/changes/decide.js'
import { DIGEST, KEY_FIELDS, isShownName, keyState, keyValues } from '../../accounts/changes/fields.js'
import { Refusal, invalid } from '../../accounts/changes/refusal.js'
import type { Account, ApiKey } from '../../accounts/account.js'
import { isFull, planFull, writeKeys, type Changing } from '../../accounts/changes/change-keys.js'
import {
  choiceType,
  patchedObject,
  TIME,
  type Fields,
  readFields,
} from '../../accounts/changes/field-types.js'
import { KEY_NAME_RULE } from '../../accounts/changes/fields.js'
import { OVERLAP_SECONDS } from '../../accounts/changes/rotate-key.js'
import type { JsonObject } from '../../base/json.js'
import type { AccountDecision, AccountState } from '../../store/account-changes.js'
import { keyPages } from '../../store/list-all.js'
import { adminTurns } from '../../base/turn-queue.js'
import { unmet } from './conditional-requests.js'
import { LABEL_FILTER, matchesLabels, readLabelFilters } from './label-filters.js'
import { keyObject, keyTag } from './objects.js'
import { notFound, type Refused } from '../problem-details.js'
import { fieldsObject, listForm, replyForm, replyObject } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { timeText } from '../../base/time-units.js'
import { cursorOf } from '../cursor.js'
import { PAGE_PARAMETERS, pageOf, type AdminServices, TRUE_OR_FALSE } from './services.js'
import { accountNamed } from './token-access.js'
import { changingOf } from './token-bounds.js'

/** The body of a rotation. */
const ROTATION_FIELDS: Fields = {
  overlap_seconds: {
    type: OVERLAP_SECONDS,
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

const KEY = replyForm('Key', () => {
  const secret = 'The secret; only in the reply that made it'
  const previous = 'The replaced key; only in the reply of a rotation'
  return fieldsObject(KEY_FIELDS, {
    secret: z.string().optional().meta({ description: secret }),
    previous: replyObject({ id: z.string(), expires_at: TIME }).optional().meta({ description: previous }),
  })
})

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
      replies: { 200: listForm(KEY) },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'GET', path, scopes: read, summary: 'One key' },
      replies: { 200: KEY },
      async handle(request) {
        const account = await accountNamed(services, request.token, request.path['name'] ?? '')
        return replyOf(services, account, await named(services, account, keyName(request)))
      },
    },
    {
      ...{ method: 'PUT', ...own },
      summary: 'Create a key, whose secret only this reply has, or replace all fields of one',
      body: { name: 'Key', fields: KEY_FIELDS },
      replies: { 200: KEY, 201: KEY },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'PATCH', ...own, summary: 'Change fields of a key' },
      body: { name: 'Key', fields: KEY_FIELDS, isPatch: true },
      replies: { 200: KEY },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'DELETE', ...own },
      summary: 'Revoke a key; with `purge=true`, remove it',
      query: { purge: { type: TRUE_OR_FALSE, means: 'Remove it.' } },
      replies: { 200: KEY, 204: null },
      handle: (request) => revoke(services, request),
    },
    {
      ...{ method: 'POST', path: `${path}/rotate`, scopes: own.scopes },
      summary: 'Replace a key by a new one with the same name and fields; both work for a time',
      body: { name: 'Rotation', fields: ROTATION_FIELDS, isOptional: true },
      replies: { 201: KEY },
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

/** Why nothing was written. `full`: the plan allows no more keys. */
type Reason = Refused | 'full' | { readonly unchanged: ApiKey }

async function put(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const { token, body, conditions } = request
  const isPatch = request.req.method === 'PATCH'
  const account = await accountNamed(services, token, request.path['name'] ?? '')
  const name = keyName(request)
  if (!isShownName(name)) throw isPatch ? notFound() : invalid('name', ...KEY_NAME_RULE)
  const found = await store.keyByName(account.id, name)
  if (found === null && isPatch) throw notFound()
  const current = found === null ? { account: account.name, name } : await objectOf(services, account, found)
  const given = readFields(KEY_FIELDS, body, { current, isPatch })
  const { secret_sha256: digest, ...others } = given
  const hasGivenSecret = typeof digest === 'string'
  const fresh = freshKey(hasGivenSecret ? digest : undefined)
  const changing = await changingOf(services, request)
  const { bounds = null } = changing
  const most = await limitsAbove(changing, account)
  return written(services, changing, account, {
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
      const latestMs = bounds?.of === 'token' ? bounds.endsAtMs : null
      const values = withEnd(wanted, isNewSecret ? null : before, latestMs)
      const wish = { name, values, fresh, hasGivenSecret }
      const decided = decideKey(former, wish, { bounds, most }, context)
      if (decided instanceof Refusal) return { refuse: decided }
      const { kind, item, audit, keys, newKeys } = decided
      if (kind === 'unchanged') return { refuse: { unchanged: item } }
      if (former === null && isFull(changing, account, state)) return { refuse: 'full' }
      return { write: { newKeys, keys, audit } }
    },
  })
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
  changing: Changing,
  account: Account,
  { name, fresh, decide }: KeyChange,
): Promise<JsonReply> {
  const result = await writeKeys<Refused | { readonly unchanged: ApiKey }>(changing, account, {
    ...{ reads: { keys: [name] }, fresh },
    decide: (state, context) => (state.account === null ? { refuse: notFound() } : decide(state, context)),
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, name)
  if (result.kind === 'refused') {
    const { reason } = result
    if (reason === 'full') throw planFull(changing.plans, account.plan)
    if (reason instanceof Error) throw reason
    return replyOf(services, account, reason.unchanged)
  }
  const { newKeys = [], keys = [] } = result.writes
  const made = newKeys.find(({ id }) => id === fresh.id)
  const item = made ?? keys[0]
  if (item === undefined) throw notFound()
  const reply = await replyOf(services, account, item)
  if (made === undefined) return reply
  const isNew = made.replaces === undefined
  const secret = fresh.secret === null ? {} : { secret: fresh.secret }
  const location = isNew ? { location: locationOf(account, item) } : {}
  return { ...reply, status: isNew ? 201 : 200, json: { ...reply.json, ...secret }, ...location }
}

async function revoke(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const account = await accountNamed(services, request.token, request.path['name'] ?? '')
  const found = await named(services, account, keyName(request))
  const changing = await changingOf(services, request)
  const { nowMs } = changing
  // Keys that this one has replaced may still work, and no name leads to them any more.
  const ids = [found.id, ...(await replacedBefore(services, found))]
  const result = await writeKeys<Refused | { readonly unchanged: ApiKey }>(changing, account, {
    reads: { keyIds: ids },
    decide({ keysById }, context) {
      const key = keysById.get(found.id)
      if (key === undefined) return { refuse: notFound() }
      const failed = unmet(request.conditions, keyTag(key))
      if (failed !== null) return { refuse: failed }
      const ended = ids.flatMap((id) => {
        const each = keysById.get(id)
        if (each === undefined || each.revokedAtMs !== undefined) return []
        return each.id === key.id || keyState(each, nowMs) === 'live' ? [decideRevocation(each, context)] : []
      })
      if (ended.length === 0) return { refuse: { unchanged: key } }
      return { write: { keys: ended.map((each) => each.key), audit: ended.map(({ audit }) => audit) } }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, found.name)
  if (result.kind === 'refused' && result.reason instanceof Error) throw result.reason
  const revoked = (await services.store.keyById(account.id, found.id)) ?? found
  if (request.query['purge'] !== 'true') return replyOf(services, account, revoked)
  await removeAll(services, revoked, nowMs)
  return 'none'
}

/** Ids of the keys that this one has replaced, in sequence. */
async function replacedBefore({ store }: AdminServices, { accountId, replaces }: ApiKey): Promise<string[]> {
  const ids: string[] = []
  for (let id = replaces; id !== undefined && !ids.includes(id);) {
    ids.push(id)
    const old: ApiKey | null = await store.keyById(accountId, id)
    id = old?.replaces
  }
  return ids
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

async function rotate(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const account = await accountNamed(services, request.token, request.path['name'] ?? '')
  const name = keyName(request)
  const values = readFields(ROTATION_FIELDS, request.body)
  if ((await store.keyByName(account.id, name)) === null) throw notFound()
  const changing = await changingOf(services, request)
  const latestMs = changing.bounds?.of === 'token' ? changing.bounds.endsAtMs : Infinity
  const { secret_sha256: digest, overlap_seconds: overlap } = values
  const fresh = freshKey(typeof digest === 'string' ? digest : undefined)
  let previous: JsonObject = {}
  const reply = await written(services, changing, account, {
    name,
    fresh,
    decide(state, context) {
      const old = state.keys.get(name)
      if (old === undefined) return { refuse: notFound() }
      const failed = unmet(request.conditions, keyTag(old))
      if (failed !== null) return { refuse: failed }
      const wish = { name, fresh, overlapMs: Number(overlap) * 1000, latestMs }
      const decided = decideRotation(old, wish, context)
      if (decided instanceof Refusal) return { refuse: decided }
      // A rotation may exceed the plan's number of keys by one.
      if (isFull(changing, account, state, 1)) return { refuse: 'full' }
      previous = { id: old.id, expires_at: timeText(decided.endsAtMs) }
      return { write: { newKeys: decided.newKeys, keys: decided.keys, audit: decided.audit } }
    },
  })
  return {
    ...reply,
    status: 201,
    json: { ...reply.json, previous },
    location: `/accounts/${account.name}/keys/${encodeURIComponent(name)}`,
  }
}
