/**
 * Goal: every route of the table has the right access policy for every kind of visitor (K-169, K-171).
 * Method: the cases are generated from the table, so that no route lacks a test; each reply is validated by
 * the schema that the page uses.
 */
import t, { type Test } from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import {
  assertRoutes,
  openRoute,
  signedRoute,
  type Route,
} from '../../../../src/control/dashboard/routing/route.js'
import { createUser, ensureUser, setMember } from '../../../../src/accounts/members.js'
import { ACCESS } from '../../../../src/control/dashboard/routing/access.js'
import { dashboardRoutes } from '../../../../src/control/dashboard/routing/routes.js'
import { createdKeyReply } from '../../../../src/control/dashboard/schema/schema.js'
import { RecordingSeal } from '../../../../src/policy/encrypted-recordings.js'
import type { Services } from '../../../../src/control/services.js'
import { aRow, PASSWORD, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import type { GatewaySettings } from '../../../helpers/gateway.js'
import { onBothStores } from '../../admin/admin-stage.js'
import { knownHash } from '../../../helpers/password.js'

// The table itself does not use the services of its handlers.
const ROUTES = dashboardRoutes({} as Services)

const RAISE = {
  budget: 'usd_per_month',
  usd: 20,
  untilMs: Date.now() + 86_400_000,
  reason: 'launch',
}

/** A valid request for each route that has a body or requires a query. */
const BODIES: Readonly<Record<string, JsonObject>> = {
  'POST /session': { email: 'ada@example.com', password: PASSWORD },
  'PUT /password': { current: PASSWORD, next: 'another horse entirely' },
  'POST /setup': { link: 'x'.repeat(43), email: 'x@example.com', password: PASSWORD },
  'POST /reset': { link: 'x'.repeat(43), password: PASSWORD },
  'POST /lost-password': { email: 'x@example.com' },
  'POST /sign-up': { email: 'x@example.com', password: PASSWORD },
  'POST /oidc/start': {},
  'POST /oidc/finish': { query: '?code=x&state=y' },
  'POST /keys': { name: 'k' },
  'POST /keys/lookup': { digest: '0'.repeat(64) },
  'PATCH /keys/{id}': { name: 'k' },
  'POST /keys/{id}/rotate': {},
  'PUT /members/{email}': { role: 'viewer' },
  'POST /members/{email}/invite': {},
  'POST /accounts': { email: 'y@example.com', plan: 'starter' },
  'PATCH /accounts/{id}': { plan: 'pro' },
  'POST /accounts/{id}/reset': {},
  'PUT /accounts/{id}/limits': {},
  'POST /accounts/{id}/limits/raise': RAISE,
  'POST /keys/{id}/raise': RAISE,
  'POST /users': { email: 'z@example.com', role: 'auditor' },
  'PATCH /users/{id}': { disabled: false },
  'POST /users/{id}/invite': {},
  'POST /users/{id}/unbind': {},
  'POST /batches/{id}/cancel': { reason: 'wrong model' },
  'POST /run/end': { run: 'r-17', reason: 'it loops' },
  'POST /configuration/{id}/rollback': { reason: 'errors doubled' },
  'POST /device/{id}': { approve: true },
  'PUT /views/{id}': { name: 'Most spend', url: '/keys?sort=-cost' },
}
const QUERIES: Readonly<Record<string, string>> = {
  'GET /usage': `?by=day&fromMs=${Date.now() - 86_400_000}&toMs=${Date.now()}&group=key`,
  'GET /usage/groups': `?group=key&fromMs=${Date.now() - 86_400_000}&toMs=${Date.now()}`,
  'GET /usage.csv': `?group=key&fromMs=${Date.now() - 86_400_000}&toMs=${Date.now()}`,
  'GET /models/explain': '?model=gpt-5.5',
  'GET /search': '?q=private',
  'GET /keys/{id}/clients': '?url=https%3A%2F%2Fllm.example.com',
  'GET /failures': '?fromMs=0',
  'GET /run': '?run=r-17',
}

/** Members that no change accepts from a client. */
const SMUGGLED = ['role', 'plan', 'tenant_id', 'accountId', 'limit', 'spend', 'created_at', '__proto__']

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}

function ask(browser: Browser, route: Route, { id, more = {} }: { id: string; more?: JsonObject }) {
  const name = nameOf(route)
  const path =
    route.path.replace('{id}', id).replace('{email}', 'guest%40example.com') + (QUERIES[name] ?? '')
  const body = BODIES[name]
  return browser.ask(route.method, path, {
    body: body === undefined ? undefined : { ...body, ...more },
  })
}

interface Cast extends Stage {
  readonly owner: Browser
  readonly other: Browser
  readonly admin: Browser
  /** The owner's key, and a request with it. */
  readonly keyId: string
  readonly requestId: string
  readonly ownerId: string
}

const KEY = '0f4c9b1e7d2a85c36f10e9d8b7a6c5f4'
const RUN = 'r-17'

/** Stores a recording of the account. */
async function record({ store }: Stage, id: string, accountId: string): Promise<void> {
  const wire = {
    request: { method: 'POST', path: '/v1/messages', headers: {}, body: '{}' },
    response: { status: 200, headers: {}, chunks: [{ at_ms: 1, data: 'x' }] },
  }
  const facts = {
    ...{ model: 'm', upstream: 'u', requested_model: 'm', upstream_model: 'm', status: 200 },
    ...{ input_tokens: 1, output_tokens: 1, cost_nano_usd: 1, duration_ms: 1 },
  }
  const recording = { id, request: {}, reply: null, client: wire, upstream: wire, facts }
  const value = new RecordingSeal(KEY).seal(accountId, recording)
  const times = { atMs: Date.now(), expiresAtMs: Date.now() + 600_000 }
  const owner = { accountId, keyId: 'k', model: 'm', info: '{"upstream":"u","status":200}' }
  const sealed = { kind: 'recording' as const, id, ...owner, ...times, value }
  await store.sealedRecords.put(sealed, 1_000_000, Date.now())
}

async function cast(t: Test, settings: GatewaySettings = {}): Promise<Cast> {
  const dimensions = 'dimensions: [{ name: run, from: [header:x-run-id] }]'
  const stage = await startStage(t, { ...settings, more: `escrow: { key: ${KEY} }\n${dimensions}` })
  const owner = await stage.signedIn('ada@example.com')
  const other = await stage.signedIn('bob@example.com')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const made = await owner.ask('POST', '/keys', { body: { name: 'private' } })
  const { id: keyId, accountId: ownerId } = createdKeyReply.parse(made.json).key
  const row = aRow(ownerId, { keyId })
  await stage.store.ledger.settle(row)
  await record(stage, row.requestId, ownerId)
  const used = { requests: 1, inputTokens: 9, outputTokens: 9, costNanoUsd: 90, atMs: Date.now() }
  const run = { accountId: ownerId, dimension: 'run', value: RUN }
  await stage.store.dimensionValues.claim(run, { maxValues: 9, keepMs: 3_600_000 }, Date.now())
  await stage.store.dimensionValues.add([{ ...run, ...used, keepMs: 3_600_000 }])
  return { ...stage, owner, other, admin, keyId, ownerId, requestId: row.requestId }
}

void t.test('every route has an access policy', (t) => {
  t.ok(ROUTES.length > 25)
  t.doesNotThrow(() => assertRoutes(ROUTES))
  for (const route of ROUTES) {
    const isWrite = route.method !== 'GET' && route.method !== 'DELETE'
    t.equal(isWrite, nameOf(route) in BODIES || route.body === 'raw', nameOf(route))
  }
  const handle = () => ({ status: 200, json: {} })
  const good = signedRoute('GET', '/a', { credential: 'session', reply: null, handle })
  const bad: [Route[], RegExp][] = [
    [[{ ...good, credential: '' as 'open' }], /has no policy/],
    [[{ ...good, path: 'a' }], /path/],
    [[{ ...good, path: '/a/:id' }], /path/],
    [[good, good], /twice/],
    [[openRoute('POST', '/a', { reply: null, handle })], /body/],
  ]
  for (const [routes, message] of bad) t.throws(() => assertRoutes(routes), message)
  t.end()
})

onBothStores(
  t,
  'routes refuse requests without a session, and owners on routes of administrators',
  async (t, settings) => {
    const stage = await cast(t, settings)
    for (const route of ROUTES) {
      if (route.credential === 'open' || route.body === 'raw') continue
      const anonymous = await ask(stage.browser(), route, { id: stage.keyId })
      t.match([anonymous.status, anonymous.error['kind']], [401, 'unauthenticated'], nameOf(route))
      if (ACCESS[route.credential].may.owner !== 'no') continue
      const owner = await ask(stage.owner, route, { id: stage.ownerId })
      t.match([owner.status, owner.error['kind']], [403, 'forbidden'], nameOf(route))
    }
    t.equal((await stage.store.accountById(stage.ownerId))?.plan, 'starter', 'nothing was changed')
  },
)

onBothStores(t, 'every reply matches the schema of the page', async (t, settings) => {
  const stage = await cast(t, settings)
  // Last the routes that end the session or revoke the key.
  const late = [
    'DELETE /members/{email}',
    'DELETE /keys/{id}',
    'PUT /password',
    'DELETE /session',
    'DELETE /sessions',
  ]
  const routes = ROUTES.filter((route) => !late.includes(nameOf(route)) && route.reply !== null)
  const last = ROUTES.filter((route) => late.includes(nameOf(route)))
  for (const route of [
    ...routes,
    ...last.sort((a, b) => late.indexOf(nameOf(a)) - late.indexOf(nameOf(b))),
  ]) {
    const name = nameOf(route)
    if (
      ['POST /setup', 'POST /reset', 'POST /lost-password', 'POST /sign-up', 'DELETE /sessions'].includes(
        name,
      )
    )
      continue
    // These routes need a provider; oidc.test.ts has one.
    if (route.path.startsWith('/oidc/')) continue
    // These routes need a program that waits; login/device-flow.test.ts has one.
    if (route.path.startsWith('/device/')) continue
    // These routes need a batch; gateway/batches/operators.test.ts has one.
    if (route.path.startsWith('/batches/')) continue
    // Without a budget there is nothing to raise; budgets.test.ts has one.
    if (route.path.endsWith('/raise')) continue
    // These routes need an earlier generation; browser-configuration.test.ts has one.
    if (name === 'POST /configuration/{id}/rollback') continue
    const isOfRequest = /^\/(?:requests|recordings)/.test(route.path)
    const ofOwner = isOfRequest ? stage.requestId : stage.keyId
    const id = route.path.startsWith('/statements') ? '2026-11' : ofOwner
    const isOfGateway = route.credential !== 'open' && ACCESS[route.credential].of === 'gateway'
    // Administrators set the limits of an account at the top.
    const isAdmin = isOfGateway || route.path.startsWith('/accounts/')
    const adminId = route.path.startsWith('/configuration') ? '1' : stage.ownerId
    const answer = await ask(isAdmin ? stage.admin : stage.owner, route, {
      id: isAdmin ? adminId : id,
    })
    t.ok(answer.status < 300, `${name}: ${answer.text.slice(0, 200)}`)
    t.ok(route.reply?.safeParse(answer.json).success, `${name} replies as its schema defines`)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    t.match(answer.headers.get('content-security-policy'), "frame-ancestors 'none'")
    t.match(answer.headers.get('cache-control'), /no-store|no-cache/)
  }
})

onBothStores(
  t,
  'K-169: an object of another account gets the same 404 as an unknown one',
  async (t, settings) => {
    const stage = await cast(t, settings)
    const { keyId, requestId, ownerId, other } = stage
    const odd = ['key_0', '1', '00000000-0000-0000-0000-000000000000', '%2A', '*', `${keyId},x`, '[]', '$ne']
    for (const route of ROUTES) {
      if (!route.path.includes('{id}') || route.credential === 'open') continue
      if (ACCESS[route.credential].of !== 'account') continue
      const missing = await ask(other, route, { id: 'key_aaaaaaaaaaaaaaaa' })
      t.equal(missing.status, 404, nameOf(route))
      for (const id of [keyId, requestId, ownerId, ...odd]) {
        const answer = await ask(other, route, { id: encodeURI(id) })
        t.same([answer.status, answer.text], [404, missing.text], `${nameOf(route)} of ${id}`)
      }
    }
    for (const account of [ownerId, 'all', 'acc_none', '*']) {
      for (const route of ROUTES) {
        const name = nameOf(route)
        if (route.method !== 'GET' || route.credential === 'open') continue
        if (ACCESS[route.credential].of !== 'account' || route.path.startsWith('/accounts/')) continue
        const query = QUERIES[name] ?? '?'
        const path = `${route.path.replace('{id}', requestId)}${query}&account=${account}`
        const answer = await other.get(path)
        t.equal(answer.status, account === '*' ? 400 : 404, path)
        t.notMatch(answer.text, /private|key_/)
      }
    }
    const named = `/requests?account=${ownerId}&account=all`
    t.equal((await other.get(named)).status, 400, 'and not two of them')
    t.match((await stage.owner.get('/keys')).json, {
      keys: [{ name: 'private', state: 'live' }],
    })
  },
)

void t.test('K-171: a change refuses unknown members by name', async (t) => {
  const stage = await cast(t)
  for (const route of ROUTES) {
    if (route.body === null || route.body === 'raw') continue
    const isAdmin = route.credential === 'admin' || route.path.startsWith('/accounts/')
    const browser = isAdmin ? stage.admin : stage.owner
    for (const field of SMUGGLED) {
      const body = BODIES[nameOf(route)] ?? {}
      if (field in body && field !== '__proto__') continue
      if (nameOf(route) === 'POST /accounts' && field === 'role') continue
      if (nameOf(route) === 'PATCH /accounts/{id}' && field === 'plan') continue
      if (nameOf(route) === 'PATCH /users/{id}' && field === 'role') continue
      const id = isAdmin ? stage.ownerId : stage.keyId
      const path = route.path.replace('{id}', id)
      const text = `${JSON.stringify(body).replace(/\}$/, '')}${Object.keys(body).length === 0 ? '' : ','}"${field}":1}`
      const answer = await browser.ask(route.method, path, { body: text })
      t.equal(answer.status, 400, `${nameOf(route)} with ${field}`)
      if (field !== '__proto__') t.match(answer.error, { kind: 'unknown_field', field })
    }
  }
  t.match((await stage.owner.get('/session')).json, {
    account: { role: 'owner', plan: { name: 'starter' } },
  })
})

onBothStores(
  t,
  'a recording is for its account and administrators, and each reading is audited',
  async (t, settings) => {
    const scene = await cast(t, settings)
    const { owner, other, admin, requestId, ownerId, store } = scene
    const path = `/recordings/${requestId}`
    t.match((await owner.get('/recordings')).json, { recordings: [{ id: requestId, model: 'm' }] })
    t.same((await other.get('/recordings')).json, { recordings: [] })
    t.match((await admin.get('/recordings?account=all')).json, { recordings: [{ id: requestId }] })
    t.equal((await other.get(path)).status, 404)
    t.equal((await other.ask('DELETE', path)).status, 404)
    await createUser(store, {
      email: 'eve@example.com',
      role: 'auditor',
      password: PASSWORD,
      hash: knownHash,
    })
    const auditor = scene.browser()
    t.equal((await auditor.signIn('eve@example.com')).status, 200)
    const account = await store.accountById(ownerId)
    const { user } = await ensureUser(store, { email: 'bob@example.com' })
    if (account === null) throw new Error('no account')
    const query = `${path}?account=${ownerId}`
    for (const role of ['member', 'viewer'] as const) {
      await setMember(store, { account, user, role, nowMs: Date.now(), audit: () => [] })
      for (const [name, browser] of Object.entries({ [role]: other, auditor })) {
        t.equal((await browser.get(query)).status, 404, name)
        t.equal((await browser.ask('DELETE', query)).status, 404, name)
      }
    }
    t.match((await owner.get(path)).json, { id: requestId, accountId: ownerId, reply: null })
    t.equal((await admin.get(path)).status, 200)
    const trail = await store.auditTrail.page({ accountId: ownerId, after: null, limit: 100 })
    const read = trail.filter(({ action }) => action === 'recording.read')
    t.same(read.map(({ actor }) => actor).sort(), ['ada@example.com', 'root@example.com'])
    t.ok(read.every(({ target }) => target === requestId))
    t.equal((await owner.ask('DELETE', path)).status, 200)
    t.equal((await owner.get(path)).status, 404)
  },
)
