/**
 * Goal: a failure at any write of set-up, sign-up, a new password by a link, a sign-in with a password or an
 * identity provider leaves accounts, users, roles, keys and the audit trail unchanged or changes all of them,
 * and the same attempt succeeds afterwards. What takes several steps because it changes several accounts is
 * completed by the next attempt.
 * Method: each write fails once in the store of a running gateway, as in `faults-at-doors.test.ts`.
 */
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { oidcStartReply } from '../../../src/control/dashboard/schema/schema.js'
import { makeLink } from '../../../src/control/sign-in/links.js'
import { newSignInSecret } from '../../../src/control/sign-in/sessions.js'
import { offerSetUp } from '../../../src/control/sign-in/set-up.js'
import { Browser, PASSWORD, startStage, type Answer } from '../../dashboard/fixtures/stage.js'
import { ofToday } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { scene, type Scene } from '../sign-in/oidc-stage.js'
import type { Person } from '../sign-in/identity-provider.js'
import type { Faults } from './faults.js'
import { RedisFaults } from './redis-faults.js'
import { SqliteFaults } from './sqlite-faults.js'

const NEXT = 'another horse entirely'

/** An attempt from its start, in a browser of its own. */
interface Attempt {
  readonly run: () => Promise<Answer>
  /** Whether all of it is one write; otherwise the next attempt completes it. */
  readonly isOneStep: boolean
  /** Entries of the audit trail that a further attempt adds. */
  readonly repeats?: readonly string[]
}

/** What an attempt is for: everything but sign-ins, which an attempt that failed may leave. */
function outcome(state: Record<string, string[]>, repeats: readonly string[] = []): Record<string, string[]> {
  const entries = (state['trail'] ?? []).filter((entry) => !repeats.some((action) => entry.includes(action)))
  return { ...state, passes: [], trail: entries }
}

async function checkAttempt(
  t: Test,
  name: string,
  faults: Faults,
  { run, isOneStep, repeats = [] }: Attempt,
): Promise<void> {
  await faults.arm(null)
  const before = outcome(await faults.state(), repeats)
  const done = await run()
  t.ok(done.status < 300, `${name}: ${done.text}`)
  const whole = outcome(await faults.state(), repeats)
  const writes = [...faults.written()]
  t.ok(writes.length > 0, `${name} writes: ${writes.join(', ')}`)
  for (const [at, write] of writes.entries()) {
    const what = `${name}: ${at} ${write}`
    await faults.arm(at)
    const failed = await run()
    faults.disarm()
    const after = outcome(await faults.state(), repeats)
    const isMade = JSON.stringify(after) !== JSON.stringify(before)
    if (isMade && (isOneStep || failed.status < 300)) t.same(after, whole, `${what}: whole or not at all`)
    if (failed.status < 300) continue
    const again = await run()
    t.ok(again.status < 300, `${what}, again: ${again.text}`)
    t.same(outcome(await faults.state(), repeats), whole, `${what}, again: whole`)
  }
}

function faultsOf(t: Test, configFile: string): SqliteFaults {
  const faults = new SqliteFaults(join(dirname(configFile), 'data/sluice.db'))
  t.teardown(() => faults.close())
  return faults
}

async function addPeople(stage: Scene) {
  const { store, gateway } = stage
  const root = await createAccount(store, {
    ...{ email: 'root@example.com', plan: 'max', password: PASSWORD, role: 'admin' },
  } as const)
  const ada = await stage.account('ada@example.com')
  const { user: eve } = await createUser(store, { email: 'eve@example.com', password: { none: true } })
  await setMember(store, { account: ada, user: eve, role: 'member', nowMs: Date.now(), audit: () => [] })
  const parts = { store, snapshot: () => gateway.load(), now: Date.now, mail: () => undefined }
  const linkFor = async (id: string) => {
    const user = await store.users.byId(id)
    if (user === null) throw new Error('the user exists')
    const maker = { as: 'administrator', id: root.account.id } as const
    const { url } = await makeLink(parts, { maker, user, account: null, origin: stage.origin })
    return /#(.*)$/.exec(url ?? '')?.[1] ?? ''
  }
  return { links: { ada: await linkFor(ada.id), eve: await linkFor(eve.id) } }
}

function attemptsOf(
  stage: Scene,
  { links }: Awaited<ReturnType<typeof addPeople>>,
): Readonly<Record<string, Attempt>> {
  const post = (path: string, body: object) => () => new Browser(stage.origin).ask('POST', path, { body })
  const through = (person: Person) => async (): Promise<Answer> => {
    const browser = new Browser(stage.origin)
    stage.provider.person = person
    const started = await browser.ask('POST', '/oidc/start', { body: {} })
    if (started.status >= 300) return started
    const query = await stage.provider.visit(oidcStartReply.parse(started.json).url)
    return browser.ask('POST', '/oidc/finish', { body: { query } })
  }
  const signIns = ['session.sign-in', 'session.sign-in-oidc']
  return {
    'sign-in': {
      run: post('/session', { email: 'ada@example.com', password: PASSWORD }),
      isOneStep: false,
      repeats: signIns,
    },
    'a new password of a proven user': {
      run: post('/reset', { link: links.ada, password: NEXT }),
      isOneStep: false,
      repeats: ['account.password-by-link'],
    },
    'the first password of an invited user': {
      run: post('/reset', { link: links.eve, password: NEXT }),
      isOneStep: false,
      repeats: ['account.password-by-link'],
    },
    'the first sign-in of a user at the provider': {
      run: through({ email: 'ada@example.com', verified: true }),
      isOneStep: false,
      repeats: [...signIns, 'user.bind'],
    },
    'the first sign-in of an invited user at the provider': {
      run: through({ email: 'eve@example.com', verified: true }),
      isOneStep: false,
      repeats: [...signIns, 'user.bind'],
    },
    'an account by the provider': {
      run: through({ email: 'kim@example.com', verified: true, sub: 'kim' }),
      isOneStep: false,
      repeats: [...signIns, 'user.bind'],
    },
  }
}

/** The provider makes accounts. */
const BY_PROVIDER = { more: ', create_accounts: true' }
/** Visitors make accounts, which is not possible with a provider. */
const BY_VISITORS = { hasProvider: false, rest: 'self_sign_up: true' }

async function checkAll(
  t: Test,
  stage: Scene,
  people: Awaited<ReturnType<typeof addPeople>>,
  faults: Faults,
) {
  for (const [name, attempt] of ofToday(Object.entries(attemptsOf(stage, people)), 3)) {
    await checkAttempt(t, name, faults, attempt)
  }
  stage.configure(BY_VISITORS)
  const body = { email: 'new@example.com', password: NEXT }
  await checkAttempt(t, 'sign-up', faults, {
    run: () => new Browser(stage.origin).ask('POST', '/sign-up', { body }),
    isOneStep: true,
  })
}

void t.test('faults of sign-in (SQLite)', async (t) => {
  const stage = await scene(t)
  stage.configure(BY_PROVIDER)
  const people = await addPeople(stage)
  await checkAll(t, stage, people, faultsOf(t, stage.gateway.configFile))
})

void t.test('faults of sign-in (Redis)', { skip: redisMissing() }, async (t) => {
  const faults = await RedisFaults.start(t, await startRedis(t))
  const stage = await scene(t, undefined, { store: faults.url })
  stage.configure(BY_PROVIDER)
  const people = await addPeople(stage)
  await faults.keep()
  await checkAll(t, stage, people, faults)
})

/** Fails one write of the set-up of a new gateway, which has one; the number of its writes. */
async function checkSetUp(t: Test, at: number | null, redis: boolean): Promise<number> {
  const over = redis ? await RedisFaults.start(t, await startRedis(t)) : null
  const stage = await startStage(t, over === null ? {} : { store: over.url })
  const link = newSignInSecret()
  t.ok(await offerSetUp(stage.store, link, Date.now()))
  const faults = over ?? faultsOf(t, stage.gateway.configFile)
  await over?.keep()
  await faults.arm(at)
  const body = { link, email: 'root@example.com', password: PASSWORD }
  const first = await stage.browser().ask('POST', '/setup', { body })
  const writes = [...faults.written()]
  const what = `${at ?? 'none'} ${at === null ? '' : (writes[at] ?? '')}`
  faults.disarm()
  const user = await stage.store.users.byEmail(body.email)
  const account = await stage.store.accountByEmail(body.email)
  const trail = await stage.store.auditTrail.page({ accountId: null, after: null, limit: 9 })
  t.same([user === null, trail.length === 0], [account === null, account === null], `${what}: whole or not`)
  if (user === null) {
    // A transaction of SQLite that fails takes its count back, so that the end of the claim may fail, too:
    // it ends after a minute.
    await stage.store.signInTokens.take('set-up', '0'.repeat(64), Date.now())
    const again = await stage.browser().ask('POST', '/setup', { body })
    t.equal(again.status, 200, `${what}, again: ${again.text}`)
  } else if (first.status >= 300) {
    t.equal((await stage.browser().signIn(body.email)).status, 200, `${what}: the administrator signs in`)
  }
  t.match(await stage.store.users.byEmail(body.email), { role: 'admin' }, what)
  return writes.length
}

for (const store of ['SQLite', 'Redis'] as const) {
  const skip = store === 'Redis' && redisMissing()
  void t.test(`faults of set-up (${store})`, { skip }, async (t) => {
    const count = await checkSetUp(t, null, store === 'Redis')
    t.ok(count > 2, `${count} writes`)
    for (const at of ofToday(Array(count).keys(), 3)) {
      await t.test(`write ${at}`, async (t) => void (await checkSetUp(t, at, store === 'Redis')))
    }
  })
}
