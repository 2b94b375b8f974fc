/**
 * Goal: the embedded engine's ledger keeps the contract of every ledger, and its own promises on damage
 * and on a full disk.
 * Method: the black-box suite; then the same files opened behind its back with the bare engine, and a
 * process whose files may not grow.
 */
import { open } from 'lmdb'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openLmdb } from '../../src/store/lmdb.js'
import { ledgerContract } from './ledger-contract.js'
import { LEDGER_WRITER } from './ledger-kills.js'
import { anAdmission, aRow, MINUTE, NOON, places, TestClock } from './ledger-records.js'
import { onFullDisk } from './processes.js'

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

async function opened(path: string, clock: TestClock) {
  const store = await openLmdb(path, { nowMs: clock.now })
  return { ledger: store.ledger, close: () => store.close() }
}

/** Writes a text where the ledger keeps its own. */
async function behind(path: string, table: string, name: string, text: string): Promise<void> {
  const options = { encoding: 'string' } as const
  const root = open<string, string>({
    path: join(path, 'ledger'),
    noSubdir: false,
    noSync: true,
    overlappingSync: false,
    maxDbs: 16,
    ...options,
  })
  await root.openDB<string, string>(table, options).put(name, text)
  await root.close()
}
