/**
 * Goal: sign-in opens a session, sign-out ends one or all of them, and failed sign-ins reveal nothing.
 * Method: clients of a running gateway, their cookies, and the store.
 */
import { editAccount, putAccount } from '../../helpers/store-changes.js'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { hash } from '@node-rs/argon2'
import { sessionReply } from '../../../src/control/dashboard/schema/schema.js'
import { IDLE_MS, SESSION_MS, Sessions } from '../../../src/control/sign-in/sessions.js'
import { openStore } from '../../../src/store/open-store.js'
import { aLogin, anAccount } from '../../store/contract/sample-records.js'
import { beforeNext } from '../../dashboard/fixtures/before-next.js'
import { linkFor, PASSWORD, startStage, type Stage } from '../../dashboard/fixtures/stage.js'

void t.test('signing in and out', async (t) => {
  const stage = await startStage(t)
  await stage.account('ada@example.com')
  const browser = stage.browser()
  const before = await browser.get('/session')
  t.match(sessionReply.parse(before.json), { account: null, csrf: null, needsSetUp: true })

  const entered = await browser.signIn(' ADA@example.com ')
  t.equal(entered.status, 200)
  t.match(sessionReply.parse(entered.json), {
    account: { email: 'ada@example.com', role: 'owner', liveKeys: 0, hasPassword: true },
    needsSetUp: false,
  })
  t.match(entered.headers.get('cache-control'), 'no-store')
  t.equal((await browser.get('/keys')).status, 200)
  t.same((await browser.get('/session')).json['csrf'], entered.json['csrf'])

  const stolen = stage.browser()
  stolen.take('__Host-sid', browser.value('__Host-sid'))
  t.equal((await stolen.get('/keys')).status, 200)
  const left = await browser.ask('DELETE', '/session')
  t.equal(left.status, 200)
  t.equal(browser.value('__Host-sid'), '', 'the browser drops it')
  t.equal((await stolen.get('/keys')).status, 401, 'and so does the gateway')
})

void t.test('K-161: the cookie belongs to one session, and only its digest is stored', async (t) => {
  const stage = await startStage(t)
  await stage.account('ada@example.com')
  const browser = stage.browser()
  const entered = await browser.signIn('ada@example.com')
  for (const name of ['__Host-sid', '__Host-device']) {
    const line = entered.headers.getSetCookie().find((each) => each.startsWith(name)) ?? ''
    const parts = line.split('; ')
    for (const flag of ['Path=/', 'Secure', 'HttpOnly', 'SameSite=Strict']) t.ok(parts.includes(flag))
    t.notMatch(line, /domain/i)
    t.match(Buffer.from(browser.value(name), 'base64url'), { length: 32 }, '256 bits')
  }
  const secret = browser.value('__Host-sid')
  const id = createHash('sha256').update(secret).digest('hex')
  t.ok(await stage.store.signInTokens.find('session', id, Date.now()))
  for (const file of readdirSync(stage.gateway.folder, {
    recursive: true,
    withFileTypes: true,
  })) {
    if (!file.isFile()) continue
    t.notOk(readFileSync(join(file.parentPath, file.name)).includes(secret), file.name)
  }
  t.notMatch(JSON.stringify(stage.gateway.lines), secret)
})

void t.test('each sign-in opens a new session and ends the old one', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const planted = browser.value('__Host-sid')
  await browser.signIn('ada@example.com')
  t.not(browser.value('__Host-sid'), planted)
  const other = stage.browser()
  other.take('__Host-sid', planted)
  t.equal((await other.get('/keys')).status, 401)
  other.take('__Host-sid', 'x'.repeat(43))
  await other.signIn('ada@example.com')
  t.not(other.value('__Host-sid'), 'x'.repeat(43), "clients cannot choose a session's secret")
})

void t.test('signing out everywhere ends all sessions', async (t) => {
  const stage = await startStage(t)
  const one = await stage.signedIn('ada@example.com')
  const two = stage.browser()
  await two.signIn('ada@example.com')
  const bob = await stage.signedIn('bob@example.com')
  t.equal((await one.ask('DELETE', '/sessions')).status, 200)
  t.equal((await two.get('/keys')).status, 401)
  t.equal((await bob.get('/keys')).status, 200, 'sessions of other accounts stay')
})

void t.test('K-165: failed sign-ins get the same reply, whether or not the account exists', async (t) => {
  const stage = await startStage(t)
  await stage.account('ada@example.com')
  const off = await stage.account('off@example.com')
  await editAccount(stage.store, off.id, { disabled: true })
  const bare = await stage.account('bare@example.com')
  await stage.store.users.change(bare.id, { passwordHash: '' })
  const guesses = [
    ['ada@example.com', 'wrong password'],
    ['unknown@example.com', 'wrong password'],
    ['off@example.com', 'wrong password'],
    ['bare@example.com', ''],
    ['bare@example.com', 'wrong password'],
    ['not an e-mail', 'x'],
    ['\u0000', 'x'],
    ['ada@example.com', 'x'.repeat(1_025)],
  ]
  const replies = new Set<string>()
  for (const [email = '', password = ''] of guesses) {
    const answer = await stage.browser().signIn(email, password)
    t.equal(answer.status, 401, email)
    t.same(answer.headers.getSetCookie(), [])
    replies.add(answer.text)
  }
  t.equal(replies.size, 1)
  const right = await stage.browser().signIn('off@example.com')
  t.match([right.status, right.error['message']], [403, /disabled/], 'only its owner gets the reason')
})

void t.test('disabling an account ends its sessions at once', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const account = await stage.store.accountByEmail('ada@example.com')
  await editAccount(stage.store, account?.id ?? '', { disabled: true })
  t.equal((await browser.get('/keys')).status, 401)
})

void t.test('a password change ends the other sessions', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const other = stage.browser()
  await other.signIn('ada@example.com')
  const next = 'another horse entirely'
  const wrong = await browser.ask('PUT', '/password', { body: { current: 'not it at all', next } })
  t.match([wrong.status, wrong.error['field']], [403, 'current'])
  for (const bad of ['short', 'iloveyou', 'x'.repeat(1_025)]) {
    const answer = await browser.ask('PUT', '/password', { body: { current: PASSWORD, next: bad } })
    t.match([answer.status, answer.error['field']], [400, 'password'])
  }
  t.equal((await browser.ask('PUT', '/password', { body: { current: PASSWORD, next } })).status, 200)
  t.equal((await browser.get('/keys')).status, 200, 'a new session in place of the old')
  t.equal((await other.get('/keys')).status, 401)
  t.equal((await stage.browser().signIn('ada@example.com')).status, 401)
  t.equal((await stage.browser().signIn('ada@example.com', next)).status, 200)
})

void t.test('a hash with less work is replaced after a correct password', async (t) => {
  const stage = await startStage(t)
  const { id } = await stage.account('ada@example.com')
  const old = await hash(PASSWORD, { memoryCost: 4_096, timeCost: 1, parallelism: 1 })
  await stage.store.users.change(id, { passwordHash: old })
  await stage.browser().signIn('ada@example.com', 'wrong password')
  t.equal((await stage.store.users.byId(id))?.passwordHash, old)
  t.equal((await stage.browser().signIn('ada@example.com')).status, 200)
  t.match((await stage.store.users.byId(id))?.passwordHash, /m=19456,t=2/)
  t.equal((await stage.browser().signIn('ada@example.com')).status, 200)
})

const NEXT = 'another horse entirely'

/** Uses a link that sets the user's password to `NEXT`. */
async function resetPassword(stage: Stage, userId: string): Promise<void> {
  const link = await linkFor(stage, userId)
  const answer = await stage.browser().ask('POST', '/reset', { body: { link, password: NEXT } })
  if (answer.status !== 200) throw new Error(answer.text)
}

/** How many sessions and known devices of the user there are. Ends them. */
async function openedBy({ store: { signInTokens } }: Stage, userId: string): Promise<number[]> {
  return [await signInTokens.end('session', userId, null), await signInTokens.end('device', userId, null)]
}

void t.test('a sign-in during a password reset opens nothing with the old password', async (t) => {
  const stage = await startStage(t)
  const { id } = await stage.account('ada@example.com')
  for (const kind of ['session', 'device']) {
    await stage.store.users.change(id, { passwordHash: await hash(PASSWORD) })
    const reset = beforeNext(t, stage.store.signInTokens, 'add', {
      when: ([token]) => token.kind === kind && token.accountId === id,
      act: () => resetPassword(stage, id),
    })
    const browser = stage.browser()
    const refused = await browser.signIn('ada@example.com')
    t.ok(reset.isDone, `the reset comes before the ${kind} is stored`)
    t.match([refused.status, refused.error['message']], [401, 'Wrong e-mail or password.'])
    t.equal(browser.cookie, '')
    t.same(await openedBy(stage, id), [1, 1], 'only what the reset has opened')
  }
})

void t.test('a hash with less work is not replaced after a password reset', async (t) => {
  const stage = await startStage(t)
  const { id } = await stage.account('ada@example.com')
  const old = await hash(PASSWORD, { memoryCost: 4_096, timeCost: 1, parallelism: 1 })
  await stage.store.users.change(id, { passwordHash: old })
  beforeNext(t, stage.store.users, 'change', { act: () => resetPassword(stage, id) })
  t.equal((await stage.browser().signIn('ada@example.com')).status, 401)
  t.same(await openedBy(stage, id), [1, 1])
  t.equal((await stage.browser().signIn('ada@example.com')).status, 401, 'the old password stays invalid')
  t.equal((await stage.browser().signIn('ada@example.com', NEXT)).status, 200)

  await stage.store.users.change(id, { passwordHash: old })
  const other = stage.browser()
  beforeNext(t, stage.store.users, 'change', {
    act: async () => t.equal((await other.signIn('ada@example.com')).status, 200),
  })
  const both = await stage.browser().signIn('ada@example.com')
  t.equal(both.status, 200, 'another sign-in that replaces the same hash is no reset')
})

void t.test('a password change during a password reset is refused', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const id = (await stage.store.users.byEmail('ada@example.com'))?.id ?? ''
  const change = { body: { current: PASSWORD, next: 'a third horse entirely' } }
  beforeNext(t, stage.store.users, 'change', { act: () => resetPassword(stage, id) })
  const refused = await browser.ask('PUT', '/password', change)
  t.match([refused.status, refused.error['field']], [403, 'current'])
  t.same(await openedBy(stage, id), [1, 1], 'only what the reset has opened')

  await stage.store.users.change(id, { passwordHash: await hash(PASSWORD) })
  await browser.signIn('ada@example.com')
  t.equal((await browser.ask('PUT', '/password', change)).status, 200)
  // The session was written with the password, so that nothing comes between both.
  await resetPassword(stage, id)
  t.same(await openedBy(stage, id), [1, 1], 'a reset after the change ends what it has opened')
  t.equal((await stage.browser().signIn('ada@example.com', NEXT)).status, 200)
})

void t.test('a sign-in while the user or the account is disabled opens nothing', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const { id } = await stage.account('ada@example.com')
  const disable = async (disabled: boolean): Promise<void> => {
    const answer = await root.ask('PATCH', `/accounts/${id}`, { body: { disabled } })
    t.equal(answer.status, 200)
  }
  const ways = [
    { end: () => disable(true), undo: () => disable(false) },
    {
      end: () => stage.store.users.change(id, { disabled: true }),
      undo: () => stage.store.users.change(id, { disabled: false }),
    },
  ]
  for (const { end, undo } of ways) {
    beforeNext(t, stage.store.signInTokens, 'add', {
      when: ([token]) => token.kind === 'session' && token.accountId === id,
      act: end,
    })
    t.equal((await stage.browser().signIn('ada@example.com')).status, 401)
    await undo()
    t.same(await openedBy(stage, id), [0, 0], 'nor later, when the user may enter again')
    t.equal((await stage.browser().signIn('ada@example.com')).status, 200)
    await openedBy(stage, id)
  }
})

void t.test('a sign-in over plain http from another host is refused with the reason', async (t) => {
  const stage = await startStage(t)
  await stage.account('ada@example.com')
  const host = '192.0.2.9:8080'
  // Not `fetch`, which writes the header `host` by itself.
  const asked = request(`${stage.origin}/dashboard/api/session`, {
    method: 'POST',
    headers: { host, origin: `http://${host}`, 'content-type': 'application/json' },
  })
  asked.end(JSON.stringify({ email: 'ada@example.com', password: PASSWORD }))
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 403)
  t.match(await text(response), /plain HTTP\. Use HTTPS or localhost/)
  t.equal(response.headers['set-cookie'], undefined)
})

void t.test('a session ends after 30 idle minutes or after 12 hours', async (t) => {
  const store = await openStore(`sqlite:${join(t.testdir(), 'store')}`)
  t.teardown(() => store.close())
  const account = anAccount()
  const user = aLogin(account)
  await putAccount(store, account, [], user)
  const clock = { nowMs: 1_000_000 }
  const sessions = new Sessions(store, () => clock.nowMs)
  const { secret } = await sessions.open(user)
  clock.nowMs += IDLE_MS - 1
  t.ok(await sessions.find(secret, true), 'polling')
  clock.nowMs += 1
  t.equal(await sessions.find(secret, false), null, 'does not extend it')

  const busy = await sessions.open(user)
  const end = clock.nowMs + SESSION_MS
  while (clock.nowMs + IDLE_MS / 2 < end) {
    clock.nowMs += IDLE_MS / 2
    t.ok(await sessions.find(busy.secret, false), 'user activity does')
  }
  t.equal((await sessions.find(busy.secret, false))?.endsAtMs, end)
  clock.nowMs = end
  t.equal(await sessions.find(busy.secret, false), null, 'but not for ever')
  t.equal(await sessions.find('', false), null)
})
