/**
 * Goal: the price of each plan and the number of its keys.
 * Method: the shipped configuration, and accounts in a real store.
 */
import { editAccount } from '../helpers/store-changes.js'
import t from 'tap'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Account, PlanName } from '../../src/accounts/account.js'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey, revokeKey } from '../helpers/keys.js'
import { loadConfig } from '../../src/config/load-config.js'
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js'
import type { Store } from '../../src/store/store.js'
import { allKeys } from '../helpers/lists.js'

const loaded = loadConfig('config/gateway.yaml', {})
if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
const { plans } = loaded.config

async function account(t: Test, plan: PlanName): Promise<{ store: Store; account: Account }> {
  const store = await openSqlite(join(t.testdir(), 'store'))
  t.teardown(() => store.close())
  const made = await createAccount(store, { email: 'a@example.com', plan, password: 'long enough' })
  return { store, account: made.account }
}

void t.test('S8: Starter 20, Pro 50, Max 100 USD; 5, 20 and unlimited keys', (t) => {
  t.match(plans, {
    starter: { priceUsd: 20, maxKeys: 5 },
    pro: { priceUsd: 50, maxKeys: 20 },
    max: { priceUsd: 100, maxKeys: null },
  })
  t.same(Object.keys(plans).sort(), ['max', 'pro', 'starter'])
  t.end()
})

for (const [plan, limit] of [
  ['starter', 5],
  ['pro', 20],
] as const) {
  void t.test(`S8: ${plan}: ${limit} keys and no more`, async (t) => {
    const { store, account: owner } = await account(t, plan)
    for (let at = 0; at < limit; at += 1) await createKey(store, { plans, account: owner, name: `key ${at}` })
    await t.rejects(createKey(store, { plans, account: owner, name: 'too many' }), {
      message: new RegExp(`"${plan}" allows no more keys`),
    })
    t.equal((await allKeys(store, owner.id)).length, limit)
    const [first] = await allKeys(store, owner.id)
    await revokeKey(store, { accountId: owner.id, id: first?.id ?? '' })
    await createKey(store, { plans, account: owner, name: 'in place of a revoked one' })
    await t.rejects(createKey(store, { plans, account: owner, name: 'too many' }), {
      message: /allows/,
    })
  })
}

void t.test('S8: 20 at once on a plan of 5: 5 are created', async (t) => {
  const { store, account: owner } = await account(t, 'starter')
  const tries = Array.from({ length: 20 }, (_, at) =>
    createKey(store, { plans, account: owner, name: `key ${at}` }),
  )
  const made = (await Promise.allSettled(tries)).filter(({ status }) => status === 'fulfilled')
  t.equal(made.length, 5)
})

void t.test('S8: max has no limit', async (t) => {
  const { store, account: owner } = await account(t, 'max')
  for (let at = 0; at < 60; at += 1) await createKey(store, { plans, account: owner, name: `key ${at}` })
  t.equal((await allKeys(store, owner.id)).length, 60)
})

void t.test('S8: a larger plan allows more keys, a smaller one removes none', async (t) => {
  const { store, account: owner } = await account(t, 'starter')
  for (let at = 0; at < 5; at += 1) await createKey(store, { plans, account: owner, name: `key ${at}` })
  await editAccount(store, owner.id, { plan: 'pro' })
  await createKey(store, { plans, account: { ...owner, plan: 'pro' }, name: 'sixth' })
  await editAccount(store, owner.id, { plan: 'starter' })
  await t.rejects(createKey(store, { plans, account: owner, name: 'seventh' }), {
    message: /allows/,
  })
  const kept = await allKeys(store, owner.id)
  t.equal(kept.filter(({ revokedAtMs }) => revokedAtMs === undefined).length, 6)
})
