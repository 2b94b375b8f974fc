/**
 * Goal: every endpoint of the admin API refuses everything but a live token. It shows and changes nothing
 * of an account that the token does not see, in words that an absent object has, too.
 * Method: the cases are generated from the table of routes, so that a new route is in them, on both stores.
 */
import t, { type Test } from 'tap'
import { createAdminToken, SCOPES } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { adminRoutes } from '../../../src/control/admin/routes.js'
import type { AdminRoute } from '../../../src/control/admin/route.js'
import type { AdminServices } from '../../../src/control/admin/services.js'
import type { JsonObject } from '../../../src/base/json.js'
import { Browser, PASSWORD } from '../../dashboard/fixtures/stage.js'
import { onBothStores, startAdmin, textOf, type AdminStage, type Reply } from './admin-stage.js'

const UNTIL = new Date(Date.now() + 3_600_000).toISOString()
const RAISE = { budget: 'usd_per_day', usd: 2, until: UNTIL, reason: 'test' }

/** A body for each route that needs one. */
const BODIES: Readonly<Record<string, JsonObject>> = {
  'PUT /accounts/{name}': { display_name: 'mine' },
  'PATCH /accounts/{name}': { display_name: 'mine' },
  'PUT /accounts/{name}/limits': {},
  'PATCH /accounts/{name}/limits': { usd_per_day: null },
  'POST /accounts/{name}/limits/raise': RAISE,
  'PUT /accounts/{name}/members/{email}': { role: 'owner' },
  'PATCH /accounts/{name}/members/{email}': { role: 'owner' },
  'POST /accounts/{name}/members/{email}/invite': {},
  'PUT /accounts/{name}/keys/{key_name}': {},
  'PATCH /accounts/{name}/keys/{key_name}': { models: ['x'] },
  'POST /accounts/{name}/keys/{key_name}/rotate': {},
  'POST /accounts/{name}/keys/{key_name}/raise': RAISE,
  'POST /users/{email}/unbind': {},
  'POST /tokens': { name: 'x', scopes: ['usage:read'], account: 'acme' },
  'POST /denials': { identity: 'x', sub: 'y' },
  'PUT /runs/{id}': { ended: true },
  'POST /batches/{id}/cancel': {},
  'POST /apply': { documents: [{ kind: 'Account', metadata: { name: 'acme' }, spec: { plan: 'max' } }] },
  'POST /plan': { config: 'server: {}' },
  'POST /explain': { model: 'gpt-5.5' },
  'POST /generations/{n}/rollback': { reason: 'x' },
}

function nameOf({ method, path }: AdminRoute): string {
  return `${method} ${path}`
}

interface Cast extends AdminStage {
  readonly routes: readonly AdminRoute[]
  /** Ids of objects of `acme`, by the folder of their path. */
  readonly ids: Readonly<Record<string, string>>
}

async function cast(t: Test, settings: object): Promise<Cast> {
  const stage = await startAdmin(t, settings)
  const { ask } = stage
  const services = {
    snapshot: () => ({ config: { plans: stage.gateway.plans } }),
  } as unknown as AdminServices
  await ask('PUT', '/accounts/acme', { body: { plan: 'pro', limits: { usd_per_day: 1 } } })
  await ask('PUT', '/accounts/acme/members/bob@example.com', { body: { role: 'viewer' } })
  await ask('PUT', '/accounts/acme/keys/ci', { body: { limits: { usd_per_day: 1 } } })
  await ask('PUT', '/accounts/other', { body: { plan: 'max' } })
  const body = { name: 'of acme', scopes: ['usage:read'], account: 'acme' }
  const tokens = textOf(await ask('POST', '/tokens', { body }), 'id')
  return {
    ...stage,
    routes: adminRoutes(services),
    ids: { tokens, runs: 'r-1', batches: 'batch_1', denials: 'den_1' },
  }
}

/** Sends a request of the route about `acme`, or about objects that do not exist. */
function send({ ask, ids }: Cast, route: AdminRoute, token: string, of: 'acme' | 'absent', headers = {}) {
  const [, folder = ''] = route.path.split('/')
  const isThere = of === 'acme'
  const names: Readonly<Record<string, string>> = {
    name: isThere ? 'acme' : 'absent',
    key_name: isThere ? 'ci' : 'absent',
    email: isThere ? 'bob@example.com' : 'absent@example.com',
    id: isThere ? (ids[folder] ?? '') : 'absent',
    month: '2026-11',
    n: '1',
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '')
  const query = route.query?.['account'] === undefined ? '' : `?account=${isThere ? 'acme' : 'absent'}`
  const body = BODIES[nameOf(route)]
  const text = JSON.stringify(body ?? {}).replaceAll('"acme"', isThere ? '"acme"' : '"absent"')
  return ask(route.method, path + query, { token, headers, ...(body === undefined ? {} : { body: text }) })
}

/** Without what differs between any two replies. */
function comparable({ status, text }: Reply): string {
  const same = text
    .replace(/"request_id":"[^"]*"/, '')
    .replaceAll(/absent@example\.com|bob@example\.com/g, 'EMAIL')
  return `${status} ${same.replaceAll(/\b(?:acme|absent)\b/g, 'NAME')}`
}

void t.test('every route that needs a body has one here', async (t) => {
  const { routes } = await cast(t, {})
  for (const route of routes) t.equal(route.body !== undefined, nameOf(route) in BODIES, nameOf(route))
})

onBothStores(t, 'what is no live token opens nothing', async (t, settings) => {
  const stage = await cast(t, settings)
  const { store, gateway, routes } = stage
  const wish = { name: 'x', scopes: SCOPES, accountId: null, createdBy: 'test', audit: () => [] }
  const [revoked, expired] = [await createAdminToken(store, wish), await createAdminToken(store, wish)]
  await store.adminTokens.change(revoked.token.id, (token) => ({ ...token, revokedAtMs: Date.now() }))
  await store.adminTokens.change(expired.token.id, (token) => ({ ...token, expiresAtMs: Date.now() - 1 }))
  await createAccount(store, { email: 'root@example.com', plan: 'max', role: 'admin', password: PASSWORD })
  const root = new Browser(gateway.origin)
  await root.signIn('root@example.com')
  const session = { cookie: root.cookie, origin: gateway.origin, 'x-sluice-csrf': root.csrf }
  const live = stage.token
  const kinds: Readonly<Record<string, { token?: string; headers?: Record<string, string> }>> = {
    none: {},
    revoked: { token: revoked.secret },
    expired: { token: expired.secret },
    'another last character': { token: live.slice(0, -1) + (live.endsWith('0') ? '1' : '0') },
    'with a blank within': { token: `${live.slice(0, 9)} ${live.slice(9)}` },
    'a key': { token: gateway.secret },
    'a session of an administrator': { headers: session },
    'x-api-key': { headers: { 'x-api-key': live } },
    'another scheme': { headers: { authorization: `Basic ${Buffer.from(`x:${live}`).toString('base64')}` } },
    'two credentials': { headers: { authorization: `Bearer ${live}, Bearer ${gateway.secret}` } },
  }
  const texts = new Set<string>()
  for (const route of routes) {
    for (const [kind, { token = '', headers = {} }] of Object.entries(kinds)) {
      const reply = await send(stage, route, token, 'acme', headers)
      t.match(reply, { status: 401, json: { kind: 'unauthenticated' } }, `${nameOf(route)}: ${kind}`)
      texts.add(comparable(reply))
    }
  }
  t.equal(texts.size, 1, 'one text for all')
})

onBothStores(t, 'a token of another account sees and changes nothing', async (t, settings) => {
  const stage = await cast(t, settings)
  const { store, routes, ask, makeToken } = stage
  const scopes = SCOPES.filter((scope) => !scope.startsWith('config:'))
  const other = (await store.accountByName('other'))?.id ?? ''
  const state = async (): Promise<string[]> => {
    const paths = ['/accounts/acme', '/accounts/acme/members', '/accounts/acme/keys', '/accounts/acme/limits']
    return Promise.all(paths.map(async (path) => (await ask('GET', path)).text))
  }
  const before = await state()
  for (const route of routes) {
    const name = nameOf(route)
    // One for each route: 50 requests of a token are allowed at once.
    const token = await makeToken(scopes, other)
    const [there, absent] = [
      await send(stage, route, token, 'acme'),
      await send(stage, route, token, 'absent'),
    ]
    // The name of an account elsewhere is taken; a free one must have the form of those below `other`.
    const isNaming = ['PUT /accounts/{name}', 'POST /apply'].includes(name)
    if (!isNaming) t.equal(comparable(there), comparable(absent), name)
    const isList = route.method === 'GET' && !/\{|^\/(?:usage|requests|batches|audit)/.test(route.path)
    const isOfGateway = (route.scopes ?? []).some((scope) => scope.startsWith('config:'))
    if (isList && !isOfGateway && route.path !== '/denials') t.equal(there.status, 200, name)
    else t.ok([400, 403, 404, 409].includes(there.status), `${name} ${there.status}`)
    t.notMatch(there.text, /bob@example\.com|"ci"|of acme/, name)
  }
  const token = await makeToken(scopes, other)
  const limits = { usd_per_day: 1_000 }
  const below = { name: 'other--x' }
  for (const documents of [
    [{ kind: 'Key', metadata: { name: 'ci', account: 'acme' }, spec: { limits } }],
    [{ kind: 'Member', metadata: { name: 'bob@example.com', account: 'acme' }, spec: { role: 'owner' } }],
    [{ kind: 'Account', metadata: { name: 'acme' }, spec: { limits } }],
    [
      { kind: 'Account', metadata: below, spec: { parent: 'acme', limits } },
      {
        kind: 'Key',
        metadata: { name: 'k', account: below.name },
        spec: { limits, secret_sha256: 'a'.repeat(64) },
      },
    ],
  ]) {
    for (const more of [{}, { adopt: true }, { adopt: true, dry_run: true }]) {
      const reply = await ask('POST', '/apply', { token, body: { documents, ...more } })
      t.equal(reply.status, 400)
      t.notMatch(reply.text, /allows|its keys|viewer|"ci"|changes/, JSON.stringify(documents))
    }
  }
  t.strictSame(await state(), before)
  t.equal((await store.adminTokens.byId(stage.ids['tokens'] ?? ''))?.revokedAtMs, undefined)
})
