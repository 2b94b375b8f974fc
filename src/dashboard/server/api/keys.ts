/** Lists, creates, changes, rotates and revokes keys: those of an account, and for administrators of all. */
import { roleOf, type Account, type ApiKey, type KeyLimits } from '../../../accounts/account.js'
import {
  checkedName,
  createKey,
  freeKeyName,
  revokeKey,
  rotateKey,
  type NewKeySettings,
} from '../../../accounts/keys.js'
import { keyChange, keyRotation, type AuditChange } from '../../../accounts/audit-changes.js'
import { checkedLabels, PRIORITY, type Labels } from '../../../accounts/labels.js'
import { GatewayError } from '../../../errors.js'
import { ALLOWED_TOOL, allowedTools } from '../../../formats/chat/hosted-tools.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import {
  KEY_COLUMNS,
  NO_USE,
  stateOfKey,
  type KeyState,
  type ListedKey,
} from '../../../store/account-and-key-lists.js'
import type { KeyEdit } from '../../../store/store.js'
import { notFound, permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { AccountSession, Session } from '../sign-in/sessions.js'
import { entryOf, planOf, RECENT_MS, scopeOf, type Services } from '../services.js'
import { labelHistory } from './key-history.js'
import { limitLevels } from './limits.js'
import { cursorOf, orderOf } from './list-page.js'

/** Settings of a key in a request; `undefined` is unchanged. */
interface KeySettings {
  readonly name?: string | undefined
  readonly expiresAtMs?: number | null | undefined
  readonly models?: string[] | null | undefined
  readonly allowTools?: string[] | null | undefined
  readonly limits?: schema.KeyLimits | undefined
  readonly labels?: Labels | undefined
  /** For the audit log. */
  readonly reason?: string | undefined
}

export function keyRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/keys', {
      credential: 'read keys',
      query: schema.keysQuery,
      reply: schema.keysReply,
      handle: (request) => list(services, request),
    }),
    signedRoute('GET', '/keys/{id}', {
      credential: 'read keys',
      query: schema.keyQuery,
      reply: schema.keyDetailReply,
      handle: (request) => detail(services, request),
    }),
    signedRoute('POST', '/keys', {
      credential: 'make keys',
      body: schema.createKeyBody,
      reply: schema.createdKeyReply,
      handle: (request) => create(services, request),
    }),
    signedRoute('POST', '/keys/lookup', {
      credential: 'session',
      body: schema.lookUpKeyBody,
      reply: schema.lookUpKeyReply,
      handle: (request) => lookUp(services, request),
    }),
    signedRoute('PATCH', '/keys/{id}', {
      credential: 'change keys',
      body: schema.changeKeyBody,
      reply: schema.keyReply,
      handle: (request) => change(services, request),
    }),
    signedRoute('POST', '/keys/{id}/rotate', {
      credential: 'change keys',
      body: schema.rotateKeyBody,
      reply: schema.rotatedKeyReply,
      handle: (request) => rotate(services, request),
    }),
    signedRoute('DELETE', '/keys/{id}', {
      credential: 'change keys',
      query: schema.revokeKeyQuery,
      reply: schema.keyReply,
      handle: (request) => revoke(services, request),
    }),
  ]
}

const STATES: Readonly<Record<string, readonly KeyState[]>> = {
  live: ['live', 'expired'],
  expired: ['expired'],
  revoked: ['revoked'],
}

async function list(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.keysQuery.parse>, undefined>,
): Promise<Reply> {
  const { state = 'live', search, label, model } = query
  const order = orderOf(query, { columns: KEY_COLUMNS, usual: '-createdAt', limit: 100 })
  if (order === null) return { status: 200, json: { keys: [], next: null, total: 0 } }
  const createdBy = session.permission === 'yes' ? query.createdBy : session.user.email
  // A search finds revoked keys, too: a leaked one may be gone already.
  const states = query.state === undefined && (search ?? '') !== '' ? undefined : STATES[state]
  const nowMs = services.now()
  const page = await services.store.directory.keys({
    ...order,
    ...{ accountId: scopeOf(session), nowMs, sinceMs: nowMs - RECENT_MS },
    ...(states === undefined ? {} : { states }),
    ...(search === undefined ? {} : { search }),
    ...(label === undefined ? {} : { label }),
    ...(model === undefined ? {} : { model }),
    ...(createdBy === undefined ? {} : { createdBy }),
  })
  const json: schema.KeysReply = {
    keys: page.items.map((item) => keyView(item, nowMs)),
    next: cursorOf(order.sort, page.next),
    total: page.total,
  }
  return { status: 200, json }
}

async function detail(services: Services, request: SignedInRequest<unknown, undefined>): Promise<Reply> {
  const { key, account } = await ownKey(services, request)
  const [history, limits, liveKeys] = await Promise.all([
    labelHistory(services.store, key),
    limitLevels(services, account, [key]),
    services.store.countKeys(account.id),
  ])
  const json: schema.KeyDetailReply = {
    key: await oneView(services, { key, account }),
    nowMs: services.now(),
    plan: planOf(services.snapshot(), account.plan),
    liveKeys,
    limits,
    labelHistory: history,
  }
  return { status: 200, json }
}

/** Whether the user may see or change the key: with the permission `own` only one that the user made. */
function isOwn({ permission, user }: AccountSession, { createdBy }: ApiKey): boolean {
  return permission === 'yes' || createdBy === user.email
}

/** The key with a digest, revoked ones included; null if there is none that the user may see. */
async function lookUp(
  { store, now }: Services,
  { session, body }: SignedInRequest<unknown, { digest: string }>,
): Promise<Reply> {
  const found = await store.findKey(body.digest)
  const permission =
    found === null ? 'no' : await permissionIn(store, { ...session, account: found.account }, 'read keys')
  const isSeen = found !== null && permission !== 'no' && isOwn({ ...session, permission }, found.key)
  if (!isSeen) return { status: 200, json: { key: null } }
  const { id, accountId, name } = found.key
  const state = stateOfKey(found.key, now())
  const json: schema.LookUpKeyReply = {
    key: { id, accountId, accountName: found.account.name, name, state },
  }
  return { status: 200, json }
}

/** A key and its account. */
interface OwnedKey {
  readonly key: ApiKey
  readonly account: Account
}

/**
 * The key of the request, of any account if the session is about all. Throws `not_found`, also for a key of
 * another user (`own`).
 */
async function ownKey(
  { store }: Services,
  { session, id }: Pick<SignedInRequest<unknown, unknown>, 'session' | 'id'>,
): Promise<OwnedKey> {
  const key = await store.keyById(scopeOf(session), id)
  if (key === null || !isOwn(session, key)) throw notFound()
  const account = session.isAll ? await store.accountById(key.accountId) : session.account
  if (account === null) throw notFound()
  return { key, account }
}

async function create(services: Services, request: SignedInRequest<unknown, KeySettings>): Promise<Reply> {
  const { account } = request.session
  const { store, now, snapshot } = services
  const { name = '', ...rest } = request.body
  const { plans } = snapshot().config
  const { maxKeys, limits: most } = planOf(snapshot(), account.plan)
  await services.attemptLimits.keyCreation(account.id, maxKeys)
  assertWithin(rest.limits, most)
  await assertWithinAccounts(store, rest.limits, account)
  assertLabels(rest.labels, request.session)
  if (isToolsGrant(rest.allowTools, request.session)) throw toolsRefusal()
  const settings = newKeyOf(rest, now())
  const auditEntries = (made: ApiKey) => [
    keyEntry(services, request, {
      action: 'key.create',
      key: made,
      detail: namedKey(made),
      change: keyChange(null, made),
    }),
  ]
  const { key, secret } = await createKey(store, {
    plans,
    account,
    name,
    ...settings,
    createdBy: request.session.user.email,
    now,
    audit: auditEntries,
  })
  return { status: 201, json: { key: unusedView({ key, account }, now()), secret } }
}

async function change(services: Services, request: SignedInRequest<unknown, KeySettings>): Promise<Reply> {
  const { store, now } = services
  const { name, expiresAtMs, models, allowTools, limits, labels } = request.body
  const { key: before, account } = await ownKey(services, request)
  assertExpiry(expiresAtMs, now())
  assertPatterns(models)
  // The page sends the list with every change; an unchanged one needs no administrator.
  const isSame = textOf(before.allowTools) === textOf(allowTools)
  if (isToolsGrant(allowTools, request.session) && !isSame) throw toolsRefusal()
  if (labels !== undefined) assertLabels(labels, request.session, before.labels)
  assertWithin(limits, planOf(services.snapshot(), account.plan).limits)
  await assertWithinAccounts(store, limits, account)
  const own = { accountId: account.id, id: request.id }
  const edit: KeyEdit = {
    updatedAtMs: now(),
    ...(name === undefined ? {} : { name: await freeKeyName(store, own, checkedName(name)) }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(models === undefined ? {} : { models }),
    ...(allowTools === undefined ? {} : { allowTools: allowTools && checkedTools(allowTools) }),
    ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
    ...(labels === undefined ? {} : { labels: labelsOf(labels) }),
  }
  const key = await store.changeKey(own, edit, (before, after) => {
    const detail = [after.name, ...differencesOf(before, after)].join('; ')
    const change = keyChange(before, after)
    const { reason } = request.body
    const what = { action: 'key.change', key: after, detail, change, reason }
    return [keyEntry(services, request, what)]
  })
  if (key === null) throw notFound()
  return { status: 200, json: { key: await oneView(services, { key, account }) } }
}

/** The validated labels; null for none, as in a key that never had one. */
function labelsOf(labels: Labels): Labels | null {
  const checked = checkedLabels(labels)
  return Object.keys(checked).length === 0 ? null : checked
}

function differencesOf(before: ApiKey, after: ApiKey): string[] {
  const differences = [
    before.name === after.name ? null : `name: ${before.name} → ${after.name}`,
    ...(['expiresAtMs', 'models', 'allowTools', 'limits', 'labels'] as const).map((field) => {
      const [old, next] = [textOf(before[field]), textOf(after[field])]
      return old === next ? null : `${field}: ${old} → ${next}`
    }),
  ]
  return differences.filter((text) => text !== null)
}

async function rotate(services: Services, request: SignedInRequest<unknown, KeySettings>): Promise<Reply> {
  const { store, now, snapshot } = services
  const { key: old, account } = await ownKey(services, request)
  const { plans } = snapshot().config
  await services.attemptLimits.keyCreation(account.id, planOf(snapshot(), account.plan).maxKeys)
  const auditEntries = (made: ApiKey) => {
    const detail = `${old.name}: ${shownKey(old)} → ${shownKey(made)}`
    const change = keyRotation(old, made)
    const { reason } = request.body
    const what = { action: 'key.rotate', key: old, detail, change, reason }
    return [keyEntry(services, request, what)]
  }
  const createdBy = request.session.user.email
  const rotation = { store, plans, account, old, now, audit: auditEntries, createdBy }
  const { key, secret, oldEndsAtMs } = await rotateKey(rotation)
  return { status: 201, json: { key: unusedView({ key, account }, now()), secret, oldEndsAtMs } }
}

async function revoke(
  services: Services,
  request: SignedInRequest<ReturnType<typeof schema.revokeKeyQuery.parse>, undefined>,
): Promise<Reply> {
  const { store, now } = services
  const { key: before, account } = await ownKey(services, request)
  const auditEntries = [
    keyEntry(services, request, {
      action: 'key.revoke',
      reason: request.query.reason,
      key: before,
      detail: namedKey(before),
      change: keyChange(before, { ...before, revokedAtMs: now() }),
    }),
  ]
  await revokeKey(store, before, { now, audit: auditEntries })
  const key = (await store.keyById(account.id, request.id)) ?? before
  return { status: 200, json: { key: await oneView(services, { key, account }) } }
}

function newKeyOf(settings: Omit<KeySettings, 'name'>, nowMs: number): NewKeySettings {
  const { expiresAtMs, models, allowTools, limits, labels } = settings
  assertExpiry(expiresAtMs, nowMs)
  assertPatterns(models)
  return {
    ...(expiresAtMs === undefined || expiresAtMs === null ? {} : { expiresAtMs }),
    ...(models === undefined || models === null ? {} : { models }),
    ...(allowTools === undefined || allowTools === null ? {} : { allowTools: checkedTools(allowTools) }),
    ...(limits === undefined || Object.keys(limits).length === 0 ? {} : { limits: limitsOf(limits) }),
    ...(labels === undefined ? {} : { labels }),
  }
}

function limitsOf(limits: schema.KeyLimits): KeyLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}

/** A key with its use in the last 30 days, and the time of its last request. */
async function oneView({ ledger, now }: Services, { key, account }: OwnedKey): Promise<schema.Key> {
  const toMs = now()
  const [own, keyIds] = [key.accountId, [key.id]]
  const [[use = NO_USE], lastUse] = await Promise.all([
    ledger.keyUse({ accountId: own, keyIds, fromMs: toMs - RECENT_MS, toMs }),
    ledger.lastUse(own, keyIds),
  ])
  const lastUsedAtMs = lastUse.get(key.id) ?? null
  return keyView({ key, accountName: account.name, use, lastUsedAtMs }, toMs)
}

/** A new key. */
function unusedView({ key, account }: OwnedKey, nowMs: number): schema.Key {
  return keyView({ key, accountName: account.name, use: NO_USE, lastUsedAtMs: null }, nowMs)
}

function keyView({ key, accountName, use, lastUsedAtMs }: ListedKey, nowMs: number): schema.Key {
  return {
    id: key.id,
    accountId: key.accountId,
    accountName,
    name: key.name,
    createdBy: key.createdBy ?? null,
    prefix: key.prefix,
    lastFour: key.lastFour,
    createdAtMs: key.createdAtMs,
    expiresAtMs: key.expiresAtMs ?? null,
    revokedAtMs: key.revokedAtMs ?? null,
    state: stateOfKey(key, nowMs),
    models: key.models === undefined ? null : [...key.models],
    allowTools: key.allowTools === undefined ? null : [...key.allowTools],
    limits: key.limits ?? {},
    labels: { ...key.labels },
    replaces: key.replaces ?? null,
    replacedBy: key.replacedBy ?? null,
    lastUsedAtMs,
    requests: use.requests,
    spendNanoUsd: use.costNanoUsd,
    unpricedRequests: use.unpriced,
  }
}

interface KeyAction {
  /** As in `AuditEntry`; empty for none. */
  readonly reason?: string | undefined
  readonly action: string
  readonly key: ApiKey
  readonly detail: string
  readonly change: AuditChange
}

/** An audit entry for a change of a key. */
function keyEntry(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  { action, key, detail, change, reason = '' }: KeyAction,
): AuditEntry {
  const { accountId, id: target } = key
  const entry = entryOf(services, request, { accountId, action, target, detail, ...change })
  return reason === '' ? entry : { ...entry, reason }
}

function namedKey(key: ApiKey): string {
  return `${key.name} (${shownKey(key)})`
}

function textOf(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value)
}

function shownKey({ prefix, lastFour }: ApiKey): string {
  return `${prefix}…${lastFour}`
}

/**
 * Keys with high priority are served first under overload, so only administrators may add, change or remove
 * the label; `before` are the labels of the key so far.
 *
 * Rules for the settings of a key that the account's role and plan decide. All throw `GatewayError`.
 */
function assertLabels(
  labels: Labels | undefined,
  { user }: Pick<Session, 'user'>,
  before: Labels = {},
): void {
  if (labels === undefined || roleOf(user) === 'admin') return
  if (labels[PRIORITY] === before[PRIORITY]) return
  const message = `Only administrators can change the label "${PRIORITY}" of keys.`
  throw new GatewayError('forbidden', message, { param: `labels.${PRIORITY}` })
}

/** Throws if the expiry is in the past. */
function assertExpiry(expiresAtMs: number | null | undefined, nowMs: number): void {
  if (expiresAtMs === undefined || expiresAtMs === null || expiresAtMs > nowMs) return
  throw new GatewayError('malformed_request', 'A key cannot expire in the past.', {
    param: 'expiresAtMs',
  })
}

const LIMITS = [
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrent',
  'nanoUsdPerDay',
  'nanoUsdPerWeek',
  'nanoUsdPerMonth',
] as const

/** Refuses limits above those of the plan with a message, instead of lowering them silently. */
function assertWithin(limits: schema.KeyLimits | undefined, most: schema.KeyLimits): void {
  for (const name of LIMITS) {
    const [wanted, allowed] = [limits?.[name], most[name]]
    if (wanted === undefined || allowed === undefined || wanted <= allowed) continue
    const limitText = name.startsWith('nanoUsd') ? `$${allowed / 1e9}` : String(allowed)
    const message = `The plan allows ${limitText} at most. Enter less, or choose a larger plan.`
    throw new GatewayError('forbidden', message, { param: `limits.${name}` })
  }
}

/** Throws `forbidden` for a limit above that of the account or of one above it. */
async function assertWithinAccounts(
  store: Services['store'],
  limits: schema.KeyLimits | undefined,
  account: Account,
): Promise<void> {
  if (limits === undefined || Object.keys(limits).length === 0) return
  for (const { name: owner, limits: most = {} } of [account, ...(await store.ancestorsOf(account))]) {
    for (const name of LIMITS) {
      const [wanted, allowed] = [limits[name], most[name]]
      if (wanted === undefined || allowed === undefined || wanted <= allowed) continue
      const limitText = name.startsWith('nanoUsd') ? `$${allowed / 1e9}` : String(allowed)
      const message = `The account '${owner}' allows ${limitText} at most. Enter less.`
      throw new GatewayError('forbidden', message, { param: `limits.${name}` })
    }
  }
}

/** Throws for a model pattern with a * before its end. */
function assertPatterns(models: readonly string[] | null | undefined): void {
  models?.forEach((pattern, index) => {
    if (!pattern.slice(0, -1).includes('*')) return
    const message = `"${pattern}" has a * before its end. Enter a model id, or the beginning of ids and a *.`
    throw new GatewayError('malformed_request', message, { param: `models.${index}` })
  })
}

/**
 * Whether the list allows tools that the account may not allow: a key's list takes precedence over those of
 * the upstreams, so only administrators may allow tools.
 */
function isToolsGrant(tools: readonly string[] | null | undefined, { user }: Pick<Session, 'user'>): boolean {
  return (tools?.length ?? 0) > 0 && roleOf(user) !== 'admin'
}

/** The refusal of such a list. */
function toolsRefusal(): GatewayError {
  const message = 'Only administrators can allow tools of providers. Leave the list empty.'
  return new GatewayError('forbidden', message, { param: 'allowTools' })
}

/** The names of tools in the form in which requests are compared. Throws for text that is not a name. */
function checkedTools(tools: readonly string[]): string[] {
  const at = tools.findIndex((tool) => !ALLOWED_TOOL.test(tool))
  if (at === -1) return allowedTools(tools)
  const message = `"${tools[at] ?? ''}" is not the name of a tool. Enter a name such as web_search, or * for all.`
  throw new GatewayError('malformed_request', message, { param: `allowTools.${at}` })
}
