/**
 * Goal: what a visitor made with the address of another person ends when that person proves the address, and
 * stays if the same person proves it.
 * Method: sign-ups at a running gateway, then a real identity provider, mailed links, links of administrators
 * and the command, on both stores.
 */
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { createdKeyReply, oidcStartReply } from '../../../src/control/dashboard/schema/schema.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { startMailServer } from '../../helpers/mail-server.js'
import { startRedis } from '../../helpers/redis.js'
import { sluice } from '../../cli/session.js'
import { until } from '../../process/program.js'
import { onBothStores } from '../admin/admin-stage.js'
import { PASSWORD, type Answer, type Browser } from '../../dashboard/fixtures/stage.js'
import { scene, type Scene } from './oidc-stage.js'
import { knownHash } from '../../helpers/password.js'

const BOB = 'bob@example.com'
const BOBS = 'the horse that bob has chosen'

interface Cast extends Scene {
  /** Who signed up with the address of Bob. */
  readonly visitor: Browser
  /** An owner whom the visitor let into her account. */
  readonly friend: Browser
  /** The keys of the visitor, in her account and in one that she entered, and one of the friend. */
  readonly keys: readonly string[]
}

async function cast(t: Test, settings: GatewaySettings): Promise<Cast> {
  const stage = await scene(t, undefined, settings)
  const { store } = stage
  stage.configure({ hasProvider: false, rest: 'self_sign_up: true' })
  const { account: team } = await createAccount(store, { name: 'team', plan: 'max', password: null })
  const { user: eve } = await createUser(store, {
    email: 'eve@example.com',
    password: PASSWORD,
    hash: knownHash,
  })
  await setMember(store, { account: team, user: eve, role: 'owner', nowMs: Date.now(), audit: () => [] })
  await createUser(store, { email: 'friend@example.com', password: PASSWORD, hash: knownHash })
  const visitor = stage.browser()
  await visitor.ask('POST', '/sign-up', { body: { email: BOB, password: PASSWORD } })
  t.equal((await visitor.signIn(BOB)).status, 200)
  const asEve = stage.browser()
  await asEve.signIn('eve@example.com')
  const path = `/members/${encodeURIComponent(BOB)}?account=team`
  const { json } = await asEve.ask('PUT', path, { body: { role: 'member' } })
  const link = secretIn(json)
  t.equal((await visitor.ask('POST', '/reset', { body: { link, password: PASSWORD } })).status, 200)
  t.equal((await visitor.signIn(BOB)).status, 200)
  await visitor.ask('PUT', '/members/friend%40example.com?account=self--bob', { body: { role: 'owner' } })
  const friend = stage.browser()
  t.equal((await friend.signIn('friend@example.com')).status, 200)
  const keyOf = async (browser: Browser, account: string): Promise<string> => {
    const made = await browser.ask('POST', `/keys?account=${account}`, { body: { name: 'k' } })
    return createdKeyReply.parse(made.json).secret
  }
  const keys = [
    await keyOf(visitor, 'self--bob'),
    await keyOf(visitor, 'team'),
    await keyOf(friend, 'self--bob'),
    await keyOf(asEve, 'team'),
  ]
  return { ...stage, visitor, friend, keys }
}

/** The secret of the link in a reply of the page. */
function secretIn({ link }: JsonObject): string {
  const { url } = objectOf(link)
  return typeof url === 'string' ? (url.split('#')[1] ?? '') : ''
}

/** The statuses of requests with the keys. */
async function statuses({ gateway, keys }: Cast): Promise<number[]> {
  const found: number[] = []
  for (const secret of keys) {
    const body = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'hi' }] }
    const reply = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
    await reply.arrayBuffer()
    found.push(reply.status)
  }
  return found
}

const ALL = [200, 200, 200, 200]
/** Only the key of Eve is left. */
const ENDED = [401, 401, 401, 200]

async function isTaken(t: Test, stage: Cast, bob: Browser): Promise<void> {
  t.strictSame(await statuses(stage), ENDED, 'the keys')
  t.equal((await stage.visitor.get('/keys')).status, 401)
  t.equal((await stage.friend.get('/keys?account=self--bob')).status, 401, 'who has no role left')
  const { json } = await bob.get('/members?account=self--bob')
  t.match(arrayOf(json['members']).map(objectOf), [{ email: BOB, role: 'owner' }])
  t.equal(arrayOf(json['members']).length, 1)
  const account = await stage.store.accountByName('self--bob')
  const trail = await stage.store.auditTrail.page({ accountId: account?.id ?? '', after: null, limit: 50 })
  const actions = trail.map(({ action }) => action)
  t.equal(actions.filter((action) => action === 'key.revoke').length, 2)
  t.ok(actions.includes('member.remove'))
}

async function isKept(t: Test, stage: Cast): Promise<void> {
  t.strictSame(await statuses(stage), ALL, 'the keys')
  t.equal((await stage.friend.get('/keys?account=self--bob')).status, 200)
}

async function through(stage: Scene, browser: Browser): Promise<Answer> {
  // Sign-up and an identity provider exclude each other.
  stage.configure({})
  stage.provider.person = { email: BOB, verified: true, sub: 'bob' }
  const started = await browser.ask('POST', '/oidc/start', { body: {} })
  const query = await stage.provider.visit(oidcStartReply.parse(started.json).url)
  return browser.ask('POST', '/oidc/finish', { body: { query } })
}

onBothStores(t, 'the identity provider proves the address', async (t, settings) => {
  const stage = await cast(t, settings)
  t.strictSame(await statuses(stage), ALL)
  const bob = stage.browser()
  t.equal((await through(stage, bob)).status, 200)
  await isTaken(t, stage, bob)
  t.match(await stage.store.users.byEmail(BOB), { subject: 'bob', passwordHash: '' })
  t.equal((await stage.store.users.byEmail(BOB))?.unproven, undefined)
  const made = await bob.ask('POST', '/keys?account=self--bob', { body: { name: 'own' } })
  const { secret } = createdKeyReply.parse(made.json)
  t.equal((await through(stage, stage.browser())).status, 200)
  t.strictSame(await statuses({ ...stage, keys: [secret] }), [200], 'a later sign-in ends nothing')
})

onBothStores(t, 'the same person signs in with the identity provider', async (t, settings) => {
  const stage = await cast(t, settings)
  t.equal((await through(stage, stage.visitor)).status, 200)
  await isKept(t, stage)
})

onBothStores(t, 'a sign-in that was interrupted is completed', async (t, settings) => {
  const stage = await cast(t, settings)
  const { id = '' } = (await stage.store.users.byEmail(BOB)) ?? {}
  await stage.store.users.change(id, { issuer: stage.provider.issuer, subject: 'bob', passwordHash: '' })
  const bob = stage.browser()
  t.equal((await through(stage, bob)).status, 200)
  await isTaken(t, stage, bob)
})

for (const isSame of [false, true]) {
  const who = isSame ? 'the same person' : 'another person'
  onBothStores(t, `a mailed link, ${who}`, async (t, settings) => {
    const server = await startMailServer(t)
    const stage = await cast(t, settings)
    // Mails begin when the visitor is there.
    stage.configure({
      hasProvider: false,
      rest: `self_sign_up: true }\nsmtp: { url: 'smtp://127.0.0.1:${server.port}', from: sluice@example.com`,
    })
    await stage.browser().ask('POST', '/sign-up', { body: { email: BOB, password: BOBS } })
    await until(() => server.received.length > 0)
    const mail = (server.received.at(-1) ?? '').replaceAll('=\r\n', '').replaceAll('=3D', '=')
    const link = /reset#([\w-]+)/.exec(mail)?.[1]
    const bob = stage.browser()
    const password = isSame ? PASSWORD : BOBS
    t.equal((await bob.ask('POST', '/reset', { body: { link, password } })).status, 200)
    await (isSame ? isKept(t, stage) : isTaken(t, stage, bob))
  })
}

onBothStores(t, 'a link of an administrator, and the command', async (t, settings) => {
  const stage = await cast(t, settings)
  const { store } = stage
  await createUser(store, { email: 'root@example.com', role: 'admin', password: PASSWORD, hash: knownHash })
  const root = stage.browser()
  await root.signIn('root@example.com')
  const { id = '' } = (await store.users.byEmail(BOB)) ?? {}
  const { json } = await root.ask('POST', `/users/${id}/invite`, { body: {} })
  const link = secretIn(json)
  const bob = stage.browser()
  t.equal((await bob.ask('POST', '/reset', { body: { link, password: BOBS } })).status, 200)
  await isTaken(t, stage, bob)

  await t.test('the command', async (t) => {
    const own = settings.store === undefined ? {} : { store: (await startRedis(t)).url() }
    const other = await cast(t, own)
    const config = ['--config', other.gateway.configFile]
    const done = await sluice(['users', 'set-password', '--email', BOB, '--password-stdin', ...config], BOBS)
    t.match(done, { status: 0, err: /The address was not proven: 3 keys and 1 member of before have ended/ })
    const asBob = other.browser()
    t.equal((await asBob.signIn(BOB, BOBS)).status, 200)
    await isTaken(t, other, asBob)
  })
})
