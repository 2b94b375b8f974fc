/**
 * Goal: each role may use exactly the endpoints that docs/reference/access.md allows; other accounts do not
 * exist for it; and who loses the last role is signed out with the next request.
 * Method: reads the table of the page, and sends each request as each role to one gateway.
 */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Account, AccountRole, GatewayRole } from '../../../../src/accounts/account.js'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { createUser, ensureUser, removeMember, setMember } from '../../../../src/accounts/members.js'
import { ACCESS } from '../../../../src/control/dashboard/routing/access.js'
import { dashboardRoutes } from '../../../../src/control/dashboard/routing/routes.js'
import {
  createdKeyReply,
  keysReply,
  memberReply,
  membersReply,
  sessionReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import type { Services } from '../../../../src/control/services.js'
import type { JsonObject } from '../../../../src/base/json.js'
import { aRow, PASSWORD, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import type { GatewaySettings } from '../../../helpers/gateway.js'
import { onBothStores } from '../../admin/admin-stage.js'
import { knownHash } from '../../../helpers/password.js'

const ROLES = ['admin', 'auditor', 'owner', 'above', 'member', 'viewer'] as const
type Role = (typeof ROLES)[number]

interface Row {
  readonly method: string
  readonly path: string
  readonly may: Readonly<Record<Role, string>>
}

/** The rows of the page, one for each endpoint. */
function tableOf(page: string): Row[] {
  const lines = page.split('\n').filter((line) => /^\| `[A-Z]/.test(line))
  return lines.flatMap((line) => {
    const [, names = '', ...cells] = line.split('|').map((cell) => cell.trim())
    const may = Object.fromEntries(ROLES.map((role, at) => [role, cells[at] ?? ''])) as Row['may']
    let method = ''
    return [...names.matchAll(/`(?:([A-Z]+) )?([^`]+)`/g)].map(([, verb, path = '']) => {
      method = verb ?? method
      return { method, path: path.replace('{month}', '{id}'), may }
    })
  })
}

const TABLE = tableOf(readFileSync('docs/reference/access.md', 'utf8'))

void t.test('the page has every endpoint, with the roles of the code', (t) => {
  // Below its table the page has recordings, which are 404 for every other role (access-matrix.test.ts).
  const routes = dashboardRoutes({} as Services).filter(
    ({ credential, path }) => credential !== 'open' && path !== '/recordings/{id}',
  )
  const named = (method: string, path: string): string =>
    `${method} ${path.replace(/^\/playground\/.*/, '/playground/{format}')}`
  const rows = new Map(TABLE.map((row) => [named(row.method, row.path), row.may]))
  const names = new Set(routes.map(({ method, path }) => named(method, path)))
  t.strictSame([...names].sort(), [...rows.keys()].sort())
  for (const { method, path, credential } of routes) {
    if (credential === 'open') continue
    t.strictSame(rows.get(named(method, path)), ACCESS[credential].may, `${method} ${path}`)
  }
  t.end()
})

interface Cast extends Stage {
  readonly team: Account
  readonly browsers: Readonly<Record<Role, Browser>>
  /** Ids of keys of the team, by the role of the user who made them. */
  readonly keys: Readonly<Record<'owner' | 'member', string>>
  readonly requestId: string
  /** A user whom requests invite and change. */
  readonly guestId: string
}

async function user(stage: Stage, name: string, role: GatewayRole | null = null) {
  const email = `${name}@example.com`
  const made = await createUser(stage.store, { email, role, password: PASSWORD, hash: knownHash })
  return made.user
}

async function join(stage: Stage, account: Account, name: string, role: AccountRole) {
  const { user: found } = await ensureUser(stage.store, { email: `${name}@example.com` })
  const member = { account, user: found, role, nowMs: Date.now(), audit: () => [] }
  await setMember(stage.store, member)
}

async function enter(stage: Stage, name: string): Promise<Browser> {
  const browser = stage.browser()
  const reply = await browser.signIn(`${name}@example.com`)
  if (reply.status !== 200) throw new Error(reply.text)
  return browser
}

async function makeKey(browser: Browser, name: string, account = 'team'): Promise<string> {
  const made = await browser.ask('POST', `/keys?account=${account}`, {
    body: { name, limits: { nanoUsdPerDay: 1e9 } },
  })
  return createdKeyReply.parse(made.json).key.id
}

async function cast(t: Test, settings: GatewaySettings = {}): Promise<Cast> {
  const stage = await startStage(t, settings)
  const { store } = stage
  const { account: org } = await createAccount(store, { name: 'org', plan: 'max', password: null })
  const { account: team } = await createAccount(store, {
    ...{ name: 'team', plan: 'max', parentId: org.id },
    password: null,
  })
  await createAccount(store, { name: 'apart', plan: 'max', password: null })
  for (const name of ['owner', 'member', 'viewer'] as const) {
    await user(stage, name)
    await join(stage, team, name, name)
  }
  await user(stage, 'above')
  await join(stage, org, 'above', 'owner')
  for (const name of ['admin', 'auditor'] as const) await user(stage, name, name)
  const entries = await Promise.all(ROLES.map(async (role) => [role, await enter(stage, role)]))
  const browsers = Object.fromEntries(entries) as Cast['browsers']
  const keys = {
    owner: await makeKey(browsers.owner, 'owned'),
    member: await makeKey(browsers.member, 'mine'),
  }
  const row = aRow(team.id, { keyId: keys.owner })
  await store.ledger.settle(row)
  const guest = await user(stage, 'visitor')
  return { ...stage, team, browsers, keys, requestId: row.requestId, guestId: guest.id }
}

/** Paths of objects that the scene does not have: 404 for those who may use them. */
const ABSENT = [
  ...['/configuration/{id}/rollback', '/device/{id}'],
  ...['/batches/{id}', '/batches/{id}/cancel'],
]

/** A request that fails for another reason than access, or changes nothing of the scene. */
function requestFor({ path, method }: Row, { requestId, keys, team, guestId }: Cast, key?: string) {
  const day = { fromMs: Date.now() - 86_400_000, toMs: Date.now() }
  const queries: Readonly<Record<string, string>> = {
    '/usage': `by=day&fromMs=${day.fromMs}&toMs=${day.toMs}`,
    '/usage/groups': `group=model&fromMs=${day.fromMs}&toMs=${day.toMs}`,
    '/usage.csv': `fromMs=${day.fromMs}&toMs=${day.toMs}`,
    '/models/explain': 'model=gpt-5.5',
    '/search': 'q=team',
    '/keys/{id}/clients': 'url=https%3A%2F%2Fllm.example.com',
    '/failures': 'fromMs=0',
  }
  const ids: Readonly<Record<string, string>> = {
    '/requests/{id}': requestId,
    '/statements/{id}': '2026-11',
    '/configuration/{id}': '1',
    '/configuration/{id}/rollback': '99',
    '/accounts/{id}': team.id,
    '/accounts/{id}/reset': team.id,
    '/accounts/{id}/limits': team.id,
    '/accounts/{id}/limits/raise': team.id,
    '/users/{id}': guestId,
    '/users/{id}/invite': guestId,
    '/users/{id}/unbind': guestId,
  }
  const bodies: Readonly<Record<string, JsonObject>> = {
    'PUT /members/{email}': { role: 'viewer' },
    'POST /configuration/{id}/rollback': { reason: 'errors doubled' },
    'POST /accounts': { email: 'bad address', plan: 'starter' },
    'POST /users': { email: 'bad address', role: 'auditor' },
    'PATCH /keys/{id}': { expiresAtMs: null },
    'POST /keys': { name: '' },
    'POST /keys/{id}/raise': {
      ...{ budget: 'usd_per_day', usd: 2, untilMs: Date.now() + 86_400_000, reason: 'launch' },
    },
    'POST /keys/lookup': { digest: '0'.repeat(64) },
    'PUT /password': { current: 'wrong', next: 'another horse entirely' },
  }
  const target = path
    .replace('{id}', path.startsWith('/keys') ? (key ?? keys.owner) : (ids[path] ?? 'none'))
    .replace('{email}', encodeURIComponent('guest@example.com'))
    .replace('{format}', 'chat')
  const body = ['GET', 'DELETE'].includes(method) ? undefined : (bodies[`${method} ${path}`] ?? {})
  return { target, query: queries[path] ?? '', body }
}

/** Whether the endpoint is about an account. */
function isOfAccount(path: string): boolean {
  const heads = [
    '/usage',
    '/requests',
    '/live',
    '/limits',
    '/budgets',
    '/failures',
    '/account',
    '/keys',
    '/playground',
    '/members',
    '/audit',
    '/search',
  ]
  return (
    path !== '/keys/lookup' &&
    heads.some((head) => path === head || path.startsWith(`${head}/`) || path === `${head}.csv`)
  )
}

function ask(
  browser: Browser,
  row: Row,
  cast: Cast,
  { key, account = 'team' }: { key?: string; account?: string } = {},
) {
  const { target, query, body } = requestFor(row, cast, key)
  const parts = [isOfAccount(row.path) ? `account=${account}` : '', query].filter((part) => part !== '')
  return browser.ask(row.method, `${target}${parts.length === 0 ? '' : `?${parts.join('&')}`}`, {
    body,
  })
}

onBothStores(t, 'roles × endpoints: allowed and refused as in the page', async (t, settings) => {
  const scene = await cast(t, settings)
  const late = TABLE.filter(({ path }) => path.startsWith('/session'))
  const ofKeys = TABLE.filter(({ method, path }) => path.startsWith('/keys/') && method === 'DELETE')
  const rows = [...TABLE.filter((row) => !late.includes(row) && !ofKeys.includes(row)), ...ofKeys, ...late]
  let pairs = 0
  for (const row of rows) {
    for (const role of ROLES.toReversed()) {
      const name = `${role}: ${row.method} ${row.path}`
      const isEnd = late.includes(row)
      const browser = isEnd ? await enter(scene, role) : scene.browsers[role]
      if (row.path.startsWith('/members/')) await join(scene, scene.team, 'guest', 'viewer')
      const { status, error } = await ask(browser, row, scene)
      pairs += 1
      if (row.may[role] === 'no') {
        t.match([status, error['kind']], [403, 'forbidden'], name)
        t.notMatch(error['message'], /plan|password|current/, name)
      } else if (row.may[role] === 'own' && row.path.includes('{id}')) {
        t.match([status, error['kind']], [404, 'not_found'], name)
        const own = await ask(scene.browsers[role], row, scene, { key: scene.keys.member })
        t.ok(own.status < 300, `${name}, own key: ${own.text.slice(0, 100)}`)
      } else {
        const isRefused = status === 401 || status === 404
        const message = JSON.stringify(error['message'])
        const isForbidden = status === 403 && !/current password/.test(message)
        t.notOk(isRefused && !ABSENT.includes(row.path), `${name}: ${status}`)
        t.notOk(isForbidden, `${name}: ${message}`)
      }
    }
  }
  t.equal(pairs, TABLE.length * ROLES.length)
})

onBothStores(
  t,
  'another account is 404 for its members, and `all` for those without a role',
  async (t, settings) => {
    const scene = await cast(t, settings)
    const { browsers } = scene
    for (const row of TABLE.filter(({ path }) => isOfAccount(path))) {
      for (const role of ['owner', 'above', 'member', 'viewer'] as const) {
        for (const account of ['apart', 'all', 'none']) {
          const { status } = await ask(browsers[role], row, scene, { account })
          t.equal(status, 404, `${role}: ${row.method} ${row.path} of ${account}`)
        }
      }
    }
    const all = await browsers.auditor.get('/live?account=all')
    t.equal(all.status, 200, 'an auditor reads all accounts')
    t.equal((await browsers.auditor.get('/live?account=apart')).status, 200)
    const write = await browsers.admin.ask('POST', '/keys?account=all', { body: { name: 'k' } })
    t.equal(write.status, 404, 'a change is about one account')

    const own = keysReply.parse((await browsers.member.get('/keys?account=team')).json)
    t.same(
      own.keys.map(({ name }) => name),
      ['mine'],
      'a member sees own keys',
    )
    const session = sessionReply.parse((await browsers.member.get('/session')).json)
    t.same(session.user, { email: 'member@example.com', role: null })
    t.match(session.accounts, [{ name: 'team', role: 'member' }])
    const admin = sessionReply.parse((await browsers.admin.get('/session')).json)
    t.match(admin.user, { role: 'admin' })
  },
)

onBothStores(
  t,
  'members: invitation by a one-time link, roles, and the end of the last one',
  async (t, settings) => {
    const scene = await cast(t, settings)
    const { browsers, store, team } = scene
    const path = `/members/${encodeURIComponent('New.Person@example.com')}?account=team`
    const made = await browsers.owner.ask('PUT', path, { body: { role: 'member' } })
    t.equal(made.status, 201, made.text)
    const { member, link } = memberReply.parse(made.json)
    t.match(member, { email: 'new.person@example.com', role: 'member', state: 'pending' })
    const again = await browsers.owner.ask('PUT', path, { body: { role: 'viewer' } })
    t.match([again.status, memberReply.parse(again.json).link], [200, null], 'a known user gets no link')

    const secret = link?.url?.split('#')[1] ?? ''
    const person = scene.browser()
    const body = { link: secret, password: 'a horse of another kind' }
    const used = await person.ask('POST', '/reset', { body })
    t.strictSame([used.status, used.json], [200, { email: 'new.person@example.com' }])
    t.equal((await person.signIn('new.person@example.com', body.password)).status, 200)
    t.equal((await scene.browser().ask('POST', '/reset', { body })).status, 403, 'it works once')
    t.equal((await person.get('/live')).status, 200)
    const listed = membersReply.parse((await browsers.owner.get('/members?account=team')).json)
    t.match(
      listed.members.find(({ email }) => email.startsWith('new')),
      { role: 'viewer', state: 'active' },
    )
    const invite = path.replace('?', '/invite?')
    const taken = await browsers.owner.ask('POST', invite, { body: {} })
    t.match([taken.status, taken.error['kind']], [403, 'forbidden'], 'no link for an active user')
    t.equal((await browsers.admin.ask('POST', invite, { body: {} })).status, 201)
    for (const email of ['admin@example.com', 'no address']) {
      const other = `/members/${encodeURIComponent(email)}/invite?account=team`
      t.equal((await browsers.owner.ask('POST', other, { body: {} })).status, 404)
    }

    t.equal((await browsers.owner.ask('DELETE', path)).status, 200)
    t.equal((await person.get('/live')).status, 401, 'the last role is gone: signed out')
    t.equal((await browsers.owner.ask('DELETE', path)).status, 404)
    const viewer = { account: team, email: 'viewer@example.com', nowMs: 1, audit: () => [] }
    await removeMember(store, viewer)
    t.equal((await browsers.viewer.get('/session')).json['user'], null)
    await store.users.change((await store.users.byEmail('auditor@example.com'))?.id ?? '', {
      role: null,
    })
    t.equal((await browsers.auditor.get('/operations')).status, 401)
    const actions = await store.auditTrail.page({ accountId: team.id, after: null, limit: 20 })
    t.same(
      actions.map(({ action }) => action).filter((action) => action.startsWith('member')),
      ['member.remove', 'member.invite', 'member.change', 'member.create'],
    )
  },
)

void t.test('limits of a key stay within those of its account and of those above', async (t) => {
  const { browsers, store, team } = await cast(t)
  const { account: top } = await createAccount(store, { name: 'top', plan: 'max', password: null })
  const edit = async ({ id }: Account, more: Partial<Account>) => {
    await store.transact({
      accountId: id,
      nowMs: 0,
      decide: ({ account }) =>
        account === null ? { refuse: 0 } : { write: { account: { ...account, ...more }, audit: [] } },
    })
  }
  await edit(top, { limits: { requestsPerMinute: 100 } })
  await edit(team, { parentId: top.id, limits: { nanoUsdPerDay: 5e9 } })
  for (const limits of [{ requestsPerMinute: 101 }, { nanoUsdPerDay: 6e9 }]) {
    const body = { name: 'k', limits }
    const { status, error } = await browsers.owner.ask('POST', '/keys?account=team', { body })
    t.match([status, error['kind']], [403, 'forbidden'])
    t.match(error['message'], /The account allows \d+ at most/)
  }
  const body = { name: 'k', limits: { requestsPerMinute: 100 } }
  t.equal((await browsers.owner.ask('POST', '/keys?account=team', { body })).status, 201)
})
