/**
 * Goal: a crash of the machine costs the ledger a second at most, and never its file.
 * Method: while rows are written, the file is copied twice between two checkpoints; a new file takes
 * each page from either copy by chance, as a disk may have it that was cut off in between. Opened as
 * after a new start of the machine, it must hold a beginning of what was acknowledged, and all of it
 * must agree. `SLUICE_CRASHES` says how often (6).
 */
import { open } from 'lmdb'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openLmdb } from '../../src/store/lmdb.js'
import type { Store } from '../../src/store/store.js'
import { dice } from '../helpers/dice.js'
import { anAdmission, aRow, budget, DAY, NOON } from './ledger-records.js'

const CRASHES = Number(process.env['SLUICE_CRASHES'] ?? '6')
const PAGE = 4096
/** What may be lost, and a slow machine's share. */
const LOST_MS = 1_000 + 500
const COST = 7

/** A row that was acknowledged, and when. */
interface Acknowledged {
  readonly requestId: string
  readonly atMs: number
}

void t.test('a crash between two checkpoints', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openLmdb(path, { boot: 'one', nowMs: () => NOON })
  t.teardown(() => store.close())
  const acknowledged: Acknowledged[] = []
  let lost = 0
  for (let crash = 0; crash < CRASHES; crash += 1) {
    const { early, late, notes, atMs } = await copiesOf(path, () => write(store, acknowledged))
    const folder = join(t.testdirName, `crash-${crash}`)
    mkdirSync(join(folder, 'ledger', 'synced'), { recursive: true })
    writeFileSync(join(folder, 'ledger', 'data.mdb'), mixed(early, late, dice(crash + 1)))
    writeFileSync(join(folder, 'ledger', 'synced', 'data.mdb'), notes)
    const kept = await judged(t, folder, acknowledged)
    lost = acknowledged.length - kept
    const safe = acknowledged.filter((each) => each.atMs < atMs - LOST_MS).length
    t.ok(
      kept >= safe,
      `${kept} of ${acknowledged.length} rows, ${safe} of them older than a second`,
    )
  }
  t.ok(acknowledged.length > 100 && lost >= 0, `${acknowledged.length} rows were acknowledged`)
})

void t.test('a machine that was shut down in order loses nothing', async (t) => {
  const path = join(t.testdir(), 'store')
  const acknowledged: Acknowledged[] = []
  const store = await openLmdb(path, { boot: 'one', nowMs: () => NOON })
  for (let at = 0; at < 50; at += 1) await write(store, acknowledged)
  await store.close()
  t.equal(await judged(t, path, acknowledged), 50)
})

void t.test('a file that no checkpoint was made of is begun anew', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openLmdb(path, { boot: 'one' })
  await store.ledger.settle(aRow())
  await store.close()
  await note(path, { boot: 'one', txn: 0, atMs: 0, meta: null })
  const again = await openLmdb(path, { boot: 'two' })
  t.same(await again.ledger.rows({ accountId: null, after: null, limit: 9 }), {
    rows: [],
    next: null,
  })
  await again.close()

  await note(path, { boot: 7 })
  const broken = await openLmdb(path, { boot: 'three' })
  t.teardown(() => broken.close())
  await t.rejects(broken.ledger.settle(aRow()), {
    kind: 'store_unavailable',
    cause: { message: /checkpoint is damaged/ },
  })
})

/** Writes a note where the store keeps its own. */
async function note(path: string, value: object): Promise<void> {
  const options = { noSubdir: false, encoding: 'string', overlappingSync: false } as const
  const root = open<string>({ path: join(path, 'ledger', 'synced'), ...options })
  await root.put('note', JSON.stringify(value))
  await root.close()
}

/** One admission and its settlement; acknowledged once both are. */
async function write(store: Store, acknowledged: Acknowledged[]): Promise<void> {
  const admission = anAdmission([budget('usd_day', 1e9, COST * 2)])
  await store.ledger.admit(admission)
  const { requestId } = admission
  const accountId = `acc_${acknowledged.length % 13}`
  await store.ledger.settle(aRow({ requestId, accountId, costNanoUsd: COST }))
  acknowledged.push({ requestId, atMs: performance.now() })
}

/** The file at two moments with rows in between and the same note all the while. */
async function copiesOf(path: string, work: () => Promise<void>) {
  const file = join(path, 'ledger', 'data.mdb')
  const note = join(path, 'ledger', 'synced', 'data.mdb')
  for (let attempt = 0; attempt < 200; attempt += 1) {
    await work()
    const notes = readFileSync(note)
    const early = readFileSync(file)
    for (let rows = 0; rows < 25; rows += 1) await work()
    const late = readFileSync(file)
    const atMs = performance.now()
    if (notes.equals(readFileSync(note))) return { early, late, notes, atMs }
  }
  throw new Error('there was never time enough between two checkpoints')
}

/** Each page as it was early or late; what the early file did not have may be empty. */
function mixed(early: Buffer, late: Buffer, roll: () => number): Buffer {
  const file = Buffer.from(late)
  for (let at = 0; at < file.length; at += PAGE) {
    if (roll() < 0.5) continue
    if (at < early.length) early.copy(file, at, at, at + PAGE)
    else file.fill(0, at, at + PAGE)
  }
  return file
}

/** Opens what a crash left, as after a new start; how many rows there are, all of which agree. */
async function judged(t: Test, path: string, all: readonly Acknowledged[]): Promise<number> {
  const store = await openLmdb(path, { boot: 'two', nowMs: () => NOON })
  try {
    const { ledger } = store
    const present: boolean[] = []
    for (const { requestId } of all) present.push((await ledger.row(null, requestId)) !== null)
    const kept = present.filter(Boolean).length
    t.ok(present.slice(0, kept).every(Boolean), 'a beginning of what was acknowledged, with no gap')
    const page = await ledger.rows({ accountId: null, after: null, limit: 100_000 })
    // One more may have been written and not yet acknowledged.
    t.ok(page.rows.length - kept <= 1, 'the order of time has the same rows')
    let byAccount = 0
    for (let at = 0; at < 13; at += 1) {
      const own = await ledger.rows({ accountId: `acc_${at}`, after: null, limit: 100_000 })
      byAccount += own.rows.length
    }
    t.equal(byAccount, page.rows.length, 'so have the accounts')
    for (const by of ['hour', 'day'] as const) {
      const sums = await ledger.sums({ accountId: null, by, fromMs: NOON, toMs: NOON + DAY })
      const requests = sums.reduce((sum, each) => sum + each.requests, 0)
      t.equal(requests, page.rows.length, `and the sums by ${by}`)
    }
    const [spent] = await ledger.look('acc_ada', [budget('usd_day', 1e9, 1)])
    const reserved = 1e9 - (spent?.remaining ?? 0) - COST * page.rows.length
    t.ok(reserved === 0 || reserved === COST * 2, 'the budget is that of the rows, or has one open')
    t.equal(await ledger.settle(aRow()), 'settled', 'and it can be written')
    return kept
  } finally {
    await store.close()
  }
}
