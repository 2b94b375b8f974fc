/**
 * Goal: a user whom the identity provider signs in has no password, and roles by groups hold only in sessions
 * that the provider has opened, for at most the configured time.
 * Method: a real provider on this machine, clients that sign in with it and with passwords, both stores.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { hashPassword } from '../../../src/accounts/password.js'
import { memberReply, oidcStartReply, sessionReply } from '../../../src/control/dashboard/schema/schema.js'
import { Sessions } from '../../../src/control/sign-in/sessions.js'
import { linkFor, PASSWORD, type Answer, type Browser } from '../../dashboard/fixtures/stage.js'
import { command as users } from '../../../src/cli/users.js'
import { GATEWAY, runOn } from '../../cli/session.js'
import { assertDeclared, onBothStores } from '../admin/admin-stage.js'
import { startProvider, type Person } from './identity-provider.js'
import { beforeNext } from '../../dashboard/fixtures/before-next.js'
import { scene, type Scene } from './oidc-stage.js'

async function through(scene: Scene, browser: Browser, person: Person): Promise<Answer> {
  scene.provider.person = person
  const started = await browser.ask('POST', '/oidc/start', { body: {} })
  const query = await scene.provider.visit(oidcStartReply.parse(started.json).url)
  return browser.ask('POST', '/oidc/finish', { body: { query } })
}

const ADA: Person = { email: 'ada@example.com', verified: true }
const NEXT = 'another horse entirely'
/** Each of these groups gives a role. */
const ROLES = ", roles: { admin: [platform], accounts: { 'team-*': member } }"

/** A link for a user whom the provider signs in, as one made without the provider. */
async function boundLink(stage: Scene, userId: string): Promise<string> {
  stage.configure({ hasProvider: false })
  const link = await linkFor(stage, userId)
  stage.configure({})
  return link
}

onBothStores(t, 'a bound user has no password', async (t, settings) => {
  const more = 'admin_api: { enabled: true }'
  const stage = await scene(t, undefined, { ...settings, more })
  const { store } = stage
  const { id } = await stage.account('ada@example.com')
  await stage.account('root@example.com', 'max', 'admin')
  const browser = stage.browser()
  const before = await browser.signIn('ada@example.com')
  t.match(sessionReply.parse(before.json).account, { provider: null, hasPassword: true })
  const entered = await through(stage, browser, ADA)
  t.match(sessionReply.parse(entered.json).account, { provider: 'Acme', hasPassword: false })
  const stored = async () => (await store.users.byId(id))?.passwordHash
  t.equal(await stored(), '', 'the hash is removed')

  const set = await browser.ask('PUT', '/password', { body: { next: NEXT } })
  t.match([set.status, set.error['message']], [403, /signs in with Acme and has no password/])
  const link = await boundLink(stage, id)
  const reset = await stage.browser().ask('POST', '/reset', { body: { link, password: NEXT } })
  t.match([reset.status, reset.error['message']], [403, /signs in with Acme and has no password/])
  t.equal(await stored(), '')

  const root = stage.browser()
  await root.signIn('root@example.com')
  for (const path of [`/accounts/${id}/reset`, '/members/ada%40example.com/invite?account=ada']) {
    const made = await root.ask('POST', path, { body: {} })
    t.match([made.status, made.error['message']], [403, /has no password/], path)
  }

  const wish = {
    name: 'robot',
    scopes: ['accounts:write'],
    accountId: null,
    createdBy: 'test',
    audit: () => [],
  }
  const { secret } = await createAdminToken(store, wish)
  const invited = await fetch(`${stage.origin}/admin/v1/accounts/ada/members/ada@example.com/invite`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
  })
  t.equal(invited.status, 403)
  t.match(await invited.text(), /signs in with Acme and has no password/)

  // As earlier versions allowed.
  await store.users.change(id, { passwordHash: hashPassword(PASSWORD) })
  const signedIn = await stage.browser().signIn('ada@example.com')
  t.match([signedIn.status, signedIn.error['message']], [403, /signs in with Acme and has no password/])
  t.equal((await stage.browser().signIn('ada@example.com', NEXT)).status, 401, 'a wrong one')
  const changed = await browser.ask('PUT', '/password', { body: { current: PASSWORD, next: NEXT } })
  t.equal(changed.status, 403)
  t.equal((await through(stage, browser, ADA)).status, 200)
  t.equal(await stored(), '', 'the next sign-in with the provider removes it')
})

onBothStores(t, 'roles by groups hold in sessions by the provider', async (t, settings) => {
  const stage = await scene(t, undefined, settings)
  const { store } = stage
  stage.configure({ more: ROLES })
  await createAccount(store, { name: 'team-a', plan: 'max', password: null })
  const { id } = await stage.account('eve@example.com')
  const browser = stage.browser()
  const eve = { email: 'eve@example.com', verified: true, groups: ['platform', 'team-a'] }
  t.match((await through(stage, browser, eve)).json, { user: { role: 'admin' } })
  t.equal((await browser.get('/accounts')).status, 200)

  const user = await store.users.byId(id)
  if (user === null) throw new Error('the user is gone')
  const other = stage.browser()
  // As a session of an earlier version, which did not store what opened it.
  const { secret } = await new Sessions(store).open(user)
  other.take('__Host-sid', secret)
  const shown = sessionReply.parse((await other.get('/session')).json)
  t.match(shown, { user: { role: null }, accounts: [{ name: 'eve', role: 'owner' }] })
  t.equal(shown.accounts.length, 1)
  t.equal((await other.get('/accounts')).status, 403)
  t.equal((await other.get('/keys?account=team-a')).status, 404)

  const invitee = { body: { role: 'member' } }
  const invited = await browser.ask('PUT', '/members/bob%40example.com?account=team-a', invitee)
  const { endsAtMs } = sessionReply.parse((await browser.get('/session')).json)
  t.match(invited.json, { link: { expiresAtMs: endsAtMs } }, 'a link ends with the role of its maker')

  const refused = await through(stage, browser, { ...eve, verified: false })
  t.equal(refused.status, 403)
  t.equal((await browser.get('/accounts')).status, 401, 'a refusal of the provider ends it')
  const { link } = memberReply.parse(invited.json)
  const body = { link: link?.url?.split('#')[1] ?? '', password: NEXT }
  const used = await stage.browser().ask('POST', '/reset', { body })
  t.equal(used.status, 403, 'and what its links give')
  t.equal((await store.users.byEmail('bob@example.com'))?.passwordHash, '')
  const again = await through(stage, browser, eve)
  t.match(again.json, { user: { role: 'admin' } }, 'the next sign-in gives the roles again')
})

onBothStores(t, 'a session with a role by a group has a maximum age', async (t, settings) => {
  const stage = await scene(t, undefined, settings)
  stage.configure({ more: ROLES, rest: 'group_session_hours: 0.0006' })
  await stage.account('ada@example.com')
  const [byGroup, byHand] = [stage.browser(), stage.browser()]
  const eve = { email: 'eve@example.com', verified: true, groups: ['platform'] }
  const entered = await through(stage, byGroup, eve)
  const { endsAtMs } = sessionReply.parse(entered.json)
  t.ok(endsAtMs !== null && endsAtMs < Date.now() + 2_160, 'the page gets the end')
  t.equal((await through(stage, byHand, ADA)).status, 200)
  await sleep(2_200)
  t.equal((await byGroup.get('/keys?account=all')).status, 401)
  t.equal((await byHand.get('/keys')).status, 200, 'other roles have the usual time')
})

void t.test('passwords work without a provider', async (t) => {
  const stage = await scene(t)
  const { id } = await stage.account('ada@example.com')
  await through(stage, stage.browser(), ADA)
  stage.configure({ hasProvider: false })
  const link = await linkFor(stage, id)
  const reset = await stage.browser().ask('POST', '/reset', { body: { link, password: NEXT } })
  t.equal(reset.status, 200, 'there is no other sign-in')
})

onBothStores(t, 'an administrator frees a user who is bound to a former provider', async (t, settings) => {
  const stage = await scene(t, undefined, settings)
  const { store, gateway } = stage
  const { id } = await stage.account('ada@example.com')
  await store.users.change(id, { issuer: 'https://former.example', subject: 'old', passwordHash: '' })
  const browser = stage.browser()
  t.equal((await through(stage, browser, ADA)).status, 403, 'the address has another identity')
  const unbind = async (email: string) => {
    const lines: string[] = []
    const out = (line: string) => void lines.push(line)
    const terminal = { out, err: out, ready: () => Promise.resolve(), input: () => Promise.resolve('') }
    const session = {
      ...{ store, plans: gateway.plans, upstreams: [], models: [], identities: [], terminal },
      ...{ acceptsImported: false, gateway: GATEWAY },
      companies: { providerOf: () => '', publisherOf: () => null },
      ...{ output: () => [], errors: () => [], input: '' },
    }
    const code = await runOn(session, users, ['unbind', '--email', email])
    return `${String(code)} ${lines.join('\n')}`
  }
  t.match(await unbind('ada@example.com'), /0 .*bound to no identity/)
  t.match(await unbind('ada@example.com'), /1 .*is bound to no identity/)
  t.match(await unbind('missing@example.com'), /1 .*no user/)
  t.equal((await through(stage, browser, ADA)).status, 200)
  t.match(await store.users.byId(id), { issuer: stage.provider.issuer })
  const trail = await store.auditTrail.page({ accountId: id, after: null, limit: 9 })
  t.match(trail.find(({ action }) => action === 'user.unbind')?.detail, 'https://former.example old')

  await stage.account('root@example.com', 'max', 'admin')
  const root = stage.browser()
  await root.signIn('root@example.com')
  const ask = (user: string) => root.ask('POST', `/users/${user}/unbind`, { body: {} })
  t.equal((await browser.get('/keys?account=ada')).status, 200)
  t.match(await ask(id), { status: 200, json: { user: { id, provider: null } } }, 'on the page')
  t.equal((await browser.get('/keys?account=ada')).status, 401, 'the user is signed out')
  const freed = await store.users.byId(id)
  t.same([freed?.issuer, freed?.subject], [undefined, undefined])
  t.equal((await ask(id)).status, 200, 'a second time')
  const entries = await store.auditTrail.page({ accountId: id, after: null, limit: 20 })
  t.equal(entries.filter(({ action }) => action === 'user.unbind').length, 2, 'which changes nothing')
  t.equal((await ask('usr_missing')).status, 404)
})

onBothStores(t, 'a token of the whole gateway frees a user, too', async (t, settings) => {
  const stage = await scene(t, undefined, { ...settings, more: 'admin_api: { enabled: true }' })
  const { store, origin } = stage
  const account = await stage.account('ada@example.com')
  const browser = stage.browser()
  t.equal((await through(stage, browser, ADA)).status, 200)
  const tokenOf = async (accountId: string | null, scope = 'accounts:write') => {
    const wish = { name: 'robot', scopes: [scope], accountId, createdBy: 'test', audit: () => [] }
    return (await createAdminToken(store, wish)).secret
  }
  const ask = async (token: string, email: string, headers = {}) => {
    const path = `/users/${encodeURIComponent(email)}/unbind`
    const authorization = `Bearer ${token}`
    const own = { authorization, ...headers }
    const reply = await fetch(`${origin}/admin/v1${path}`, { method: 'POST', headers: own })
    const text = await reply.text()
    assertDeclared('POST', path, reply, JSON.parse(text))
    return { status: reply.status, text }
  }
  const own = await tokenOf(account.id)
  const [there, missing] = [await ask(own, 'ada@example.com'), await ask(own, 'missing@example.com')]
  const withoutId = (text: string) => text.replace(/"request_id":"[^"]*"/, '')
  t.strictSame(
    [there.status, withoutId(there.text)],
    [404, withoutId(missing.text)],
    'of an account: nothing',
  )
  t.equal((await ask(await tokenOf(null, 'keys:write'), 'ada@example.com')).status, 403)
  const token = await tokenOf(null)
  t.equal((await ask(token, 'missing@example.com')).status, 404)
  t.equal((await ask(token, 'ada@example.com', { 'if-match': '"x"' })).status, 412)
  t.equal((await browser.get('/keys')).status, 200, 'nothing has changed')
  for (let time = 1; time <= 2; time += 1) {
    const freed = await ask(token, 'Ada@example.com')
    t.equal(freed.status, 200, freed.text)
    t.match(JSON.parse(freed.text), { email: 'ada@example.com', role: null, state: 'active', bound: false })
  }
  t.equal((await browser.get('/keys')).status, 401, 'the user is signed out')
  const trail = await store.auditTrail.page({ accountId: account.id, after: null, limit: 20 })
  const entries = trail.filter(({ action }) => action === 'user.unbind')
  t.match(entries, [{ actor: /^token:robot \(tok_/, detail: new RegExp(stage.provider.issuer) }])
  t.equal(entries.length, 1)
})

onBothStores(
  t,
  'who had a link or a password has nothing once the identity is bound',
  async (t, settings) => {
    const stage = await scene(t, undefined, settings)
    const { store } = stage
    stage.configure({ more: ', roles: { admin: [platform] }' })
    await stage.account('mallory@example.com', 'max')
    const mallory = stage.browser()
    await mallory.signIn('mallory@example.com')
    const passwords: Record<string, string> = {}
    /** Invites the person; uses the link at once, if wanted. */
    const invite = async (email: string) => {
      const path = `/members/${encodeURIComponent(email)}`
      const reply = await mallory.ask('PUT', path, { body: { role: 'member' } })
      const secret = /#([\w-]+)/.exec(reply.text)?.[1] ?? ''
      t.ok(secret.length > 20, reply.text)
      const use = async () => {
        passwords[email] = NEXT
        return stage.browser().ask('POST', '/reset', { body: { link: secret, password: NEXT } })
      }
      return { secret, use }
    }
    const entersAs = async (email: string): Promise<boolean> => {
      const browser = stage.browser()
      const signedIn = await browser.signIn(email, NEXT)
      return signedIn.status === 200 || (await browser.get('/keys')).status === 200
    }
    const person = (name: string): Person => {
      return { email: `${name}@example.com`, verified: true, groups: ['platform'] }
    }

    // The link stays unused until the person has signed in.
    const late = await invite('late@example.com')
    t.equal((await through(stage, stage.browser(), person('late'))).status, 200)
    await late.use()
    t.notOk(await entersAs('late@example.com'), 'a link that was used after the sign-in')

    // It is used before, and its session is open.
    const early = await invite('early@example.com')
    await early.use()
    const held = stage.browser()
    t.equal((await held.signIn('early@example.com', NEXT)).status, 200)
    t.equal((await through(stage, stage.browser(), person('early'))).status, 200)
    t.equal((await held.get('/keys')).status, 401, 'the session has ended')
    t.notOk(await entersAs('early@example.com'), 'a password of before')
    t.equal((await early.use()).status, 403, 'the link, again')

    // It is used while the identity is bound: before its first write, and after it.
    for (const [name, method] of [
      ['first', 'change'],
      ['second', 'memberships'],
    ] as const) {
      const email = `${name}@example.com`
      const open = await invite(email)
      const { id } = (await store.users.byEmail(email)) ?? { id: '' }
      const racing = stage.browser()
      const sessions: Browser[] = []
      const act = async () => {
        await open.use()
        const other = stage.browser()
        await other.signIn(email, NEXT)
        sessions.push(other)
      }
      const when = ([userId]: readonly unknown[]): boolean => userId === id
      const race = beforeNext(t, store.users, method, { when, act })
      t.equal((await through(stage, racing, person(name))).status, 200, name)
      t.ok(race.isDone)
      t.notOk(await entersAs(email), `${name}: a password`)
      for (const other of sessions) t.equal((await other.get('/keys')).status, 401, `${name}: a session`)
      t.match(await store.users.byId(id), { passwordHash: '', groupRole: 'admin' })
      t.equal((await racing.get('/accounts')).status, 200)
    }
  },
)

onBothStores(
  t,
  'another issuer with the same subject, and a user who is enabled again',
  async (t, settings) => {
    const stage = await scene(t, undefined, settings)
    const { store } = stage
    const more = ', create_accounts: true, roles: { admin: [platform] }'
    stage.configure({ more })
    const ada = { email: 'ada@example.com', verified: true, sub: 'one', groups: ['platform'] }
    const first = stage.browser()
    t.equal((await through(stage, first, ada)).status, 200)
    const { id } = (await store.users.byEmail('ada@example.com')) ?? { id: '' }

    await stage.account('root@example.com', 'max', 'admin')
    const root = stage.browser()
    await root.signIn('root@example.com')
    const set = (disabled: boolean) => root.ask('PATCH', `/users/${id}`, { body: { disabled } })
    // A sign-in that is under way while the user is disabled ends without a session.
    const begun = stage.browser()
    const started = await begun.ask('POST', '/oidc/start', { body: {} })
    stage.provider.person = ada
    const query = await stage.provider.visit(oidcStartReply.parse(started.json).url)
    t.equal((await set(true)).status, 200)
    t.equal((await begun.ask('POST', '/oidc/finish', { body: { query } })).status, 403)
    t.equal((await first.get('/keys')).status, 401)
    t.equal((await set(false)).status, 200)
    for (const browser of [first, begun]) t.equal((await browser.get('/keys')).status, 401, 'enabled again')
    t.equal(
      (await begun.ask('POST', '/oidc/finish', { body: { query } })).status,
      403,
      'its sign-in is used up',
    )
    t.equal((await through(stage, first, ada)).status, 200)

    const next = await startProvider(t, () => `${stage.origin}/dashboard/oidc`, { emailInToken: false })
    stage.configure({ more, issuer: next.issuer })
    const atNext = async (person: Person) => {
      next.person = person
      const browser = stage.browser()
      const begun = await browser.ask('POST', '/oidc/start', { body: {} })
      const query = await next.visit(oidcStartReply.parse(begun.json).url)
      return browser.ask('POST', '/oidc/finish', { body: { query } })
    }
    t.equal((await atNext(ada)).status, 403, 'the address belongs to the identity of the other issuer')
    const other = await atNext({ email: 'eve@example.com', verified: true, sub: 'one' })
    t.equal(other.status, 200)
    t.not(sessionReply.parse(other.json).account?.id, id, 'the subject is another one there')
    t.match(sessionReply.parse(other.json).user, { role: null })
    t.match(await store.users.byId(id), { issuer: stage.provider.issuer, email: 'ada@example.com' })
  },
)
