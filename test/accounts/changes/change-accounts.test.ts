/**
 * Goal: accounts and keys are validated when they are created, and each error names the field.
 * Method: the real functions on a real store in a temporary folder.
 */
import { editAccount } from '../../helpers/store-changes.js'
import { inspect } from 'node:util'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hasAccountOf } from '../../../src/accounts/account.js'
import * as accounts from '../../../src/accounts/changes/change-accounts.js'
import * as plans from '../../../src/accounts/plans.js'
import type { Plans } from '../../../src/accounts/plans.js'
import { createKey, revokeKey } from '../../helpers/keys.js'
import { hashPassword, isOutdated, isPassword, newPassword } from '../../../src/accounts/password.js'
import { digestOf, hasValidForm } from '../../../src/accounts/key-secret.js'
import { GatewayError, type WireError } from '../../../src/errors.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'

const PLANS: Plans = {
  starter: { priceUsd: 20, maxKeys: 5 },
  pro: { priceUsd: 50, maxKeys: 20 },
  max: { priceUsd: 100, maxKeys: null },
}

/** The error that the promise is rejected with, as the client receives it. */
async function refusal(work: Promise<unknown>): Promise<WireError> {
  const error = await work.then(
    () => null,
    (cause: unknown) => cause,
  )
  if (error instanceof GatewayError) return error.wire
  throw new Error(`refused with no GatewayError but ${String(error)}`)
}

function hashing(password: string): Promise<string> {
  return Promise.resolve().then(() => hashPassword(password))
}

void t.test('a list names accounts by name, id or e-mail address', (t) => {
  const identity = { accountId: 'acc_A1b', email: 'ada@x.org', accountPath: 'acme/research' }
  for (const [accounts, isIn] of [
    [['research'], true],
    [['acc_A1b'], true],
    [['acc_a1b'], false],
    [['other', 'ada@x.org'], true],
    [['acme'], false],
    [['other', 'bob@x.org'], false],
  ] as const) {
    t.equal(hasAccountOf(accounts, identity), isIn, accounts.join())
  }
  t.notOk(hasAccountOf(['research'], { accountId: '' }), 'a request without an account')
  t.end()
})

async function newStore(t: Test) {
  const store = await openSqlite(join(t.testdir(), 'store'))
  t.teardown(() => store.close())
  return store
}

void t.test('one e-mail address has one account, regardless of case', async (t) => {
  const store = await newStore(t)
  const newAccount = {
    email: ' Ada@Example.COM ',
    plan: 'starter',
    password: 'correct horse',
  } as const
  const { account, user, generatedPassword } = await accounts.createAccount(store, newAccount, {
    now: () => 42,
  })
  t.match(account, { email: 'ada@example.com', plan: 'starter', createdAtMs: 42, disabled: false })
  t.equal(generatedPassword, null)
  t.match(user?.passwordHash ?? '', /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.ok(isPassword(user?.passwordHash ?? '', 'correct horse'))
  t.notOk(isPassword(user?.passwordHash ?? '', 'correct horsf'))
  t.same(await accounts.findAccount(store, 'ADA@example.com'), account)
  t.same(await accounts.findAccount(store, account.id), account)
  t.same(await accounts.findAccount(store, 'ada'), account, 'its name is made from the address')
  t.match(await refusal(accounts.createAccount(store, newAccount)), {
    kind: 'malformed_request',
    param: 'email',
  })
})

void t.test('without a password, one is generated and returned', async (t) => {
  const store = await newStore(t)
  const newAccount = { email: 'bob@example.com', plan: 'max', password: null } as const
  const { user, generatedPassword } = await accounts.createAccount(store, newAccount)
  t.match(generatedPassword, /^[0-9A-Za-z]{20}$/)
  t.ok(isPassword(user?.passwordHash ?? '', generatedPassword ?? ''))
  t.notSame(generatedPassword, newPassword())
})

void t.test('an invalid e-mail address is refused with the field named', async (t) => {
  const store = await newStore(t)
  const bad = ['', 'ada', '@x.org', 'ada@', 'a b@x.org', 'a@x@y.org', 'a@x..org', 'a\0@x.org']
  bad.push('a@x.org, b@y.org', '<a@x.org>', `${'a'.repeat(65)}@x.org`, `a@${'x'.repeat(254)}.org`)
  for (const email of bad) {
    const work = accounts.createAccount(store, { email, plan: 'pro', password: 'long enough' })
    const expected = { kind: 'malformed_request', param: 'email' }
    t.match(await refusal(work), expected, JSON.stringify(email.slice(0, 20)))
  }
  t.same(await allAccounts(store), [])
})

void t.test('too short, too long or common passwords are refused before hashing', async (t) => {
  for (const password of ['', '1234567', 'é'.repeat(513), 'x'.repeat(1_000_000)]) {
    t.match(await refusal(hashing(password)), { kind: 'malformed_request', param: 'password' })
  }
  for (const password of ['8 simple', ' 8 chars', 'пароль!!', '\0'.repeat(8), 'é'.repeat(512)]) {
    t.ok(isPassword(hashPassword(password), password), 'the others are accepted')
  }
  const common = ['12345678', 'password', 'PassWord', 'iloveyou', 'qwertyuiop', '1qaz2wsx']
  for (const password of common) {
    t.match(await refusal(hashing(password)), { message: /too common/ }, password)
  }
  const hash = hashPassword('8 simple')
  t.notOk(isPassword(hash, 'x'.repeat(1_025)))
  t.notOk(isPassword('not a hash', '12345678'), 'a damaged hash matches no password')
  t.not(hashPassword('8 simple'), hash, 'each has its own salt')
})

void t.test('a hash with weaker parameters than the current ones is outdated', (t) => {
  t.notOk(isOutdated(hashPassword('long enough')))
  t.notOk(isOutdated('$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA'), 'stronger parameters are not outdated')
  for (const old of ['m=4096,t=2', 'm=19456,t=1']) t.ok(isOutdated(`$argon2id$v=19$${old},p=1$a$b`))
  t.ok(isOutdated('$argon2i$v=19$m=19456,t=2,p=1$a$b'), 'another algorithm')
  t.end()
})

void t.test('the secret of a key is returned once and not stored', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const { key, secret } = await createKey(store, { plans: PLANS, account, name: '  my laptop ' })
  t.ok(hasValidForm(secret))
  t.match(key, { name: 'my laptop', accountId: account.id, digest: digestOf(secret) })
  t.ok(secret.startsWith(key.prefix) && secret.endsWith(key.lastFour))
  t.same(await allKeys(store, account.id), [key])
  const stored = inspect([await store.findKey(key.digest), key], { depth: null })
  t.notOk(stored.includes(secret.slice(8, -4)), 'the hidden part is not stored')

  for (const name of ['', '   ', 'x'.repeat(101), 'a\nb', 'a\u001b[31m', 'a\u202eb', 'a\0b']) {
    t.match(await refusal(createKey(store, { plans: PLANS, account, name })), {
      kind: 'malformed_request',
      param: 'name',
    })
  }
  await createKey(store, { plans: PLANS, account, name: '🔑'.repeat(100) })
})

void t.test('the plan limits the keys; a larger plan or a revocation allows another', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const created = []
  for (let index = 0; index < 5; index += 1) {
    created.push(await createKey(store, { plans: PLANS, account, name: `key ${index}` }))
  }
  const full = { kind: 'plan_limit', message: /"starter" allows no more keys. Revoke.*larger plan/ }
  t.match(await refusal(createKey(store, { plans: PLANS, account, name: 'sixth' })), full)

  const [first] = created
  await revokeKey(store, { accountId: account.id, id: first?.key.id ?? '' }, { now: () => 9 })
  await createKey(store, { plans: PLANS, account, name: 'sixth' })
  t.match(await refusal(createKey(store, { plans: PLANS, account, name: 'seventh' })), full)

  await editAccount(store, account.id, { plan: 'max' })
  const larger = { ...account, plan: 'max' } as const
  await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      createKey(store, { plans: PLANS, account: larger, name: `m ${index}` }),
    ),
  )
  t.equal((await allKeys(store, account.id)).length, 36)
  t.equal((await allKeys(store, account.id))[0]?.revokedAtMs, 9)
})

void t.test('unknown accounts, keys and plans are refused with the field named', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const unknownAccount = { ...account, id: 'acc_unknown' }
  t.match(
    await refusal(
      accounts.changeAccount(
        { store, plans: PLANS, nowMs: 1, actor: { actor: 'test', address: null } },
        unknownAccount,
        { plan: 'pro' },
      ),
    ),
    {
      param: 'account',
    },
  )
  t.match(await refusal(createKey(store, { plans: PLANS, account: unknownAccount, name: 'x' })), {
    param: 'account',
  })
  t.match(await refusal(revokeKey(store, { accountId: account.id, id: 'key_x' })), { param: 'key' })
  t.equal(await accounts.findAccount(store, 'x@example.com'), null)
  t.equal(await accounts.findAccount(store, ''), null)
})

void t.test('an account has a plan of the configuration, or keeps a built-in one', (t) => {
  const gold = { priceUsd: 5, maxKeys: 1, limits: {} }
  const own = { gold, free: { ...gold, maxKeys: null } }
  for (const name of ['gold', 'free']) t.ok(plans.isPlanOf(own, name))
  for (const name of ['starter', '__proto__', 'toString']) t.notOk(plans.isPlanOf(own, name), name)
  t.equal(plans.planNamed(own, 'gold'), gold)
  t.match(plans.planNamed(own, 'starter'), { priceUsd: 20, maxKeys: 5 })
  for (const name of ['silver', '__proto__', 'toString']) t.equal(plans.planNamed(own, name), null)
  t.same([plans.planOfNewAccounts(own), plans.planOfAdministrators(own)], ['gold', 'free'])
  t.same([plans.planOfNewAccounts(PLANS), plans.planOfAdministrators(PLANS)], ['starter', 'max'])
  t.throws(() => accounts.checkedPlan('silver', own), {
    message: 'The value of "plan" is not valid. Use gold, free.',
  })
  t.end()
})

void t.test('an account whose plan was removed makes no keys', async (t) => {
  const store = await openSqlite(join(t.testdir(), 'store'))
  t.teardown(() => store.close())
  const wanted = { email: 'ada@example.com', plan: 'silver', password: 'long enough' }
  const { account } = await accounts.createAccount(store, wanted)
  t.equal((await store.accountById(account.id))?.plan, 'silver')
  t.match(await refusal(createKey(store, { plans: PLANS, account, name: 'x' })), {
    message: /the plan 'silver'/,
  })
})
