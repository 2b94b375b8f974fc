/**
 * Goal: a verified user of the provider is signed in, once per sign-in and in the same browser; other users
 * are refused, and a refusal reveals nothing about accounts.
 * Method: a real provider on this machine, clients that sign in with it, and the gateway's store and log.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { editAccount } from '../../helpers/store-changes.js'
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { ensureUser, setMember } from '../../../src/accounts/members.js'
import { objectOf } from '../../../src/base/json.js'
import { oidcStartReply, sessionReply } from '../../../src/control/dashboard/schema/schema.js'
import { IdentityProvider } from '../../../src/control/sign-in/identity-provider.js'
import { scene, type Scene } from './oidc-stage.js'
import { CLIENT_ID, CLIENT_SECRET, startSilence, type Person } from './identity-provider.js'
import { beforeNext } from '../../dashboard/fixtures/before-next.js'
import { PASSWORD, startStage, type Answer, type Browser } from '../../dashboard/fixtures/stage.js'
import { onBothStores } from '../admin/admin-stage.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { ofToday } from '../../helpers/long-suite.js'

async function begin(browser: Browser): Promise<string> {
  const started = await browser.ask('POST', '/oidc/start', { body: {} })
  return oidcStartReply.parse(started.json).url
}

async function through(scene: Scene, browser: Browser, person: Person): Promise<Answer> {
  scene.provider.person = person
  const query = await scene.provider.visit(await begin(browser))
  return browser.ask('POST', '/oidc/finish', { body: { query } })
}

const ADA: Person = { email: 'Ada@Example.com', verified: true }

void t.test('a user whom the provider has verified is signed in', async (t) => {
  for (const emailInToken of [false, true]) {
    const stage = await scene(t, { emailInToken })
    const { id } = await stage.account('ada@example.com')
    const browser = stage.browser()
    t.equal((await browser.get('/session')).json['oidc'], 'Acme')

    const started = await browser.ask('POST', '/oidc/start', { body: {} })
    const url = new URL(oidcStartReply.parse(started.json).url)
    t.match(Object.fromEntries(url.searchParams), {
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: `${stage.origin}/dashboard/oidc`,
      scope: 'openid email',
      code_challenge_method: 'S256',
      code_challenge: /^[\w-]{43}$/,
      state: /^[\w-]{43}$/,
      nonce: /^[\w-]{43}$/,
    })
    const [line = ''] = started.headers.getSetCookie()
    for (const flag of ['Path=/', 'Secure', 'HttpOnly', 'SameSite=Strict', 'Max-Age=600']) {
      t.ok(line.startsWith('__Host-oidc=') && line.split('; ').includes(flag), flag)
    }

    browser.take('__Host-sid', 'x'.repeat(43))
    const entered = await through(stage, browser, ADA)
    t.equal(entered.status, 200)
    t.match(sessionReply.parse(entered.json), { account: { id, email: 'ada@example.com' } })
    t.not(browser.value('__Host-sid'), 'x'.repeat(43), 'the session is a new one')
    t.equal(browser.value('__Host-oidc'), '', 'and the other cookie is gone')
    const former = browser.value('__Host-sid')
    await through(stage, browser, ADA)
    const other = stage.browser()
    other.take('__Host-sid', former)
    t.equal((await other.get('/keys')).status, 401, 'in place of the one before')
    t.equal((await browser.get('/keys')).status, 200)
    const { entries } = await browserTrail(browser)
    t.same(entries, ['session.sign-in-oidc', 'session.sign-in-oidc'])
    const withPassword = await browser.signIn('ada@example.com', PASSWORD)
    t.equal(withPassword.status, 401, 'the older password is removed')
    t.notMatch(JSON.stringify(stage.gateway.lines), CLIENT_SECRET)
  }
})

void t.test('a user is bound to the identity of the first sign-in', async (t) => {
  const stage = await scene(t)
  const { id } = await stage.account('ada@example.com')
  const before = stage.browser()
  await before.signIn('ada@example.com', PASSWORD)
  t.equal((await through(stage, stage.browser(), { ...ADA, sub: 'first' })).status, 200)
  t.equal((await before.get('/keys')).status, 401, 'sessions of the older password have ended')
  t.match(await stage.store.users.byId(id), {
    subject: 'first',
    issuer: stage.provider.issuer,
    passwordHash: '',
  })
  const other = await through(stage, stage.browser(), { ...ADA, sub: 'second' })
  t.match([other.status, other.error['kind']], [403, 'forbidden'], 'another identity')
  const unverified = await through(stage, stage.browser(), {
    ...ADA,
    sub: 'first',
    verified: false,
  })
  t.equal(unverified.status, 403, 'the same identity with an address that is not verified')
  t.equal((await through(stage, stage.browser(), { ...ADA, sub: 'first' })).status, 200)
})

for (const engine of ofToday(['SQLite', 'Redis'], 2)) {
  const skip = engine === 'Redis' && redisMissing()
  void t.test(`a user is found by the identity before the address, ${engine}`, { skip }, async (t) => {
    const settings = engine === 'SQLite' ? {} : { store: (await startRedis(t)).url() }
    const stage = await scene(t, { emailInToken: false }, settings)
    stage.configure({ more: ', create_accounts: true' })
    const idOf = async (person: Person) => {
      const reply = await through(stage, stage.browser(), person)
      return reply.status === 200 ? sessionReply.parse(reply.json).account?.id : reply.status
    }
    const first = await idOf({ email: 'ada@example.com', verified: true, sub: 'first' })
    t.type(first, 'string')
    const moved = { email: 'ada.new@example.com', verified: true, sub: 'first' }
    t.equal(await idOf(moved), first, 'the address has changed')
    t.match(await stage.store.users.byEmail('ada.new@example.com'), { subject: 'first' }, 'and is followed')
    t.equal(await stage.store.users.byEmail('ada@example.com'), null, 'no second user is made')
    const taken = await stage.account('grace@example.com')
    t.equal(await idOf({ ...moved, email: 'grace@example.com' }), first, 'another user has the address')
    t.match(await stage.store.users.byId(taken.id), { passwordHash: /argon2id/ }, 'and is not bound')
    t.match(await stage.store.users.byEmail('ada.new@example.com'), { subject: 'first' }, 'the address stays')
    t.match(JSON.stringify(stage.gateway.lines), 'keeps the former address', 'the log has the reason')
    const other = { email: 'ada.new@example.com', verified: true, sub: 'second' }
    t.equal(await idOf(other), 403, 'another identity')
    const free = await idOf({ ...other, email: 'ada@example.com' })
    t.match([typeof free, free === first], ['string', false], 'the former address is free')
  })
}

onBothStores(t, 'memberships and keys of a user follow the address', async (t, settings) => {
  const stage = await scene(t, { emailInToken: false }, settings)
  const { store } = stage
  stage.configure({ more: ", roles: { accounts: { 'team-*': viewer } }" })
  const person = { email: 'ada@example.com', verified: true, sub: 'first', groups: ['team-a'] }
  const { user } = await ensureUser(store, { email: 'ada@example.com' })
  for (const name of ['team-a', 'team-b']) {
    const { account } = await createAccount(store, { name, plan: 'max', password: null })
    await setMember(store, { account, user, role: 'member', nowMs: 1, audit: () => [] })
  }
  const browser = stage.browser()
  t.equal((await through(stage, browser, person)).status, 200)
  const made = await browser.ask('POST', '/keys?account=team-b', { body: { name: 'own' } })
  t.equal(made.status, 201)
  const moved = { ...person, email: 'Ada.New@example.com', groups: [] }
  for (let time = 1; time <= 2; time += 1) {
    const entered = sessionReply.parse((await through(stage, browser, moved)).json)
    const roles = entered.accounts.map(({ name, role }) => `${name} ${role}`)
    t.same(roles, ['team-a member', 'team-b member'], `sign-in ${time}`)
    t.equal(entered.user?.email, 'ada.new@example.com')
  }
  t.match((await browser.get('/keys?account=team-b')).json, { keys: [{ name: 'own' }] }, 'her key')
  for (const name of ['team-a', 'team-b']) {
    const account = await store.accountByName(name)
    const emails = (await store.membersOf(account?.id ?? '')).map(({ email }) => email)
    t.same(emails, ['ada.new@example.com'], name)
  }
  const trail = await store.auditTrail.page({ accountId: user.id, after: null, limit: 100 })
  t.equal(trail.filter(({ action }) => action === 'user.email').length, 1)
  t.same(await store.users.byId(user.id), await store.users.byEmail('ada.new@example.com'))
  t.equal((await store.users.byId(user.id))?.formerEmail, undefined)
  const next = await ensureUser(store, { email: 'ada@example.com' })
  t.match([next.isNew, await store.users.memberships(next.user.id)], [true, []], 'a new person')
})

void t.test('an error of the userinfo endpoint is named', async (t) => {
  const stage = await scene(t, { emailInToken: false }, {})
  stage.configure({ more: ', create_accounts: true' })
  const person = { email: 'ada@example.com', verified: true }
  for (const status of [404, 401, 500]) {
    stage.provider.userInfoStatus = status
    const reply = await through(stage, stage.browser(), person)
    t.equal(reply.status, 503)
    t.match(JSON.stringify(reply.json), new RegExp(`userinfo endpoint .* replied with ${status}`))
  }
  t.match(JSON.stringify(stage.gateway.lines), /userinfo endpoint .* replied with 404/, 'in the log too')
  stage.provider.userInfoStatus = null
  t.equal((await through(stage, stage.browser(), person)).status, 200)
})

onBothStores(t, 'first sign-ins at the same time', async (t, settings) => {
  const stage = await scene(t, { emailInToken: false }, settings)
  stage.configure({ more: ', create_accounts: true, roles: { auditor: [audit] }' })
  const together = async (persons: readonly Person[]) => {
    const entries: { browser: Browser; query: string; person: Person }[] = []
    for (const person of persons) {
      stage.provider.person = person
      const browser = stage.browser()
      entries.push({ browser, query: await stage.provider.visit(await begin(browser)), person })
    }
    const replies: Answer[] = []
    const send = async ({ browser, query, person }: (typeof entries)[number]) => {
      stage.provider.person = person
      replies.push(await browser.ask('POST', '/oidc/finish', { body: { query } }))
    }
    await Promise.all(entries.map(send))
    return replies
  }
  const usersOf = async (sub: string) => {
    const { items } = await stage.store.users.list({ after: null, limit: 100 })
    return items.filter(({ subject }) => subject === sub).length
  }
  const { items: before } = await stage.store.users.list({ after: null, limit: 100 })
  for (const [at, groups] of [[], ['audit']].entries()) {
    const person = { email: `one-${at}@example.com`, verified: true, sub: `one-${at}`, groups }
    const replies = await together([person, person, person, person])
    t.same(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
      'one identity, four times',
    )
    t.equal(await usersOf(`one-${at}`), 1)
  }
  const { items } = await stage.store.users.list({ after: null, limit: 100 })
  t.equal(items.length - before.length, 2, 'no user is left over')
  // The address of the second sign-in is read while the first one looks for its user.
  const moved = (name: string) => ({ email: `${name}@example.com`, verified: true, sub: 'moving' })
  const second: Promise<Answer>[] = []
  const interrupted = beforeNext(t, stage.store.users, 'list', {
    async act() {
      second.push(through(stage, stage.browser(), moved('after')))
      await sleep(300)
    },
  })
  const first = await through(stage, stage.browser(), moved('before'))
  const statuses = [first, ...(await Promise.all(second))].map(({ status }) => status)
  t.ok(interrupted.isDone)
  t.same(statuses, [200, 200], 'one identity, two addresses')
  const { items: after } = await stage.store.users.list({ after: null, limit: 100 })
  t.equal(after.length - items.length, 1)
  t.match(await stage.store.users.byEmail('after@example.com'), { subject: 'moving' })
})

void t.test('another letter that Unicode maps to ASCII is another address', async (t) => {
  const stage = await scene(t)
  await stage.account('kay@example.com')
  await stage.account('\u00e4da@example.com')
  for (const email of ['\u212aay@example.com', '\u00a0kay@example.com', '\u00c4da@example.com']) {
    const reply = await through(stage, stage.browser(), { email, verified: true })
    t.equal(reply.status, 403, JSON.stringify(email))
    t.equal((await stage.browser().signIn(email, PASSWORD)).status, email.startsWith('\u00a0') ? 200 : 401)
  }
  t.equal((await stage.browser().signIn('KAY@Example.com', PASSWORD)).status, 200)
})

void t.test('groups give roles at each sign-in, and leaving one takes its role away', async (t) => {
  const stage = await scene(t)
  const { store } = stage
  stage.configure({
    more: ", roles: { admin: [platform], auditor: [audit], accounts: { 'team-*': member, team-b: owner } }",
  })
  for (const name of ['team-a', 'team-b', 'other']) {
    await createAccount(store, { name, plan: 'max', password: null })
  }
  const enter = async (email: string, groups: readonly string[] | string) => {
    const browser = stage.browser()
    const reply = await through(stage, browser, { email, verified: true, groups })
    const { user, accounts } =
      reply.status === 200
        ? sessionReply.parse((await browser.get('/session')).json)
        : { user: null, accounts: [] }
    const roles = accounts.map(({ name, role }) => `${name} ${role}`)
    return { status: reply.status, role: user?.role ?? null, roles, browser }
  }
  t.match(await enter('eve@example.com', ['none', 'team-x', 'other']), { status: 403 })
  const first = await enter('eve@example.com', ['team-a', 'team-b', 'team-x'])
  t.match(first, { status: 200, role: null, roles: ['team-a member', 'team-b owner'] })
  t.equal(await store.accountByName('team-x'), null, 'no account is made')
  t.match(await enter('eve@example.com', 'team-a'), { status: 200, roles: ['team-a member'] })
  t.equal((await first.browser.get('/members?account=team-b')).status, 404, 'in every session')

  const { user } = await ensureUser(store, { email: 'eve@example.com' })
  const account = await store.accountByName('team-a')
  if (account === null) throw new Error('the account is gone')
  const byHand = { account, user, role: 'viewer', nowMs: 1, audit: () => [] } as const
  await setMember(store, byHand)
  t.match(await enter('eve@example.com', ['team-a']), { roles: ['team-a member'] }, 'the higher')
  t.match(await enter('eve@example.com', []), { status: 200, roles: ['team-a viewer'] })

  t.match(await enter('root@example.com', ['platform', 'audit']), { status: 200, role: 'admin' })
  t.match(await enter('root@example.com', ['audit']), { status: 200, role: 'auditor' })
  t.match(await enter('root@example.com', []), { status: 403 })
})

/** An error without the id of its request. */
function withoutId(text: string): string {
  return text.replace(/"request_id":"[^"]*"/, '')
}

async function browserTrail(browser: Browser): Promise<{ entries: unknown[] }> {
  const { json } = await browser.get('/audit')
  const list = Array.isArray(json['entries']) ? json['entries'] : []
  return { entries: list.map((entry) => objectOf(entry)['action']) }
}

void t.test('a sign-in is valid once, in the browser that started it', async (t) => {
  const stage = await scene(t)
  await stage.account('ada@example.com')
  const refused = async (what: string, browser: Browser, query: string) => {
    const answer = await browser.ask('POST', '/oidc/finish', { body: { query } })
    t.match([answer.status, answer.error['kind']], [403, 'forbidden'], what)
    t.match(answer.error['message'], /sign in again/, what)
    t.same(answer.headers.getSetCookie(), [], what)
  }
  const browser = stage.browser()
  const query = await stage.provider.visit(await begin(browser))
  await refused('in a browser that began nothing', stage.browser(), query)
  const other = stage.browser()
  await begin(other)
  await refused('in one that began another', other, query)
  const secret = browser.value('__Host-oidc')
  t.equal((await browser.ask('POST', '/oidc/finish', { body: { query } })).status, 200)
  const again = stage.browser()
  again.take('__Host-oidc', secret)
  await refused('a second time', again, query)

  const changes: [what: string, change: (params: URLSearchParams) => void][] = [
    ['another state', (params) => params.set('state', 'x'.repeat(43))],
    ['no state', (params) => params.delete('state')],
    ['two states', (params) => params.append('state', 'x')],
    ['another code', (params) => params.set('code', 'x'.repeat(43))],
    ['another issuer', (params) => params.set('iss', 'https://evil.example')],
    ['a refusal', (params) => (params.delete('code'), params.set('error', 'access_denied'))],
  ]
  for (const [what, change] of changes) {
    const params = new URLSearchParams(await stage.provider.visit(await begin(browser)))
    change(params)
    await refused(what, browser, `?${params.toString()}`)
  }
  t.match(JSON.stringify(stage.gateway.lines), 'access_denied', 'the log has the reason')
})

void t.test('a code of another sign-in is refused', async (t) => {
  const stage = await scene(t)
  await stage.account('ada@example.com')
  const [mine, theirs] = [stage.browser(), stage.browser()]
  const stolen = new URLSearchParams(await stage.provider.visit(await begin(theirs)))
  const params = new URLSearchParams(await stage.provider.visit(await begin(mine)))
  params.set('code', stolen.get('code') ?? '')
  const answer = await mine.ask('POST', '/oidc/finish', {
    body: { query: `?${params.toString()}` },
  })
  t.equal(answer.status, 403, 'has another verifier')
})

void t.test('a refusal reveals nothing about accounts', async (t) => {
  const stage = await scene(t)
  await stage.account('ada@example.com')
  const off = await stage.account('off@example.com')
  await editAccount(stage.store, off.id, { disabled: true })
  const replies = new Set<string>()
  for (const email of ['ada@example.com', 'unknown@example.com', 'off@example.com']) {
    const answer = await through(stage, stage.browser(), { email, verified: false })
    t.equal(answer.status, 403)
    t.same(answer.headers.getSetCookie(), [])
    replies.add(answer.text)
  }
  t.equal(replies.size, 1, 'an e-mail that is not verified is not looked up')
  t.match([...replies][0], /not verified/)

  const disabled = await through(stage, stage.browser(), {
    email: 'off@example.com',
    verified: true,
  })
  const { id } = await stage.account('bound@example.com')
  await stage.store.users.change(id, { issuer: stage.provider.issuer, subject: 'first' })
  const other = await through(stage, stage.browser(), {
    email: 'bound@example.com',
    verified: true,
    sub: 'second',
  })
  const unknown = await through(stage, stage.browser(), {
    email: 'new@example.com',
    verified: true,
  })
  for (const { status, text } of [disabled, other, unknown]) {
    t.equal(status, 403)
    t.same(withoutId(text), withoutId(unknown.text), 'a disabled user, another identity, and no user')
  }
  t.equal(await stage.store.accountByEmail('new@example.com'), null)
})

void t.test('an account is created if that is configured', async (t) => {
  const stage = await scene(t)
  const email = 'two@example.com'
  stage.configure({ more: ', create_accounts: true' })
  const browser = stage.browser()
  const entered = await through(stage, browser, { email, verified: true })
  t.match(sessionReply.parse(entered.json), {
    account: { email, role: 'owner', plan: { name: 'starter' }, hasPassword: false },
  })
  t.same((await browserTrail(browser)).entries, ['session.sign-in-oidc', 'account.sign-up'])
  t.equal(
    (await stage.browser().signIn(email, '')).status,
    401,
    'an account without a password refuses every password',
  )
  const odd = await through(stage, stage.browser(), { email: 'no address', verified: true })
  t.equal(odd.status, 403)
})

void t.test('reports an unavailable provider and a missing one', async (t) => {
  const stage = await scene(t)
  const browser = stage.browser()
  stage.configure({ publicUrl: 'https://llm.example.com' })
  const moved = await browser.ask('POST', '/oidc/start', { body: {} })
  t.match([moved.status, moved.error['message']], [403, /Open https:\/\/llm\.example\.com/])
  stage.configure({})
  const query = await stage.provider.visit(await begin(browser))
  stage.provider.close()
  const unavailable = (answer: Answer, what: string) => {
    t.match([answer.status, answer.error['kind']], [503, 'identity_unavailable'], what)
    t.notMatch(answer.text, stage.provider.issuer)
  }
  unavailable(await browser.ask('POST', '/oidc/finish', { body: { query } }), 'between start and finish')
  stage.configure({})
  unavailable(await browser.ask('POST', '/oidc/start', { body: {} }), 'before')
  stage.configure({ issuer: `${stage.origin}/dashboard` })
  unavailable(await browser.ask('POST', '/oidc/start', { body: {} }), 'something else at its address')

  const silence = await startSilence(t)
  const config = { issuer: silence, clientId: 'x', clientSecret: null, name: 'x' }
  const watch = stopwatch()
  await t.rejects(
    new IdentityProvider(0.2).start({ ...config, createAccounts: false, roles: null }, 'http://x/', 's'),
    { fault: 'unavailable', message: 'OAUTH_TIMEOUT' },
  )
  t.ok(watch() < 4_000, 'silence ends it')

  const bare = await startStage(t)
  const answer = await bare.browser().ask('POST', '/oidc/start', { body: {} })
  t.match([answer.status, answer.error['message']], [403, /configured/])
})

onBothStores(t, 'a pattern of groups gives no role in accounts that others made', async (t, settings) => {
  const stage = await scene(t, undefined, { ...settings, more: 'admin_api: { enabled: true }' })
  const { store } = stage
  stage.configure({ hasProvider: false, rest: 'self_sign_up: true' })
  const { account: team } = await createAccount(store, { name: 'team', plan: 'max', password: null })
  // As tokens of the account make them, for groups that the provider has.
  for (const name of ['team--finance', 'team--named']) {
    await createAccount(store, { name, plan: 'max', password: null, parentId: team.id })
  }
  const body = { email: 'eve@visitor.example', password: PASSWORD }
  t.equal((await stage.browser().ask('POST', '/sign-up', { body })).status, 200)
  t.ok(await store.accountByName('self--eve'))
  stage.configure({
    more: ", roles: { accounts: { 'team*': member, '*': viewer, team--named: owner } }",
  })
  const browser = stage.browser()
  const groups = [
    'team--finance',
    'self--eve',
    'team--named',
    'team',
    'TEAM',
    'team/x',
    'team%2d%2dfinance',
    '*',
  ]
  const entered = await through(stage, browser, { email: 'ada@example.com', verified: true, groups })
  const roles = sessionReply.parse(entered.json).accounts.map(({ name, role }) => `${name} ${role}`)
  t.same(roles, ['team member', 'team--named owner'], 'only the one that the configuration names')
})

onBothStores(t, 'the next person with an address gets an account', async (t, settings) => {
  const stage = await scene(t, undefined, settings)
  const { store } = stage
  stage.configure({ more: ', create_accounts: true, roles: { auditor: [audit] }' })
  const enter = async (person: Person) => {
    const browser = stage.browser()
    return { reply: await through(stage, browser, person), browser }
  }
  const first = await enter({ email: 'kim@example.com', verified: true, sub: 'first' })
  t.equal(first.reply.status, 200)
  t.equal((await first.browser.ask('POST', '/keys', { body: { name: 'hers' } })).status, 201)
  t.equal((await enter({ email: 'kim.married@example.com', verified: true, sub: 'first' })).reply.status, 200)
  // Another person joins and gets the address that is free now.
  const next = await enter({ email: 'kim@example.com', verified: true, sub: 'second' })
  t.equal(next.reply.status, 200, next.reply.text)
  const { account } = sessionReply.parse(next.reply.json)
  t.not(account?.id, sessionReply.parse(first.reply.json).account?.id)
  t.same((await next.browser.get('/keys')).json['keys'], [], 'nothing of the former holder')
  t.match((await first.browser.get('/keys')).json, { keys: [{ name: 'hers' }] })
  t.equal((await enter({ email: 'kim@example.com', verified: true, sub: 'second' })).reply.status, 200)
  t.match(await store.users.byEmail('kim@example.com'), { subject: 'second' })
})
