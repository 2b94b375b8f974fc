/**
 * Goal: a failure at any write of any change at any door (admin API, dashboard, command line) leaves the
 * change whole or not made at all; the same request or command makes it afterwards, and its secret is printed
 * exactly if what it opens exists.
 * Method: in the SQLite store of a running gateway, triggers count the rows that a change writes. Each of
 * them fails once; then the change is made without a fault. The tables of routes name every change.
 */
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createAdminToken } from '../../src/accounts/admin-tokens.js'
import { changeAccount, createAccount } from '../../src/accounts/changes/change-accounts.js'
import { denyIdentity } from '../../src/accounts/denials.js'
import { digestOf } from '../../src/accounts/key-secret.js'
import { createUser, setMember } from '../../src/accounts/members.js'
import { objectOf } from '../../src/base/json.js'
import { adminRoutes } from '../../src/control/admin/routes.js'
import type { AdminServices } from '../../src/control/admin/services.js'
import { dashboardRoutes } from '../../src/control/dashboard/routing/routes.js'
import { batchRecords } from '../../src/control/batches.js'
import type { Services } from '../../src/control/services.js'
import type { Batch } from '../../src/policy/batch-records.js'
import { connect } from '../../src/store/sqlite/driver.js'
import { sluiceHere } from '../cli/session.js'
import { Browser, PASSWORD } from '../dashboard/fixtures/stage.js'
import { createKey } from '../helpers/keys.js'
import { startAdmin, type AdminStage } from './admin/admin-stage.js'

/** What a change answers: whether it succeeded, and its text. */
interface Answer {
  readonly isDone: boolean
  readonly text: string
}

interface Scene extends AdminStage {
  readonly admin: SignedIn
  readonly owner: SignedIn
  readonly ids: Readonly<Record<'acme' | 'key' | 'eve' | 'bound' | 'token' | 'denial', string>>
}

/** A session, which a change may end: each request begins with it again. */
interface SignedIn {
  readonly origin: string
  readonly cookie: string
  readonly csrf: string
}

type Change = (scene: Scene) => Promise<Answer>

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

/** By method and path of the route. */
const ADMIN: Readonly<Record<string, Change>> = {
  'PUT /accounts/{name}': api('PUT', '/accounts/new', { plan: 'pro', limits: { concurrent: 3 } }),
  'PATCH /accounts/{name}': api('PATCH', '/accounts/acme', { plan: 'max', labels: { team: 'x' } }),
  'DELETE /accounts/{name}': api('DELETE', '/accounts/acme'),
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
  'DELETE /accounts/{name}/keys/{key_name}': api('DELETE', '/accounts/acme/keys/ci'),
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
    documents: [
      { kind: 'Account', metadata: { name: 'new' }, spec: { plan: 'max', limits: { usd_per_day: 9 } } },
      {
        kind: 'Key',
        metadata: { name: 'applied', account: 'new' },
        spec: { secret_sha256: 'a'.repeat(64) },
      },
      { kind: 'Member', metadata: { name: 'ada@example.com', account: 'new' }, spec: { role: 'member' } },
    ],
  }),
}

const DASHBOARD: Readonly<Record<string, Change>> = {
  'PUT /password': page('PUT', '/password', { current: PASSWORD, next: 'another horse entirely' }, 'owner'),
  'POST /keys': page('POST', '/keys?account=acme', { name: 'new' }),
  'PATCH /keys/{id}': page('PATCH', '/keys/{key}?account=acme', { name: 'other' }),
  'DELETE /keys/{id}': page('DELETE', '/keys/{key}?account=acme'),
  'POST /keys/{id}/rotate': page('POST', '/keys/{key}/rotate?account=acme', {}),
  'POST /keys/{id}/raise': page('POST', '/keys/{key}/raise?account=acme', OWN_RAISE),
  'PUT /members/{email}': page('PUT', '/members/new%40example.com?account=acme', { role: 'member' }),
  'DELETE /members/{email}': page('DELETE', '/members/ada%40example.com?account=acme'),
  'POST /members/{email}/invite': page('POST', '/members/guest%40example.com/invite?account=acme', {}),
  'POST /batches/{id}/cancel': page('POST', '/batches/batch_1/cancel?account=acme', { reason: 'late' }),
  'POST /run/end': page('POST', '/run/end?account=acme', { run: 'r-1', reason: 'loops' }),
  'POST /accounts': page('POST', '/accounts', { name: 'new', plan: 'pro', email: 'new@example.com' }),
  'PATCH /accounts/{id}': page('PATCH', '/accounts/{acme}', { plan: 'max' }),
  'POST /accounts/{id}/reset': page('POST', '/accounts/{acme}/reset', {}),
  'PUT /accounts/{id}/limits': page('PUT', '/accounts/{acme}/limits', { nanoUsdPerMonth: 3e9 }),
  'POST /accounts/{id}/limits/raise': page('POST', '/accounts/{acme}/limits/raise', { ...OWN_RAISE, usd: 9 }),
  'POST /users': page('POST', '/users', { email: 'new@example.com', role: 'auditor' }),
  'PATCH /users/{id}': page('PATCH', '/users/{eve}', { role: 'auditor', disabled: true }),
  'POST /users/{id}/invite': page('POST', '/users/{eve}/invite', {}),
  'POST /users/{id}/unbind': page('POST', '/users/{bound}/unbind', {}),
  'DELETE /sessions': page('DELETE', '/sessions', undefined, 'owner'),
  'DELETE /views/{id}': page('DELETE', '/views/kept'),
  'PUT /views/{id}': page('PUT', '/views/spend', { name: 'Most spend', url: '/keys?sort=-cost' }),
}

const COMMANDS: Readonly<Record<string, Change>> = {
  'accounts create': command('accounts', 'create', '--name', 'new', '--plan', 'pro'),
  'accounts create --email': command('accounts', 'create', '--email', 'new@example.com', '--plan', 'pro'),
  'accounts set-plan': command('accounts', 'set-plan', '--account', 'acme', '--plan', 'max'),
  'accounts set-parent': command('accounts', 'set-parent', '--account', 'acme', '--parent', 'top'),
  'accounts disable': command('accounts', 'disable', '--account', 'acme'),
  'accounts raise': command(
    ...['accounts', 'raise', '--account', 'acme', '--budget', 'usd_per_day', '--usd', '9'],
    ...['--until', '2d', '--reason', 'launch'],
  ),
  'keys create': command('keys', 'create', '--account', 'acme', '--name', 'new'),
  'keys edit': command('keys', 'edit', '--account', 'acme', '--key', '{key}', '--rpm', '7'),
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
  'users unbind': command('users', 'unbind', '--email', 'bound@example.com'),
  'admin-tokens create': command('admin-tokens', 'create', '--name', 'new', '--scopes', 'usage:read'),
  'admin-tokens revoke': command('admin-tokens', 'revoke', '--token', '{token}'),
  'identity deny': command('identity', 'deny', '--identity', 'k8s', '--sub', 'new'),
  'identity allow': command('identity', 'allow', '--identity', 'k8s', '--sub', 'old'),
  'batches cancel': command('batches', 'cancel', '--batch', 'batch_1'),
  'runs end': command('runs', 'end', '--account', 'acme', '--run', 'r-1'),
}

/** Routes that change no account, key, user, token, limit, run or batch, or are changes of the user alone. */
const OTHERS: readonly string[] = [
  ...['POST /plan', 'POST /explain', 'POST /keys/lookup', 'POST /oidc/start', 'DELETE /recordings/{id}'],
  ...['chat', 'responses', 'messages', 'gemini'].map((format) => `POST /playground/${format}`),
  // The file of the configuration is not in the store.
  ...['POST /generations/{n}/rollback', 'POST /configuration/{id}/rollback'],
  // Their links and sessions are looked at in the tests of sign-in.
  ...['POST /session', 'DELETE /session', 'POST /setup', 'POST /reset', 'POST /lost-password'],
  ...['POST /sign-up', 'POST /oidc/finish', 'POST /device/{id}'],
]

/**
 * Changes of two steps, each of them whole or not made, and what the first one writes: a user is made before
 * it is a member, and has no right until then; the same request or command finishes it.
 */
const STEPS: Readonly<Record<string, readonly (typeof TABLES)[number][]>> = {
  'PUT /accounts/{name}/members/{email}': ['users', 'trail'],
  'PUT /members/{email}': ['users', 'trail'],
  'members set': ['users', 'trail'],
  'POST /users': ['users', 'passes', 'trail'],
  'PUT /password': ['passes'],
}

/** Those of them that end the session or the password that the same request has. */
const OWN_STEPS = ['PUT /password']

/** Tables that changes write. */
const TABLES = [
  ...['accounts', 'users', 'members', 'keys', 'trail', 'passes', 'admin_tokens', 'denials'],
  ...['dimension_values', 'sealed_records'],
] as const

/** The rows of a store that a change may write, and the faults of their writes. */
class Rows {
  private readonly db: ReturnType<typeof connect>

  constructor(file: string) {
    this.db = connect(file)
    this.db.exec('PRAGMA foreign_keys = OFF; PRAGMA busy_timeout = 5000')
    this.db.exec('CREATE TABLE fault (at INTEGER); INSERT INTO fault VALUES (-1)')
    this.db.exec('CREATE TABLE writes (place TEXT)')
    for (const table of TABLES) {
      this.db.exec(`CREATE TABLE kept_${table} AS SELECT * FROM ${table}`)
      for (const verb of ['INSERT', 'UPDATE', 'DELETE']) {
        // What a login notes of itself is no change.
        const isUse =
          table === 'admin_tokens' && verb === 'UPDATE'
            ? LAST_USE
            : table === 'sealed_records'
              ? `${verb === 'DELETE' ? 'old' : 'new'}.kind = 'batch'`
              : '1'
        this.db.exec(
          `CREATE TRIGGER fault_${table}_${verb} BEFORE ${verb} ON ${table} WHEN ${isUse} BEGIN
             SELECT RAISE(ABORT, 'fault') WHERE (SELECT at FROM fault) = (SELECT count(*) FROM writes);
             INSERT INTO writes VALUES ('${verb} ${table}');
           END`,
        )
      }
    }
  }

  /** Puts the rows back, and lets the next write with this number fail. */
  arm(at: number | null): void {
    const restore = TABLES.map(
      (table) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table}`,
    )
    this.db.exec(`BEGIN IMMEDIATE; UPDATE fault SET at = -1; ${restore.join('; ')};
      INSERT INTO changes (digest) VALUES (NULL); DELETE FROM writes; DELETE FROM attempts;
      UPDATE fault SET at = ${at ?? -1}; COMMIT`)
  }

  disarm(): void {
    this.db.exec('UPDATE fault SET at = -1; DELETE FROM attempts')
  }

  /** What was written since the rows were put back. */
  written(): string[] {
    return this.db
      .prepare('SELECT place FROM writes ORDER BY rowid')
      .all()
      .map((row) => String(row['place']))
  }

  /** The rows of each table, without what differs between two runs. */
  state(): Record<string, string[]> {
    const rows = TABLES.map((table): [string, string[]] => {
      const rest = table === 'sealed_records' ? ` WHERE kind = 'batch'` : ''
      const all = this.db.prepare(`SELECT * FROM ${table}${rest}`).all()
      return [table, all.map((row) => shape(row)).sort()]
    })
    return Object.fromEntries(rows)
  }

  digests(): Set<string> {
    const of = (table: string) => this.db.prepare(`SELECT digest FROM ${table}`).all()
    return new Set([...of('keys'), ...of('admin_tokens')].map((row) => String(row['digest'])))
  }

  close(): void {
    this.db.close()
  }
}

const LAST_USE = `json_remove(new.record, '$.lastUsedAtMs') <> json_remove(old.record, '$.lastUsedAtMs')`

/** A row as text: random ids, secrets and times are alike in every run. */
function shape(row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(row, (name, value: unknown) => {
    if (
      ['place', 'lastUsedAtMs', 'bytes', 'lastFour', 'last_four', 'prefix'].includes(name) ||
      value instanceof Uint8Array
    )
      return undefined
    if (typeof value === 'number' && value > 1e12) return 'time'
    if (typeof value !== 'string') return value
    if (value.startsWith('{')) return shape(objectOf(JSON.parse(value)))
    return value
      .replaceAll(/\b(?:acc|key|usr|adm|den|aud|user|tok)_\w+/g, 'ID')
      .replaceAll(/[A-Za-z0-9_-]{22,}/g, 'RANDOM')
      .replaceAll(/sk_\w+…\w+/g, 'SECRET')
      .replaceAll(/\$argon2\S+/g, 'HASH')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/\d{12,}(?:-\d+)?/g, 'TIME')
  })
}

function digestsIn(text: string): string[] {
  return (text.match(/\bs(?:k|at)_[A-Za-z0-9]{30,}\b/g) ?? []).map(digestOf)
}

const MORE = `escrow: { key: 0Zk9xQ2vLw8RmT5yBn7CdF4gHj6Kp3Sa }
files: { to: store }
batches: { poll_seconds: 3600 }
dimensions: [{ name: run, from: [header:x-run-id] }]
identity: [{ name: k8s, issuer: "https://id.example", audience: [sluice], account: acme, jwks_uri: "https://id.example/keys" }]
`

async function scene(t: Test): Promise<Scene> {
  const stage = await startAdmin(t, { more: MORE })
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
  await batchRecords(store, gateway.load().config)?.create(batchOf(acme.id, key.id))
  const [admin, owner] = [new Browser(gateway.origin), new Browser(gateway.origin)]
  await admin.signIn('root@example.com')
  await owner.signIn('ada@example.com')
  await admin.ask('PUT', '/views/kept', { body: { name: 'Kept', url: '/keys' } })
  const ids = { acme: acme.id, key: key.id, eve: eve.id, bound: bound.id, token: token.id, denial: denial.id }
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

void t.test('every change has a case', (t) => {
  const services = { snapshot: () => ({ config: { plans: {} } }) } as unknown as AdminServices
  const tables: [readonly { method: string; path: string }[], object][] = [
    [adminRoutes(services), ADMIN],
    [dashboardRoutes({} as Services), DASHBOARD],
  ]
  for (const [routes, cases] of tables) {
    for (const { method, path } of routes) {
      const name = `${method} ${path}`
      if (method !== 'GET') t.not(OTHERS.includes(name), Object.hasOwn(cases, name), name)
    }
  }
  t.end()
})

const DOORS = { 'admin API': ADMIN, dashboard: DASHBOARD, 'command line': COMMANDS }

for (const [door, changes] of Object.entries(DOORS)) {
  void t.test(`faults of writes (${door})`, async (t) => {
    const stage = await scene(t)
    const rows = new Rows(join(dirname(stage.gateway.configFile), 'data/sluice.db'))
    t.teardown(() => rows.close())
    for (const [name, change] of Object.entries(changes)) {
      rows.arm(null)
      const before = rows.state()
      const done = await change(stage)
      t.ok(done.isDone, `${name}: ${done.text.slice(0, 300)}`)
      const whole = rows.state()
      const writes = rows.written()
      t.ok(writes.length > 0, `${name} writes: ${writes.join(', ')}`)
      for (const [at, write] of writes.entries()) {
        const what = `${name}: ${at} ${write}`
        rows.arm(at)
        const digests = rows.digests()
        const failed = await change(stage)
        rows.disarm()
        const after = rows.state()
        for (const table of TABLES) {
          const isMade = JSON.stringify(after[table]) !== JSON.stringify(before[table])
          if (!isMade || STEPS[name]?.includes(table) === true) continue
          t.same(after[table], whole[table], `${what}: ${table} whole or not at all`)
        }
        if (STEPS[name] === undefined && JSON.stringify(after) !== JSON.stringify(before)) {
          t.same(after, whole, `${what}: whole or not at all`)
        }
        const made = [...rows.digests()].filter((digest) => !digests.has(digest))
        const shown = digestsIn(failed.text)
        t.same(
          shown.filter((digest) => digest !== 'a'.repeat(64)),
          made.filter((digest) => digest !== 'a'.repeat(64)),
          `${what}: secrets`,
        )
        if (failed.isDone || OWN_STEPS.includes(name)) continue
        const again = await change(stage)
        t.ok(again.isDone, `${what}, again: ${again.text.slice(0, 300)}`)
        t.same(rows.state(), whole, `${what}, again: whole`)
      }
    }
  })
}
