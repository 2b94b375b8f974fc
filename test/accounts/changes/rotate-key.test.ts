/**
 * Goal: a rotation may exceed the plan's number of keys by one for 24 hours, also with concurrent rotations;
 * the old key works for the overlap, on every gateway of the store.
 * Method: the real functions on a store of each engine, with a manual clock.
 */
import { editAccount } from '../../helpers/store-changes.js'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey, rotateKey } from '../../helpers/keys.js'
import { ROTATION_MS } from '../../../src/accounts/changes/rotate-key.js'
import type { Plans } from '../../../src/accounts/plans.js'
import { Authenticator } from '../../../src/accounts/authentication/authenticator.js'
import { GatewayError } from '../../../src/errors.js'
import { openStore } from '../../../src/store/open-store.js'
import { allKeys } from '../../helpers/lists.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'

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
  const createKeyNamed = async (name: string) => createKey(store, { plans: PLANS, account, name, now })
  const rotated = (old: Awaited<ReturnType<typeof createKeyNamed>>['key']) =>
    rotateKey({ store, plans: PLANS, account, old, now })

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
  if (newest !== undefined) t.equal(await kindOf(rotated(newest)), 'done', 'then there is room again')
  const expired = await store.keyById(account.id, successor.key.id)
  t.equal(expired?.revokedAtMs, expired?.expiresAtMs, 'the expired key no longer counts')
  t.equal(await kindOf(rotateKey({ ...base(), old: expired ?? lone })), 'malformed_request')

  function base() {
    return { store, plans: PLANS, account, now }
  }
}

void t.test('sqlite allows one key above the limit for a rotation', (t) =>
  rotations(t, `sqlite:${join(t.testdir(), 'store')}`),
)

/** Two gateways of one store: the old key works for the overlap and no longer, the new one at once. */
async function overlaps(t: Test, url: string): Promise<void> {
  const stores = [await openStore(url), await openStore(url)] as const
  const [store, other] = stores
  const settings = () => ({ acceptImportedKeys: false, freshSeconds: 30, staleSeconds: 300 })
  const gateway = new Authenticator({ store: other, settings, now: () => performance.now() })
  t.teardown(async () => {
    gateway.close()
    for (const each of stores) await each.close()
  })
  const newAccount = { email: EMAIL, plan: 'starter', password: 'long enough' } as const
  const { account } = await createAccount(store, newAccount)
  const rotate = (old: Parameters<typeof rotateKey>[0]['old'], overlapMs: number) =>
    rotateKey({ store, plans: PLANS, account, old, overlapMs, now: Date.now })
  const works = async (secret: string) => {
    return (await kindOf(Promise.resolve().then(() => gateway.identify(secret)))) === 'done'
  }
  const becomes = async (secret: string, isValid: boolean, why: string): Promise<void> => {
    for (let tries = 0; tries < 60 && (await works(secret)) !== isValid; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    t.equal(await works(secret), isValid, why)
  }
  const first = await createKey(store, { plans: PLANS, account, name: 'app' })
  t.ok(await works(first.secret))
  const second = await rotate(first.key, 2_000)
  t.ok(await works(second.secret), 'the new key works at once')
  t.ok(await works(first.secret), 'both work')
  t.equal((await store.keyById(account.id, first.key.id))?.expiresAtMs, second.oldEndsAtMs)
  await becomes(first.secret, false, 'the old one ends after the overlap')
  t.ok(Date.now() >= (second.oldEndsAtMs ?? Infinity), 'not earlier')
  const third = await rotate(second.key, 0)
  await becomes(second.secret, false, 'without an overlap the old key is revoked')
  t.ok((await store.keyById(account.id, second.key.id))?.revokedAtMs)
  t.ok(await works(third.secret))
  const week = await rotate(third.key, 7 * 86_400_000)
  t.ok((week.oldEndsAtMs ?? 0) > Date.now() + 6.9 * 86_400_000)
  await editAccount(store, account.id, { disabled: true })
  await becomes(week.secret, false, 'a disabled account is refused by the other gateway, too')
  await editAccount(store, account.id, { disabled: false })
  await becomes(week.secret, true, 'and served again')
}

void t.test('sqlite: the old key works for the overlap', (t) =>
  overlaps(t, `sqlite:${join(t.testdir(), 'store')}`),
)

const missing = redisMissing()
void t.test('redis: the old key works for the overlap', { skip: missing }, async (t) => {
  const urlOf = freshDatabases(await startRedis(t))
  await overlaps(t, urlOf())
})

void t.test('redis allows one key above the limit for a rotation', { skip: missing }, async (t) => {
  const urlOf = freshDatabases(await startRedis(t))
  await rotations(t, urlOf())
})
