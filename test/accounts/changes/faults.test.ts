/**
 * Goal: a failure at any write of a change leaves the change whole or not made at all, and a secret is
 * returned exactly if its key exists.
 * Method: on both stores, every write of every change of keys and accounts fails once before it is made, and
 * once after it was made and its answer is lost; in SQLite, each statement that writes a row fails, too.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Account, ApiKey } from '../../../src/accounts/account.js'
import { changeAccount, createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { changeKey, createKey, revokeKey, type Changing } from '../../../src/accounts/changes/change-keys.js'
import { rotateKey } from '../../../src/accounts/changes/rotate-key.js'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { removeMember, setMember, createUser } from '../../../src/accounts/members.js'
import { BUILT_IN_PLANS } from '../../../src/accounts/plans.js'
import { GatewayError } from '../../../src/errors.js'
import { openStore } from '../../../src/store/open-store.js'
import { connect } from '../../../src/store/sqlite/driver.js'
import type { Store } from '../../../src/store/store.js'
import { allKeys } from '../../helpers/lists.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'

interface Scene {
  readonly changing: Changing
  readonly account: Account
  readonly key: ApiKey
}

/** A change, whose result has the secret of a new key if it makes one. */
type Change = (scene: Scene) => Promise<unknown>

const CHANGES: Readonly<Record<string, Change>> = {
  'create a key': ({ changing, account }) => createKey(changing, account, { name: 'new' }),
  'change a key': ({ changing, account, key }) =>
    changeKey(changing, account, {
      key,
      settings: { name: 'other', models: ['gpt-5.5'] },
      replacesMaps: true,
    }),
  'rotate a key': ({ changing, account, key }) => rotateKey(changing, account, { key, overlap: 60 }),
  'rotate a leaked key': ({ changing, account, key }) => rotateKey(changing, account, { key, overlap: 0 }),
  'revoke a key': ({ changing, account, key }) => revokeKey(changing, account, key),
  'change an account': ({ changing, account }) =>
    changeAccount(changing, account, { plan: 'max', limits: { usd_per_day: 1 }, disabled: true }),
  'create an account': async ({ changing: { store, actor } }) => {
    const wanted = { email: 'new@example.com', name: 'new', plan: 'pro', password: { none: true } } as const
    await createAccount(store, wanted, { actor })
  },
  'make a member': async ({ changing: { store, nowMs }, account }) => {
    const user = await store.users.byEmail('eve@example.com')
    if (user === null) throw new Error('eve exists')
    await setMember(store, { account, user, role: 'viewer', nowMs, audit: () => [] })
  },
  'remove a member': ({ changing: { store, nowMs }, account }) =>
    removeMember(store, { account, email: 'ada@example.com', nowMs, audit: () => [] }),
}

async function sceneOf(store: Store): Promise<Scene> {
  const changing = {
    ...{ store, plans: BUILT_IN_PLANS, nowMs: Date.now() },
    actor: { actor: 'test', address: null },
  }
  const wanted = { email: 'ada@example.com', name: 'acme', plan: 'pro', password: { none: true } } as const
  const { account } = await createAccount(store, wanted)
  await createUser(store, { email: 'eve@example.com', password: { none: true } })
  const { key } = await createKey(changing, account, { name: 'ci', limits: { concurrent: 3 } })
  return { changing, account, key }
}

/** All that a change may have changed. */
async function stateOf(store: Store, accountId: string) {
  const found = await store.accountByName('new')
  return {
    account: await store.accountById(accountId),
    keys: await allKeys(store, accountId),
    members: await store.membersOf(accountId),
    live: await store.countKeys(accountId),
    made: found === null ? null : await store.membersOf(found.id),
    user: await store.users.byEmail('new@example.com'),
    audit: (await store.auditTrail.page({ accountId: null, after: null, limit: 100 })).length,
  }
}

/** What a state has in every run: ids, secrets and times differ. */
function shape(state: Awaited<ReturnType<typeof stateOf>>): unknown {
  return {
    plan: state.account?.plan,
    disabled: state.account?.disabled,
    limits: state.account?.limits,
    live: state.live,
    members: state.members.map(({ email, role }) => [email, role]),
    made: state.made?.map(({ email, role }) => [email, role]),
    user: state.user?.email,
    audit: state.audit,
    keys: state.keys.map((key) => ({
      name: key.name,
      models: key.models,
      limits: key.limits,
      isReplaced: key.replacedBy !== undefined,
      isRevoked: key.revokedAtMs !== undefined,
      ends: key.expiresAtMs !== undefined,
    })),
  }
}

/** Runs the change on a store that fails; the change must be whole or not there. */
async function checkFault(
  t: Test,
  name: string,
  stores: { readonly store: Store; readonly faulty: Store },
  whole: unknown,
): Promise<void> {
  const change = CHANGES[name]
  if (change === undefined) throw new Error(`there is no change ${name}`)
  const { store, faulty } = stores
  const scene = await sceneOf(store)
  const before = await stateOf(store, scene.account.id)
  const result = await change({ ...scene, changing: { ...scene.changing, store: faulty } }).then(
    (value: unknown) => ({ value }),
    (error: unknown) => ({ error }),
  )
  const after = await stateOf(store, scene.account.id)
  const isChanged = JSON.stringify(after) !== JSON.stringify(before)
  t.same(shape(after), isChanged ? whole : shape(before), `${name}: whole or not at all`)
  const value = 'value' in result ? result.value : null
  const secret =
    typeof value === 'object' && value !== null && 'secret' in value ? String(value.secret) : null
  const made = after.keys.filter(({ id }) => !before.keys.some((key) => key.id === id))
  const shown = secret === null ? [] : [digestOf(secret)]
  t.same(
    made.map(({ digest }) => digest),
    shown,
    `${name}: the secret is returned exactly if the key exists`,
  )
  if ('error' in result) t.ok(result.error instanceof GatewayError, String(result.error))
}

/** The store, whose n-th transaction fails: before it is made, or afterwards. */
function failing(store: Store, when: 'before' | 'after'): Store {
  let isDone = false
  const transact: Store['transact'] = async (change) => {
    if (isDone) return store.transact(change)
    isDone = true
    if (when === 'after') await store.transact(change)
    throw new GatewayError('store_unavailable', 'The key store does not answer; try again.')
  }
  return Object.assign(Object.create(store) as Store, { transact })
}

async function wholeChange(store: Store, name: string): Promise<unknown> {
  const scene = await sceneOf(store)
  await CHANGES[name]?.(scene)
  return shape(await stateOf(store, scene.account.id))
}

async function faults(t: Test, newStore: (t: Test) => Promise<Store>): Promise<void> {
  for (const name of Object.keys(CHANGES)) {
    const whole = await wholeChange(await newStore(t), name)
    for (const when of ['before', 'after'] as const) {
      const store = await newStore(t)
      await checkFault(t, name, { store, faulty: failing(store, when) }, whole)
    }
  }
}

void t.test('lost transactions and lost answers (SQLite)', async (t) => {
  let count = 0
  const folder = t.testdir()
  await faults(t, async (t) => {
    const store = await openStore(`sqlite:${join(folder, `${(count += 1)}.db`)}`)
    t.teardown(() => store.close())
    return store
  })
})

void t.test('lost transactions and lost answers (Redis)', { skip: redisMissing() }, async (t) => {
  const next = freshDatabases(await startRedis(t))
  await faults(t, async (t) => {
    const store = await openStore(next())
    t.teardown(() => store.close())
    return store
  })
})

void t.test('statements that fail (SQLite)', async (t) => {
  const folder = t.testdir()
  let count = 0
  for (const name of Object.keys(CHANGES)) {
    const plain = await openStore(`sqlite:${join(folder, `${(count += 1)}.db`)}`)
    const whole = await wholeChange(plain, name)
    await plain.close()
    for (const table of ['accounts', 'keys', 'members', 'users', 'trail', 'changes']) {
      for (const statement of ['INSERT', 'UPDATE', 'DELETE']) {
        const file = join(folder, `${(count += 1)}.db`)
        const store = await openStore(`sqlite:${file}`)
        const trigger = `CREATE TRIGGER fault BEFORE ${statement} ON ${table} BEGIN SELECT RAISE(ABORT, 'fault'); END`
        const other = connect(file)
        const armed: Store['transact'] = async (change) => {
          other.exec(trigger)
          try {
            return await store.transact(change)
          } finally {
            other.exec('DROP TRIGGER fault')
          }
        }
        const faulty = Object.assign(Object.create(store) as Store, { transact: armed })
        await checkFault(t, name, { store, faulty }, whole)
        other.close()
        await store.close()
      }
    }
  }
})
