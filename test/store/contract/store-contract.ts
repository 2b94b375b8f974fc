/**
 * The test suite of the `Store` interface, which every engine passes. `newUrl` returns the URL of a new,
 * empty store.
 */
import { editAccount, editKey, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import type { Test } from 'tap'
import type { KeyChange, Store } from '../../../src/store/store.js'
import { openStore } from '../../../src/store/open-store.js'
import { GatewayError } from '../../../src/errors.js'
import {
  accountChanges,
  largeChanges,
  movesAndPurges,
  overtakenByPurge,
  overtakenMoves,
  trees,
  users,
} from './account-changes.js'
import { attempts, auditEntries, changes, tokens, trail, opened } from './record-changes.js'
import { bounds, identity, lists, removal, retention } from './lists.js'
import { anotherStore, ofToday } from '../../helpers/long-suite.js'
import { killedWriter, otherProcess } from '../processes/start-processes.js'
import { aKey, aLogin, anAccount } from './sample-records.js'
import { CAPACITY, sharedCache, aValue, sharedCacheCapacity } from './shared-cache.js'
import { providerObjects, providerObjectsCapacity } from './provider-objects.js'
import { denials } from './denials.js'
import { auditedChanges, linksAndSessions } from './audited-changes.js'
import { dimensionValues } from './dimension-values.js'
import { sealedRecords } from './sealed-records.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'
import { stopwatch } from '../../helpers/stopwatch.js'

export type NewUrl = (t: Test) => string | Promise<string>

/** Registers the tests of one engine. */
export function storeContract(t: Test, engine: string, newUrl: NewUrl): void {
  const tests: Readonly<Record<string, (t: Test, newUrl: NewUrl) => Promise<void>>> = {
    accounts: accounts,
    keys: keys,
    revocation: revocation,
    pages: lists,
    'removal of ended keys': removal,
    'retention of ended keys': retention,
    capacity: bounds,
    identity: identity,
    'limit of active keys': keyLimit,
    'notification of changes': notifications,
    durability: durability,
    'changes of accounts and keys': changes,
    users: users,
    'trees of accounts': trees,
    'changes of an account as a whole': accountChanges,
    'changes of many members and keys': largeChanges,
    'moves of one account at once': overtakenMoves,
    'a purge during a change': overtakenByPurge,
    'moves and purges at the same time': movesAndPurges,
    'sign-in tokens': tokens,
    'throttled attempts': attempts,
    'audit trail': trail,
    'audit entries of changes': auditEntries,
    'shared cache': sharedCache,
    'capacity of the shared cache': sharedCacheCapacity,
    "owners of providers' objects": providerObjects,
    "capacity for providers' objects": providerObjectsCapacity,
    'denied identities': denials,
    'audit entries of other changes': auditedChanges,
    'links and sessions of changes': linksAndSessions,
    'values of dimensions': dimensionValues,
    'encrypted records of requests': sealedRecords,
    'killed writer': killed,
    closing: closing,
  }
  void t.test(engine, (t) => {
    for (const [index, [name, test]] of Object.entries(tests).entries()) {
      void t.test(name, { skip: anotherStore(engine, index) }, (t) => test(t, newUrl))
    }
    t.end()
  })
}

async function accounts(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount({ email: 'Ada@Example.com' })
  const bob = anAccount({ createdAtMs: 5 })

  t.equal(await store.accountById(ada.id), null, 'a new store has no account')
  t.equal(await store.accountByEmail(ada.email), null)
  t.same(await allAccounts(store), [])

  t.equal(await putAccount(store, ada, [], aLogin(ada)), 'created')
  t.equal(await putAccount(store, bob), 'created')
  t.same(await store.accountById(ada.id), ada, 'by id')
  t.same(await store.accountByEmail('aDA@example.COM'), ada, 'the case of an e-mail is ignored')
  t.same(await allAccounts(store), [ada, bob], 'lists accounts in order of creation, not by date')

  const again = anAccount({ email: 'ADA@EXAMPLE.COM' })
  t.equal(await putAccount(store, again, [], aLogin(again)), 'email_taken')
  t.equal(await putAccount(store, anAccount({ id: bob.id })), 'id_taken')
  t.equal(await store.accountById(again.id), null, 'a refused account is not stored')

  t.same(await editAccount(store, bob.id, { plan: 'max' }), { ...bob, plan: 'max' })
  t.same(await store.accountById(bob.id), { ...bob, plan: 'max' })
  t.equal(await editAccount(store, 'acc_unknown', { plan: 'max' }), null)

  for (const badName of ['', ' ', 'a b', '\0', `${ada.id}\0`, 'x'.repeat(5_000), 'ü'.repeat(2_000)]) {
    t.equal(
      await store.accountById(badName),
      null,
      `no account has the id ${JSON.stringify(badName.slice(0, 12))}`,
    )
    t.equal(await store.accountByEmail(badName), null)
    t.equal(await editAccount(store, badName, { plan: 'pro' }), null)
    t.equal(await putAccount(store, anAccount({ id: badName })), 'bad_name')
    const account = anAccount({ email: badName })
    t.equal(await putAccount(store, account, [], aLogin(account)), 'bad_name')
    t.equal(await putAccount(store, anAccount({ name: badName })), 'bad_name')
  }
  await store.probe()

  const email = 'race@example.com'
  const raced = await Promise.all(
    Array.from({ length: 50 }, () => {
      const account = anAccount({ email })
      return putAccount(store, account, [], aLogin(account))
    }),
  )
  t.equal(
    raced.filter((outcome) => outcome === 'created').length,
    1,
    'one of fifty concurrent accounts with one e-mail is created',
  )
}

async function keys(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount({ id: `${ada.id}/x` })
  await putAccount(store, ada)
  await putAccount(store, bob)
  const first = aKey(ada.id, { name: 'Ünïcode — "quoted"\\ 🔑' })
  const second = aKey(ada.id, { createdAtMs: 1 })
  const other = aKey(bob.id)
  for (const key of [first, second, other]) t.equal(await putKey(store, key, 5), 'created')

  t.same(await store.findKey(first.digest), { key: first, account: ada }, 'returns the key and its account')
  t.same(await allKeys(store, ada.id), [first, second], 'lists the keys of the account in order of creation')
  t.same(await allKeys(store, bob.id), [other])
  t.same(await allKeys(store, 'acc_unknown'), [])

  t.equal(await putKey(store, aKey('acc_unknown'), 5), 'no_account')
  t.equal(await putKey(store, aKey(ada.id, { digest: other.digest }), 5), 'id_taken')
  t.equal(await putKey(store, aKey(ada.id, { id: other.id }), 5), 'id_taken')
  t.equal(await putKey(store, aKey(ada.id, { digest: '' }), 5), 'bad_name')
  t.same(
    await store.findKey(other.digest),
    { key: other, account: bob },
    'keys of other accounts are unchanged',
  )

  const { digest } = first
  const near = [digest.slice(0, 63), `${digest}0`, digest.toUpperCase(), ` ${digest}`, '', '*', '\0']
  for (const asked of near) {
    const is = asked === digest ? first : null
    t.equal(await store.findKey(asked), is, 'only the whole digest finds a key')
  }

  await editAccount(store, ada.id, { plan: 'pro' })
  t.equal((await store.findKey(digest))?.account.plan, 'pro', 'a look-up returns the current plan')
}

async function revocation(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount()
  await putAccount(store, ada)
  await putAccount(store, bob)
  const key = aKey(ada.id)
  await putKey(store, key, 5)

  t.equal(
    await endKey(store, { accountId: bob.id, id: key.id }, 7),
    false,
    'another account cannot revoke it',
  )
  t.equal(await endKey(store, { accountId: ada.id, id: 'key_none' }, 7), false)
  t.equal(await endKey(store, { accountId: ada.id, id: '\0' }, 7), false)
  t.same((await store.findKey(key.digest))?.key, key, 'the key is still valid')

  t.equal(await endKey(store, key, 7), true)
  const revoked = { ...key, revokedAtMs: 7 }
  t.same((await store.findKey(key.digest))?.key, revoked, 'a revoked key stays in the store')
  t.equal(await endKey(store, key, 9), true, 'revoking twice is no error')
  t.same(await allKeys(store, ada.id), [revoked], 'the first time of revocation stays')

  t.equal(await putKey(store, key, 5), 'id_taken', 'its digest stays in use')
  t.equal(await putKey(store, aKey(bob.id, { digest: key.digest }), 5), 'id_taken')
  t.same((await store.findKey(key.digest))?.key, revoked)
}

async function keyLimit(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await opened(t, url)
  const other = await otherProcess(t, url)

  const ada = anAccount()
  await putAccount(store, ada)
  const made = Array.from({ length: 5 }, () => aKey(ada.id))
  for (const key of made) t.equal(await putKey(store, key, 5), 'created')
  t.equal(await putKey(store, aKey(ada.id), 5), 'plan_limit', 'refuses the sixth key of five')
  for (const key of made.slice(0, 2)) await endKey(store, key, 1)
  for (const key of made.slice(0, 1)) await endKey(store, key, 2)
  t.equal(await putKey(store, aKey(ada.id), 5), 'created', 'a revoked key does not count')
  t.equal(await putKey(store, aKey(ada.id), 5), 'created')
  t.equal(await putKey(store, aKey(ada.id), 5), 'plan_limit', 'a key that is revoked twice counts once')
  t.equal(
    await putKey(store, aKey(ada.id), 3),
    'plan_limit',
    'existing keys stay when the plan becomes smaller',
  )
  t.equal(await putKey(store, aKey(ada.id), null), 'created', 'null means no limit')

  for (const limit of [5, 5, 20, 1, 0]) {
    const owner = anAccount()
    await putAccount(store, owner)
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, at) => {
        const key = aKey(owner.id)
        const order = { op: 'createKey', key, maxKeys: limit } as const
        return at % 2 === 0 ? putKey(store, key, limit) : other.tell(order)
      }),
    )
    const created = outcomes.filter((outcome) => outcome === 'created').length
    t.equal(created, limit, `200 at once in two processes: exactly ${limit}`)
    t.equal((await allKeys(store, owner.id)).length, limit)
  }
}

async function notifications(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await opened(t, url)
  const other = await otherProcess(t, url)
  const ada = anAccount()
  await putAccount(store, ada)
  const changes = new ChangeLog()
  const stop = store.subscribe((change) => changes.receive(change))

  const key = aKey(ada.id)
  await other.tell({ op: 'createKey', key, maxKeys: 5 })
  t.ok((await changes.of(key.digest)) <= 500, 'a key that another process creates')
  await other.tell({ op: 'revokeKey', accountId: ada.id, keyId: key.id })
  t.ok((await changes.of(key.digest)) <= 500, 'a key that another process revokes')
  t.equal((await store.findKey(key.digest))?.key.revokedAtMs, 1, 'a look-up returns the revoked key')
  await other.tell({ op: 'changeAccount', accountId: ada.id, edit: { plan: 'pro' } })
  t.ok((await changes.of(null)) <= 500, 'a plan that another process changes: any key may have changed')

  const mine = aKey(ada.id)
  await putKey(store, mine, 5)
  t.ok((await changes.of(mine.digest)) <= 500, 'changes of the same process')

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
    const watch = stopwatch()
    while (this.changes.shift() !== digest) {
      if (this.changes.length > 0) continue
      await new Promise<void>((resolve) => (this.awaited = resolve))
    }
    return watch()
  }
}

async function durability(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const ada = anAccount()
  const key = aKey(ada.id)
  const gone = aKey(ada.id)
  const store = await openStore(url)
  await putAccount(store, ada)
  await putKey(store, key, 5)
  await putKey(store, gone, 5)
  await endKey(store, gone, 3)
  await editAccount(store, ada.id, { plan: 'max' })
  await store.close()

  const again = await opened(t, url)
  const account = { ...ada, plan: 'max' }
  t.same(await again.findKey(key.digest), { key, account })
  t.same(await allKeys(again, ada.id), [key, { ...gone, revokedAtMs: 3 }])
  t.same(await allAccounts(again), [account])
}

async function killed(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  // Stays open, as a worker does when another worker is killed.
  const store = await opened(t, url)
  const ada = anAccount()
  await putAccount(store, ada)
  let lost = 0
  let valid = 0
  let acknowledged = 0
  // Each kills a writer at another number of writes; a fifth of them each day.
  for (const round of ofToday(Array(20).keys(), 5)) {
    const lines = await killedWriter(url, ada.id, 1 + ((round * 7) % 40))
    for (const line of lines) {
      const [what, digest = ''] = line.split(' ')
      const found = await store.findKey(digest)
      if (found === null) lost += 1
      if (what === 'revoked' && found?.key.revokedAtMs === undefined) valid += 1
      acknowledged += 1
    }
  }
  t.ok(acknowledged > 20, `${acknowledged} acknowledged writes of killed writers`)
  t.equal(lost, 0, 'no acknowledged key is lost')
  t.equal(valid, 0, 'no revoked key is valid')
  await agrees(t, store, ada.id)

  const all = await allKeys(store, ada.id)
  const live = all.filter(({ revokedAtMs }) => revokedAtMs === undefined).length
  t.equal(await putKey(store, aKey(ada.id), live), 'plan_limit', 'the count matches the keys')
  t.equal(await putKey(store, aKey(ada.id), live + 1), 'created', 'a new writer can write')
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
  await putAccount(store, ada)
  store.subscribe(() => t.fail('a closed store notifies no one'))
  await store.close()
  await store.close()

  const failed = (error: unknown) => error instanceof GatewayError && error.kind === 'store_unavailable'
  const asked: (() => unknown)[] = [
    () => store.findKey(aKey(ada.id).digest),
    () => store.removeKeys(ada.id, ['key_1'], 1),
    () => store.accountById(ada.id),
    () => store.accountByEmail(ada.email),
    () => allAccounts(store),
    () => allKeys(store, ada.id),
    () => putAccount(store, anAccount()),
    () => putKey(store, aKey(ada.id), 5),
    () => endKey(store, { accountId: ada.id, id: 'key_1' }, 1),
    () => editAccount(store, ada.id, { plan: 'pro' }),
    () => store.keyById(ada.id, 'key_1'),
    () => store.countKeys(ada.id),
    () => editKey(store, { accountId: ada.id, id: 'key_1' }, { name: 'x' }),
    () => store.signInTokens.find('session', 'p', 0),
    () => store.signInTokens.end('session', ada.id, null),
    () => store.auditTrail.page({ accountId: null, after: null, limit: 1 }),
    () => store.probe(),
    () => store.cache.put(aValue('a', 'x', 1), CAPACITY, 0),
    () => store.cache.get(['a'], 0),
    () => store.cache.sweep(CAPACITY, 0),
  ]
  for (const ask of asked) {
    const error = await Promise.resolve()
      .then(ask)
      .then(
        () => null,
        (cause: unknown) => cause,
      )
    t.ok(failed(error), 'every method of a closed store fails with store_unavailable')
  }
}
