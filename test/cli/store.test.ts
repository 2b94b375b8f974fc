/**
 * Goal: `sluice store migrate` copies accounts, keys, audit entries, ledger entries and sums between
 * engines, reports whether the two stores are equal, completes an interrupted copy, and keeps the records
 * that only the target has.
 * Method: stores in temporary folders and databases of a real Redis; the built program for exit statuses.
 * Each day has a third of the records that only the target has, and every second day a copy between
 * databases.
 */
import { editAccount, editKey, endKey, putAccount, putKey } from '../helpers/store-changes.js'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { command, runMigrate } from '../../src/cli/store.js'
import type { Terminal } from '../../src/cli/with-store.js'
import { labelHistory } from '../../src/control/dashboard/api/key-history.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { isToday, ofToday } from '../helpers/long-suite.js'
import { freshDatabases, redisMissing, startRedis } from '../helpers/redis.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { exitStatus, sluice, sluiceHere } from './session.js'
import { allAccounts, allKeys } from '../helpers/lists.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOON = Date.parse('2026-11-20T12:00:00Z')
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA'
const digestOf = (n: number): string => n.toString(16).padStart(64, 'd')

void t.test('sqlite to sqlite copies every record, and a second run copies nothing', async (t) => {
  const [from, to] = sqlitePlaces(t)
  await filled(from)
  const first = await moved(from, to)
  t.equal(first.status, 0, first.text)
  t.match(first.text, /^accounts +2 +2 +[0-9a-f]{16} +[0-9a-f]{16} +same$/m)
  t.match(first.text, /^rows +30 +30 .* same$/m)
  for (const line of ['accounts: 2 copied', 'rows: 30 copied', 'rows: 30 read back']) {
    t.match(first.errors, `sluice: ${line}`)
  }
  t.match(first.text, /^budgets +4 +4 .* same$/m)
  t.match(first.text, /^values +4 +4 .* same$/m)
  t.match(first.text, /^logins +2 +2 .* same$/m)
  await assertSame(t, from, to)
  t.notOk(
    [HASH, digestOf(1), 'aGFzaA'].some((each) => first.text.includes(each)),
    'no hash',
  )

  const again = await moved(from, to)
  t.equal(again.status, 0, 'a complete target')
  t.equal(again.text, first.text)

  await changed(from)
  t.equal((await moved(from, to)).status, 0, 'a target that lacks recent records')
  await assertSame(t, from, to)
})

void t.test('an interrupted copy is completed', async (t) => {
  const [from, to] = sqlitePlaces(t)
  await filled(from)
  await withOpen(from, (source) =>
    withOpen(to, async (target) => {
      const [account] = await allAccounts(source)
      if (account === undefined) throw new Error('the source is empty')
      await putAccount(target, account)
      const [key] = await allKeys(source, account.id)
      if (key !== undefined) await putKey(target, key, null)
      await target.ledger.settle(ledgerEntry('r20', { atMs: NOON + 20 }))
    }),
  )
  const { status, text } = await moved(from, to)
  t.equal(status, 0, text)
  await assertSame(t, from, to)
})

void t.test('records that only the target has are never changed', async (t) => {
  const foreign: [string, (target: Store) => Promise<unknown>, RegExp][] = [
    ['an account', (target) => putAccount(target, anAccount('acc_eve')), /account 'acc_eve'/],
    [
      'a row',
      (target) => target.ledger.settle(ledgerEntry('r_other', { atMs: NOON + HOUR })),
      /request 'r_other'/,
    ],
    [
      'a revocation',
      async (target) => {
        await putAccount(target, anAccount('acc_ada'))
        await putKey(target, aKey(1), null)
        await endKey(target, { accountId: 'acc_ada', id: 'key_1' }, NOON)
      },
      /key 'key_1'/,
    ],
    ['a token', (target) => target.adminTokens.add(aToken(9)), /admin token 'tok_9'/],
    [
      'the revocation of a token',
      (target) => target.adminTokens.add({ ...aToken(1), revokedAtMs: NOON }),
      /admin token 'tok_1'/,
    ],
    [
      'an entry',
      (target) => target.auditTrail.add({ ...anEntry(5), id: '01935002-other' }),
      /entry '01935002-other'/,
    ],
  ]
  const root = t.testdir()
  const from = `sqlite:${join(root, 'from')}`
  await filled(from)
  for (const [at, [name, make, message]] of ofToday(foreign.entries(), 3)) {
    const to = `sqlite:${join(root, `to-${at}`)}`
    await withOpen(to, make)
    const before = await contentsOf(to)
    const { status, text, errors } = await moved(from, to)
    t.equal(status, 1, name)
    t.match(errors, message)
    t.equal(text, '')
    t.same(await contentsOf(to), before, 'nothing was written')
  }
})

void t.test('a copy that differs from its source is reported', async (t) => {
  const [from, to] = sqlitePlaces(t)
  await filled(from)
  await withOpen(to, (target) =>
    // The same request with another cost: the ledger keeps the first entry.
    target.ledger.settle(ledgerEntry('r3', { atMs: NOON + 3, costNanoUsd: 1 })),
  )
  const { status, text, errors } = await moved(from, to, true)
  t.equal(status, 1)
  const { same, parts } = JSON.parse(text) as { same: boolean; parts: Record<string, unknown>[] }
  t.equal(same, false)
  t.same(
    parts.filter((part) => part['same'] === false).map(({ part }) => part),
    ['rows'],
  )
  t.match(errors, /the two stores differ/)
})

void t.test('records are copied from sqlite to redis and back', { skip: redisMissing() }, async (t) => {
  const server = await startRedis(t)
  const fresh = freshDatabases(server)
  const [from, back] = sqlitePlaces(t)
  const [to, second] = [fresh(), fresh()]
  await filled(from)
  const ways = isToday(0, 2)
    ? ([
        [from, to],
        [to, second],
        [second, back],
      ] as const)
    : ([
        [from, to],
        [to, back],
      ] as const)
  for (const [source, target] of ways) {
    const { status, text, errors } = await moved(source, target)
    t.equal(status, 0, text + errors)
    await assertSame(t, from, target)
  }
  await changed(from)
  t.equal((await moved(from, to)).status, 0, 'changed records are copied')
  await assertSame(t, from, to)

  // Killed between the record of an account and its name, which is written last.
  const [zoe] = await withOpen(from, (store) => allAccounts(store))
  if (zoe === undefined) throw new Error('the source is empty')
  await withOpen(server.url(), (store) => putAccount(store, zoe))
  t.equal(await server.ask('hdel', 'sluice:{accounts}:names', 'acc_zoe'), 1)
  t.equal(await server.ask('hdel', 'sluice:{accounts}:ids', 'acc-zoe'), 1)
  t.equal(await server.ask('zrem', 'sluice:{accounts}:by-name', 'acc-zoe'), 1)
  t.equal((await moved(from, server.url())).status, 0, 'an incomplete account is completed')
  await assertSame(t, from, server.url())
})

void t.test(
  'saved views and the history of labels are copied from sqlite to redis and back',
  { skip: redisMissing() },
  async (t) => {
    const [from, back] = sqlitePlaces(t)
    const to = freshDatabases(await startRedis(t))()
    await withOpen(from, async (store) => {
      await putAccount(store, anAccount('acc_ada'), [], aLogin('acc_ada'))
      await putKey(store, { ...aKey(1), labels: { team: 'red' } }, null)
      const views = [
        { id: 'b', name: 'Most spend', url: '/keys?sort=-cost' },
        { id: 'a', name: 'Slow', url: '/requests?sort=-durationMs&model=gpt%2D4' },
      ]
      await store.users.change('acc_ada', () => ({ views }))
      for (const [n, team] of ['blue', 'green'].entries()) {
        const edit = { labels: { team, since: 'é' } }
        const of = { accountId: 'acc_ada', id: 'key_1' }
        await editKey(store, of, edit, (before, after) => {
          const fields = { before: { labels: { ...before.labels } }, after: { ...after.labels } }
          const what = {
            action: 'key.change',
            before: fields.before,
            after: { labels: fields.after },
          }
          return [{ ...anEntry(n + 1), ...what, target: 'key_1', actor: 'ada@example.com' }]
        })
      }
    })
    const read = (url: string) =>
      withOpen(url, async (store) => {
        const [key] = await allKeys(store, 'acc_ada')
        if (key === undefined) throw new Error('the key is missing')
        const user = await store.users.byId('acc_ada')
        return { views: user?.views, history: await labelHistory(store, key) }
      })
    const before = await read(from)
    t.strictSame(
      before.views?.map(({ id }) => id),
      ['b', 'a'],
    )
    t.match(before.history, [
      { by: 'ada@example.com', labels: { team: 'green', since: 'é' } },
      { by: 'ada@example.com', labels: { team: 'blue', since: 'é' } },
      { by: null, labels: { team: 'red' } },
    ])
    for (const [source, target] of [
      [from, to],
      [to, back],
    ] as const) {
      const { status, text, errors } = await moved(source, target)
      t.equal(status, 0, text + errors)
      t.strictSame(await read(target), before)
    }
  },
)

void t.test('the program exits with its statuses and prints no e-mail address', async (t) => {
  const root = t.testdir()
  const at = (name: string): string => `sqlite:${join(root, name)}`
  await filled(at('from'))
  const args = ['store', 'migrate', '--from']
  const done = await sluice([...args, at('from'), '--to', at('to'), '--json'])
  t.equal(done.status, 0, done.err)
  t.equal((JSON.parse(done.out) as { same: boolean }).same, true)
  const none = await sluiceHere([...args, at('nothing'), '--to', at('to')])
  t.equal(none.status, 1)
  t.match(none.err, /does not exist/, 'a missing source is not created')
  t.equal((await sluiceHere([...args, at('from')])).status, 2)

  const wrong: [string[], RegExp][] = [
    [[], /needs one of: migrate, accept/],
    [['migrate', 'all'], /only options/],
    [['migrate', '--from', 'sqlite:a'], /--to URL/],
    [['migrate', '--from', 'sqlite:a', '--to', 'sqlite:./a'], /same store/],
    [['migrate', '--from', 'sqlite:a', '--to', 'postgres://u:secret@h'], /--to must be sqlite:PATH/],
    [['migrate', '--from', 'sqlite:a', '--to', 'env:NONE'], /variable NONE is not set/],
  ]
  for (const [argv, message] of wrong) {
    await t.rejects(exitStatus(command(), argv), message, argv.join(' '))
  }
  const values = ['migrate', '--from', 'sqlite:a', '--to', 'env:URL_OF_STORE']
  process.env['URL_OF_STORE'] = 'sqlite:a'
  await t.rejects(exitStatus(command(), values), /same store/, 'the variable names it')
  await exitStatus(command(), wrong[4]?.[0] ?? []).catch((error: unknown) => {
    t.notMatch(error, { message: /secret/ })
  })
})

function sqlitePlaces(t: Test): [string, string] {
  const root = t.testdir()
  return [`sqlite:${join(root, 'from')}`, `sqlite:${join(root, 'to')}`]
}

async function moved(from: string, to: string, json = false) {
  const out: string[] = []
  const errors: string[] = []
  const terminal: Terminal = {
    out: (line) => out.push(line),
    ready: () => Promise.resolve(),
    err: (line) => errors.push(line),
    input: () => Promise.resolve(''),
  }
  const status = await runMigrate({ from, to, json }, terminal)
  return { status, text: out.join('\n'), errors: errors.join('\n') }
}

async function withOpen<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

function anAccount(id: string) {
  return {
    id,
    name: id.replace('_', '-'),
    email: `${id}@Example.com`,
    plan: 'pro',
    disabled: false,
    createdAtMs: NOON - 400 * DAY,
  } as const
}

function aLogin(id: string) {
  return {
    id,
    email: `${id}@example.com`,
    role: 'admin',
    passwordHash: HASH,
    disabled: false,
    createdAtMs: NOON - 400 * DAY,
  } as const
}

function aKey(n: number, accountId = 'acc_ada') {
  return {
    id: `key_${n}`,
    accountId,
    name: `key ${n}`,
    digest: digestOf(n),
    prefix: 'sk_ab',
    lastFour: 'wxyz',
    createdAtMs: NOON - 300 * DAY,
  }
}

function aToken(n: number) {
  return {
    id: `tok_${n}`,
    name: `token ${n}`,
    digest: digestOf(1000 + n),
    lastFour: 'wxyz',
    scopes: ['accounts:read'],
    accountId: n === 3 ? 'acc_ada' : null,
    expiresAtMs: NOON + 30 * DAY,
    createdBy: 'command line',
    createdAtMs: NOON + n,
  }
}

function aRecording(n: number) {
  return {
    kind: 'recording' as const,
    id: `recorded_${n}`,
    accountId: 'acc_ada',
    keyId: 'key_1',
    model: 'gpt-4o',
    atMs: NOON + (n % 5),
    expiresAtMs: Date.now() + DAY,
    info: '{"upstream":"openai","status":200}',
    value: new Uint8Array([n, 0, 255]),
  }
}

function anEntry(n: number) {
  const id = `0193500${n}-0000`
  const what = { actor: 'command line', action: 'key.create', target: `key_${n}`, detail: 'é' }
  return { id, atMs: NOON + n, accountId: 'acc_ada', address: null, ...what }
}

/** Adds two accounts (one disabled), keys of every kind, ledger entries, and sums of deleted entries. */
async function filled(url: string): Promise<void> {
  await withOpen(url, async (store) => {
    await putAccount(store, anAccount('acc_zoe'), [], aLogin('acc_zoe'))
    await putAccount(store, anAccount('acc_ada'), [], aLogin('acc_ada'))
    await editAccount(store, 'acc_zoe', { disabled: true })
    const limited = { models: ['gpt-*'], limits: { requestsPerMinute: 5 }, expiresAtMs: NOON + DAY }
    await putKey(store, aKey(2), null)
    await putKey(store, { ...aKey(1), ...limited }, null)
    await putKey(store, { ...aKey(3), replaces: 'key_2' }, null)
    await putKey(store, aKey(4, 'acc_zoe'), null)
    await endKey(store, { accountId: 'acc_ada', id: 'key_3' }, NOON)
    for (let n = 1; n <= 3; n += 1) await store.auditTrail.add(anEntry(n))
    const old = { atMs: NOON - 40 * DAY, keyId: 'key_old', hops: { firstContent: 75 } }
    await store.ledger.settle(ledgerEntry('old1', old))
    await store.ledger.settle(ledgerEntry('old2', { ...old, outcome: 'lost', source: 'estimated' }))
    for (let n = 0; n < 30; n += 1) await store.ledger.settle(ledgerEntry(`r${n}`, { atMs: NOON + n }))
    const unsettled = ledgerEntry('admitted')
    for (const shared of [false, true]) {
      const subject = shared ? 'model:a:b}~%' : 'key:key_1'
      const of = { subject, shared, limitNanoUsd: 1e12, costNanoUsd: 1e15 % 7e11 }
      const demands = [
        { ...of, kind: 'usd_day' },
        { ...of, kind: 'usd_month' },
      ] as const
      const admission = { accountId: 'acc_ada', requestId: `held ${String(shared)}`, demands }
      await store.ledger.admit({ ...admission, leaseMs: 1e9, unsettled })
    }
    await values(store)
    const untilMs = Date.now() + DAY
    for (const [kind, n] of [
      ['login', 70],
      ['access', 71],
      ['session', 72],
    ] as const) {
      const token = { id: digestOf(n), kind, accountId: 'acc_ada', expiresAtMs: untilMs }
      await store.signInTokens.add({ ...token, text: `{"n":${n}}` })
    }
    for (let n = 1; n <= 3; n += 1) await store.adminTokens.add(aToken(n))
    await store.adminTokens.change('tok_2', (token) => ({ ...token, revokedAtMs: NOON }))
    for (let n = 1; n <= 20; n += 1) await store.sealedRecords.put(aRecording(n), 1e9, NOON)
    const beforeMs = NOON - 30 * DAY
    await store.ledger.prune({ entriesBeforeMs: beforeMs, hoursBeforeMs: 0, daysBeforeMs: 0 })
  })
}

/** Values of two dimensions: with uses, ended, and ended before its first request. */
async function values({ dimensionValues }: Store): Promise<void> {
  const nowMs = Date.now()
  const bounds = { maxValues: 10, keepMs: DAY }
  const of = (value: string, dimension = 'run') => ({ accountId: 'acc_ada', dimension, value })
  for (const name of [of('r 1'), of('r=2'), of('ada', 'end_user')])
    await dimensionValues.claim(name, bounds, nowMs)
  const use = { requests: 2, inputTokens: 30, outputTokens: 4, costNanoUsd: 5_000, keepMs: DAY }
  await dimensionValues.add([
    { ...of('r 1'), ...use, atMs: nowMs + 5 },
    { ...of('r 1'), ...use, atMs: nowMs + 90 },
  ])
  await dimensionValues.add([{ ...of('r=2'), ...use, atMs: nowMs + 7 }])
  await dimensionValues.end(of('r=2'), DAY, nowMs + 50)
  await dimensionValues.end(of('in advance'), DAY, nowMs + 60)
}

/** Changes the store like a gateway that runs after the first copy. */
async function changed(url: string): Promise<void> {
  await withOpen(url, async (store) => {
    const used = { requests: 1, inputTokens: 1, outputTokens: 1, costNanoUsd: 1, keepMs: DAY }
    const name = { accountId: 'acc_ada', dimension: 'run', value: 'r 1' }
    await store.dimensionValues.add([{ ...name, ...used, atMs: Date.now() + 1_000 }])
    await store.signInTokens.take('access', digestOf(71), Date.now())
    await editAccount(store, 'acc_ada', { plan: 'max' })
    await endKey(store, { accountId: 'acc_zoe', id: 'key_4' }, NOON + 5)
    await editKey(
      store,
      { accountId: 'acc_ada', id: 'key_1' },
      { name: 'new', limits: null, replacedBy: 'key_5', labels: { team: 'blue' } },
    )
    await putKey(store, aKey(5), null)
    await store.auditTrail.add(anEntry(4))
    await store.adminTokens.add(aToken(4))
    await store.adminTokens.change('tok_1', (token) => ({ ...token, revokedAtMs: NOON + 5 }))
    await store.sealedRecords.put(aRecording(21), 1e9, NOON)
    await store.ledger.settle(ledgerEntry('late', { atMs: NOON + 10 }))
    // Retention deletes entries in the meantime.
    const [hoursBeforeMs, daysBeforeMs] = [NOON - DAY, NOON - DAY]
    await store.ledger.prune({ entriesBeforeMs: NOON + 5, hoursBeforeMs, daysBeforeMs })
  })
}

/** All records of a store, read without the code of the command. */
async function contentsOf(url: string) {
  return withOpen(url, async (store) => {
    const accounts = await allAccounts(store)
    const keys = await Promise.all(accounts.map(({ id }) => allKeys(store, id)))
    const counts = await Promise.all(accounts.map(({ id }) => store.countKeys(id)))
    const found = await Promise.all(keys.flat().map(async ({ digest }) => store.findKey(digest)))
    const all = { accountId: null, fromMs: NOON - DAY, toMs: NOON + DAY }
    const old = { accountId: 'acc_ada', fromMs: 0, toMs: NOON - DAY - 1 }
    const { entries: rows } = await store.ledger.entries({
      ...all,
      after: null,
      limit: 1000,
      fromMs: NOON + 5,
    })
    const days = await store.ledger.sums({ ...all, by: 'day' })
    const hours = await store.ledger.sums({ ...all, by: 'hour' })
    const dropped = await store.ledger.sums({ ...old, by: 'hour' })
    const uses = await store.ledger.lastUse('acc_ada')
    const trail = await store.auditTrail.page({ accountId: 'acc_ada', after: null, limit: 100 })
    const used = Object.fromEntries(uses)
    const demands = [false, true].flatMap((shared) => {
      const subject = shared ? 'model:a:b}~%' : 'key:key_1'
      const of = { subject, shared, limitNanoUsd: 1e12, costNanoUsd: 1 }
      return [
        { ...of, kind: 'usd_day' },
        { ...of, kind: 'usd_month' },
      ] as const
    })
    const budgets = await store.ledger.limitStates('acc_ada', demands)
    const left = budgets.map(({ remaining }) => remaining)
    const tokens = await store.adminTokens.page(null, 100)
    const heads = await store.sealedRecords.list('recording', {}, Date.now())
    const recordings = await Promise.all(
      heads.map(async ({ id }) => {
        const record = await store.sealedRecords.find('recording', id, Date.now())
        return { ...record, value: [...(record?.value ?? [])] }
      }),
    )
    return {
      tokens: tokens.items,
      recordings,
      left,
      accounts,
      keys,
      counts,
      found,
      rows,
      days,
      hours,
      dropped,
      used,
      trail,
    }
  })
}

async function assertSame(t: Test, from: string, to: string): Promise<void> {
  const [source, target] = [await contentsOf(from), await contentsOf(to)]
  t.same(new Set(source.left), new Set([1e12 - (1e15 % 7e11)]), 'of every budget')
  t.ok(source.recordings.length >= 20 && source.tokens.length >= 3)
  t.ok(source.rows.length > 20 && source.days.length > 0 && source.trail.length > 2)
  // Entries that the source has deleted since then may still exist.
  const { dropped, used, ...lasting } = source
  const { dropped: kept, used: alsoUsed, ...there } = target
  t.same(there, lasting)
  if (dropped.length > 0) t.same(kept, dropped)
  t.match(alsoUsed, used)
}
