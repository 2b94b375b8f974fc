/**
 * Goal: the embedded engine's ledger keeps the contract of every ledger, and its own promises on damage
 * and on a full disk.
 * Method: the black-box suite; then the same files opened behind its back with the bare engine, and a
 * process whose files may not grow.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { openLmdb } from '../../src/store/lmdb.js'
import { writeRow } from '../../src/store/usage-record.js'
import { newSum, writeSum } from '../../src/store/usage-sum.js'
import { withBare } from './bare.js'
import { ledgerContract } from './ledger-contract.js'
import { LEDGER_WRITER } from './ledger-kills.js'
import { anAdmission, aRow, MINUTE, NOON, places, TestClock } from './ledger-records.js'
import { onFullDisk } from './processes.js'

const QUITTER = fileURLToPath(new URL('./ledger-quitter.js', import.meta.url))
const HOLDER = fileURLToPath(new URL('./ledger-holder.js', import.meta.url))

ledgerContract('lmdb', (t) => `lmdb:${join(t.testdir(), 'store')}`)

void t.test(
  'a full disk fails what it cannot keep, and neither the process nor the rest',
  async (t) => {
    const path = join(t.testdir(), 'store')
    const { lines, status, stderr } = await onFullDisk([LEDGER_WRITER, `lmdb:${path}`, 'full'])
    t.equal(status, 0, 'the process lives, with no promise unhandled')
    t.notMatch(stderr, /UnhandledPromise|triggerUncaught/)
    t.equal(lines.at(-1), 'read 1', 'and still reads')
    const settled = lines.filter((line) => line.startsWith('settled '))
    const failed = lines.filter((line) => line.startsWith('failed '))
    t.ok(settled.length > 10, `${settled.length} requests fitted`)
    t.ok(failed.length >= 3)
    for (const line of failed) t.match(line, /store does not answer.* failed: (?!Commit)/)

    const clock = new TestClock()
    const again = await openLmdb(path, { nowMs: clock.now })
    t.teardown(() => again.close())
    for (const line of settled) {
      const row = await again.ledger.row('acc_ada', line.slice('settled '.length))
      if (row?.outcome !== 'ok') t.fail(`${line}: it is gone`)
    }
    clock.atMs = NOON + MINUTE
    await again.ledger.expire()
    const [free] = await again.ledger.look('acc_ada', [places(1_000, 'key:writer')])
    t.equal(free?.remaining, 1_000, 'with room again, all places are free')
  },
)

void t.test(
  'a damaged record fails what it concerns, with its name, and nothing else',
  async (t) => {
    const path = join(t.testdir(), 'store')
    const clock = new TestClock()
    const before = await opened(path, clock)
    const row = aRow({ atMs: NOON })
    const fine = aRow({ atMs: NOON + 1, accountId: 'acc_bob' })
    const held = anAdmission([places(3)])
    const other = anAdmission([places(3)])
    await before.ledger.settle(row)
    await before.ledger.settle(fine)
    await before.ledger.admit(held)
    await before.ledger.admit(other)
    // A process remembers its own reservations.
    await before.close()
    const { ledger, close } = await opened(path, clock)
    t.teardown(close)
    const secret = 'gpt-that-must-not-show'
    const damages: [string, RegExp][] = [
      ['{', /not JSON/],
      ['{}', /not a JSON array/],
      ['[2]', /'v'/],
      [`[1,"${row.requestId}","${secret}"]`, /'atMs'/],
    ]
    for (const [text, why] of damages) {
      await behind(path, 'rows', `${NOON.toString(36).padStart(9, '0')}${row.requestId}`, text)
      const error: unknown = await ledger.row(null, row.requestId).catch((cause: unknown) => cause)
      t.match(error, { kind: 'store_unavailable', cause: { message: why } })
      t.match(error, { cause: { message: new RegExp(row.requestId) } })
      t.notMatch(String(error instanceof Error ? error.cause : error), secret)
      t.same(await ledger.row(null, fine.requestId), fine)
    }
    await behind(path, 'open', held.requestId, '[1,0]\n')
    const [damaged, good] = await Promise.allSettled([
      ledger.settle(aRow({ requestId: held.requestId })),
      ledger.settle(aRow({ requestId: other.requestId })),
    ])
    t.equal(damaged.status, 'rejected')
    t.equal(good.status, 'fulfilled', 'of one transaction only the one fails')
    const third = anAdmission([places(3)])
    await ledger.admit(third)
    clock.atMs += MINUTE
    await t.rejects(ledger.expire(), { cause: { message: new RegExp(held.requestId) } })
    t.match(await ledger.row(null, third.requestId), { outcome: 'lost' }, 'the others are settled')
  },
)

void t.test("another process's lock is waited for, and not by the event loop", async (t) => {
  const path = join(t.testdir(), 'store')
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  await ledger.settle(aRow())
  const heldMs = 1_500
  const holder = spawn(process.execPath, [HOLDER, join(path, 'ledger'), String(heldMs)], {
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
    await ledger.look('acc_ada', [places(1)])
  }
  await Promise.all([settled, gone])
  const [tookMs = 0] = took
  t.ok(tookMs > heldMs / 2, `the write waited for ${Math.round(tookMs)} ms`)
  t.ok(turns > 20, `and the loop turned ${turns} times meanwhile, and read`)
})

void t.test('a process that ends amidst a transaction ends, and holds nobody up', async (t) => {
  const path = join(t.testdir(), 'store')
  for (let round = 0; round < 8; round += 1) {
    const how = round % 2 === 0 ? 'exit' : 'throw'
    const quitter = spawn(process.execPath, [QUITTER, `lmdb:${path}`, how], { stdio: 'ignore' })
    // Had it hung, it would hold the writers' lock.
    const patience = setTimeout(() => quitter.kill('SIGTERM'), 60_000)
    await once(quitter, 'exit')
    clearTimeout(patience)
    t.not(quitter.signalCode, 'SIGTERM', 'it has ended by itself')
  }
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  await ledger.settle(aRow())
})

void t.test('a journal that a dead process has left', async (t) => {
  const path = join(t.testdir(), 'store')
  const folder = join(path, 'ledger', 'journal')
  mkdirSync(folder, { recursive: true })
  const [one, two, three] = [aRow(), aRow(), aRow()]
  const line = (text: string): string => `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`
  const whole = line(writeRow(one)) + line(writeRow(two))
  const damaged = line(writeRow(three)) + line(writeRow(two)).replace('ok', 'OK') + line('[1]')
  writeFileSync(join(folder, 'rows-999999999-1-abc-000001.spool'), whole)
  writeFileSync(join(folder, 'rows-999999999-1-abc-000002.spool'), damaged)
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  for (const row of [one, two, three]) t.same(await ledger.row(null, row.requestId), row)
  t.same(
    readdirSync(folder),
    ['rows-999999999-1-abc-000002.spool.damaged'],
    'what cannot be read is kept for an operator',
  )
  const { rows } = await ledger.rows({ accountId: null, after: null, limit: 10 })
  t.equal(rows.length, 3, 'and nothing is there twice')
})

void t.test('rows of a damaged sum', async (t) => {
  const path = join(t.testdir(), 'store')
  const { ledger, close } = await opened(path, new TestClock())
  t.teardown(close)
  const row = aRow({ atMs: NOON })
  const requests = async ({ accountId }: typeof row) => {
    const sums = await ledger.sums({ accountId, by: 'day', fromMs: NOON, toMs: NOON })
    return sums.map((sum) => sum.requests)
  }
  await ledger.append(row)
  t.same(await requests(row), [1])
  const day = `d${(NOON - (NOON % 86_400_000)).toString(36).padStart(9, '0')}`
  const name = `${day}${row.accountId} ${row.keyId} ${row.model}`
  await behind(path, 'sums', name, 'x')
  const late = aRow({ atMs: NOON })
  const other = aRow({ atMs: NOON, accountId: 'acc_bob' })
  await ledger.append(late)
  await ledger.append(other)
  t.same(await ledger.row(null, late.requestId), late, 'are there')
  t.same(await requests(other), [1], 'hold nobody else up')
  await t.rejects(requests(row), { kind: 'store_unavailable', cause: { message: /damaged/ } })
  await behind(path, 'sums', name, writeSum(newSum()).toString('latin1'))
  t.same(await requests(row), [1], 'and are counted once it is mended')
})

void t.test('rows are counted once, whoever does it', async (t) => {
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
    const some = rows.slice(from, to).map((row) => ledger.append(row))
    await Promise.all(some)
  }
  const counted = async ({ ledger }: typeof one) => {
    const sums = await ledger.sums({ accountId: null, by: 'hour', fromMs: NOON, toMs: NOON })
    const requests = sums.reduce((sum, each) => sum + each.requests, 0)
    return [requests, sums.reduce((sum, each) => sum + each.costNanoUsd, 0)]
  }
  const of = (upTo: number) => [upTo, (upTo * (upTo - 1)) / 2]
  await settled(one, 0, 200)
  t.same(await counted(other), of(200), 'by another')
  await settled(one, 200, 400)
  t.same(await counted(other), of(400), 'by another again')
  t.same(await counted(one), of(400), 'and not by its own then')
  await Promise.all([settled(one, 400, 500), settled(other, 500, ROWS)])
  t.same(await Promise.all([counted(one), counted(other)]), [of(ROWS), of(ROWS)], 'by both at once')
  t.equal(await left(path, 'uncounted'), 0, 'and nothing is left to be counted')

  await one.ledger.append(aRow({ atMs: NOON }))
  await one.ledger.row(null, 'none')
  t.equal(await left(path, 'uncounted'), 1, 'what nobody has asked for may wait')
  await other.ledger.expire()
  t.equal(await left(path, 'uncounted'), 1)
  clock.atMs += 61_000
  await other.ledger.expire()
  t.equal(await left(path, 'uncounted'), 0, 'not for longer than its process would have let it')
})

async function opened(path: string, clock: TestClock) {
  const store = await openLmdb(path, { nowMs: clock.now })
  return { ledger: store.ledger, close: () => store.close() }
}

/** Writes a text where the ledger keeps its own. */
async function behind(path: string, table: string, name: string, text: string): Promise<void> {
  await withBare(path, async (root) => {
    await root.openDB<string, string>(table, TEXTS).put(name, text)
  })
}

/** How many records a table has. */
async function left(path: string, table: string): Promise<number> {
  return withBare(path, (root) => root.openDB<string, string>(table, TEXTS).getCount())
}

const TEXTS = { encoding: 'string' } as const
