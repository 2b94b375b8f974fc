/**
 * Goal: a store that lost data reports it, and refuses no valid key with 401; the error of a change that no
 * replica confirmed states whether it took effect; a store of an earlier version can be read.
 * Method: a real redis-server whose data the test deletes.
 */
import { editAccount, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createKey, revokeKey } from '../../helpers/keys.js'
import { GatewayError } from '../../../src/errors.js'
import { acceptStore, openExpectedStore } from '../../../src/store/store-identity.js'
import { openStore } from '../../../src/store/open-store.js'
import { allKeys } from '../../helpers/lists.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { aKey, anAccount, anEntry } from '../contract/sample-records.js'

const missing = redisMissing()
const options = missing === false ? {} : { skip: missing }

/** A store on a server of its own, with an account and keys that this process has looked up. */
async function scene(t: Test) {
  const redis = await startRedis(t)
  const url = `${redis.url()}?timeout_ms=5000`
  const store = await openStore(url)
  t.teardown(() => store.close())
  const account = anAccount()
  await putAccount(store, account)
  const [known, other] = [aKey(account.id), aKey(account.id)]
  for (const key of [known, other]) await putKey(store, key, null)
  await store.findKey(known.digest)
  const hash = `sluice:{${account.id}}:account`
  return { redis, url, store, account, known, other, hash }
}

/** The kind and message of a rejection, and the message of its cause. */
async function failure(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'it did not fail'
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { cause } = error
    return `${error.kind}: ${error.message} (${cause instanceof Error ? cause.message : ''})`
  }
}

void t.test('a key that disappears is a failure, not unknown', { ...options }, async (t) => {
  const { redis, store, account, known, other, hash } = await scene(t)
  t.equal(await store.findKey('0'.repeat(64)), null, 'a key that never was is unknown')
  const lost = /^store_unavailable: A record of the key store is damaged.*digest [0-9a-f]{12}….*gone/

  await redis.ask('hdel', hash, `key:${known.digest}`)
  const why = await failure(() => store.findKey(known.digest))
  t.match(why, lost, 'its record is gone')
  t.notMatch(why, known.digest.slice(0, 20), 'the digest is named by its beginning')
  await redis.ask('del', `sluice:key:${known.digest}`)
  t.match(await failure(() => store.findKey(known.digest)), lost, 'and what pointed to it')
  await redis.ask('hdel', hash, `key:${other.digest}`)
  t.match(await failure(() => store.findKey(other.digest)), lost, 'one that was never looked up')

  const third = aKey(account.id)
  await putKey(store, third, null)
  await redis.ask('hset', hash, `key:${third.digest}`, '{"v":1')
  t.match(await failure(() => store.findKey(third.digest)), /not JSON/)
  await redis.ask('hset', hash, `key:${third.digest}`, JSON.stringify({ v: 1, ...third, name: 7 }))
  t.match(await failure(() => store.findKey(third.digest)), /digest [0-9a-f]{12}….*'name'/)
  await redis.ask('del', hash)
  const damaged = await failure(() => store.findKey(third.digest))
  t.match(damaged, new RegExp(`account '${account.id}' is damaged: it is gone`))
})

void t.test('removed keys are unknown in every process', { ...options }, async (t) => {
  const { url, store, account, known, other } = await scene(t)
  const beside = await openStore(url)
  t.teardown(() => beside.close())
  await beside.findKey(known.digest)
  await beside.findKey(other.digest)
  for (const key of [known, other]) await endKey(store, key, Date.now() + 1)
  const before = Date.now() + 60_000
  t.equal(await store.removeKeys(account.id, [known.id, other.id], before), 2)
  for (const { digest } of [known, other]) {
    t.equal(await store.findKey(digest), null)
    t.equal(await beside.findKey(digest), null, 'one that had found it good too')
  }
})

void t.test(
  'keys left by a removal whose process was killed are removed later',
  { ...options },
  async (t) => {
    const { redis, store, account, known, hash } = await scene(t)
    await endKey(store, known, 5)
    // As after the first of its two steps: the pointers are gone, the record is not.
    await redis.ask('del', `sluice:key:${known.digest}`, `sluice:key-id:${known.id}`)
    t.equal(await store.removeKeys(account.id, [known.id], 6), 1)
    t.equal(await redis.ask('hexists', hash, `key:${known.digest}`), 0)
    const names = (await redis.ask('keys', '*')) as string[]
    t.notOk(
      names.some((name) => name.includes(known.digest)),
      'nothing is left',
    )
  },
)

void t.test('the list of an earlier version is moved', { ...options }, async (t) => {
  const { redis, store, account, known, other } = await scene(t)
  const [list, order] = [`sluice:{${account.id}}:keys`, `sluice:{${account.id}}:key-order`]
  await redis.ask('del', order)
  await redis.ask('rpush', list, other.digest, known.digest)
  const ids = async () => (await allKeys(store, account.id)).map(({ id }) => id)
  t.same(await ids(), [other.id, known.id], 'in the order that the list had')
  t.equal(await redis.ask('exists', list), 0)
  const made = aKey(account.id)
  await putKey(store, made, null)
  // A process of the earlier version, while the fleet is being renewed.
  await redis.ask('zrem', order, known.digest)
  await redis.ask('rpush', list, known.digest)
  t.same(await ids(), [other.id, made.id, known.id])
})

void t.test('an emptied store is not used as a new one', { ...options }, async (t) => {
  const { redis, url, store, known } = await scene(t)
  const folder = join(t.testdir(), 'spool')
  const warned: string[] = []
  const at = { url, folder, warn: (message: string) => warned.push(message) }
  await (await openExpectedStore(at)).close()
  t.notOk(warned.some((message) => message.includes('new one was begun')))
  const [file = ''] = readdirSync(folder)
  t.equal(statSync(join(folder, file)).mode & 0o777, 0o600)
  t.same(JSON.parse(readFileSync(join(folder, file), 'utf8')), { id: store.id })

  await redis.ask('flushall')
  const lost = /^store_unavailable: The key store has lost its data/
  t.match(await failure(() => store.findKey(known.digest)), /^store_unavailable/, 'the open one')
  t.match(await failure(() => store.findKey('0'.repeat(64))), lost, 'no key is called wrong')
  t.match(await failure(() => store.probe()), lost)
  t.match(await failure(() => openExpectedStore(at)), /store is empty.*sluice store accept/)
  t.equal(await redis.ask('get', 'sluice:store'), null, 'and nothing was made')
  // With another password or time-out it is the same place.
  const again = { ...at, url: url.replace('redis://', 'redis://:pw@').replace('5000', '4000') }
  t.match(await failure(() => openExpectedStore(again)), /store_unavailable/)
  t.equal(await redis.ask('get', 'sluice:store'), null)

  const accepted = await acceptStore(at)
  await accepted.close()
  t.match(warned.join(), /the store was empty; created a new one/)
  const then = await openExpectedStore(at)
  t.equal(then.id, accepted.id)
  await then.close()
  writeFileSync(join(folder, file), 'damaged')
  await (await openExpectedStore(at)).close()
  t.ok(existsSync(join(folder, file)))
})

void t.test('the store opens with a warning if its id cannot be written', { ...options }, async (t) => {
  const { url } = await scene(t)
  const blocker = join(mkdtempSync(join(t.testdir(), 'x-')), 'file')
  writeFileSync(blocker, '')
  const warned: string[] = []
  const at = {
    url,
    folder: join(blocker, 'spool'),
    warn: (message: string) => warned.push(message),
  }
  await (await openExpectedStore(at)).close()
  t.match(warned.join(), /cannot write the store's id/)
})

void t.test(
  'the error of a change without replicas states whether it took effect',
  { ...options },
  async (t) => {
    const { redis, url, store, account, known, other } = await scene(t)
    const strict = await openStore(url.replace('?', '?wait_replicas=1&'))
    t.teardown(() => strict.close())
    const applied = /^store_unconfirmed: The change is applied, not yet confirmed by a replica.*safe/
    const kept: unknown = await endKey(strict, known, 7).catch((e: unknown) => e)
    t.match(kept, { kind: 'store_unconfirmed', wire: { retryAfterSeconds: 1 } })
    const notMade = /^store_unavailable: The change was not made: too few replicas.*0 of 1 replicas/

    t.match(await failure(() => endKey(strict, known, 7)), applied)
    t.equal((await store.findKey(known.digest))?.key.revokedAtMs, 7, 'it took effect')
    t.match(await failure(() => endKey(strict, known, 8)), applied, 'again')
    t.equal((await store.keyById(account.id, known.id))?.revokedAtMs, 7, 'which changes nothing')
    t.match(await failure(() => editAccount(strict, account.id, { plan: 'pro' })), applied)
    t.equal((await store.accountById(account.id))?.plan, 'pro')
    t.match(
      await failure(() => revokeKey(strict, { accountId: account.id, id: other.id })),
      applied,
      'the command line',
    )

    const auditEntries = [anEntry(account.id, { action: 'key.change', target: other.id })]
    const edit = { disabled: true }
    t.match(await failure(() => editAccount(strict, account.id, edit, () => auditEntries)), notMade)
    t.equal((await store.accountById(account.id))?.disabled, false, 'it did not take effect')
    t.match(await failure(() => putAccount(strict, anAccount())), notMade)
    t.match(await failure(() => putKey(strict, aKey(account.id), null)), notMade)
    t.equal((await allKeys(store, account.id)).length, 2)

    // The replica is lost between the first step, which it confirms, and the last.
    const plan = { priceUsd: 0, maxKeys: null }
    const plans = { starter: plan, pro: plan, max: plan }
    let steps = 0
    const late: typeof strict = Object.assign(Object.create(strict) as typeof strict, {
      transact: async (change: Parameters<typeof strict.transact>[0]) => {
        steps += 1
        const result = await store.transact(change)
        return steps === 1 ? editAccount(strict, account.id, {}).then(() => result) : result
      },
    })
    const why = await failure(() => createKey(late, { plans, account, name: 'ci' }))
    t.equal(steps, 2, 'the second one takes the key back')
    t.match(why, /^store_unconfirmed: Key key_\w+ is applied, not yet confirmed.*Create another one/)
    const [made] = (await allKeys(store, account.id)).slice(-1)
    t.type(made?.revokedAtMs, 'number', 'a key whose secret was never returned is revoked')
    t.equal(await redis.ask('ping'), 'PONG')
  },
)
