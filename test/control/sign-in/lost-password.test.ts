/**
 * Goal: a user who has lost the password gets a link by mail; the reply tells nothing about the address, and
 * the link ends with the user's identity, state or next password.
 * Method: a gateway with a mail server that keeps what it gets; both stores.
 */
import t, { type Test } from 'tap'
import { startMailServer } from '../../helpers/mail-server.js'
import { startRedis } from '../../helpers/redis.js'
import { until } from '../../process/program.js'
import { startStage } from '../../dashboard/fixtures/stage.js'

const NEXT = 'another horse entirely'

async function check(t: Test, store?: string): Promise<void> {
  const server = await startMailServer(t)
  const more = `smtp: { url: 'smtp://127.0.0.1:${server.port}', from: 'Sluice <sluice@example.com>' }`
  const stage = await startStage(t, { more, ...(store === undefined ? {} : { store }) })
  await stage.signedIn('ada@example.com')
  const id = (await stage.store.users.byEmail('ada@example.com'))?.id ?? ''
  const lost = async (email: string) => {
    const { status, text } = await stage.browser().ask('POST', '/lost-password', { body: { email } })
    return [status, text]
  }
  const linkOf = async (count: number): Promise<string> => {
    await until(() => server.received.length === count)
    const mail = (server.received.at(-1) ?? '').replaceAll('=\r\n', '').replaceAll('=3D', '=')
    t.match(mail, /To: ada@example\.com/)
    return /reset#([\w-]+)/.exec(mail)?.[1] ?? ''
  }
  const use = (link: string, password = NEXT) =>
    stage.browser().ask('POST', '/reset', { body: { link, password } })

  t.match((await stage.browser().get('/session')).json, { mails: true })
  t.strictSame(await lost('none@example.com'), [200, '{}'])
  t.strictSame(await lost('ada@example.com'), [200, '{}'], 'the same words')
  const first = await linkOf(1)
  t.equal((await stage.browser().signIn('ada@example.com')).status, 200, 'the password holds until then')
  await lost('ada@example.com')
  const second = await linkOf(2)
  t.equal((await use(first)).status, 403, 'the last mail counts')
  const old = stage.browser()
  await old.signIn('ada@example.com')
  t.equal((await use(second)).status, 200)
  t.match((await old.get('/session')).json, { user: null }, 'other sessions end')
  t.equal((await use(second)).status, 403, 'once')
  t.equal((await stage.browser().signIn('ada@example.com')).status, 401)
  t.equal((await stage.browser().signIn('ada@example.com', NEXT)).status, 200)

  await lost('ada@example.com')
  const third = await linkOf(3)
  await stage.store.users.change(id, { disabled: true })
  t.equal((await use(third)).status, 403, 'a disabled user')
  // The user stays disabled: the request is handled after its reply.
  t.strictSame(await lost('ada@example.com'), [200, '{}'])
  t.equal(
    (await stage.browser().ask('POST', '/lost-password', { body: { email: 'no address' } })).status,
    400,
  )
  const entries = await stage.store.auditTrail.page({ accountId: id, after: null, limit: 50 })
  t.equal(entries.filter(({ action }) => action === 'account.password-lost').length, 3)
}

void t.test('SQLite', (t) => check(t))
void t.test('Redis', async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})

void t.test('without smtp an administrator makes the link', async (t) => {
  const stage = await startStage(t)
  const asked = await stage.browser().ask('POST', '/lost-password', { body: { email: 'ada@example.com' } })
  t.match([asked.status, asked.error['message']], [403, /administrator/])
})
