/**
 * Goal: a rotation may exceed the plan's number of keys by one for 24 hours, also with concurrent rotations.
 * Method: the real functions on a store of each engine, with a manual clock.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createAccount, type Plans } from '../../src/accounts/accounts.js'
import { createKey, ROTATION_MS, rotateKey } from '../../src/accounts/keys.js'
import { GatewayError } from '../../src/errors.js'
import { openStore } from '../../src/store/open-store.js'
import { allKeys } from '../helpers/lists.js'
import { freshDatabases, redisMissing, startRedis } from '../helpers/redis.js'

const PLANS: Plans = {
  starter: { priceUsd: 20, maxKeys: 2 },
  pro: { priceUsd: 50, maxKeys: 20 },
  max: { priceUsd: 100, maxKeys: null },
}
const EMAIL = 'ada@example.com'

async function kindOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    return error instanceof GatewayError ? error.kind : String(error)
  }
}

async function rotations(t: Test, url: string): Promise<void> {
  const store = await openStore(url)
  t.teardown(() => store.close())
  let nowMs = Date.now()
  const now = () => nowMs
  const newAccount = { email: EMAIL, plan: 'starter', password: 'long enough' } as const
  const { account } = await createAccount(store, newAccount)
  const createKeyNamed = async (name: string) =>
    createKey(store, { plans: PLANS, account, name, now })
  const rotated = (old: Awaited<ReturnType<typeof createKeyNamed>>['key']) =>
    rotateKey({ store, plans: PLANS, account, old, now, audit: () => [] })

  const { key: lone } = await createKeyNamed('lone')
  const successor = await rotated(lone)
  t.equal(successor.oldEndsAtMs, null, 'while the plan has room, the old key stays')
  t.match(await store.keyById(account.id, lone.id), { replacedBy: successor.key.id })

  const tries = await Promise.all([1, 2, 3].map(() => kindOf(rotated(successor.key))))
  t.strictSame(tries.sort(), ['done', 'plan_limit', 'plan_limit'], 'one more, and not two')
  t.equal(await store.countKeys(account.id), 3)
  const old = await store.keyById(account.id, successor.key.id)
  t.equal(old?.expiresAtMs, nowMs + ROTATION_MS, 'the old key ends in 24 hours')
  t.equal(await kindOf(createKeyNamed('third')), 'plan_limit')

  nowMs += ROTATION_MS
  const newest = (await allKeys(store, account.id)).find(({ replaces }) => replaces === old?.id)
  t.ok(newest !== undefined)
  if (newest !== undefined)
    t.equal(await kindOf(rotated(newest)), 'done', 'then there is room again')
  const expired = await store.keyById(account.id, successor.key.id)
  t.equal(expired?.revokedAtMs, expired?.expiresAtMs, 'the expired key no longer counts')
  t.equal(await kindOf(rotateKey({ ...base(), old: expired ?? lone })), 'malformed_request')

  function base() {
    return { store, plans: PLANS, account, now, audit: () => [] }
  }
}

void t.test('sqlite allows one key above the limit for a rotation', (t) =>
  rotations(t, `sqlite:${join(t.testdir(), 'store')}`),
)

const missing = redisMissing()
void t.test('redis allows one key above the limit for a rotation', { skip: missing }, async (t) => {
  const urlOf = freshDatabases(await startRedis(t))
  await rotations(t, urlOf())
})
