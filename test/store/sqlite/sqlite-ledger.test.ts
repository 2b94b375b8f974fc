/**
 * Goal: the SQLite ledger passes the suite of every ledger, and handles damage, a full disk and locks of
 * other processes.
 * Method: the suite; then another connection changes the file, and a process runs with a limit of the size of
 * files.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { connect, type Row, type Value } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import { ledgerContract } from '../ledger/ledger-contract.js'
import { LEDGER_WRITER } from '../ledger/kills.js'
import { anAdmission, aRow, MINUTE, NOON, places, TestClock } from '../ledger/sample-entries.js'
import { onFullDisk } from '../processes/start-processes.js'
import { testProgram } from '../../helpers/test-program.js'
import { IS_LONG } from '../../helpers/long-suite.js'

const HOLDER = testProgram('store/processes/lock-process')
const QUITTER = testProgram('store/processes/exit-process')

ledgerContract(t, 'sqlite', (t) => `sqlite:${join(t.testdir(), 'store')}`)

void t.test('sums of a day are the same before and after its hours are added to it', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const store = await openSqlite(path, { nowMs: clock.now })
  const db = connect(path)
  t.teardown(async () => {
    db.close()
    await store.close()
  })
  const { ledger } = store
  const requests = async () => {
    const span = { fromMs: NOON, toMs: NOON }
    const sums = await ledger.sums({ ...span, by: 'day', accountId: 'acc_ada' })
    const whole = await ledger.sums({ ...span, by: 'day', accountId: null, per: 'model' })
    const uses = await ledger.keyUse({ ...span, accountId: 'acc_ada' })
    const total = (of: readonly { readonly requests: number }[]) =>
      of.reduce((sum, each) => sum + each.requests, 0)
    return [total(sums), total(whole), total(uses)]
  }
  const isAdded = async () => {
    for (let tries = 0; tries < 2_000; tries += 1) {
      const row = db.prepare('SELECT start_ms FROM days_mark').get()
      if (Number(row?.['start_ms']) >= NOON) return true
      await sleep(50)
    }
    return false
  }
  for (const keyId of ['key_a', 'key_b']) {
    await ledger.append(aRow({ requestId: `req_${keyId}`, keyId, accountId: 'acc_ada', atMs: NOON }))
  }
  t.strictSame(await requests(), [2, 2, 2], 'the current hour is not added to its day')
  t.equal(db.prepare('SELECT count(*) AS days FROM usage_days').get()?.['days'], 0)

  clock.atMs = NOON + 180 * MINUTE
  await ledger.append(aRow({ requestId: 'req_new', keyId: 'key_c', accountId: 'acc_ada', atMs: clock.atMs }))
  t.ok(await isAdded(), 'adds a past hour to its day')
  t.strictSame(await requests(), [3, 3, 3])
  for (const keyId of ['key_a', 'key_z']) {
    const late = { requestId: `req_late_${keyId}`, keyId, accountId: 'acc_ada', atMs: NOON + 1 }
    await ledger.append(aRow(late))
  }
  t.strictSame(await requests(), [5, 5, 5], 'counts late entries of an hour that was added')
  const lastUse = [...(await ledger.lastUse('acc_ada'))].sort()
  t.strictSame(lastUse, [
    ['key_a', NOON + 1],
    ['key_b', NOON],
    ['key_c', clock.atMs],
    ['key_z', NOON + 1],
  ])
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: NOON + 240 * MINUTE, daysBeforeMs: 0 })
  t.equal(db.prepare('SELECT count(*) AS hours FROM usage_hours').get()?.['hours'], 0)
  t.strictSame(await requests(), [5, 5, 5], 'keeps days longer than hours')

  const later = NOON + 2 * 1_440 * MINUTE
  await ledger.append(aRow({ requestId: 'req_later', accountId: 'acc_ada', atMs: later }))
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: later + 60 * MINUTE, daysBeforeMs: 0 })
  t.strictSame(await requests(), [5, 5, 5], 'the usage of a past day is cached')
  t.strictSame(await requests(), [5, 5, 5])
  await ledger.append(aRow({ requestId: 'req_late', accountId: 'acc_ada', atMs: NOON + 2 }))
  t.strictSame(await requests(), [6, 6, 6], 'a late entry changes the cached usage')
})

void t.test('a full disk fails only writes that do not fit', async (t) => {
  const path = join(t.testdir(), 'store')
  const { lines, status, stderr } = await onFullDisk([LEDGER_WRITER, `sqlite:${path}`, 'full'])
  t.equal(status, 0, 'the process continues without unhandled rejections')
  t.notMatch(stderr, /UnhandledPromise|triggerUncaught/)
  t.equal(lines.at(-1), 'read 1', 'the process can still read')
  const settled = lines.filter((line) => line.startsWith('settled '))
  const failed = lines.filter((line) => line.startsWith('failed '))
  t.ok(settled.length > 10, `${settled.length} requests fit on the disk`)
  t.ok(failed.length >= 3)
  for (const line of failed) t.match(line, /disk of the key store is full or has failed.* failed: /)

  const clock = new TestClock()
  const again = await openSqlite(path, { nowMs: clock.now })
  t.teardown(() => again.close())
  for (const line of settled) {
    const row = await again.ledger.entry('acc_ada', line.slice('settled '.length))
    if (row?.outcome !== 'ok') t.fail(`${line}: its entry is missing`)
  }
  clock.atMs = NOON + MINUTE
  await again.ledger.expire()
  const [free] = await again.ledger.limitStates('acc_ada', [places(1_000, 'key:writer')])
  t.equal(free?.remaining, 1_000, 'all slots are free when the disk has space')
})

void t.test('a damaged record fails only its own reads, with its name', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  const row = aRow({ atMs: NOON })
  const fine = aRow({ atMs: NOON + 1, accountId: 'acc_bob' })
  const held = anAdmission([places(3)])
  const other = anAdmission([places(3)])
  await ledger.settle(row)
  await ledger.settle(fine)
  await ledger.admit(held)
  await ledger.admit(other)
  const secret = 'gpt-that-must-not-show'
  const ofKind = 'entry_kinds WHERE number = (SELECT kind FROM entry_rows WHERE id = ?)'
  const own = 'entry_rows WHERE id = ?'
  const damages: [rows: string, column: string, value: Value, RegExp][] = [
    [own, 'stages_us', `[{"${secret}`, /'hops' is not JSON/],
    [ofKind, 'losses', `"${secret}"`, /'losses'/],
    [ofKind, 'outcome', secret, /'outcome'/],
    [ofKind, 'dialect', secret, /'dialect'/],
    [own, 'output_tokens', secret, /'output_tokens'/],
  ]
  for (const [rows, column, value, why] of damages) {
    const before = behind(path, `SELECT ${column} AS it FROM ${rows}`, row.requestId)
    const update = `UPDATE ${rows.replace(' ', ` SET ${column} = ? `)}`
    behind(path, update, value, row.requestId)
    const error: unknown = await ledger.entry(null, row.requestId).catch((cause: unknown) => cause)
    t.match(error, { kind: 'store_unavailable', cause: { message: why } })
    t.match(error, { cause: { message: new RegExp(row.requestId) } })
    t.notMatch(String(error instanceof Error ? error.cause : error), secret)
    t.same(await ledger.entry(null, fine.requestId), fine)
    behind(path, update, before?.['it'] ?? null, row.requestId)
  }
  behind(path, "UPDATE reservations SET holds = '[0]', entry = '[1]' WHERE request_id = ?", held.requestId)
  // This process caches the holds of its own requests; another process reads them.
  const another = await opened(path, clock)
  t.teardown(another.close)
  const [damaged, good] = await Promise.allSettled([
    another.ledger.settle(aRow({ requestId: held.requestId })),
    another.ledger.settle(aRow({ requestId: other.requestId })),
  ])
  t.equal(damaged.status, 'rejected')
  t.equal(good.status, 'fulfilled', 'only the damaged one of a transaction fails')
  const third = anAdmission([places(3)])
  await ledger.admit(third)
  clock.atMs += MINUTE
  t.ok((await ledger.admit(anAdmission([places(3)]))).admitted)
  await t.rejects(ledger.expire(), { cause: { message: new RegExp(held.requestId) } })
  t.match(await ledger.entry(null, third.requestId), { outcome: 'lost' }, 'other reservations are settled')
})

void t.test('waits for the lock of another process without blocking the event loop', async (t) => {
  const path = join(t.testdir(), 'store')
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  await ledger.settle(aRow())
  const heldMs = 1_500
  const holder = spawn(process.execPath, [HOLDER, path, String(heldMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(holder, 'exit')
  await once(holder.stdout, 'data')
  const beganMs = performance.now()
  let turns = 0
  const took: number[] = []
  const settled = ledger.settle(aRow()).then(() => took.push(performance.now() - beganMs))
  while (took.length === 0) {
    await sleep(10)
    turns += 1
    await ledger.limitStates('acc_ada', [places(1)])
  }
  await Promise.all([settled, gone])
  const [tookMs = 0] = took
  t.ok(tookMs > heldMs / 2, `the write waited for ${Math.round(tookMs)} ms`)
  t.ok(turns > 20, `the event loop ran ${turns} turns and read meanwhile`)
})

void t.test('a process that exits during writes blocks no other process', async (t) => {
  const path = join(t.testdir(), 'store')
  for (let round = 0; round < (IS_LONG ? 4 : 2); round += 1) {
    const how = round % 2 === 0 ? 'exit' : 'throw'
    const quitter = spawn(process.execPath, [QUITTER, `sqlite:${path}`, how], { stdio: 'ignore' })
    // A process that hangs would keep the lock of writers.
    const timeLimit = setTimeout(() => quitter.kill('SIGTERM'), 60_000)
    await once(quitter, 'exit')
    clearTimeout(timeLimit)
    t.not(quitter.signalCode, 'SIGTERM', 'the process exits by itself')
  }
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  await ledger.settle(aRow())
})

void t.test('entries are counted once, by any process', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const one = await opened(path, clock)
  t.teardown(one.close)
  const other = await opened(path, clock)
  t.teardown(other.close)
  const ROWS = 600
  const rows = Array.from({ length: ROWS }, (_, at) =>
    aRow({ atMs: NOON, keyId: `key_${at % 7}`, costNanoUsd: at }),
  )
  const settled = async ({ ledger }: typeof one, from: number, to: number) => {
    await Promise.all(rows.slice(from, to).map((row) => ledger.append(row)))
  }
  const counted = async ({ ledger }: typeof one, per: 'key' | 'model' = 'key') => {
    const sums = await ledger.sums({ accountId: null, by: 'hour', fromMs: NOON, toMs: NOON, per })
    const requests = sums.reduce((sum, each) => sum + each.requests, 0)
    return [requests, sums.reduce((sum, each) => sum + Number(each.costNanoUsd), 0)]
  }
  const of = (upTo: number) => [upTo, (upTo * (upTo - 1)) / 2]
  await settled(one, 0, 200)
  t.same(await counted(other), of(200), 'added by another process')
  await settled(one, 200, 400)
  t.same(await counted(other), of(400), 'added by the other process again')
  t.same(await counted(one), of(400), 'nothing is left to add for this process')
  await Promise.all([settled(one, 400, 500), settled(other, 500, ROWS)])
  t.same(
    await Promise.all([counted(one), counted(other)]),
    [of(ROWS), of(ROWS)],
    'added by both processes at once',
  )
  t.same(await counted(one, 'model'), of(ROWS), 'sums by model are complete')
})

void t.test('the view `entries` has the columns of the export', async (t) => {
  const path = join(t.testdir(), 'store')
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  await ledger.settle(aRow({ costNanoUsd: 1_500_000_000 }))
  await ledger.settle(aRow({ costNanoUsd: 250_000_000 }))
  const found = behind(
    path,
    'SELECT model, sum(cost_usd) AS cost, min(at) AS at FROM entries WHERE key_id = ? GROUP BY model',
    'key_one',
  )
  t.same({ ...found }, { model: 'gpt-5.4-mini', cost: 1.75, at: '2026-11-20T12:00:00.000Z' })
})

async function opened(path: string, clock: TestClock) {
  const store = await openSqlite(path, { nowMs: clock.now })
  return { ledger: store.ledger, close: () => store.close() }
}

/** Runs a statement on a connection of its own; its first row. */
function behind(path: string, sql: string, ...values: readonly Value[]): Row | undefined {
  const db = connect(path)
  try {
    return db.prepare(sql).get(...values)
  } finally {
    db.close()
  }
}
