/** Lists, creates, changes, rotates and revokes keys: those of an account, and for administrators of all. */
import type { Account, ApiKey } from '../../../accounts/account.js'
import { changeKey, createKey, revokeKey } from '../../../accounts/changes/change-keys.js'
import { rotateKey } from '../../../accounts/changes/rotate-key.js'
import { raiseKeyLimit } from '../../../accounts/changes/raise-limit.js'
import { allowedModelsFilter } from '../../../accounts/allowed-models.js'
import { CLIENTS, KEY_ENV } from '../../../config/client-settings.js'
import { clientText } from '../../../config/connect/client-text.js'
import { conversing, exampleModels } from '../../../config/connect/key-models.js'
import { limitsMoney } from '../../../limits/find-limits.js'
import type { JsonObject } from '../../../base/json.js'
import {
  KEY_COLUMNS,
  NO_USE,
  stateOfKey,
  type KeyState,
  type ListedKey,
} from '../../../store/account-and-key-lists.js'
import { namedLimits, namedTime, wishIn } from '../problem-words.js'
import { notFound, permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { AccountSession } from '../../sign-in/sessions.js'
import { changingBy, planOf, RECENT_MS, scopeOf, type Services } from '../../services.js'
import { labelHistory } from './key-history.js'
import { limitLevels } from './limits.js'
import { cursorAt, orderOf } from './list-page.js'

/** Settings of a key in a request; `undefined` is unchanged. */
type KeySettings = Pick<schema.ChangeKeyBody, keyof schema.CreateKeyBody>

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
    signedRoute('GET', '/keys/{id}/clients', {
      credential: 'read keys',
      query: schema.keyClientsQuery,
      reply: schema.keyClientsReply,
      handle: (request) => clients(services, request),
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
    signedRoute('POST', '/keys/{id}/raise', {
      credential: 'change keys',
      body: schema.raiseBody,
      reply: schema.keyReply,
      handle: (request) => raise(services, request),
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
  const json: schema.Sent<typeof schema.keysReply> = {
    keys: page.items.map((item) => keyView(item, nowMs)),
    next: cursorAt(order.sort, page.next),
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
  const json: schema.Sent<typeof schema.keyDetailReply> = {
    key: await oneView(services, { key, account }),
    nowMs: services.now(),
    plan: planOf(services.snapshot(), account.plan),
    liveKeys,
    limits,
    labelHistory: history,
  }
  return { status: 200, json }
}

/** The clients that the page shows, by their words of `sluice connect`. */
const SDKS = ['openai', 'anthropic', 'google']
const SHOWN_CLIENTS = [...SDKS, 'claude-code', 'codex', 'gemini-cli', 'opencode']

async function clients(
  services: Services,
  request: SignedInRequest<ReturnType<typeof schema.keyClientsQuery.parse>, undefined>,
): Promise<Reply> {
  const { key } = await ownKey(services, request)
  const { catalogue, config } = services.snapshot()
  const isAllowed = allowedModelsFilter(key.models ?? null)
  const named = (key.models ?? []).filter((model) => !model.endsWith('*') && !model.includes(':'))
  const known = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
  const ids = [...new Set([...named, ...known.filter(isAllowed)])]
  const hasBudget = limitsMoney(key.limits ?? {})
  const shown = CLIENTS.filter(({ name }) => SHOWN_CLIENTS.includes(name)).map((client) => {
    const models = conversing(client, ids, catalogue) ?? exampleModels(client, catalogue)
    const target = { url: request.query.url, keyEnv: KEY_ENV, models, hasBudget }
    return { client, target }
  })
  const sdks = shown.filter(({ client }) => SDKS.includes(client.name))
  const json: schema.KeyClientsReply = {
    clients: shown.map(({ client, target }) => {
      return { name: client.name, title: client.title, text: clientText(client, target) }
    }),
    env: Object.fromEntries(
      sdks.flatMap(({ client, target }) => Object.entries(client.settings(target).env)),
    ),
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
  const json: schema.Sent<typeof schema.lookUpKeyReply> = {
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
  const { maxKeys } = planOf(services.snapshot(), account.plan)
  await services.attemptLimits.keyCreation(account.id, maxKeys)
  const changing = changingBy(services, request)
  const { key, secret } = await createKey(changing, account, settingsIn(request.body))
  return { status: 201, json: { key: unusedView({ key, account }, changing.nowMs), secret } }
}

async function change(
  services: Services,
  request: SignedInRequest<unknown, schema.ChangeKeyBody>,
): Promise<Reply> {
  const { key: before, account } = await ownKey(services, request)
  const changing = changingBy(services, request, request.body.reason)
  const what = { key: before, settings: settingsIn(request.body), replacesMaps: true }
  const key = await changeKey(changing, account, what)
  return { status: 200, json: { key: await oneView(services, { key, account }) } }
}

async function rotate(
  services: Services,
  request: SignedInRequest<unknown, schema.RotateKeyBody>,
): Promise<Reply> {
  const { key: old, account } = await ownKey(services, request)
  const { maxKeys } = planOf(services.snapshot(), account.plan)
  await services.attemptLimits.keyCreation(account.id, maxKeys)
  const changing = changingBy(services, request, request.body.reason)
  const { overlapSeconds } = request.body
  const { key, secret, oldEndsAtMs } = await rotateKey(changing, account, {
    key: old,
    ...(overlapSeconds === undefined ? {} : { overlap: overlapSeconds }),
  })
  return { status: 201, json: { key: unusedView({ key, account }, changing.nowMs), secret, oldEndsAtMs } }
}

/** Raises a budget until a time. */
async function raise(
  services: Services,
  request: SignedInRequest<unknown, schema.RaiseBody>,
): Promise<Reply> {
  const { key: before, account } = await ownKey(services, request)
  const what = { key: before, wish: wishIn(request.body) }
  const key = await raiseKeyLimit(changingBy(services, request), account, what)
  return { status: 200, json: { key: await oneView(services, { key, account }) } }
}

async function revoke(
  services: Services,
  request: SignedInRequest<ReturnType<typeof schema.revokeKeyQuery.parse>, undefined>,
): Promise<Reply> {
  const { key: before, account } = await ownKey(services, request)
  const key = await revokeKey(changingBy(services, request, request.query.reason), account, before)
  return { status: 200, json: { key: await oneView(services, { key, account }) } }
}

/** The settings in the spelling of `accounts/changes`, which checks them; absent ones are unchanged. */
function settingsIn(settings: KeySettings): JsonObject {
  const { name, expiresAtMs, models, allowTools, limits, labels } = settings
  return {
    ...(name === undefined ? {} : { name }),
    ...(expiresAtMs === undefined ? {} : { expires_at: namedTime(expiresAtMs) }),
    ...(models === undefined ? {} : { models }),
    ...(allowTools === undefined ? {} : { allow_tools: allowTools }),
    ...(limits === undefined ? {} : { limits: namedLimits(limits) }),
    ...(labels === undefined ? {} : { labels }),
  }
}

/** A key with its use in the last 30 days, and the time of its last request. */
async function oneView(
  { ledger, now }: Services,
  { key, account }: OwnedKey,
): Promise<schema.Sent<typeof schema.key>> {
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
function unusedView({ key, account }: OwnedKey, nowMs: number): schema.Sent<typeof schema.key> {
  return keyView({ key, accountName: account.name, use: NO_USE, lastUsedAtMs: null }, nowMs)
}

function keyView(
  { key, accountName, use, lastUsedAtMs }: ListedKey,
  nowMs: number,
): schema.Sent<typeof schema.key> {
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
    costNanoUsd: use.costNanoUsd,
    unpricedRequests: use.unpriced,
  }
}
