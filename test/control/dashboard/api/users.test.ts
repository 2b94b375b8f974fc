/**
 * Goal: an administrator lists users, invites an auditor and a member of an account, sends another link,
 * changes a role and disables; an auditor only reads.
 * Method: a gateway for each store; the invited person uses the link.
 */
import t, { type Test } from 'tap'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../../src/accounts/members.js'
import {
  invitedUserReply,
  userLinkReply,
  usersReply,
  type UserRow,
} from '../../../../src/control/dashboard/schema/schema.js'
import { startRedis } from '../../../helpers/redis.js'
import { PASSWORD, startStage, type Browser } from '../../../dashboard/fixtures/stage.js'

async function usersOf(browser: Browser, query = ''): Promise<readonly UserRow[]> {
  return usersReply.parse((await browser.get(`/users${query}`)).json).users
}

async function userOf(browser: Browser, email: string): Promise<UserRow> {
  const [user] = await usersOf(browser, `?search=${encodeURIComponent(email)}`)
  if (user === undefined) throw new Error(`no user ${email}`)
  return user
}

async function check(t: Test, store?: string): Promise<void> {
  const stage = await startStage(t, store === undefined ? {} : { store })
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const { account } = await createAccount(stage.store, { name: 'team', plan: 'max', password: null })
  const invite = (browser: Browser, body: object) => browser.ask('POST', '/users', { body })
  const use = (url: string | null | undefined, browser = stage.browser()) =>
    browser.ask('POST', '/reset', { body: { link: url?.split('#')[1] ?? '', password: PASSWORD } })

  await t.test('an auditor is invited, enters by the link, and reads', async (t) => {
    const made = await invite(admin, { email: 'Eve@example.com', role: 'auditor' })
    t.equal(made.status, 201, made.text)
    const { user, link } = invitedUserReply.parse(made.json)
    t.match(user, { email: 'eve@example.com', role: 'auditor', state: 'invited', lastSignInAtMs: null })
    const again = await admin.ask('POST', `/users/${user.id}/invite`, { body: {} })
    const second = userLinkReply.parse(again.json).link
    t.equal((await use(link?.url)).status, 403, 'only the last link is good')
    const eve = stage.browser()
    t.equal((await use(second.url, eve)).status, 200)
    t.equal((await eve.get('/operations')).status, 200)
    t.match(await userOf(admin, 'eve@'), { state: 'active', hasPassword: true, provider: null })
    t.equal((await usersOf(eve)).length > 1, true, 'an auditor reads the list')
    for (const [method, path, body] of [
      ['POST', '/users', { email: 'x@example.com', role: 'admin' }],
      ['PATCH', `/users/${user.id}`, { role: 'admin' }],
      ['POST', `/users/${user.id}/invite`, {}],
    ] as const) {
      t.equal((await eve.ask(method, path, { body })).status, 403, `${method} ${path}`)
    }
    const signedIn = stage.browser()
    t.equal((await signedIn.signIn('eve@example.com')).status, 200)
    t.type((await userOf(admin, 'eve@')).lastSignInAtMs, 'number')
  })

  await t.test('a member of an account is invited', async (t) => {
    const made = await invite(admin, { email: 'bo@example.com', account: 'team', accountRole: 'owner' })
    const { user, link } = invitedUserReply.parse(made.json)
    t.match(user, { role: null, accounts: [{ name: 'team', role: 'owner' }], state: 'invited' })
    const bo = stage.browser()
    t.equal((await use(link?.url, bo)).status, 200)
    t.equal((await bo.get('/users')).status, 403)
    const known = await invite(admin, { email: 'bo@example.com', role: 'auditor' })
    t.match(invitedUserReply.parse(known.json), { user: { role: 'auditor' }, link: null })
    t.equal((await bo.get('/operations')).status, 200, 'the role holds at once')
    for (const body of [
      { email: 'no address', role: 'auditor' },
      { email: 'y@example.com' },
      { email: 'y@example.com', role: 'admin', account: 'team' },
      { email: 'y@example.com', account: 'none' },
    ]) {
      t.equal((await invite(admin, body)).status, 400, JSON.stringify(body))
    }
    t.same(await usersOf(admin, '?search=y%40example'), [], 'a refused invitation makes no user')
  })

  await t.test('a role is changed, and a user is disabled', async (t) => {
    const bo = stage.browser()
    t.equal((await bo.signIn('bo@example.com')).status, 200)
    const { id } = await userOf(admin, 'bo@')
    const patch = (body: object, of = id) => admin.ask('PATCH', `/users/${of}`, { body })
    t.equal((await patch({ role: null })).status, 200)
    t.equal((await bo.get('/operations')).status, 403)
    t.equal((await patch({ disabled: true })).status, 200)
    t.equal((await bo.get('/live')).status, 401, 'signed out')
    t.match(await userOf(admin, 'bo@'), { state: 'disabled' })
    t.equal((await admin.ask('POST', `/users/${id}/invite`, { body: {} })).status, 400)
    t.equal((await patch({ disabled: false })).status, 200)
    t.equal((await bo.signIn('bo@example.com')).status, 200)
    const me = await userOf(admin, 'root@')
    for (const body of [{ role: null }, { disabled: true }]) {
      t.equal((await patch(body, me.id)).status, 400, 'not oneself')
    }
    t.equal((await patch({ role: null }, 'usr_none')).status, 404)
    const trail = await stage.store.auditTrail.page({ accountId: id, after: null, limit: 20 })
    const actions = trail.map(({ action }) => action).filter((action) => action.startsWith('user.'))
    t.same(actions, ['user.enable', 'user.disable', 'user.role', 'user.role', 'user.create'])
  })

  await t.test('the list has pages, filters and pending users', async (t) => {
    const { user } = await createUser(stage.store, { email: 'pia@example.com', password: { none: true } })
    await setMember(stage.store, { account, user, role: 'owner', nowMs: 1, audit: () => [] })
    await stage.store.users.change(user.id, { signedInAtMs: 5 })
    t.match(await userOf(admin, 'pia@'), { state: 'pending' })
    const emails = (users: readonly UserRow[]) => users.map(({ email }) => email)
    t.same(emails(await usersOf(admin, '?state=pending')), ['pia@example.com'])
    t.same(emails(await usersOf(admin, '?role=admin')), ['root@example.com'])
    const all = emails(await usersOf(admin))
    const seen: string[] = []
    for (let after: string | null = ''; after !== null;) {
      const query: string = after === '' ? '?limit=2' : `?limit=2&after=${after}`
      const page = usersReply.parse((await admin.get(`/users${query}`)).json)
      seen.push(...emails(page.users))
      after = page.next
    }
    t.same(seen, all)
  })
}

void t.test('SQLite', (t) => check(t))
void t.test('Redis', async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})
