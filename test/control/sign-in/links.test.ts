/**
 * Goal: set-up of the first administrator, password links and sign-up work without e-mails.
 * Method: the gateway's links are used once, twice, after they expire, and by several clients at once.
 */
import t from 'tap'
import { roleOf } from '../../../src/accounts/account.js'
import { PasswordQueue } from '../../../src/accounts/password-queue.js'
import { openDataPlane } from '../../../src/process/data-plane.js'
import { createdAccountReply, resetLinkReply } from '../../../src/control/dashboard/schema/schema.js'
import { newSignInSecret } from '../../../src/control/sign-in/sessions.js'
import { offerSetUp, redeemSetUp } from '../../../src/control/sign-in/set-up.js'
import { createLogger } from '../../../src/observe/log.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { beforeNext } from '../../dashboard/fixtures/before-next.js'
import { PASSWORD, startStage, type Answer, type Stage } from '../../dashboard/fixtures/stage.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { ofToday } from '../../helpers/long-suite.js'

function secretIn(url: string | null): string {
  if (url === null) throw new Error('the link was mailed')
  return url.slice(url.indexOf('#') + 1)
}

void t.test('the printed link creates the first administrator once', async (t) => {
  const stage = await startStage(t)
  const link = newSignInSecret()
  t.ok(await offerSetUp(stage.store, link, Date.now()), 'the first process tells')
  t.notOk(await offerSetUp(stage.store, link, Date.now()), 'the others need not')
  const later = newSignInSecret()
  t.ok(await offerSetUp(stage.store, later, Date.now()))
  const email = 'root@example.com'
  const ask = (body: object) => stage.browser().ask('POST', '/setup', { body })
  for (const [body, param] of [
    [{ link: later, email: 'root', password: PASSWORD }, 'email'],
    [{ link: later, email, password: 'short' }, 'password'],
    [{ link: later, email: 'test@example.com', password: PASSWORD }, 'email'],
  ] as const) {
    const answer = await ask(body)
    t.match([answer.status, answer.error['field']], [400, param], 'a slip does not cost the link')
  }
  const entered = await Promise.all(
    Array.from({ length: 5 }, (_, at) =>
      ask({ link: later, email: `root${at}@example.com`, password: PASSWORD }),
    ),
  )
  const good = entered.filter(({ status }) => status === 200)
  t.match(good, [{ json: { account: { role: 'admin' } } }])
  t.equal(good.length, 1, 'one of five')
  t.equal(
    await stage.store.signInTokens.end('set-up', '', null),
    0,
    'the link of an earlier start ended, too',
  )
  t.equal((await ask({ link, email, password: PASSWORD })).status, 403)
  t.notOk(await offerSetUp(stage.store, newSignInSecret(), Date.now()), 'and then never again')
  t.match((await stage.browser().get('/session')).json, { needsSetUp: false })
})

/** The e-mail addresses of the administrators. */
async function administrators({ store }: Stage): Promise<string[]> {
  const { items } = await store.users.list({ after: null, limit: 100 })
  return items.filter((user) => roleOf(user) === 'admin').map(({ email }) => email)
}

for (const engine of ofToday(['SQLite', 'Redis'], 2)) {
  const name = `the links of machines that start together create one administrator, ${engine}`
  const skip = engine === 'Redis' && redisMissing()
  void t.test(name, { skip }, async (t) => {
    const settings = engine === 'SQLite' ? {} : { store: (await startRedis(t)).url() }
    const stage = await startStage(t, settings)
    const links = Array.from({ length: 4 }, newSignInSecret)
    for (const link of links) t.ok(await offerSetUp(stage.store, link, Date.now()), 'each machine prints one')
    const use = (link = '', name = 'root') =>
      stage.browser().ask('POST', '/setup', {
        body: { link, email: `${name}@example.com`, password: PASSWORD },
      })
    const slip = await use(links[0], 'test')
    t.match([slip.status, slip.error['field']], [400, 'email'], 'every link is valid, also after a slip')
    // Each has found its link and no administrator when the first one hashes its password.
    const late: Promise<Answer>[] = []
    const first = beforeNext(t, new PasswordQueue(), 'hash', {
      act: async () => {
        for (const [at, link] of links.slice(1, 3).entries()) late.push(use(link, `late${at}`))
        t.match(await Promise.all(late), [{ status: 403 }, { status: 403 }])
      },
    })
    t.equal((await use(links[0])).status, 200)
    t.ok(first.isDone)
    t.same(await administrators(stage), ['root@example.com'])
    for (const link of links) t.equal((await use(link, 'more')).status, 403)
    t.same(await administrators(stage), ['root@example.com'])
    t.equal(await stage.store.signInTokens.end('set-up', '', null), 0)
  })
}

void t.test('a link that was found before another one was used creates no administrator', async (t) => {
  const stage = await startStage(t)
  const links = [newSignInSecret(), newSignInSecret()]
  for (const link of links) await offerSetUp(stage.store, link, Date.now())
  const use = (link = '', name = '') =>
    stage.browser().ask('POST', '/setup', {
      body: { link, email: `${name}@example.com`, password: PASSWORD },
    })
  // Before its first write, with every check passed.
  const write = beforeNext(t, stage.store.signInTokens, 'add', {
    when: ([{ kind }]) => kind === 'set-up',
    act: async () => t.equal((await use(links[1], 'root')).status, 200),
  })
  t.match(await use(links[0], 'late'), { status: 403, error: { message: /invalid or has expired/ } })
  t.ok(write.isDone)
  t.same(await administrators(stage), ['root@example.com'])
})

void t.test('a process that ends while it uses a link blocks the others for a minute', async (t) => {
  const { store } = await startStage(t)
  const [first, second] = ['a'.repeat(64), 'b'.repeat(64)] as const
  const link = { kind: 'set-up', accountId: '', expiresAtMs: 1_000_000, text: '' } as const
  for (const id of [first, second]) await store.signInTokens.add({ ...link, id })
  const clock = { nowMs: 1_000 }
  const now = () => clock.nowMs
  await new Promise<void>((resolve) => {
    void redeemSetUp(store, { id: first, now }, () => {
      resolve()
      return new Promise(() => undefined)
    })
  })
  const retry = () => redeemSetUp(store, { id: second, now }, () => Promise.resolve('made'))
  clock.nowMs += 59_000
  await t.rejects(retry(), /try again/)
  clock.nowMs += 1_000
  t.equal(await retry(), 'made', 'the refused link was not used up')
})

void t.test('a gateway without an administrator prints the link', async (t) => {
  const stage = await startStage(t)
  const links: string[] = []
  const log = createLogger({ level: 'silent' })
  const plane = await openDataPlane(stage.gateway.reload(), {
    log,
    metrics: new Metrics(),
    setUpSecret: 's'.repeat(43),
    onSetUp: (url) => links.push(url),
  })
  t.teardown(() => plane.drain())
  t.same(links, [`http://127.0.0.1:${plane.port}/dashboard/setup#${'s'.repeat(43)}`])
})

void t.test('an administrator creates an account and replaces a lost password', async (t) => {
  const stage = await startStage(t)
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const answer = await admin.ask('POST', '/accounts', {
    body: { email: 'new@example.com', plan: 'pro' },
  })
  const { account, link } = createdAccountReply.parse(answer.json)
  t.match(account, { email: 'new@example.com', plan: 'pro', role: 'owner', liveKeys: 0 })
  t.equal((await stage.browser().signIn('new@example.com', '')).status, 401, 'no password is none')
  const first = secretIn(link?.url ?? null)
  const again = await admin.ask('POST', `/accounts/${account.id}/reset`, { body: {} })
  const second = secretIn(resetLinkReply.parse(again.json).link.url)
  const use = (secret: string, password = PASSWORD) =>
    stage.browser().ask('POST', '/reset', { body: { link: secret, password } })
  t.equal((await use(first)).status, 403, 'only the last link is good')
  t.equal((await use(second, 'password')).status, 400)
  const used = await use(second)
  t.match([used.status, used.json], [200, { account: { email: 'new@example.com' } }])
  t.equal((await use(second)).status, 403, 'once')
  t.equal((await stage.browser().signIn('new@example.com')).status, 200)
  for (const wrong of [newSignInSecret(), 'short', '*'.repeat(43), first.slice(1)]) {
    t.ok([400, 403].includes((await use(wrong)).status))
  }
  const taken = await admin.ask('POST', '/accounts', {
    body: { email: 'NEW@example.com', plan: 'pro' },
  })
  t.match([taken.status, taken.error['field']], [400, 'email'])
})

void t.test('sign-up works only if it is configured', async (t) => {
  const body = { email: 'me@example.com', password: PASSWORD }
  const closed = await startStage(t)
  t.equal((await closed.browser().ask('POST', '/sign-up', { body })).status, 403)
  t.equal(await closed.store.accountByEmail(body.email), null)

  await t.test('open', async (t) => {
    const open = await startStage(t, { more: 'dashboard: { self_sign_up: true }' })
    await open.account('ada@example.com', 'pro')
    const fresh = await open.browser().ask('POST', '/sign-up', { body })
    const taken = await open.browser().ask('POST', '/sign-up', {
      body: {
        email: 'ada@example.com',
        password: 'another horse entirely',
      },
    })
    t.same([fresh.status, fresh.text], [200, '{}'])
    t.same([taken.status, taken.text], [200, '{}'], 'K-165: the same for one that is there')
    const hashes = beforeNext(t, new PasswordQueue(), 'hash', { act: () => Promise.resolve() })
    await open.browser().ask('POST', '/sign-up', { body: { ...body, email: 'ada@example.com' } })
    t.ok(hashes.isDone, 'after the same time: the password is hashed in both cases')
    t.match(await open.store.accountByEmail('ada@example.com'), { plan: 'pro' })
    t.equal((await open.browser().signIn('ada@example.com')).status, 200, 'which is untouched')
    t.match((await open.browser().signIn(body.email)).json, {
      account: { role: 'owner', plan: { name: 'starter' } },
    })
    for (const password of ['1', 'iloveyou', 'x'.repeat(1_025)]) {
      const answer = await open.browser().ask('POST', '/sign-up', { body: { ...body, password } })
      t.match([answer.status, answer.error['field']], [400, 'password'], 'K-175')
    }
  })
})

void t.test('K-175: a password may be long, of any script, and begin with a space', async (t) => {
  const stage = await startStage(t, { more: 'dashboard: { self_sign_up: true }' })
  const passwords = [
    'x'.repeat(1_000),
    'пароль из слов',
    '  leading spaces',
    '🐎🐎🐎🐎🐎🐎🐎🐎',
    'é'.repeat(8),
  ]
  for (const [at, password] of passwords.entries()) {
    const email = `p${at}@example.com`
    t.equal((await stage.browser().ask('POST', '/sign-up', { body: { email, password } })).status, 200)
    t.equal((await stage.browser().signIn(email, password)).status, 200)
    t.equal((await stage.browser().signIn(email, password.trim().slice(0, -1))).status, 401)
  }
  const watch = stopwatch()
  const body = { email: 'big@example.com', password: 'x'.repeat(1_000_000) }
  t.equal((await stage.browser().ask('POST', '/sign-up', { body })).status, 413)
  t.ok(watch() < 1_000, 'and a megabyte is not hashed')
})
