/**
 * Every change of accounts, keys, users, tokens, limits, runs and batches at every door, and what it changes:
 * a gateway with one of each.
 */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { changeAccount, createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { denyIdentity } from '../../../src/accounts/denials.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { batchRecords } from '../../../src/control/batches.js'
import type { Batch } from '../../../src/policy/batch-records.js'
import { sluiceHere } from '../../cli/session.js'
import { Browser, PASSWORD } from '../../dashboard/fixtures/stage.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { createKey } from '../../helpers/keys.js'
import { startAdmin, type AdminStage } from '../admin/admin-stage.js'

/** What a change answers: whether it succeeded, and its text. */
interface Answer {
  readonly isDone: boolean
  readonly text: string
}

export interface Scene extends AdminStage {
  readonly admin: SignedIn
  readonly owner: SignedIn
  readonly ids: Readonly<
    Record<'acme' | 'key' | 'gone' | 'eve' | 'bound' | 'off' | 'token' | 'denial' | 'documents', string>
  >
}

/** A session, which a change may end: each request begins with it again. */
interface SignedIn {
  readonly origin: string
  readonly cookie: string
  readonly csrf: string
}

export type Change = (scene: Scene) => Promise<Answer>

const UNTIL = new Date(Date.now() + 3_600_000).toISOString()
const RAISE = { budget: 'usd_per_day', usd: 2, reason: 'launch' }
const OWN_RAISE = { ...RAISE, untilMs: Date.now() + 3_600_000 }

function api(method: string, path: string, body?: object): Change {
  return async ({ ask, ids }) => {
    const { status, text } = await ask(method, filled(path, ids), body === undefined ? {} : { body })
    return { isDone: status < 300, text }
  }
}

function page(method: string, path: string, body?: object, who: 'admin' | 'owner' = 'admin'): Change {
  return async (scene) => {
    const { origin, cookie, csrf } = scene[who]
    const browser = new Browser(origin)
    browser.csrf = csrf
    browser.take('__Host-sid', cookie)
    const { status, text } = await browser.ask(
      method,
      filled(path, scene.ids),
      body === undefined ? {} : { body },
    )
    return { isDone: status < 300, text }
  }
}

function command(...words: string[]): Change {
  return async ({ gateway, ids }) => {
    const args = words.map((word) => filled(word, ids))
    const { status, out, err } = await sluiceHere([...args, '--config', gateway.configFile])
    return { isDone: status === 0, text: `${out}\n${err}` }
  }
}

function filled(text: string, ids: Scene['ids']): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: keyof Scene['ids']) => ids[name])
}

const DOCUMENTS = [
  { kind: 'Account', metadata: { name: 'new' }, spec: { plan: 'max', limits: { usd_per_day: 9 } } },
  {
    kind: 'Key',
    metadata: { name: 'applied', account: 'new' },
    spec: { secret_sha256: 'a'.repeat(64) },
  },
  { kind: 'Member', metadata: { name: 'ada@example.com', account: 'new' }, spec: { role: 'member' } },
  { kind: 'Member', metadata: { name: 'new@example.com', account: 'new' }, spec: { role: 'viewer' } },
]

/** By method and path of the route. */
export const ADMIN: Readonly<Record<string, Change>> = {
  'PUT /accounts/{name}': api('PUT', '/accounts/new', { plan: 'pro', limits: { concurrent: 3 } }),
  'PATCH /accounts/{name}': api('PATCH', '/accounts/acme', { plan: 'max', labels: { team: 'x' } }),
  'DELETE /accounts/{name}': api('DELETE', '/accounts/acme'),
  'DELETE /accounts/{name} (purge)': api('DELETE', '/accounts/acme?purge=true'),
  'PUT /accounts/{name}/limits': api('PUT', '/accounts/acme/limits', { usd_per_month: 3 }),
  'PATCH /accounts/{name}/limits': api('PATCH', '/accounts/acme/limits', { tokens_per_day: 9 }),
  'DELETE /accounts/{name}/limits': api('DELETE', '/accounts/acme/limits'),
  'POST /accounts/{name}/limits/raise': api('POST', '/accounts/acme/limits/raise', {
    ...RAISE,
    usd: 9,
    until: UNTIL,
  }),
  'PUT /accounts/{name}/members/{email}': api('PUT', '/accounts/acme/members/new@example.com', {
    role: 'viewer',
  }),
  'PATCH /accounts/{name}/members/{email}': api('PATCH', '/accounts/acme/members/ada@example.com', {
    role: 'viewer',
  }),
  'DELETE /accounts/{name}/members/{email}': api('DELETE', '/accounts/acme/members/ada@example.com'),
  'POST /accounts/{name}/members/{email}/invite': api(
    'POST',
    '/accounts/acme/members/guest@example.com/invite',
    {},
  ),
  'PUT /accounts/{name}/keys/{key_name}': api('PUT', '/accounts/acme/keys/new', {
    limits: { concurrent: 2 },
  }),
  'PATCH /accounts/{name}/keys/{key_name}': api('PATCH', '/accounts/acme/keys/ci', { models: ['gpt-5.5'] }),
  'DELETE /accounts/{name}/keys/{key_name}': api('DELETE', '/accounts/acme/keys/gone'),
  'POST /accounts/{name}/keys/{key_name}/rotate': api('POST', '/accounts/acme/keys/ci/rotate', {}),
  'POST /accounts/{name}/keys/{key_name}/raise': api('POST', '/accounts/acme/keys/ci/raise', {
    ...RAISE,
    until: UNTIL,
  }),
  'POST /users/{email}/unbind': api('POST', '/users/bound@example.com/unbind', {}),
  'DELETE /users/{email}/logins': api('DELETE', '/users/ada@example.com/logins'),
  'POST /tokens': api('POST', '/tokens', { name: 'new', scopes: ['usage:read'] }),
  'DELETE /tokens/{id}': api('DELETE', '/tokens/{token}'),
  'POST /denials': api('POST', '/denials', { identity: 'k8s', sub: 'new' }),
  'DELETE /runs/{id}': api('DELETE', '/runs/r-1?account=acme'),
  'DELETE /denials/{id}': api('DELETE', '/denials/{denial}'),
  'PUT /runs/{id}': api('PUT', '/runs/r-1?account=acme', { ended: true }),
  'POST /batches/{id}/cancel': api('POST', '/batches/batch_1/cancel', { reason: 'late' }),
  'POST /apply': api('POST', '/apply', {
    documents: DOCUMENTS,
  }),
}

export const DASHBOARD: Readonly<Record<string, Change>> = {
  'PUT /password': page('PUT', '/password', { current: PASSWORD, next: 'another horse entirely' }, 'owner'),
  'POST /keys': page('POST', '/keys?account=acme', { name: 'new' }),
  'PATCH /keys/{id}': page('PATCH', '/keys/{key}?account=acme', { name: 'other' }),
  'DELETE /keys/{id}': page('DELETE', '/keys/{gone}?account=acme'),
  'POST /keys/{id}/rotate': page('POST', '/keys/{key}/rotate?account=acme', {}),
  'POST /keys/{id}/raise': page('POST', '/keys/{key}/raise?account=acme', OWN_RAISE),
  'PUT /members/{email}': page('PUT', '/members/new%40example.com?account=acme', { role: 'member' }),
  'DELETE /members/{email}': page('DELETE', '/members/ada%40example.com?account=acme'),
  'POST /members/{email}/invite': page('POST', '/members/guest%40example.com/invite?account=acme', {}),
  'POST /batches/{id}/cancel': page('POST', '/batches/batch_1/cancel?account=acme', { reason: 'late' }),
  'POST /run/end': page('POST', '/run/end?account=acme', { run: 'r-1', reason: 'loops' }),
  'POST /accounts': page('POST', '/accounts', { name: 'new', plan: 'pro', email: 'new@example.com' }),
  'PATCH /accounts/{id}': page('PATCH', '/accounts/{acme}', { plan: 'max' }),
  'PATCH /accounts/{id} (disabled)': page('PATCH', '/accounts/{acme}', { disabled: true }),
  'POST /accounts/{id}/reset': page('POST', '/accounts/{acme}/reset', {}),
  'PUT /accounts/{id}/limits': page('PUT', '/accounts/{acme}/limits', { nanoUsdPerMonth: 3e9 }),
  'POST /accounts/{id}/limits/raise': page('POST', '/accounts/{acme}/limits/raise', { ...OWN_RAISE, usd: 9 }),
  'POST /users (account)': page('POST', '/users', { email: 'new@example.com', account: 'acme' }),
  'POST /users (known)': page('POST', '/users', { email: 'eve@example.com', role: 'admin' }),
  'POST /users': page('POST', '/users', { email: 'new@example.com', role: 'auditor' }),
  'PATCH /users/{id}': page('PATCH', '/users/{eve}', { role: 'auditor', disabled: true }),
  'POST /users/{id}/invite': page('POST', '/users/{eve}/invite', {}),
  'POST /users/{id}/unbind': page('POST', '/users/{bound}/unbind', {}),
  'DELETE /sessions': page('DELETE', '/sessions', undefined, 'owner'),
  'DELETE /recordings/{id}': page('DELETE', '/recordings/rec-1?account=acme'),
  'DELETE /views/{id}': page('DELETE', '/views/kept'),
  'PUT /views/{id}': page('PUT', '/views/spend', { name: 'Most spend', url: '/keys?sort=-cost' }),
}

export const COMMANDS: Readonly<Record<string, Change>> = {
  'accounts create': command('accounts', 'create', '--name', 'new', '--plan', 'pro'),
  'accounts create --email': command('accounts', 'create', '--email', 'new@example.com', '--plan', 'pro'),
  'accounts set-plan': command('accounts', 'set-plan', '--account', 'acme', '--plan', 'max'),
  'accounts set-parent': command('accounts', 'set-parent', '--account', 'acme', '--parent', 'top'),
  'accounts disable': command('accounts', 'disable', '--account', 'acme'),
  'accounts enable': command('accounts', 'enable', '--account', 'off'),
  'accounts raise': command(
    ...['accounts', 'raise', '--account', 'acme', '--budget', 'usd_per_day', '--usd', '9'],
    ...['--until', '2d', '--reason', 'launch'],
  ),
  'keys create': command('keys', 'create', '--account', 'acme', '--name', 'new'),
  'keys edit': command('keys', 'edit', '--account', 'acme', '--key', '{key}', '--rpm', '7'),
  'keys raise': command(
    ...['keys', 'raise', '--account', 'acme', '--key', '{key}', '--budget', 'usd_per_day', '--usd', '2'],
    ...['--until', '2d', '--reason', 'launch'],
  ),
  'keys rotate': command('keys', 'rotate', '--account', 'acme', '--key', '{key}'),
  'keys revoke': command('keys', 'revoke', '--account', 'acme', '--key', '{key}'),
  'members set': command(
    'members',
    'set',
    '--account',
    'acme',
    '--email',
    'new@example.com',
    '--role',
    'viewer',
  ),
  'members remove': command('members', 'remove', '--account', 'acme', '--email', 'ada@example.com'),
  'users create': command('users', 'create', '--email', 'new@example.com', '--role', 'auditor'),
  'users set-role': command('users', 'set-role', '--email', 'eve@example.com', '--role', 'admin'),
  'users set-password': command('users', 'set-password', '--email', 'eve@example.com'),
  'users disable': command('users', 'disable', '--email', 'eve@example.com'),
  'users enable': command('users', 'enable', '--email', 'ended@example.com'),
  'users unbind': command('users', 'unbind', '--email', 'bound@example.com'),
  'admin-tokens create': command('admin-tokens', 'create', '--name', 'new', '--scopes', 'usage:read'),
  'admin-tokens revoke': command('admin-tokens', 'revoke', '--token', '{token}'),
  'identity deny': command('identity', 'deny', '--identity', 'k8s', '--sub', 'new'),
  'identity allow': command('identity', 'allow', '--identity', 'k8s', '--sub', 'old'),
  'batches cancel': command('batches', 'cancel', '--batch', 'batch_1'),
  apply: command('apply', '--file', '{documents}', '--yes'),
  'recordings delete': command('recordings', 'delete', 'rec-1'),
  'runs end': command('runs', 'end', '--account', 'acme', '--run', 'r-1'),
}

/** Routes that change no account, key, user, token, limit, run or batch, or are changes of the user alone. */
export const OTHERS: readonly string[] = [
  ...['POST /plan', 'POST /explain', 'POST /keys/lookup', 'POST /oidc/start'],
  ...['chat', 'responses', 'messages', 'gemini'].map((format) => `POST /playground/${format}`),
  // The file of the configuration is not in the store.
  ...['POST /generations/{n}/rollback', 'POST /configuration/{id}/rollback'],
  // Those of `faults-at-sign-in.test.ts`, and sign-ins that change no account.
  ...['POST /session', 'DELETE /session', 'POST /setup', 'POST /reset', 'POST /lost-password'],
  ...['POST /sign-up', 'POST /oidc/finish', 'POST /device/{id}'],
]

const MORE = `escrow: { key: 0Zk9xQ2vLw8RmT5yBn7CdF4gHj6Kp3Sa }
files: { to: store }
batches: { poll_seconds: 3600 }
dimensions: [{ name: run, from: [header:x-run-id] }]
identity: [{ name: k8s, issuer: "https://id.example", audience: [sluice], account: acme, jwks_uri: "https://id.example/keys" }]
`

export async function startScene(t: Test, settings: GatewaySettings = {}): Promise<Scene> {
  const stage = await startAdmin(t, { ...settings, more: MORE })
  const { store, gateway } = stage
  const { plans } = gateway
  const none = { none: true } as const
  const nowMs = Date.now()
  const changing = { store, plans, nowMs, actor: { actor: 'test', address: null } }
  await createAccount(store, { email: 'root@example.com', plan: 'max', password: PASSWORD, role: 'admin' })
  const wanted = { email: 'ada@example.com', name: 'acme', plan: 'pro', password: PASSWORD } as const
  const made = await createAccount(store, wanted)
  const acme = await changeAccount(changing, made.account, { limits: { usd_per_day: 5 } })
  await createAccount(store, { name: 'top', plan: 'max', password: null })
  const { key } = await createKey(store, { plans, account: acme, name: 'ci', limits: { nanoUsdPerDay: 1e9 } })
  // A process that has revoked a key refuses it also if the store loses that.
  const { key: gone } = await createKey(store, { plans, account: acme, name: 'gone' })
  const { user: eve } = await createUser(store, { email: 'eve@example.com', password: none })
  const { user: guest } = await createUser(store, { email: 'guest@example.com', password: none })
  await setMember(store, { account: acme, user: guest, role: 'viewer', nowMs, audit: () => [] })
  const { user: bound } = await createUser(store, { email: 'bound@example.com', password: none })
  await store.users.change(bound.id, { issuer: 'https://id.example', subject: 's' })
  const wish = { name: 'old', scopes: ['usage:read'], accountId: null, createdBy: 'test', audit: () => [] }
  const { token } = await createAdminToken(store, wish)
  const denied = { identity: 'k8s', sub: 'old', jti: null, reason: '', expiresAtMs: null }
  const denial = await denyIdentity(store, denied)
  const login = { id: 'x'.repeat(43), kind: 'login', accountId: made.account.id } as const
  await store.signInTokens.add({ ...login, expiresAtMs: nowMs + 3_600_000, text: '{}' })
  const run = { accountId: acme.id, dimension: 'run', value: 'r-1' }
  await store.dimensionValues.claim(run, { maxValues: 9, keepMs: 3_600_000 }, nowMs)
  const used = { requests: 1, inputTokens: 9, outputTokens: 9, costNanoUsd: 90, atMs: nowMs }
  await store.dimensionValues.add([{ ...run, ...used, keepMs: 3_600_000 }])
  await store.sealedRecords.put(
    {
      ...{ kind: 'recording', id: 'rec-1', accountId: acme.id, keyId: key.id, model: 'gpt-5.5' },
      ...{ atMs: nowMs, expiresAtMs: nowMs + 3_600_000, info: '', value: Buffer.from('sealed') },
    },
    1_000_000,
    nowMs,
  )
  await batchRecords(store, gateway.load().config)?.create(batchOf(acme.id, key.id))
  const [admin, owner] = [new Browser(gateway.origin), new Browser(gateway.origin)]
  await admin.signIn('root@example.com')
  await owner.signIn('ada@example.com')
  await admin.ask('PUT', '/views/kept', { body: { name: 'Kept', url: '/keys' } })
  const off = await createAccount(store, {
    email: 'off@example.com',
    name: 'off',
    plan: 'pro',
    password: null,
  })
  await changeAccount(changing, off.account, { disabled: true })
  const { user: ended } = await createUser(store, { email: 'ended@example.com', password: none })
  await store.users.change(ended.id, { disabled: true })
  const documents = join(dirname(gateway.configFile), 'wanted.yaml')
  writeFileSync(documents, DOCUMENTS.map((each) => JSON.stringify(each)).join('\n---\n'))
  const ids = {
    off: off.account.id,
    documents,
    acme: acme.id,
    key: key.id,
    gone: gone.id,
    eve: eve.id,
    bound: bound.id,
    token: token.id,
    denial: denial.id,
  }
  return { ...stage, admin: sessionIn(admin), owner: sessionIn(owner), ids }
}

function sessionIn(browser: Browser): SignedIn {
  return { origin: browser.origin, cookie: browser.value('__Host-sid'), csrf: browser.csrf }
}

function batchOf(accountId: string, keyId: string): Batch {
  const info = {
    ...{ state: 'in_progress', at: { in_progress: Date.now() }, isCancelled: false, form: 'queue' },
    ...{ upstreams: ['openai'], counts: { total: 3, completed: 0, failed: 0 }, model: 'gpt-5.5' },
    ...{ dueAtMs: Date.now() + 1e6, reserved: [], vendor: null, vendorId: null, failure: null },
    ...{
      endpoint: '/v1/chat/completions',
      inputFileId: 'file_1',
      window: '24h',
      planId: 'p',
      journalId: 'j',
    },
  } as unknown as Batch['info']
  const secrets = { parts: [] } as unknown as Batch['secrets']
  const times = { createdAtMs: Date.now(), expiresAtMs: Date.now() + 1e6 }
  return { id: 'batch_1', accountId, keyId, ...times, info, secrets }
}
