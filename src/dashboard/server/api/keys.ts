/** Lists, creates, changes, rotates and revokes keys of the signed-in account. */
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
import { PRIORITY, type Labels } from '../../../accounts/labels.js'
import { GatewayError } from '../../../errors.js'
import { ALLOWED_TOOL, allowedTools } from '../../../formats/chat/hosted-tools.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import type { KeyEdit } from '../../../store/store.js'
import type { KeyUse } from '../../../store/usage-queries.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { AccountSession, Session } from '../sign-in/sessions.js'
import { entryOf, planOf, RECENT_MS, scopeOf, type Services } from '../services.js'
import { listPage } from './list-page.js'

/** Settings of a key in a request; `undefined` is unchanged. */
interface KeySettings {
  readonly name?: string | undefined
  readonly expiresAtMs?: number | null | undefined
  readonly models?: string[] | null | undefined
  readonly allowTools?: string[] | null | undefined
  readonly limits?: schema.KeyLimits | undefined
  readonly labels?: Labels | undefined
}

/** The routes. */
export function keyRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/keys', {
      credential: 'read keys',
      query: schema.keysQuery,
      reply: schema.keysReply,
      handle: (request) => list(services, request),
    }),
    signedRoute('POST', '/keys', {
      credential: 'make keys',
      body: schema.createKeyBody,
      reply: schema.createdKeyReply,
      handle: (request) => create(services, request),
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
      reply: schema.keyReply,
      handle: (request) => revoke(services, request),
    }),
  ]
}

async function list(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.keysQuery.parse>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  if (accountId === null) {
    const message = 'Set "account": keys are listed for one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const words = query.search?.toLowerCase() ?? ''
  const { items, next } = await listPage((page) => services.store.listKeys(accountId, page), {
    after: query.after ?? null,
    limit: query.limit ?? 100,
    keeps: (key) => {
      if (!isOwn(session, key)) return false
      if (query.state !== 'all' && key.revokedAtMs !== undefined) return false
      return words === '' || key.name.toLowerCase().includes(words) || key.lastFour === query.search
    },
  })
  const figures = await figuresOf(services, accountId, items)
  const keys = items.map((key) => keyView(key, figures, services.now()))
  const json: schema.KeysReply = { keys, next }
  return { status: 200, json }
}

/** Whether the user may change the key: with the permission `own` only one that the user made. */
function isOwn({ permission, user }: AccountSession, { createdBy }: ApiKey): boolean {
  return permission === 'yes' || createdBy === user.email
}

/** The key of the request. Throws `not_found`, also for a key of another user (`own`). */
async function ownKey(
  { store }: Services,
  { session, id }: Pick<SignedInRequest<unknown, unknown>, 'session' | 'id'>,
): Promise<ApiKey> {
  const key = await store.keyById(session.account.id, id)
  if (key === null || !isOwn(session, key)) throw notFound()
  return key
}

async function create(
  services: Services,
  request: SignedInRequest<unknown, KeySettings>,
): Promise<Reply> {
  const { account } = request.session
  const { store, now, snapshot } = services
  const { name = '', ...rest } = request.body
  const { plans } = snapshot().config
  const { maxKeys, limits: most } = planOf(snapshot(), account.plan)
  await services.throttle.keyCreation(account.id, maxKeys)
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
  return { status: 201, json: { key: keyView(key, NOTHING, now()), secret } }
}

async function change(
  services: Services,
  request: SignedInRequest<unknown, KeySettings>,
): Promise<Reply> {
  const { store, now } = services
  const { account } = request.session
  const { name, expiresAtMs, models, allowTools, limits } = request.body
  await ownKey(services, request)
  assertExpiry(expiresAtMs, now())
  assertPatterns(models)
  await assertToolsChange(services, request)
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
  }
  const key = await store.changeKey(own, edit, (before, after) => {
    const detail = [after.name, ...differencesOf(before, after)].join('; ')
    const change = keyChange(before, after)
    return [keyEntry(services, request, { action: 'key.change', key: after, detail, change })]
  })
  if (key === null) throw notFound()
  return { status: 200, json: { key: await oneView(services, key) } }
}

/** The page sends the list with every change; an unchanged one needs no administrator. */
async function assertToolsChange(
  { store }: Services,
  { session, body, id }: SignedInRequest<unknown, KeySettings>,
): Promise<void> {
  const { allowTools } = body
  if (!isToolsGrant(allowTools, session)) return
  const before = await store.keyById(session.account.id, id)
  if (textOf(before?.allowTools) !== textOf(allowTools)) throw toolsRefusal()
}

function differencesOf(before: ApiKey, after: ApiKey): string[] {
  const differences = [
    before.name === after.name ? null : `name: ${before.name} → ${after.name}`,
    ...(['expiresAtMs', 'models', 'allowTools', 'limits'] as const).map((field) => {
      const [old, next] = [textOf(before[field]), textOf(after[field])]
      return old === next ? null : `${field}: ${old} → ${next}`
    }),
  ]
  return differences.filter((text) => text !== null)
}

async function rotate(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
): Promise<Reply> {
  const { store, now, snapshot } = services
  const { account } = request.session
  const old = await ownKey(services, request)
  const { plans } = snapshot().config
  await services.throttle.keyCreation(account.id, planOf(snapshot(), account.plan).maxKeys)
  const auditEntries = (made: ApiKey) => {
    const detail = `${old.name}: ${shownKey(old)} → ${shownKey(made)}`
    const change = keyRotation(old, made)
    return [keyEntry(services, request, { action: 'key.rotate', key: old, detail, change })]
  }
  const createdBy = request.session.user.email
  const rotation = { store, plans, account, old, now, audit: auditEntries, createdBy }
  const { key, secret, oldEndsAtMs } = await rotateKey(rotation)
  return { status: 201, json: { key: keyView(key, NOTHING, now()), secret, oldEndsAtMs } }
}

async function revoke(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
): Promise<Reply> {
  const { store, now } = services
  const { account } = request.session
  const before = await ownKey(services, request)
  const auditEntries = [
    keyEntry(services, request, {
      action: 'key.revoke',
      key: before,
      detail: namedKey(before),
      change: keyChange(before, { ...before, revokedAtMs: now() }),
    }),
  ]
  await revokeKey(store, before, { now, audit: auditEntries })
  const key = (await store.keyById(account.id, request.id)) ?? before
  return { status: 200, json: { key: await oneView(services, key) } }
}

function newKeyOf(settings: Omit<KeySettings, 'name'>, nowMs: number): NewKeySettings {
  const { expiresAtMs, models, allowTools, limits, labels } = settings
  assertExpiry(expiresAtMs, nowMs)
  assertPatterns(models)
  return {
    ...(expiresAtMs === undefined || expiresAtMs === null ? {} : { expiresAtMs }),
    ...(models === undefined || models === null ? {} : { models }),
    ...(allowTools === undefined || allowTools === null
      ? {}
      : { allowTools: checkedTools(allowTools) }),
    ...(limits === undefined || Object.keys(limits).length === 0
      ? {}
      : { limits: limitsOf(limits) }),
    ...(labels === undefined ? {} : { labels }),
  }
}

function limitsOf(limits: schema.KeyLimits): KeyLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}

interface Figures {
  readonly used: ReadonlyMap<string, KeyUse>
  readonly lastUse: ReadonlyMap<string, number>
}

const NOTHING: Figures = { used: new Map(), lastUse: new Map() }

/** Usage of these keys in the last 30 days, and the time of each key's last request. */
async function figuresOf(
  { ledger, now }: Services,
  accountId: string,
  keys: readonly ApiKey[],
): Promise<Figures> {
  const toMs = now()
  const keyIds = keys.map(({ id }) => id)
  const [uses, lastUse] = await Promise.all([
    ledger.keyUse({ accountId, keyIds, fromMs: toMs - RECENT_MS, toMs }),
    ledger.lastUse(accountId, keyIds),
  ])
  return { used: new Map(uses.map((use) => [use.keyId, use])), lastUse }
}

async function oneView(services: Services, key: ApiKey): Promise<schema.Key> {
  return keyView(key, await figuresOf(services, key.accountId, [key]), services.now())
}

function keyView(key: ApiKey, { used, lastUse }: Figures, nowMs: number): schema.Key {
  const figures = used.get(key.id)
  return {
    id: key.id,
    accountId: key.accountId,
    name: key.name,
    prefix: key.prefix,
    lastFour: key.lastFour,
    createdAtMs: key.createdAtMs,
    expiresAtMs: key.expiresAtMs ?? null,
    revokedAtMs: key.revokedAtMs ?? null,
    state: stateOf(key, nowMs),
    models: key.models === undefined ? null : [...key.models],
    allowTools: key.allowTools === undefined ? null : [...key.allowTools],
    limits: key.limits ?? {},
    labels: { ...key.labels },
    replaces: key.replaces ?? null,
    replacedBy: key.replacedBy ?? null,
    lastUsedAtMs: lastUse.get(key.id) ?? null,
    requests: figures?.requests ?? 0,
    spendNanoUsd: figures?.costNanoUsd ?? 0,
    unpricedRequests: figures?.unpriced ?? 0,
  }
}

function stateOf({ revokedAtMs, expiresAtMs }: ApiKey, nowMs: number): schema.Key['state'] {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'live'
}

interface KeyAction {
  readonly action: string
  readonly key: ApiKey
  readonly detail: string
  readonly change: AuditChange
}

/** An audit entry for a change of a key. */
function keyEntry(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  { action, key, detail, change }: KeyAction,
): AuditEntry {
  const { accountId, id: target } = key
  return entryOf(services, request, { accountId, action, target, detail, ...change })
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
 * Keys with high priority are served first under overload, so only administrators may set the label.
 *
 * Rules for the settings of a key that the account's role and plan decide. All throw `GatewayError`.
 */
function assertLabels(labels: Labels | undefined, { user }: Pick<Session, 'user'>): void {
  if (labels === undefined || roleOf(user) === 'admin' || !Object.hasOwn(labels, PRIORITY)) return
  const message = `Only administrators can give keys the label "${PRIORITY}".`
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
  for (const { name: owner, limits: most = {} } of [
    account,
    ...(await store.ancestorsOf(account)),
  ]) {
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
function isToolsGrant(
  tools: readonly string[] | null | undefined,
  { user }: Pick<Session, 'user'>,
): boolean {
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
