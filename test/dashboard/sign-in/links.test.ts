/**
 * Goal: set-up of the first administrator, password links and sign-up work without e-mails.
 * Method: the gateway's links are used once, twice, after they expire, and by several clients at once.
 */
import t from 'tap'
import { openDataPlane } from '../../../src/process/data-plane.js'
import { createdAccountReply, resetLinkReply } from '../../../src/dashboard/server/schema/schema.js'
import { newSignInSecret } from '../../../src/dashboard/server/sign-in/sessions.js'
import { offerSetUp } from '../../../src/dashboard/server/sign-in/set-up.js'
import { createLogger } from '../../../src/observe/log.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'
import { stopwatch } from '../../helpers/stopwatch.js'

function secretIn(url: string): string {
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
  t.equal((await ask({ link, email, password: PASSWORD })).status, 403, 'of an earlier start')
  for (const [body, param] of [
    [{ link: later, email: 'root', password: PASSWORD }, 'email'],
    [{ link: later, email, password: 'short' }, 'password'],
    [{ link: later, email: 'test@example.com', password: PASSWORD }, 'email'],
  ] as const) {
    const answer = await ask(body)
    t.match([answer.status, answer.error['param']], [400, param], 'a slip does not cost the link')
  }
  const entered = await Promise.all(
    Array.from({ length: 5 }, (_, at) =>
      ask({ link: later, email: `root${at}@example.com`, password: PASSWORD }),
    ),
  )
  const good = entered.filter(({ status }) => status === 200)
  t.match(good, [{ json: { account: { role: 'admin' } } }])
  t.equal(good.length, 1, 'one of five')
  t.notOk(await offerSetUp(stage.store, newSignInSecret(), Date.now()), 'and then never again')
  t.match((await stage.browser().get('/session')).json, { needsSetUp: false })
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
  const first = secretIn(link.url)
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
  t.match([taken.status, taken.error['param']], [400, 'email'])
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
    t.match(await open.store.accountByEmail('ada@example.com'), { plan: 'pro' })
    t.equal((await open.browser().signIn('ada@example.com')).status, 200, 'which is untouched')
    t.match((await open.browser().signIn(body.email)).json, {
      account: { role: 'owner', plan: { name: 'starter' } },
    })
    for (const password of ['1', 'iloveyou', 'x'.repeat(1_025)]) {
      const answer = await open.browser().ask('POST', '/sign-up', { body: { ...body, password } })
      t.match([answer.status, answer.error['param']], [400, 'password'], 'K-175')
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
