/**
 * The tests of every engine for records that change: accounts and keys, sign-in tokens, the audit trail, and
 * throttles.
 */
import { editAccount, editKey, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import type { Test } from 'tap'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { openStore } from '../../../src/store/open-store.js'
import type { SignInToken } from '../../../src/store/sign-in-tokens.js'
import type { Store } from '../../../src/store/store.js'
import { otherProcess } from '../processes/start-processes.js'
import { aKey, aLogin, anAccount, anEntry } from './sample-records.js'

type NewUrl = (t: Test) => string | Promise<string>

/** A store at the address, which the end of the test closes. */
export async function opened(t: Test, url: string): Promise<Store> {
  const store = await openStore(url)
  t.teardown(() => store.close())
  return store
}

/** Changes of accounts and keys. */
export async function changes(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount()
  await putAccount(store, ada)
  await putAccount(store, bob)

  const off = { ...ada, disabled: true, updatedAtMs: 7 }
  t.same(await editAccount(store, ada.id, { disabled: true, updatedAtMs: 7 }), off)
  t.same(await store.accountById(ada.id), off, 'absent members stay')
  t.same(await editAccount(store, ada.id, {}), off)
  t.same(await store.accountById(bob.id), bob, 'other accounts do not change')

  const limits = { requestsPerMinute: 60, nanoUsdPerDay: 5_000_000_000 }
  const key = aKey(ada.id, { expiresAtMs: 1_900_000_000_000, models: ['gpt-5', 'o*'], limits })
  const plain = aKey(ada.id, { replaces: key.id })
  await putKey(store, key, 5)
  await putKey(store, plain, 5)
  t.same((await store.findKey(key.digest))?.key, key, 'returns every field')
  t.same(await store.keyById(ada.id, plain.id), plain)
  t.equal(await store.keyById(bob.id, key.id), null, 'another account cannot read it')
  for (const badName of ['key_none', '', '\0', '*', 'x'.repeat(5_000)]) {
    t.equal(await store.keyById(ada.id, badName), null)
    t.equal(await editKey(store, { accountId: ada.id, id: badName }, { name: 'x' }), null)
    t.equal(await store.countKeys(badName), 0)
  }
  t.equal(await store.countKeys(ada.id), 2)
  t.equal(await store.countKeys(bob.id), 0)

  t.equal(
    await editKey(store, { accountId: bob.id, id: key.id }, { name: 'mine' }),
    null,
    'another account cannot change it',
  )
  const renamed = { ...key, name: 'new', replacedBy: plain.id }
  t.same(await editKey(store, key, { name: 'new', replacedBy: plain.id }), renamed)
  const { id, accountId, digest, prefix, lastFour, createdAtMs } = key
  const freed = { id, accountId, digest, prefix, lastFour, createdAtMs }
  t.same(
    await editKey(store, key, { expiresAtMs: null, models: null, limits: null }),
    { ...freed, name: 'new', replacedBy: plain.id },
    'null removes the value',
  )
  t.same(await editKey(store, key, { limits, allowTools: ['web_search'] }), {
    ...freed,
    name: 'new',
    replacedBy: plain.id,
    limits,
    allowTools: ['web_search'],
  })
  t.match((await store.findKey(key.digest))?.key, { allowTools: ['web_search'] })
  const withoutTools = await editKey(store, key, { allowTools: null })
  t.equal(withoutTools?.allowTools, undefined, 'null removes the list')
  await editKey(store, key, { labels: { team: 'shop' } })
  // Two at once: each is made from the key as the other has left it.
  await Promise.all(
    ['app', 'env'].map((name) =>
      editKey(store, key, ({ labels }) => ({ labels: { ...labels, [name]: 'x' } })),
    ),
  )
  const labels = { team: 'shop', app: 'x', env: 'x' }
  t.same((await store.findKey(key.digest))?.key.labels, labels)
  t.equal((await editKey(store, key, { labels: null }))?.labels, undefined)
  await endKey(store, key, 9)
  t.equal(await editKey(store, key, { name: 'late' }), null, 'a revoked key cannot change')
  const after = await store.keyById(ada.id, key.id)
  t.match(after, { name: 'new', revokedAtMs: 9, limits }, 'the revoked key is unchanged')
  t.equal(await store.countKeys(ada.id), 1)
}

let made = 0

function aToken(over: Partial<SignInToken> = {}): SignInToken {
  made += 1
  const id = String(made).padStart(64, '0')
  return { id, kind: 'session', accountId: 'acc_1', expiresAtMs: 1_000, text: '{"a":"ü"}', ...over }
}

/** Sign-in tokens, used by two processes. */
export async function tokens(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await opened(t, url)
  const other = await otherProcess(t, url)
  const { signInTokens: tokens } = store
  const one = aToken()
  t.equal(await tokens.find('session', one.id, 0), null, 'a new store has no token')
  t.equal(await tokens.add(one), true)
  t.equal(await tokens.add({ ...one, accountId: 'acc_2' }), false, 'an id cannot be used twice')
  t.same(await tokens.find('session', one.id, 999), one)
  t.equal(await tokens.find('session', one.id, 1_000), null, 'an expired token is not found')
  t.equal(await tokens.find('reset', one.id, 0), null, 'a token of another kind is not found')
  for (const badName of ['', '\0', '*', one.id.slice(1), 'x'.repeat(5_000)]) {
    t.equal(await tokens.find('session', badName, 0), null)
    t.equal(await tokens.take('session', badName, 0), null)
    t.equal(await tokens.change('session', badName, () => ({ expiresAtMs: 9_999 }), 0), null)
  }

  t.same(await tokens.change('session', one.id, () => ({ expiresAtMs: 2_000 }), 999), one)
  t.same(await tokens.find('session', one.id, 1_999), { ...one, expiresAtMs: 2_000 })
  t.equal(
    await tokens.change('session', one.id, () => ({ expiresAtMs: 3_000 }), 2_000),
    null,
    'an expired token cannot be changed',
  )
  t.equal(await tokens.change('session', one.id, () => null, 0), null, 'the edit may refuse')
  const counted = aToken({ expiresAtMs: 9_000, text: '' })
  await tokens.add(counted)
  await Promise.all(
    Array.from({ length: 10 }, () => {
      return tokens.change('session', counted.id, ({ text }) => ({ text: `${text}x` }), 0)
    }),
  )
  const after = await tokens.take('session', counted.id, 0)
  t.same(after, { ...counted, text: 'x'.repeat(10) }, 'concurrent changes all hold')

  const link = aToken({ kind: 'set-up', accountId: '' })
  await tokens.add(link)
  const took = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      at % 2 === 0
        ? tokens.take('set-up', link.id, 0)
        : other.tell({ op: 'takePass', kind: 'set-up', id: link.id }),
    ),
  )
  t.same(
    took.filter((token) => token !== null),
    [link],
    'one of twenty concurrent calls gets the token',
  )
  t.equal(await tokens.find('set-up', link.id, 0), null)

  const kept = aToken({ expiresAtMs: 9_000 })
  const gone = [aToken({ expiresAtMs: 9_000 }), aToken({ expiresAtMs: 9_000 })]
  const near = aToken({ accountId: 'acc_1/x', expiresAtMs: 9_000 })
  const reset = aToken({ kind: 'reset', expiresAtMs: 9_000 })
  const unowned = aToken({ kind: 'set-up', accountId: '', expiresAtMs: 9_000 })
  for (const token of [kept, ...gone, near, reset, unowned]) await tokens.add(token)
  const ids = async (kind: 'session' | 'reset', accountId: string, nowMs: number) =>
    (await tokens.tokensOf(kind, accountId, nowMs)).map(({ id }) => id).sort()
  t.same(await ids('session', 'acc_1', 1_999), [one, kept, ...gone].map(({ id }) => id).sort())
  t.same(await ids('session', 'acc_1', 2_000), [kept, ...gone].map(({ id }) => id).sort(), 'the valid ones')
  t.same(await ids('reset', 'acc_1', 0), [reset.id])
  t.same(await ids('session', 'acc', 0), [])
  t.equal(await tokens.end('session', 'acc_1', kept.id), 3, 'ends all tokens of the account and kind but one')
  for (const { id } of [one, ...gone]) t.equal(await tokens.find('session', id, 0), null)
  t.same(await tokens.find('session', kept.id, 0), kept)
  t.same(await tokens.find('session', near.id, 0), near)
  t.same(await tokens.find('reset', reset.id, 0), reset)
  t.equal(await tokens.end('set-up', '', null), 1)
  t.equal(await tokens.find('set-up', unowned.id, 0), null)
  t.equal(await tokens.end('session', 'acc_unknown', null), 0)

  for (let round = 0; round < 20; round += 1) {
    const busy = Array.from({ length: 8 }, () => aToken({ accountId: 'acc_busy', expiresAtMs: 9_000 }))
    for (const token of busy) await tokens.add(token)
    const prolonging = busy.map(({ id }) => tokens.change('session', id, () => ({ expiresAtMs: 9_500 }), 0))
    await tokens.end('session', 'acc_busy', null)
    await Promise.all(prolonging)
    const left = await Promise.all(busy.map(({ id }) => tokens.find('session', id, 0)))
    t.same(left.filter(Boolean), [], 'a token that is prolonged at the same time ends')
  }

  const many = Array.from({ length: 130 }, (_, at) =>
    aToken({ kind: 'device', accountId: 'acc_many', expiresAtMs: 9_000 + ((at * 7) % 130) }),
  )
  const beside = aToken({ kind: 'device', accountId: 'acc_few', expiresAtMs: 9_000 })
  for (const token of [beside, ...many]) t.equal(await tokens.add(token), true)
  const held = await Promise.all(many.map(({ id }) => tokens.find('device', id, 0)))
  const count = held.filter((token) => token !== null).length
  t.equal(count, 100, 'keeps 100 tokens of an account and kind')
  t.not(held.at(-1), null, 'keeps the newest token')
  t.same(await tokens.find('device', beside.id, 0), beside, 'keeps tokens of other accounts')
  t.equal(await tokens.end('device', 'acc_many', null), 100, 'the index has no more tokens')
  await tokens.end('device', 'acc_few', null)

  t.ok((await tokens.sweep(8_999)) >= 0)
  t.same(await tokens.find('session', kept.id, 0), kept, 'a sweep removes only expired tokens')
  await tokens.sweep(9_000)
  t.equal(await tokens.end('session', 'acc_1', null), 0, 'a sweep leaves nothing in an index')
}

/** Pages of the audit trail. */
export async function trail(t: Test, newUrl: NewUrl): Promise<void> {
  const { auditTrail: trail } = await opened(t, await newUrl(t))
  t.same(await trail.page({ accountId: null, after: null, limit: 10 }), [])
  const at = (number: number) => ({ id: `0192-${String(number).padStart(6, '0')}`, atMs: number })
  const entries = Array.from({ length: 12 }, (_, number) =>
    anEntry(number % 3 === 0 ? 'a' : 'a/b', {
      action: 'key.create',
      target: 'key_1',
      ...at(number),
    }),
  )
  for (const entry of entries) await trail.add(entry)
  const plain = { ...at(50), address: null, actor: 'command line' }
  await trail.add(anEntry('c', { action: 'key.create', target: 'key_1', ...plain }))

  const newest = [...entries].reverse()
  const all = await trail.page({ accountId: null, after: null, limit: 5 })
  t.match(all[0], { accountId: 'c', address: null }, 'newest first')
  t.same(all.slice(1), newest.slice(0, 4))
  const next = await trail.page({ accountId: null, after: all[4]?.id ?? '', limit: 100 })
  t.same(next, newest.slice(4), 'a page continues after the previous one')

  const own = newest.filter(({ accountId }) => accountId === 'a')
  const first = await trail.page({ accountId: 'a', after: null, limit: 3 })
  t.same(first, own.slice(0, 3), 'returns only entries of the account')
  const rest = await trail.page({ accountId: 'a', after: first[2]?.id ?? '', limit: 3 })
  t.same(rest, own.slice(3))
  for (const badName of ['', 'unowned', '\0', '*', 'x'.repeat(5_000)]) {
    t.same(await trail.page({ accountId: badName, after: null, limit: 3 }), [])
  }
  t.same(await trail.page({ accountId: 'a', after: '\0', limit: 3 }), [])
}

/** The audit entries of a change are written with it, or neither is. */
export async function auditEntries(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const actions = async (accountId: string): Promise<string[]> => {
    const page = await store.auditTrail.page({ accountId, after: null, limit: 100 })
    return page.map(({ action, target }) => `${action} ${target}`).reverse()
  }
  const ada = anAccount()
  const entry = (action: string, target: string) => anEntry(ada.id, { action, target })
  const made = [entry('account.create', ada.id)]
  t.equal(await putAccount(store, ada, made, aLogin(ada)), 'created')
  t.same(await store.auditTrail.page({ accountId: null, after: null, limit: 9 }), made, 'every field')
  const double = anAccount({ email: ada.email })
  const taken = [anEntry(double.id, { action: 'account.create', target: double.id })]
  t.equal(await putAccount(store, double, taken, aLogin(double)), 'email_taken')
  const same = anAccount({ id: ada.id })
  t.equal(await putAccount(store, same, [entry('account.create', 'x')]), 'id_taken')

  const key = aKey(ada.id)
  const other = aKey(ada.id)
  t.equal(await putKey(store, key, 1, [entry('key.create', key.id)]), 'created')
  t.equal(await putKey(store, other, 1, [entry('key.create', other.id)]), 'plan_limit')
  t.equal(await putKey(store, key, 9, [entry('key.create', 'x')]), 'id_taken')

  const changed = await editKey(store, key, { name: 'new' }, (before, after) => [
    {
      ...entry('key.change', `${before.name} → ${after.name}`),
      requestId: 'req_1',
      before: { name: before.name, models: null },
      after: { name: after.name, models: ['gpt-5'] },
    },
    entry('key.change', 'and more'),
  ])
  t.equal(changed?.name, 'new')
  t.equal(await editKey(store, { accountId: ada.id, id: 'none' }, {}, () => [entry('key.change', 'x')]), null)
  t.equal(await endKey(store, key, 5, [entry('key.revoke', key.id)]), true)
  t.equal(await endKey(store, key, 6, [entry('key.revoke', 'x')]), true)
  t.equal(await endKey(store, { accountId: ada.id, id: 'none' }, 6, [entry('key.revoke', 'x')]), false)
  t.equal(await editKey(store, key, {}, () => [entry('key.change', 'x')]), null)
  await editAccount(store, ada.id, { plan: 'max' }, (before, after) => [
    entry('account.plan', `${before.plan} → ${after.plan}`),
  ])
  await editAccount(store, 'acc_none', { plan: 'max' }, () => [entry('account.plan', 'x')])
  const all = [
    `account.create ${ada.id}`,
    `key.create ${key.id}`,
    `key.change ${key.name} → new`,
    'key.change and more',
    `key.revoke ${key.id}`,
    'account.plan starter → max',
  ]
  const page = await store.auditTrail.page({ accountId: ada.id, after: null, limit: 10 })
  t.match(
    page.find(({ requestId }) => requestId === 'req_1'),
    { before: { name: key.name, models: null }, after: { name: 'new', models: ['gpt-5'] } },
  )
  t.same(await actions(ada.id), all, 'one entry for each change that was made, in order')
  t.same(await actions(double.id), [])

  const racers = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      editAccount(store, ada.id, { plan: String(at) }, (before, after) => [
        entry('race', `${before.plan} → ${after.plan}`),
      ]),
    ),
  )
  t.notOk(racers.includes(null))
  const steps = (await actions(ada.id)).slice(all.length).map((each) => each.slice(5).split(' → '))
  t.equal(steps.length, 10)
  const left = new Set(steps.map(([before]) => before))
  const last = steps.filter(([, after]) => !left.has(after))
  t.match(await store.accountById(ada.id), { plan: last[0]?.[1] })
  t.equal(last.length, 1, 'each entry continues where another ended')
}

/** Throttled attempts, which all processes count together. */
export async function attempts(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const [one, two] = [await opened(t, url), await opened(t, url)]
  const nowMs = Date.now()
  const name = (text: string) => digestOf(text)
  const ada = { name: name('ada'), burst: 5, everyMs: 10_000 }
  const all = { name: name('all'), burst: 8, everyMs: 1_000 }
  const waits = await Promise.all(
    Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? one : two).throttle.take([ada, all], nowMs)),
  )
  const counted = waits.filter((each) => each.every((wait) => wait === 0))
  t.equal(counted.length, 5, 'two handles allow five of twenty concurrent attempts')
  t.same(
    waits.find(([wait = 0]) => wait > 0),
    [10_000, 0],
    'returns the time until the next attempt is allowed',
  )
  t.same(await two.throttle.take([ada], nowMs + 9_999), [1])
  t.same(await two.throttle.take([ada], nowMs + 10_000), [0])
  const bob = { ...ada, name: name('bob') }
  for (let at = 0; at < 3; at += 1) t.same(await one.throttle.take([bob, all], nowMs), [0, 0])
  t.same(await one.throttle.take([bob, all], nowMs), [0, 1_000], 'a refused attempt is not counted')
  await two.throttle.forget(ada.name)
  t.same(
    await one.throttle.take([{ ...ada, burst: 1 }], nowMs + 10_000),
    [0],
    'a reset counter allows attempts',
  )
  await one.throttle.forget(name('unused'))
  t.same(await one.throttle.take([], nowMs), [])
  await one.throttle.sweep(nowMs)
  t.same(
    await one.throttle.take([{ ...ada, burst: 1 }], nowMs + 10_000),
    [10_000],
    'a sweep keeps a counter that still limits',
  )
  await one.throttle.sweep(nowMs + 3_600_000)
  t.equal(await one.throttle.sweep(nowMs + 3_600_000), 0, 'a sweep removes a full bucket')
}
