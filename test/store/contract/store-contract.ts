/**
 * What every engine must do, asked from outside: the one suite that all of them pass. An engine is
 * given as a function from a test to the URL of a new, empty store.
 */
import t, { type Test } from 'tap'
import type { KeyChange, Store } from '../../../src/store/store.js'
import { openStore } from '../../../src/store/open-store.js'
import { GatewayError } from '../../../src/errors.js'
import { attempts, auditEntries, changes, tokens, trail } from './record-changes.js'
import { bounds, identity, lists, removal, retention } from './lists.js'
import { killedWriter, otherProcess } from '../processes/start-processes.js'
import { aKey, anAccount } from './sample-records.js'
import { ROOM, shelf, shelved, shelfRoom } from './shared-cache.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'

export type NewUrl = (t: Test) => string | Promise<string>

/** Registers the tests of one engine. */
export function storeContract(engine: string, newUrl: NewUrl): void {
  void t.test(engine, (t) => {
    void t.test('accounts', (t) => accounts(t, newUrl))
    void t.test('keys', (t) => keys(t, newUrl))
    void t.test('revocation', (t) => revocation(t, newUrl))
    void t.test('pages', (t) => lists(t, newUrl))
    void t.test('the removal of keys', (t) => removal(t, newUrl))
    void t.test('the retention of keys', (t) => retention(t, newUrl))
    void t.test('bounds', (t) => bounds(t, newUrl))
    void t.test('identity', (t) => identity(t, newUrl))
    void t.test('the limit of keys', (t) => keyLimit(t, newUrl))
    void t.test('news of changes', (t) => news(t, newUrl))
    void t.test('lasting', (t) => lasting(t, newUrl))
    void t.test('what changes', (t) => changes(t, newUrl))
    void t.test('tokens', (t) => tokens(t, newUrl))
    void t.test('attempts', (t) => attempts(t, newUrl))
    void t.test('the trail', (t) => trail(t, newUrl))
    void t.test('a change and its audit entries', (t) => auditEntries(t, newUrl))
    void t.test('the shelf', (t) => shelf(t, newUrl))
    void t.test('the room of the shelf', (t) => shelfRoom(t, newUrl))
    void t.test('a killed writer', (t) => killed(t, newUrl))
    void t.test('closing', (t) => closing(t, newUrl))
    t.end()
  })
}

async function opened(t: Test, url: string): Promise<Store> {
  const store = await openStore(url)
  t.teardown(() => store.close())
  return store
}

async function accounts(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount({ email: 'Ada@Example.com' })
  const bob = anAccount({ createdAtMs: 5 })

  t.equal(await store.accountById(ada.id), null, 'there is no account yet')
  t.equal(await store.accountByEmail(ada.email), null)
  t.same(await allAccounts(store), [])

  t.equal(await store.createAccount(ada), 'created')
  t.equal(await store.createAccount(bob), 'created')
  t.same(await store.accountById(ada.id), ada, 'by id')
  t.same(await store.accountByEmail('aDA@example.COM'), ada, 'by e-mail, in any case')
  t.same(await allAccounts(store), [ada, bob], 'in order of creation, not of date')

  const again = anAccount({ email: 'ADA@EXAMPLE.COM' })
  t.equal(await store.createAccount(again), 'email_taken')
  t.equal(await store.createAccount(anAccount({ id: bob.id })), 'id_taken')
  t.equal(await store.accountById(again.id), null, 'the refused one is not there')

  t.same(await store.changeAccount(bob.id, { plan: 'max' }), { ...bob, plan: 'max' })
  t.same(await store.accountById(bob.id), { ...bob, plan: 'max' })
  t.equal(await store.changeAccount('acc_unknown', { plan: 'max' }), null)

  for (const odd of ['', ' ', 'a b', '\0', `${ada.id}\0`, 'x'.repeat(5_000), 'ü'.repeat(2_000)]) {
    t.equal(
      await store.accountById(odd),
      null,
      `no account has the id ${JSON.stringify(odd.slice(0, 12))}`,
    )
    t.equal(await store.accountByEmail(odd), null)
    t.equal(await store.changeAccount(odd, { plan: 'pro' }), null)
    t.equal(await store.createAccount(anAccount({ id: odd })), 'bad_name')
    t.equal(await store.createAccount(anAccount({ email: odd })), 'bad_name')
  }
  await store.probe()

  const email = 'race@example.com'
  const raced = await Promise.all(
    Array.from({ length: 50 }, () => store.createAccount(anAccount({ email }))),
  )
  t.equal(raced.filter((outcome) => outcome === 'created').length, 1, 'one of fifty wins')
}

async function keys(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount({ id: `${ada.id}/x` })
  await store.createAccount(ada)
  await store.createAccount(bob)
  const first = aKey(ada.id, { name: 'Ünïcode — "quoted"\\ 🔑' })
  const second = aKey(ada.id, { createdAtMs: 1 })
  const other = aKey(bob.id)
  for (const key of [first, second, other]) t.equal(await store.createKey(key, 5), 'created')

  t.same(await store.findKey(first.digest), { key: first, account: ada }, 'key and account at once')
  t.same(
    await allKeys(store, ada.id),
    [first, second],
    'in order of creation, and only of the account',
  )
  t.same(await allKeys(store, bob.id), [other])
  t.same(await allKeys(store, 'acc_unknown'), [])

  t.equal(await store.createKey(aKey('acc_unknown'), 5), 'no_account')
  t.equal(await store.createKey(aKey(ada.id, { digest: other.digest }), 5), 'id_taken')
  t.equal(await store.createKey(aKey(ada.id, { id: other.id }), 5), 'id_taken')
  t.equal(await store.createKey(aKey(ada.id, { digest: '' }), 5), 'bad_name')
  t.same(await store.findKey(other.digest), { key: other, account: bob }, 'theirs is untouched')

  const { digest } = first
  const near = [
    digest.slice(0, 63),
    `${digest}0`,
    digest.toUpperCase(),
    ` ${digest}`,
    '',
    '*',
    '\0',
  ]
  for (const asked of near) {
    const is = asked === digest ? first : null
    t.equal(await store.findKey(asked), is, 'only the whole digest finds a key')
  }

  await store.changeAccount(ada.id, { plan: 'pro' })
  t.equal((await store.findKey(digest))?.account.plan, 'pro', 'a look-up sees the plan of now')
}

async function revocation(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount()
  await store.createAccount(ada)
  await store.createAccount(bob)
  const key = aKey(ada.id)
  await store.createKey(key, 5)

  t.equal(await store.revokeKey(bob.id, key.id, 7), false, 'not by another account')
  t.equal(await store.revokeKey(ada.id, 'key_none', 7), false)
  t.equal(await store.revokeKey(ada.id, '\0', 7), false)
  t.same((await store.findKey(key.digest))?.key, key, 'and it still works')

  t.equal(await store.revokeKey(ada.id, key.id, 7), true)
  const revoked = { ...key, revokedAtMs: 7 }
  t.same((await store.findKey(key.digest))?.key, revoked, 'it stays, as revoked')
  t.equal(await store.revokeKey(ada.id, key.id, 9), true, 'again is no error')
  t.same(await allKeys(store, ada.id), [revoked], 'and keeps the first time')

  t.equal(await store.createKey(key, 5), 'id_taken', 'its digest stays in use')
  t.equal(await store.createKey(aKey(bob.id, { digest: key.digest }), 5), 'id_taken')
  t.same((await store.findKey(key.digest))?.key, revoked)
}

async function keyLimit(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await opened(t, url)
  const other = await otherProcess(t, url)

  const ada = anAccount()
  await store.createAccount(ada)
  const made = Array.from({ length: 5 }, () => aKey(ada.id))
  for (const key of made) t.equal(await store.createKey(key, 5), 'created')
  t.equal(await store.createKey(aKey(ada.id), 5), 'plan_limit', 'the sixth of five')
  for (const { id } of made.slice(0, 2)) await store.revokeKey(ada.id, id, 1)
  for (const { id } of made.slice(0, 1)) await store.revokeKey(ada.id, id, 2)
  t.equal(await store.createKey(aKey(ada.id), 5), 'created', 'a revoked key does not count')
  t.equal(await store.createKey(aKey(ada.id), 5), 'created')
  t.equal(await store.createKey(aKey(ada.id), 5), 'plan_limit', 'and counts once, revoked twice')
  t.equal(
    await store.createKey(aKey(ada.id), 3),
    'plan_limit',
    'a smaller plan keeps what is there',
  )
  t.equal(await store.createKey(aKey(ada.id), null), 'created', 'null is no limit')

  for (const limit of [5, 5, 20, 1, 0]) {
    const owner = anAccount()
    await store.createAccount(owner)
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, at) => {
        const key = aKey(owner.id)
        const order = { op: 'createKey', key, maxKeys: limit } as const
        return at % 2 === 0 ? store.createKey(key, limit) : other.tell(order)
      }),
    )
    const created = outcomes.filter((outcome) => outcome === 'created').length
    t.equal(created, limit, `200 at once in two processes: exactly ${limit}`)
    t.equal((await allKeys(store, owner.id)).length, limit)
  }
}

async function news(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await opened(t, url)
  const other = await otherProcess(t, url)
  const ada = anAccount()
  await store.createAccount(ada)
  const changes = new ChangeLog()
  const stop = store.subscribe((change) => changes.receive(change))

  const key = aKey(ada.id)
  await other.tell({ op: 'createKey', key, maxKeys: 5 })
  t.ok((await changes.of(key.digest)) <= 500, 'a key made elsewhere')
  await other.tell({ op: 'revokeKey', accountId: ada.id, keyId: key.id })
  t.ok((await changes.of(key.digest)) <= 500, 'a key revoked elsewhere')
  t.equal((await store.findKey(key.digest))?.key.revokedAtMs, 1, 'and a look-up sees it')
  await other.tell({ op: 'changeAccount', accountId: ada.id, edit: { plan: 'pro' } })
  t.ok((await changes.of(null)) <= 500, 'a plan changed elsewhere: any key may have changed')

  const mine = aKey(ada.id)
  await store.createKey(mine, 5)
  t.ok((await changes.of(mine.digest)) <= 500, 'our own changes too')

  stop()
  const silent = aKey(ada.id)
  const late = new ChangeLog()
  const stopLate = store.subscribe((change) => late.receive(change))
  await other.tell({ op: 'createKey', key: silent, maxKeys: 5 })
  await late.of(silent.digest)
  t.equal(late.count, 1, 'a late subscriber receives no earlier change')
  t.equal(changes.count, 4, 'no change after unsubscribing')
  stopLate()
  stopLate()
}

/** Waits for a change; how long each took. */
class ChangeLog {
  count = 0
  private readonly changes: (string | null)[] = []
  private awaited: (() => void) | null = null

  receive(change: KeyChange): void {
    this.count += 1
    this.changes.push(change.digest)
    this.awaited?.()
  }

  async of(digest: string | null): Promise<number> {
    const from = performance.now()
    while (this.changes.shift() !== digest) {
      if (this.changes.length > 0) continue
      await new Promise<void>((resolve) => (this.awaited = resolve))
    }
    return performance.now() - from
  }
}

async function lasting(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const ada = anAccount()
  const key = aKey(ada.id)
  const gone = aKey(ada.id)
  const store = await openStore(url)
  await store.createAccount(ada)
  await store.createKey(key, 5)
  await store.createKey(gone, 5)
  await store.revokeKey(ada.id, gone.id, 3)
  await store.changeAccount(ada.id, { plan: 'max' })
  await store.close()

  const again = await opened(t, url)
  const account = { ...ada, plan: 'max' }
  t.same(await again.findKey(key.digest), { key, account })
  t.same(await allKeys(again, ada.id), [key, { ...gone, revokedAtMs: 3 }])
  t.same(await allAccounts(again), [account])
}

async function killed(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  // Open all the time, as a worker of the gateway is when another one is killed.
  const store = await opened(t, url)
  const ada = anAccount()
  await store.createAccount(ada)
  let lost = 0
  let valid = 0
  let acknowledged = 0
  for (let round = 0; round < 20; round += 1) {
    const lines = await killedWriter(url, ada.id, 1 + ((round * 7) % 40))
    for (const line of lines) {
      const [what, digest = ''] = line.split(' ')
      const found = await store.findKey(digest)
      if (found === null) lost += 1
      if (what === 'revoked' && found?.key.revokedAtMs === undefined) valid += 1
      acknowledged += 1
    }
  }
  t.ok(acknowledged > 20, `${acknowledged} acknowledged writes of 20 killed writers`)
  t.equal(lost, 0, 'no acknowledged key is lost')
  t.equal(valid, 0, 'no revoked key is valid')
  await agrees(t, store, ada.id)

  const all = await allKeys(store, ada.id)
  const live = all.filter(({ revokedAtMs }) => revokedAtMs === undefined).length
  t.equal(await store.createKey(aKey(ada.id), live), 'plan_limit', 'the count is that of the keys')
  t.equal(await store.createKey(aKey(ada.id), live + 1), 'created', 'and a writer can write')
}

/** Each key and each revocation has one audit entry, and nothing else has. */
async function agrees(t: Test, store: Store, accountId: string): Promise<void> {
  const logged: string[] = []
  for (let after: string | null = null, isLast = false; !isLast;) {
    const page = await store.auditTrail.page({ accountId, after, limit: 1_000 })
    logged.push(...page.map(({ action, target }) => `${action} ${target}`))
    after = page.at(-1)?.id ?? null
    isLast = page.length < 1_000
  }
  const keys = await allKeys(store, accountId)
  const done = keys.flatMap(({ id, revokedAtMs }) =>
    revokedAtMs === undefined ? [`key.create ${id}`] : [`key.create ${id}`, `key.revoke ${id}`],
  )
  t.same(logged.sort(), done.sort(), `${done.length} changes, each with one audit entry`)
}

async function closing(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await openStore(await newUrl(t))
  const ada = anAccount()
  await store.createAccount(ada)
  store.subscribe(() => t.fail('a closed store has no news'))
  await store.close()
  await store.close()

  const failed = (error: unknown) =>
    error instanceof GatewayError && error.kind === 'store_unavailable'
  const asked: (() => unknown)[] = [
    () => store.findKey(aKey(ada.id).digest),
    () => store.removeKeys(ada.id, ['key_1'], 1),
    () => store.accountById(ada.id),
    () => store.accountByEmail(ada.email),
    () => allAccounts(store),
    () => allKeys(store, ada.id),
    () => store.createAccount(anAccount()),
    () => store.createKey(aKey(ada.id), 5),
    () => store.revokeKey(ada.id, 'key_1', 1),
    () => store.changeAccount(ada.id, { plan: 'pro' }),
    () => store.keyById(ada.id, 'key_1'),
    () => store.countKeys(ada.id),
    () => store.changeKey(ada.id, 'key_1', { name: 'x' }),
    () => store.signInTokens.find('session', 'p', 0),
    () => store.signInTokens.end('session', ada.id, null),
    () => store.auditTrail.page({ accountId: null, after: null, limit: 1 }),
    () => store.probe(),
    () => store.cache.put('a', shelved('x', 1), ROOM, 0),
    () => store.cache.get(['a'], 0),
    () => store.cache.sweep(ROOM, 0),
  ]
  for (const ask of asked) {
    const error = await Promise.resolve()
      .then(ask)
      .then(
        () => null,
        (cause: unknown) => cause,
      )
    t.ok(failed(error), 'every question to a closed store fails as an engine does')
  }
}
