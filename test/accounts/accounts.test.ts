/**
 * Goal: accounts and keys are made by the rules, and each breach names the field.
 * Method: the real functions on a real store in a temporary folder.
 */
import { inspect } from 'node:util'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import * as accounts from '../../src/accounts/accounts.js'
import { hashPassword, isOutdated, isPassword, newPassword } from '../../src/accounts/password.js'
import { digestOf, hasValidForm } from '../../src/accounts/key-secret.js'
import { GatewayError, type WireError } from '../../src/errors.js'
import { openSqlite } from '../../src/store/sqlite/store.js'
import { allAccounts, allKeys } from '../helpers/lists.js'

const PLANS: accounts.Plans = {
  starter: { priceUsd: 20, maxKeys: 5 },
  pro: { priceUsd: 50, maxKeys: 20 },
  max: { priceUsd: 100, maxKeys: null },
}

/** The error that the work was refused with, as the caller sees it. */
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

async function newStore(t: Test) {
  const store = await openSqlite(join(t.testdir(), 'store'))
  t.teardown(() => store.close())
  return store
}

void t.test('an account is made once for an e-mail, whatever its case', async (t) => {
  const store = await newStore(t)
  const wanted = { email: ' Ada@Example.COM ', plan: 'starter', password: 'correct horse' } as const
  const { account, generatedPassword } = await accounts.createAccount(store, wanted, {
    now: () => 42,
  })
  t.match(account, { email: 'ada@example.com', plan: 'starter', createdAtMs: 42, disabled: false })
  t.equal(generatedPassword, null)
  t.match(account.passwordHash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.ok(isPassword(account.passwordHash, 'correct horse'))
  t.notOk(isPassword(account.passwordHash, 'correct horsf'))
  t.same(await accounts.findAccount(store, 'ADA@example.com'), account)
  t.same(await accounts.findAccount(store, account.id), account)
  t.match(await refusal(accounts.createAccount(store, wanted)), {
    kind: 'malformed_request',
    param: 'email',
  })
})

void t.test('without a password one is made, and told', async (t) => {
  const store = await newStore(t)
  const wanted = { email: 'bob@example.com', plan: 'max', password: null } as const
  const { account, generatedPassword } = await accounts.createAccount(store, wanted)
  t.match(generatedPassword, /^[0-9A-Za-z]{20}$/)
  t.ok(isPassword(account.passwordHash, generatedPassword ?? ''))
  t.notSame(generatedPassword, newPassword())
})

void t.test('what is no e-mail is refused, by name', async (t) => {
  const store = await newStore(t)
  const bad = ['', 'ada', '@x.org', 'ada@', 'a b@x.org', 'a@x@y.org', 'a@x..org', 'a\0@x.org']
  bad.push('a@x.org, b@y.org', '<a@x.org>', `${'a'.repeat(65)}@x.org`, `a@${'x'.repeat(254)}.org`)
  for (const email of bad) {
    const work = accounts.createAccount(store, { email, plan: 'pro', password: 'long enough' })
    const wanted = { kind: 'malformed_request', param: 'email' }
    t.match(await refusal(work), wanted, JSON.stringify(email.slice(0, 20)))
  }
  t.same(await allAccounts(store), [])
})

void t.test('passwords too short or too long are refused before any hashing', async (t) => {
  for (const password of ['', '1234567', 'é'.repeat(513), 'x'.repeat(1_000_000)]) {
    t.match(await refusal(hashing(password)), { kind: 'malformed_request', param: 'password' })
  }
  for (const password of ['8 simple', ' 8 chars', 'пароль!!', '\0'.repeat(8), 'é'.repeat(512)]) {
    t.ok(isPassword(hashPassword(password), password), 'and the others work')
  }
  const everybody = ['12345678', 'password', 'PassWord', 'iloveyou', 'qwertyuiop', '1qaz2wsx']
  for (const password of everybody) {
    t.match(await refusal(hashing(password)), { message: /too common/ }, password)
  }
  const hash = hashPassword('8 simple')
  t.notOk(isPassword(hash, 'x'.repeat(1_025)))
  t.notOk(isPassword('not a hash', '12345678'), 'a damaged hash is nobody’s')
  t.not(hashPassword('8 simple'), hash, 'each has its own salt')
})

void t.test('a hash of less work than today’s is outdated', (t) => {
  t.notOk(isOutdated(hashPassword('long enough')))
  t.notOk(isOutdated('$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA'), 'more work is fine')
  for (const old of ['m=4096,t=2', 'm=19456,t=1']) t.ok(isOutdated(`$argon2id$v=19$${old},p=1$a$b`))
  t.ok(isOutdated('$argon2i$v=19$m=19456,t=2,p=1$a$b'), 'another kind')
  t.end()
})

void t.test('a key: the secret is told once and kept nowhere', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const { key, secret } = await accounts.createKey(store, PLANS, account, '  my laptop ')
  t.ok(hasValidForm(secret))
  t.match(key, { name: 'my laptop', accountId: account.id, digest: digestOf(secret) })
  t.ok(secret.startsWith(key.prefix) && secret.endsWith(key.lastFour))
  t.same(await allKeys(store, account.id), [key])
  const kept = inspect([await store.findKey(key.digest), key], { depth: null })
  t.notOk(kept.includes(secret.slice(8, -4)), 'what stands between the shown parts is not kept')

  for (const name of ['', '   ', 'x'.repeat(101), 'a\nb', 'a\u001b[31m', 'a\u202eb', 'a\0b']) {
    t.match(await refusal(accounts.createKey(store, PLANS, account, name)), {
      kind: 'malformed_request',
      param: 'name',
    })
  }
  await accounts.createKey(store, PLANS, account, '🔑'.repeat(100))
})

void t.test('the plan limits the keys; a larger plan or a revocation makes room', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const made = []
  for (let at = 0; at < 5; at += 1) {
    made.push(await accounts.createKey(store, PLANS, account, `key ${at}`))
  }
  const full = { kind: 'plan_limit', message: /'starter' allows 5 keys.*revoke.*larger plan/ }
  t.match(await refusal(accounts.createKey(store, PLANS, account, 'sixth')), full)

  const [first] = made
  await accounts.revokeKey(store, account.id, first?.key.id ?? '', { now: () => 9 })
  await accounts.createKey(store, PLANS, account, 'sixth')
  t.match(await refusal(accounts.createKey(store, PLANS, account, 'seventh')), full)

  await accounts.setPlan(store, account.id, 'max')
  const larger = { ...account, plan: 'max' } as const
  await Promise.all(
    Array.from({ length: 30 }, (_, at) => accounts.createKey(store, PLANS, larger, `m ${at}`)),
  )
  t.equal((await allKeys(store, account.id)).length, 36)
  t.equal((await allKeys(store, account.id))[0]?.revokedAtMs, 9)
})

void t.test('what is not there is said to be so', async (t) => {
  const store = await newStore(t)
  const { account } = await accounts.createAccount(store, {
    email: 'ada@example.com',
    plan: 'starter',
    password: 'long enough',
  })
  const nobody = { ...account, id: 'acc_nobody' }
  t.match(await refusal(accounts.setPlan(store, nobody.id, 'pro')), { param: 'account' })
  t.match(await refusal(accounts.createKey(store, PLANS, nobody, 'x')), { param: 'account' })
  t.match(await refusal(accounts.revokeKey(store, account.id, 'key_x')), { param: 'key' })
  t.equal(await accounts.findAccount(store, 'x@example.com'), null)
  t.equal(await accounts.findAccount(store, ''), null)
  t.same(['starter', 'pro', 'max', 'gold', '__proto__'].map(accounts.isPlanName), [
    true,
    true,
    true,
    false,
    false,
  ])
})
