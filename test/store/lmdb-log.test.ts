/**
 * Goal: what the embedded engine has only in its log is as good as what is in its tables: for other processes,
 * after a death, whoever brings it there and whenever.
 * Method: two ledgers at one file do what chance says, brought into the tables and opened anew in between, and are
 * held against a model; the tables are looked at with the bare engine.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { LIMIT_NUMBERS } from '../../src/store/lmdb-limits.js'
import { LogWriter, readLog, type LogReader } from '../../src/store/lmdb-log.js'
import { openLmdb } from '../../src/store/lmdb.js'
import { writeReservation, type Reservation } from '../../src/store/lmdb-reservation.js'
import { writeRow } from '../../src/store/usage-record.js'
import type { Ledger } from '../../src/store/ledger.js'
import { dice } from '../helpers/dice.js'
import { withBare } from './bare.js'
import { LEDGER_WRITER, writerDemands } from './ledger-kills.js'
import {
  aName,
  anAdmission,
  aRow,
  budget,
  MINUTE,
  NOON,
  places,
  requests,
  TestClock,
  tokens,
} from './ledger-records.js'

const STEPS = Number(process.env['SLUICE_LOG_STEPS'] ?? '400')
const PLACES = 1_000
const BUDGET = 1_000_000
const COST = 100

void t.test('a record of the log', (t) => {
  const writer = new LogWriter()
  t.ok(writer.isEmpty)
  const limits = Float64Array.from({ length: LIMIT_NUMBERS }, (_, at) => at * 1e15 + 0.5)
  const reservation: Reservation = {
    untilMs: NOON,
    holds: [
      ['tokens', 'ä🔑', 7, 9],
      ['concurrent', 'ä🔑'],
      ['usd_day', 'other\n', 3, 20_000],
      ['usd_month', '', 4, 700],
    ],
    row: '[1,"ü\\n"]',
  }
  writer.limits('ä🔑', limits)
  writer.reserved('one', reservation, true)
  writer.reserved('one', { ...reservation, holds: [] }, false)
  writer.ended('one')
  t.notOk(writer.isEmpty)
  const bytes = Buffer.from(writer.bytes())
  t.same(told(bytes), [
    ['limits', 'ä🔑', [...limits]],
    ['reserved', 'one', reservation, true],
    ['reserved', 'one', { ...reservation, holds: [] }, false],
    ['ended', 'one'],
  ])
  for (const length of [0, 7, 15, 16, 100, bytes.length - 1]) {
    t.throws(() => told(bytes.subarray(0, length)), `${length} of its bytes`)
  }
  const newer = Buffer.from(bytes)
  newer.writeDoubleLE(3, 0)
  t.throws(() => told(newer), /version/)
  const numbers = 2 + 2 + 10 + 2
  const former = Buffer.concat([Buffer.alloc(8 * numbers), Buffer.from('a key')])
  for (const [at, number] of [1, 14, 1, 4, ...limits.slice(0, 10), 3, 1].entries()) {
    former.writeDoubleLE(number, 8 * at)
  }
  t.same(
    told(former),
    [
      ['limits', 'a ke', [...limits.slice(0, 10)]],
      ['ended', 'y'],
    ],
    'of the version before, with ten numbers',
  )
  const unknown = Buffer.from(bytes)
  unknown.writeDoubleLE(9, 16)
  t.throws(() => told(unknown), /does not know/)

  const large = new LogWriter()
  const name = 'x'.repeat(400)
  for (let at = 0; at < 3_000; at += 1) large.limits(`${name}${at}`, limits)
  t.equal(told(large.bytes()).length, 3_000, 'it may be as large as it has to be')
  t.end()
})

void t.test('two ledgers at one file', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const opened = () => openLmdb(path, { nowMs: clock.now })
  const stores = [await opened(), await opened()]
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  const roll = dice(Number(process.env['SLUICE_SEED'] ?? '1'))
  const running: { id: string; key: number }[] = []
  const spent = [0, 0, 0]
  const rows = new Map<string, string>()
  const demandsOf = (key: number) => [
    places(PLACES, `key:${key}`),
    budget('usd_day', BUDGET, COST, `key:${key}`),
  ]
  const renewed = ({ id }: { readonly id: string }) => ({ requestId: id, accountId: 'acc_ada' })
  const take = () => running.splice(Math.floor(roll() * running.length), 1)[0]
  for (let step = 0; step < STEPS; step += 1) {
    const by = roll() < 0.5 ? 0 : 1
    const { ledger } = stores[by] ?? (await opened())
    const what = roll()
    if (what < 0.45) {
      const key = Math.floor(roll() * spent.length)
      const admission = anAdmission(demandsOf(key))
      const { admitted } = await ledger.admit(admission)
      if (!admitted) t.fail('there was room')
      running.push({ id: admission.requestId, key })
      spent[key] = (spent[key] ?? 0) + COST
    } else if (what < 0.75) {
      const ended = take()
      if (ended === undefined) continue
      const row = aRow({ requestId: ended.id, costNanoUsd: 30 })
      if ((await ledger.settle(row)) !== 'settled') t.fail(`${ended.id} had ended`)
      spent[ended.key] = (spent[ended.key] ?? 0) + 30 - COST
      rows.set(ended.id, 'ok')
    } else if (what < 0.8) {
      const [again = ''] = rows.keys()
      if (again === '') continue
      if ((await ledger.settle(aRow({ requestId: again }))) !== 'already') t.fail('settled twice')
      if (!(await ledger.admit(anAdmission(demandsOf(0), { requestId: again }))).admitted) {
        t.fail('an id that was settled was not answered as the first time')
      }
    } else if (what < 0.85) {
      clock.atMs += MINUTE / 2
      await ledger.renew(running.map(renewed), MINUTE)
    } else if (what < 0.9) {
      await ledger.renew(running.map(renewed), MINUTE)
      const left = take()
      if (left === undefined) continue
      clock.atMs += MINUTE - 1
      await ledger.renew(running.map(renewed), MINUTE)
      clock.atMs += 1
      if ((await ledger.expire()) !== 1) t.fail('one had run out')
      rows.set(left.id, 'lost')
    } else if (what < 0.97) {
      for await (const batch of ledger.budgets()) t.ok(batch.length > 0)
    } else {
      await stores[by]?.close()
      stores[by] = await opened()
    }
    if (step % 20 === 0) await agree()
  }
  await agree()

  async function agree(): Promise<void> {
    for (const { ledger } of stores) {
      for (const [key, nanoUsd] of spent.entries()) {
        const [place, day] = await ledger.look('acc_ada', demandsOf(key))
        const taken = running.filter((each) => each.key === key).length
        if (place?.remaining !== PLACES - taken) t.fail(`places of key ${key}`)
        if (day?.remaining !== BUDGET - nanoUsd) t.fail(`the budget of key ${key}`)
      }
    }
    const page = await stores[0]?.ledger.rows({ accountId: null, after: null, limit: 1_000 })
    const found = new Map(page?.rows.map(({ requestId, outcome }) => [requestId, outcome]))
    t.same([...found].sort(), [...rows].sort(), `${rows.size} rows, and both agree on limits`)
  }
})

void t.test('what is logged, and where it goes', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openLmdb(path, { nowMs: () => NOON })
  const other = await openLmdb(path, { nowMs: () => NOON })
  t.teardown(() => other.close())
  const demands = [requests(10), tokens(1_000, 100), places(4), budget('usd_day', 500, 50)]
  const [one, two] = [anAdmission(demands), anAdmission(demands)]
  const remaining = async (ledger: Ledger) =>
    (await ledger.look('acc_ada', demands)).map((each) => each.remaining)
  await store.ledger.admit(one)
  await store.ledger.admit(two)
  t.same(await remaining(other.ledger), [8, 800, 2, 400], 'others know it')
  t.same(await tablesOf(path), { log: 2, subjects: 0, open: 0, rows: 0 }, 'from the log alone')

  for await (const batch of other.ledger.budgets()) t.match(batch, [{ nanoUsd: 100 }])
  t.same(await tablesOf(path), { log: 1, subjects: 1, open: 2, rows: 0 }, 'any of them brings it')
  t.equal(await store.ledger.settle(aRow({ requestId: one.requestId, costNanoUsd: 1 })), 'settled')
  t.same(await tablesOf(path), { log: 2, subjects: 1, open: 1, rows: 1 }, 'an end is there at once')
  t.equal(await other.ledger.settle(aRow({ requestId: one.requestId })), 'already')
  t.same(await remaining(other.ledger), [8, 780, 3, 449])

  await other.ledger.settle(aRow({ requestId: two.requestId, costNanoUsd: 1 }))
  for await (const batch of other.ledger.budgets()) t.match(batch, [{ nanoUsd: 2 }])
  t.same(await remaining(store.ledger), [8, 760, 4, 498], 'who has slept through it reads it anew')
  const three = anAdmission(demands)
  await store.ledger.admit(three)
  await store.close()
  t.same(
    await tablesOf(path),
    { log: 1, subjects: 1, open: 1, rows: 2 },
    'who closes leaves nothing there',
  )
  t.equal(await other.ledger.settle(aRow({ requestId: three.requestId })), 'settled')
})

void t.test('a file from before there was a log', async (t) => {
  const path = join(t.testdir(), 'store')
  const first = await openLmdb(path, { nowMs: () => NOON })
  await first.ledger.settle(aRow())
  await first.close()
  const held = aName('req')
  const subject = '7:acc_ada:key:one'
  await withBare(path, async (root) => {
    await root.openDB<Buffer, number>('log', { encoding: 'binary' }).clearAsync()
    const record = Float64Array.from([1, 0, 0, 0, 0, 1, 0, 0, 0, 0])
    const subjects = root.openDB<Buffer, string>('subjects', { encoding: 'binary' })
    await subjects.put(subject, Buffer.from(record.buffer))
    const row = writeRow(aRow({ requestId: held, outcome: 'lost' }))
    const text = writeReservation({
      untilMs: NOON + MINUTE,
      holds: [['concurrent', subject]],
      row,
    })
    await root.openDB<string, string>('open', { encoding: 'string' }).put(held, text)
  })
  const store = await openLmdb(path, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const { ledger } = store
  const left = async () => (await ledger.look('acc_ada', [places(2)]))[0]?.remaining
  t.equal(await left(), 1)
  await ledger.renew([{ requestId: held, accountId: 'acc_ada' }], 2 * MINUTE)
  t.equal(await ledger.settle(aRow({ requestId: held })), 'settled')
  t.equal(await left(), 2)
  t.equal(await ledger.settle(aRow({ requestId: held })), 'already')
  t.match(await tablesOf(path), { open: 0 })
})

void t.test('a process that dies leaves a log that others go by', async (t) => {
  const path = join(t.testdir(), 'store')
  const writer = spawn(process.execPath, [LEDGER_WRITER, `lmdb:${path}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(writer, 'close')
  await once(writer.stdout, 'data')
  writer.kill('SIGKILL')
  await gone
  t.ok((await tablesOf(path)).log > 0, 'it was not brought into the tables')
  const clock = new TestClock()
  const store = await openLmdb(path, { nowMs: clock.now })
  t.teardown(() => store.close())
  const { ledger } = store
  const [taken] = await ledger.look('acc_ada', writerDemands())
  clock.atMs += MINUTE
  t.equal(await ledger.expire(), PLACES - (taken?.remaining ?? 0), 'all that it held has run out')
  const [free] = await ledger.look('acc_ada', writerDemands())
  t.equal(free?.remaining, PLACES)
})

void t.test('a damaged log', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openLmdb(path, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const { ledger } = store
  await ledger.settle(aRow())
  await withBare(path, async (root) => {
    await root.openDB<Buffer, number>('log', { encoding: 'binary' }).put(1, Buffer.from('secret'))
  })
  const error: unknown = await ledger
    .admit(anAdmission([places(1)]))
    .catch((cause: unknown) => cause)
  t.match(error, { kind: 'store_unavailable', cause: { message: /record 1 of the log/ } })
  t.notMatch(String(error instanceof Error ? error.cause : error), 'secret')
  await t.rejects(ledger.look('acc_ada', [places(1)]), { cause: { message: /damaged/ } })
  await withBare(path, async (root) => {
    await root.openDB<Buffer, number>('log', { encoding: 'binary' }).remove(1)
  })
  t.ok((await ledger.admit(anAdmission([places(1)]))).admitted, 'once it is mended it goes on')
})

/** All that a record tells. */
function told(bytes: Buffer): unknown[] {
  const all: unknown[] = []
  const reader: LogReader = {
    limits: (name, numbers, from, count) =>
      all.push(['limits', name, [...numbers.slice(from, from + count)]]),
    reserved: (...of) => all.push(['reserved', ...of]),
    ended: (...of) => all.push(['ended', ...of]),
  }
  readLog(bytes, reader)
  return all
}

/** How many records tables have. */
async function tablesOf(path: string) {
  return withBare(path, (root) => {
    const count = (name: string, encoding: 'binary' | 'string') =>
      root.openDB(name, { encoding }).getCount()
    return {
      log: count('log', 'binary'),
      subjects: count('subjects', 'binary'),
      open: count('open', 'string'),
      rows: count('rows', 'string'),
    }
  })
}
