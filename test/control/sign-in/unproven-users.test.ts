/**
 * Goal: who gets the link of another person, or signs up with the address of another person, never gets more
 * than the maker of the link could give; and who may not list users cannot find out whether an address has a
 * user.
 * Method: owners, visitors, administrators and tokens of a running gateway, on both stores; roles are given
 * by the page, the admin API, `apply` and commands.
 */
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { PasswordQueue } from '../../../src/accounts/password-queue.js'
import type { Account } from '../../../src/accounts/account.js'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, removeMember, setMember } from '../../../src/accounts/members.js'
import { command as members } from '../../../src/cli/members.js'
import { command as users } from '../../../src/cli/users.js'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { sessionReply } from '../../../src/control/dashboard/schema/schema.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { startMailServer, type MailServer } from '../../helpers/mail-server.js'
import { GATEWAY, runOn } from '../../cli/session.js'
import { onBothStores } from '../admin/admin-stage.js'
import {
  PASSWORD,
  startStage,
  type Answer,
  type Browser,
  type Stage,
} from '../../dashboard/fixtures/stage.js'
import { beforeNext } from '../../dashboard/fixtures/before-next.js'
import { knownHash } from '../../helpers/password.js'

const EVES = 'the horse that eve has chosen'
const BOBS = 'the horse that bob has chosen'
const BOB = 'bob@example.com'

interface Cast extends Stage {
  readonly team: Account
  readonly finance: Account
  /** The owner of `team`. */
  readonly eve: Browser
  /** The owner of `finance`. */
  readonly fay: Browser
  readonly root: Browser
}

async function cast(t: Test, settings: GatewaySettings): Promise<Cast> {
  const more = `${settings.more ?? ''}\nadmin_api: { enabled: true }`
  const stage = await startStage(t, { ...settings, more })
  const { store } = stage
  const make = async (name: string, owner: string) => {
    const { account } = await createAccount(store, { name, plan: 'max', password: null })
    const { user } = await createUser(store, {
      email: `${owner}@example.com`,
      password: PASSWORD,
      hash: knownHash,
    })
    await setMember(store, { account, user, role: 'owner', nowMs: Date.now(), audit: () => [] })
    return account
  }
  const [team, finance] = [await make('team', 'eve'), await make('finance', 'fay')]
  await createUser(store, { email: 'root@example.com', role: 'admin', password: PASSWORD, hash: knownHash })
  const enter = async (name: string): Promise<Browser> => {
    const browser = stage.browser()
    await browser.signIn(`${name}@example.com`)
    return browser
  }
  return {
    ...stage,
    team,
    finance,
    eve: await enter('eve'),
    fay: await enter('fay'),
    root: await enter('root'),
  }
}

function member(browser: Browser, account: string, { email = BOB, role = 'member' } = {}): Promise<Answer> {
  const path = `/members/${encodeURIComponent(email)}?account=${account}`
  return browser.ask('PUT', path, { body: { role } })
}

function invite(browser: Browser, account: string): Promise<Answer> {
  const path = `/members/${encodeURIComponent(BOB)}/invite?account=${account}`
  return browser.ask('POST', path, { body: {} })
}

/** The secret of the link in a reply of the page. */
function secretIn({ json, text }: Answer): string {
  const { url } = objectOf(json['link'])
  if (typeof url !== 'string') throw new Error(`no link: ${text}`)
  return url.split('#')[1] ?? ''
}

/** Uses the link and signs in with the password, as the page does. */
async function use(browser: Browser, link: string, password: string): Promise<Answer> {
  const answer = await browser.ask('POST', '/reset', { body: { link, password } })
  const { email } = answer.json
  if (typeof email === 'string') await browser.signIn(email, password)
  return answer
}

/** The accounts that the person in the browser may use, and the role in the gateway; null: signed out. */
async function rightsIn(browser: Browser): Promise<(string | null)[] | null> {
  const { user, accounts } = sessionReply.parse((await browser.get('/session')).json)
  return user === null ? null : [...accounts.map(({ name }) => name), user.role]
}

/** Runs a command beside the gateway; returns its output. */
async function cli({ store, gateway }: Stage, line: string): Promise<string> {
  const [name, ...args] = line.split(' ')
  const out: string[] = []
  const terminal = {
    out: (text: string) => void out.push(text),
    err: (text: string) => void out.push(text),
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(BOBS),
  }
  const session = {
    ...{
      store,
      plans: gateway.plans,
      upstreams: [],
      models: [],
      identities: [],
      acceptsImported: false,
      terminal,
    },
    gateway: GATEWAY,
    companies: { providerOf: () => '', publisherOf: () => null },
    ...{ output: () => [], errors: () => [], input: '' },
  }
  await runOn(session, name === 'users' ? users : members, args)
  return out.join('\n')
}

async function tokenOf({ store }: Stage, account: Account | null): Promise<{ id: string; secret: string }> {
  const wish = { name: 'robot', scopes: ['accounts:write', 'keys:write'], createdBy: 'test', audit: () => [] }
  const { token, secret } = await createAdminToken(store, { ...wish, accountId: account?.id ?? null })
  return { id: token.id, secret }
}

async function admin({ origin }: Stage, token: string, method: string, path: string, body: JsonObject) {
  const response = await fetch(`${origin}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, text, json: objectOf(JSON.parse(text)) }
}

/** Every way to give Bob what the owner of `team` could not give. */
const GAINS: Readonly<Record<string, (scene: Cast, token: string) => Promise<unknown>>> = {
  'an owner of another account, page': ({ fay }) => member(fay, 'finance'),
  'an administrator, page': ({ root }) => member(root, 'finance'),
  'admin API': (scene, token) =>
    admin(scene, token, 'PUT', `/accounts/finance/members/${BOB}`, { role: 'viewer' }),
  apply: (scene, token) =>
    admin(scene, token, 'POST', '/apply', {
      documents: [{ kind: 'Member', metadata: { name: BOB, account: 'finance' }, spec: { role: 'owner' } }],
      adopt: true,
    }),
  'command, member': (scene) => cli(scene, `members set --account finance --email ${BOB} --role owner`),
  'command, administrator': (scene) => cli(scene, `users set-role --email ${BOB} --role admin`),
}

onBothStores(
  t,
  'a link, a device and a session end with a role that the maker could not give',
  async (t, on) => {
    const scene = await cast(t, on)
    const { store, eve, team } = scene
    const { secret: token } = await tokenOf(scene, null)
    for (const [name, gain] of Object.entries(GAINS)) {
      await t.test(name, async (t) => {
        const fresh = async () => {
          for (const account of [team, scene.finance]) {
            await removeMember(store, { account, email: BOB, nowMs: Date.now(), audit: () => [] })
          }
          const user = await store.users.byEmail(BOB)
          if (user !== null)
            await store.users.change(user.id, { role: null, passwordHash: '', unproven: true })
        }
        await fresh()
        const link = secretIn(await member(eve, 'team'))
        await gain(scene, token)
        t.equal((await use(scene.browser(), link, EVES)).status, 403, 'the link')

        await fresh()
        const asBob = scene.browser()
        t.equal((await use(asBob, secretIn(await member(eve, 'team')), EVES)).status, 200)
        t.strictSame(await rightsIn(asBob), ['team', null])
        const { id = '' } = (await store.users.byEmail(BOB)) ?? {}
        await gain(scene, token)
        t.equal(await rightsIn(asBob), null, 'the session')
        t.equal(await store.signInTokens.end('device', id, null), 0, 'the device')
        t.equal((await asBob.signIn(BOB, EVES)).status, 200)
        t.strictSame(await rightsIn(asBob), ['team', null], 'a new session has only what the maker gave')
        t.equal((await asBob.get('/keys?account=finance')).status, 404)
        t.equal((await asBob.get('/accounts')).status, 403)
      })
    }
  },
)

onBothStores(t, 'the rights of the maker are checked again when a link is used', async (t, settings) => {
  const scene = await cast(t, settings)
  const { store, eve, root, team } = scene
  const eveId = (await store.users.byEmail('eve@example.com'))?.id ?? ''
  const rootId = (await store.users.byEmail('root@example.com'))?.id ?? ''
  const [token, expiring, whole] = [
    await tokenOf(scene, team),
    await tokenOf(scene, team),
    await tokenOf(scene, null),
  ]
  const byToken = async ({ secret } = token) => {
    const { json, text } = await admin(scene, secret, 'POST', `/accounts/team/members/${BOB}/invite`, {})
    const { url } = json
    if (typeof url !== 'string') throw new Error(text)
    return url.split('#')[1] ?? ''
  }
  await member(eve, 'team')
  const refusals: [string, () => Promise<string>, () => Promise<unknown>][] = [
    [
      'a revoked token',
      () => byToken(),
      () => store.adminTokens.change(token.id, (old) => ({ ...old, revokedAtMs: 1 })),
    ],
    [
      'an expired token',
      () => byToken(expiring),
      () => store.adminTokens.change(expiring.id, (old) => ({ ...old, expiresAtMs: 1 })),
    ],
    [
      'a revoked token of the whole gateway',
      () => byToken(whole),
      () => store.adminTokens.change(whole.id, (old) => ({ ...old, revokedAtMs: 1 })),
    ],
    [
      'a disabled administrator',
      async () => secretIn(await invite(root, 'team')),
      async () => {
        await store.users.change(rootId, { disabled: true })
        t.equal((await root.get('/session')).json['user'], null)
      },
    ],
    [
      'an administrator no longer',
      async () => {
        await store.users.change(rootId, { disabled: false })
        await root.signIn('root@example.com')
        return secretIn(await invite(root, 'team'))
      },
      () => store.users.change(rootId, { role: 'auditor' }),
    ],
    [
      'disabled owner',
      async () => secretIn(await invite(eve, 'team')),
      () => store.users.change(eveId, { disabled: true }),
    ],
  ]
  for (const [name, make, end] of refusals) {
    const link = await make()
    await end()
    t.equal((await use(scene.browser(), link, EVES)).status, 403, name)
  }
  await store.users.change(eveId, { disabled: false })
  const link = secretIn(await invite(eve, 'team'))
  await member(eve, 'team', { email: 'eve@example.com', role: 'member' })
  t.equal((await use(scene.browser(), link, EVES)).status, 403, 'an owner no longer')

  await member(scene.fay, 'finance')
  const left = secretIn(await invite(scene.fay, 'finance'))
  await removeMember(store, {
    ...{ account: scene.finance, email: 'fay@example.com', nowMs: Date.now(), audit: () => [] },
  })
  t.equal((await use(scene.browser(), left, EVES)).status, 403, 'an owner who left')
})

onBothStores(t, 'roles that others give an unproven user are pending', async (t, settings) => {
  const scene = await cast(t, settings)
  const { store, eve, fay, root } = scene
  const asBob = scene.browser()
  t.equal((await use(asBob, secretIn(await member(eve, 'team')), EVES)).status, 200)
  const given = await member(fay, 'finance', { role: 'owner' })
  t.match([given.status, given.json], [201, { member: { role: 'owner', state: 'pending' } }])
  await asBob.signIn(BOB, EVES)
  t.strictSame(await rightsIn(asBob), ['team', null])
  t.equal((await asBob.ask('POST', '/keys?account=finance', { body: { name: 'k' } })).status, 404)
  const listed = async (browser: Browser, account: string) => {
    const { json } = await browser.get(`/members?account=${account}`)
    const list = Array.isArray(json['members']) ? json['members'].map(objectOf) : []
    return list.find(({ email }) => email === BOB)?.['state']
  }
  for (const browser of [fay, root]) t.equal(await listed(browser, 'finance'), 'pending')
  t.match(await cli(scene, 'members list --account finance'), /bob@example\.com +owner .*pending/)
  t.match(await cli(scene, 'users list'), /bob@example\.com .*unproven/)
  const { secret: token } = await tokenOf(scene, null)
  t.match(await admin(scene, token, 'PUT', `/accounts/finance/members/${BOB}`, { role: 'owner' }), {
    json: { state: 'pending' },
  })
  t.match(await cli(scene, `users set-role --email ${BOB} --role admin`), /role admin, pending/)

  await t.test('a link of the new account', async (t) => {
    const other = scene.browser()
    t.equal((await use(other, secretIn(await invite(fay, 'finance')), BOBS)).status, 200)
    t.strictSame(await rightsIn(other), ['finance', null], 'and nothing else')
    t.equal((await asBob.signIn(BOB, EVES)).status, 401, 'the other password ended')
    t.equal(await listed(fay, 'finance'), 'active')
    t.equal(await listed(eve, 'team'), 'pending', 'the former inviter makes a new link')
    t.equal((await invite(fay, 'finance')).status, 403, 'no more links')
  })
  await t.test('the password of before keeps the other accounts', async (t) => {
    const other = scene.browser()
    t.equal((await use(other, secretIn(await invite(eve, 'team')), BOBS)).status, 200)
    t.strictSame(await rightsIn(other), ['finance', 'team', null])
  })
  await t.test('the session, too', async (t) => {
    const account = await store.accountByName('finance')
    if (account === null) throw new Error('the account is gone')
    await removeMember(store, { account, email: BOB, nowMs: Date.now(), audit: () => [] })
    const link = secretIn(await member(fay, 'finance'))
    const other = scene.browser()
    await other.signIn(BOB, BOBS)
    t.equal((await use(other, link, EVES)).status, 200)
    t.strictSame(await rightsIn(other), ['finance', 'team', null])
  })
  await t.test('an administrator', async (t) => {
    t.equal((await use(asBob, secretIn(await invite(root, 'team')), BOBS)).status, 200)
    t.strictSame(await rightsIn(asBob), ['finance', 'team', 'admin'])
    t.match(
      await cli(scene, 'users list --json'),
      /"email":"bob@example\.com","role":"admin","state":"active"/,
    )
  })
})

onBothStores(t, 'an administrator proves the address with a command', async (t, settings) => {
  const scene = await cast(t, settings)
  const asBob = scene.browser()
  await use(asBob, secretIn(await member(scene.eve, 'team')), EVES)
  await cli(scene, `users set-role --email ${BOB} --role auditor`)
  t.notMatch(await cli(scene, `users set-password --email ${BOB} --password-stdin`), BOBS)
  t.equal(await rightsIn(asBob), null)
  t.equal((await asBob.signIn(BOB, EVES)).status, 401)
  t.equal((await asBob.signIn(BOB, BOBS)).status, 200)
  t.strictSame(await rightsIn(asBob), ['team', 'auditor'])
  const printed = /password {2}(\S+)/.exec(await cli(scene, `users set-password --email ${BOB}`))?.[1] ?? ''
  t.equal((await asBob.signIn(BOB, printed)).status, 200)
})

onBothStores(t, 'a visitor does not get what is given to the address', async (t, settings) => {
  const scene = await cast(t, { ...settings, more: 'dashboard: { self_sign_up: true }' })
  const signUp = (email: string) =>
    scene.browser().ask('POST', '/sign-up', { body: { email, password: EVES } })
  for (const email of [BOB, 'eva@example.com']) t.equal((await signUp(email)).status, 200)
  const [asBob, eva] = [scene.browser(), scene.browser()]
  await asBob.signIn(BOB, EVES)
  await eva.signIn('eva@example.com', EVES)
  t.strictSame(await rightsIn(asBob), ['self--bob', null], 'her own account works')
  t.match((await member(scene.fay, 'finance')).json, { member: { state: 'pending' } })
  await asBob.signIn(BOB, EVES)
  t.strictSame(await rightsIn(asBob), ['self--bob', null])

  const link = secretIn(await member(eva, 'self--eva'))
  t.strictSame(await rightsIn(asBob), ['self--bob', null], 'another visitor ends no session')
  const taker = scene.browser()
  t.equal((await use(taker, link, BOBS)).status, 200)
  t.equal(await rightsIn(taker), null, 'and takes no sign-in over')
  const own = secretIn(await invite(eva, 'self--eva'))
  t.equal((await use(asBob, own, EVES)).status, 200, 'who has the sign-in may enter')
  t.strictSame(await rightsIn(asBob), ['self--bob', 'self--eva', null])

  const bob = scene.browser()
  t.equal((await use(bob, secretIn(await invite(scene.fay, 'finance')), BOBS)).status, 200)
  t.strictSame(await rightsIn(bob), ['finance', null], 'the real Bob has nothing of the visitor')
  t.equal(await rightsIn(asBob), null)
})

onBothStores(t, 'an inviter cannot find out whether an address has a user', async (t, settings) => {
  const scene = await cast(t, settings)
  const { eve, team, store } = scene
  await createUser(store, { email: 'proven@example.com', password: PASSWORD, hash: knownHash })
  await scene.browser().signIn('proven@example.com')
  await use(scene.browser(), secretIn(await member(scene.fay, 'finance')), BOBS)
  await store.users.change((await store.users.byEmail('root@example.com'))?.id ?? '', {
    ...{ issuer: 'https://issuer.example', subject: 'root' },
  })
  const { secret: token } = await tokenOf(scene, team)
  const emails = ['unknown@example.com', 'proven@example.com', BOB, 'root@example.com']
  const replies = new Map<string, string>()
  const writes = countWrites(t, store)
  for (const email of emails) {
    const path = `/members/${encodeURIComponent(email)}`
    const texts: string[] = []
    const add = ({ status, text }: { status: number; text: string }) => texts.push(`${status} ${text}`)
    writes.count = 0
    add(await member(eve, 'team', { email }))
    texts.push(`${writes.count} writes of users`)
    add(await member(eve, 'team', { email, role: 'viewer' }))
    add(await eve.ask('POST', `${path}/invite?account=team`, { body: {} }))
    add(await eve.ask('DELETE', `${path}?account=team`))
    add(await admin(scene, token, 'PUT', `/accounts/team${path}`, { role: 'owner' }))
    add(await admin(scene, token, 'PATCH', `/accounts/team${path}`, { role: 'member' }))
    add(await admin(scene, token, 'POST', `/accounts/team${path}/invite`, {}))
    const { json } = await eve.get('/members?account=team')
    const list = Array.isArray(json['members']) ? json['members'].map(objectOf) : []
    texts.push(JSON.stringify(list.find((each) => each['email'] === email)))
    replies.set(email, texts.map((text) => withoutOwn(text, email)).join('\n'))
  }
  const [first] = replies.values()
  t.match(first, /"state":"pending"/)
  t.match(first, /reset#SECRET/)
  for (const [email, text] of replies) t.equal(text, first, email)
})

/** Counts the writes of users by any object of the class of this store's. */
function countWrites(t: Test, { users: sample }: Pick<Stage['store'], 'users'>): { count: number } {
  const writes = { count: 0 }
  const target: unknown = Object.getPrototypeOf(sample)
  if (typeof target !== 'object' || target === null) throw new Error('the sample has no class')
  for (const name of ['create', 'change']) {
    const own: unknown = Reflect.get(target, name)
    if (typeof own !== 'function') throw new Error(`no method ${name}`)
    t.teardown(() => Reflect.set(target, name, own))
    Reflect.set(target, name, function (this: unknown, ...args: unknown[]): unknown {
      writes.count += 1
      const result: unknown = Reflect.apply(own, this, args)
      return result
    })
  }
  return writes
}

/** Without what differs between any two replies. */
function withoutOwn(text: string, email: string): string {
  return text
    .replaceAll(email, 'EMAIL')
    .replaceAll(encodeURIComponent(email), 'EMAIL')
    .replaceAll(/reset#[\w-]+/g, 'reset#SECRET')
    .replaceAll(/\d{13}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/"etag":"[^}]*?"(?=[,}])/g, 'ETAG')
}

onBothStores(t, 'the use of a link does not show whether an address had a user', async (t, settings) => {
  const scene = await cast(t, { ...settings, more: 'dashboard: { self_sign_up: true }' })
  const { eve, root, store } = scene
  const { secret: token } = await tokenOf(scene, scene.team)
  const make = async (email: string, change: object) => {
    const { user } = await createUser(store, { email, password: PASSWORD, hash: knownHash })
    await store.users.change(user.id, change)
  }
  await make('proven@example.com', {})
  await make('bound@example.com', { passwordHash: '', issuer: 'https://i.example', subject: 's' })
  await make('disabled@example.com', { disabled: true })
  await make('unproven@example.com', { unproven: true })
  await make('auditor@example.com', { role: 'auditor' })
  const signUp = { email: 'visitor@example.com', password: PASSWORD }
  await scene.browser().ask('POST', '/sign-up', { body: signUp })
  const taken = ['proven', 'bound', 'disabled', 'unproven', 'auditor', 'visitor']
  const hashes = { count: 0 }
  for (const name of ['hash', 'matches']) {
    const own: unknown = Reflect.get(PasswordQueue.prototype, name)
    if (typeof own !== 'function') throw new Error(`no method ${name}`)
    t.teardown(() => Reflect.set(PasswordQueue.prototype, name, own))
    Reflect.set(PasswordQueue.prototype, name, function (this: PasswordQueue, ...args: unknown[]): unknown {
      hashes.count += 1
      const result: unknown = Reflect.apply(own, this, args)
      return result
    })
  }
  const answers = new Map<string, string>()
  for (const name of ['free', ...taken]) {
    const email = `${name}@example.com`
    const texts: string[] = []
    for (const by of ['owner', 'token']) {
      const path = `/members/${encodeURIComponent(email)}`
      const made =
        by === 'owner'
          ? await member(eve, 'team', { email })
          : await admin(scene, token, 'POST', `/accounts/team${path}/invite`, {})
      const link = /reset#([\w-]+)/.exec(made.text)?.[1] ?? ''
      const body = { link, password: EVES }
      const browser = scene.browser()
      // Within the attempts of one address.
      for (let uses = by === 'owner' ? 2 : 1; uses > 0; uses -= 1) {
        hashes.count = 0
        const answer = await browser.ask('POST', '/reset', { body })
        const cookies = answer.headers.getSetCookie().length
        texts.push(`${answer.status} ${hashes.count} ${cookies} ${withoutOwn(answer.text, email)}`)
      }
    }
    answers.set(name, texts.join('\n'))
  }
  const free = answers.get('free') ?? ''
  t.match(free, /^200 2 0 .*EMAIL.*\n403 .*\n200 2 0 /)
  for (const [name, text] of answers) t.equal(text, free, name)
  for (const name of ['proven', 'auditor']) {
    t.equal((await scene.browser().signIn(`${name}@example.com`)).status, 200, `${name} keeps the password`)
    t.equal((await scene.browser().signIn(`${name}@example.com`, EVES)).status, 401)
  }
  const asFree = scene.browser()
  t.equal((await asFree.signIn('free@example.com', EVES)).status, 200)
  t.strictSame(await rightsIn(asFree), ['team', null])
  const reset = secretIn(
    await root.ask('POST', '/members/proven%40example.com/invite?account=team', { body: {} }),
  )
  const asProven = scene.browser()
  await use(asProven, reset, EVES)
  t.strictSame(await rightsIn(asProven), ['team', null], 'the link of an administrator signs in')
})

/** The text of the last mail, when this many have arrived. */
async function mailed(t: Test, { received }: MailServer, count: number): Promise<string> {
  for (let tries = 0; tries < 500 && received.length < count; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(received.length, count)
  return (received.at(-1) ?? '').replaceAll('=\r\n', '').replaceAll('=3D', '=')
}

onBothStores(t, 'with smtp a sign-up gets a link that proves the address', async (t, settings) => {
  const server = await startMailServer(t)
  const smtp = `smtp: { url: 'smtp://127.0.0.1:${server.port}', from: 'Sluice <sluice@example.com>' }`
  const scene = await cast(t, { ...settings, more: `${smtp}\ndashboard: { self_sign_up: true }` })
  const { store, fay } = scene
  const signUp = async (email: string) => {
    const { status, text } = await scene
      .browser()
      .ask('POST', '/sign-up', { body: { email, password: EVES } })
    return [status, text]
  }
  t.strictSame(await signUp(BOB), [200, '{}'])
  const lost = await mailed(t, server, 1)
  t.match(lost, /To: bob@example\.com/)
  await member(fay, 'finance')
  t.match(await mailed(t, server, 2), /To: bob@example\.com/)
  const visitor = scene.browser()
  t.equal((await visitor.signIn(BOB, EVES)).status, 200)
  t.strictSame(await rightsIn(visitor), ['self--bob', null], 'works before the proof')
  t.strictSame(await signUp(BOB), [200, '{}'], 'again: another mail')
  const link = /dashboard\/reset#([\w-]+)/.exec(await mailed(t, server, 3))?.[1] ?? ''
  t.strictSame(await signUp('fay@example.com'), [200, '{}'])
  const former = /reset#([\w-]+)/.exec(lost)?.[1] ?? ''
  t.equal((await use(scene.browser(), former, BOBS)).status, 403, 'the last mail counts')
  const bob = scene.browser()
  t.equal((await use(bob, link, BOBS)).status, 200)
  t.strictSame(await rightsIn(bob), ['finance', 'self--bob', null], 'what others gave takes effect')
  t.match(await store.users.byEmail(BOB), { email: BOB })
  t.match(await cli(scene, 'users list --json'), /"email":"bob@example\.com","role":null,"state":"active"/)
  t.equal(await rightsIn(visitor), null, 'who does not read the mails is signed out')
  t.equal((await visitor.signIn(BOB, EVES)).status, 401)
  t.strictSame(await signUp(BOB), [200, '{}'])
  t.equal(server.received.length, 3, 'no mail to a proven address')
  const asFay = await scene.browser().signIn('fay@example.com')
  t.equal(asFay.status, 200, 'and nothing else changes')
})

void t.test('a mailed link names no host that a request chose', async (t) => {
  const server = await startMailServer(t)
  const smtp = `smtp: { url: 'smtp://127.0.0.1:${server.port}', from: sluice@example.com }`
  const scene = await cast(t, { more: `${smtp}\ndashboard: { self_sign_up: true }` })
  const { origin } = scene
  const body = JSON.stringify({ email: BOB, password: EVES })
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = {
      ...{ host: 'evil.example', origin: 'https://evil.example', 'content-type': 'application/json' },
      ...{ 'content-length': Buffer.byteLength(body), 'sec-fetch-site': 'same-origin' },
    }
    const url = `${origin}/dashboard/api/sign-up`
    request(url, { method: 'POST', headers }, (res) => resolve(res.resume().statusCode))
      .on('error', reject)
      .end(body)
  })
  t.equal(status, 200)
  const mail = await mailed(t, server, 1)
  t.notMatch(mail, 'evil.example')
  t.match(mail, /^\/dashboard\/reset#/m)
})

onBothStores(t, 'with smtp the address gets the link, which proves it', async (t, settings) => {
  const server = await startMailServer(t)
  const more = `smtp: { url: 'smtp://127.0.0.1:${server.port}', from: 'Sluice <sluice@example.com>' }`
  const scene = await cast(t, { ...settings, more })
  const { eve, fay, root } = scene
  const mails = (count: number) => mailed(t, server, count)
  const made = await member(eve, 'team')
  t.match([made.status, made.json], [201, { member: { state: 'pending' }, link: { url: null } }])
  const mail = await mails(1)
  t.match(mail, /To: bob@example\.com/)
  const link = /reset#([\w-]+)/.exec(mail)?.[1] ?? ''
  t.notMatch(made.text, link)
  await cli(scene, `members set --account finance --email ${BOB} --role owner`)
  const bob = scene.browser()
  t.equal((await use(bob, link, BOBS)).status, 200)
  t.strictSame(await rightsIn(bob), ['finance', 'team', null], 'also what others gave')

  await createAccount(scene.store, { name: 'sales', plan: 'max', password: null })
  t.match((await member(root, 'sales')).json, { link: null, member: { state: 'active' } })
  const { secret: token } = await tokenOf(scene, scene.team)
  const body = { role: 'viewer' }
  const proven = await admin(scene, token, 'PUT', '/accounts/team/members/fay@example.com', body)
  t.match(proven.json, { state: 'pending', invitation: { url: null } })
  t.notMatch(await mails(2), /reset#/, 'a user whose address is proven gets no link')
  t.match((await invite(root, 'team')).json, { link: { url: null } })
  t.match(await mails(3), /reset#/, 'an administrator replaces a lost password')
  for (let count = 0; count < 6; count += 1) await invite(root, 'team')
  t.match(await invite(root, 'team'), { status: 429, error: { message: /Too many mails/ } })
  t.equal((await fay.get('/session')).status, 200)
})

void t.test('a sign-in that was proven before the address stays one of an unproven user', async (t) => {
  const scene = await cast(t, {})
  const { store, eve } = scene
  const asBob = scene.browser()
  const link = secretIn(await member(eve, 'team'))
  const write = beforeNext(t, store.users, 'change', {
    act: () => member(scene.fay, 'finance'),
  })
  t.equal((await use(asBob, link, EVES)).status, 200)
  t.ok(write.isDone)
  await asBob.signIn(BOB, EVES)
  t.strictSame(await rightsIn(asBob), ['team', null], 'a role that came while the link was used is pending')
})
