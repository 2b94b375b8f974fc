/**
 * Goal: with a full disk, requests get 503 and no reply is sent without a ledger entry. Requests that ran
 * when the disk became full are in the ledger after space is freed.
 * Method: the program with its store on a small file system (root on Linux), which is filled completely under
 * load and emptied again, each third day.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../src/store/open-store.js'
import { anotherDay } from '../helpers/long-suite.js'
import { startServe, type Served } from '../process/program.js'

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const skip = isRoot ? anotherDay(2, 3) : 'needs root on Linux, for a file system of its own'
/** Refusals in sequence after which the disk has no room for any entry. */
const QUIET = 2_400
const AT_ONCE = 8

void t.test('G-110: a full disk under load', { skip }, async (t) => {
  const disk = mounted(t)
  const url = `sqlite:${join(disk, 'data', 'sluice.db')}`
  const served = await startServe(t, { store: url, server: 'workers: 2, drain_ms: 500' })
  const answered = new Map<string, number>()
  const statuses: number[] = []
  let isOver = false
  const clients = Array.from({ length: AT_ONCE }, async () => {
    while (!isOver) {
      const { status, id } = await asked(served)
      statuses.push(status)
      if (status === 200) answered.set(id, performance.now())
      if (status === 503) await sleep(20)
    }
  })
  await until(() => answered.size > 20)
  const filler = join(disk, 'filler')
  fill(filler)
  // Entries are small: the first refusals may be followed by a few that fit into pages of the file.
  const isFull = (): boolean => statuses.slice(-QUIET).every((status) => status === 503)
  await until(() => statuses.length > QUIET && isFull(), 60_000)
  const { status, message } = await asked(served)
  t.equal(status, 503)
  t.match(message, /cannot record what requests cost/, 'the message names the problem')
  // The workers report a missing store at intervals.
  await until(async () => /ledger.*unavailable/s.test((await served.ops('/readyz')).text))
  const unready = await served.ops('/readyz')
  t.equal(unready.status, 503, 'a gateway that can record nothing is not ready')
  // The probe of the store may find no room, either; the store is then the only cause.
  t.match(unready.text, /"degraded":\["(?:ledger|store)"\]/)
  t.match(unready.text, /ledger: (?:unavailable|full)|"ledger":"(?!ok)/)
  const before = answered.size
  await sleep(3_000)
  t.equal(answered.size, before, 'and it stays so')
  rmSync(filler)
  await until(() => answered.size > before + 20, 60_000)
  isOver = true
  await Promise.all(clients)
  await until(async () => (await served.ops('/readyz?strict')).status === 200)
  t.notOk(
    statuses.some((each) => each !== 200 && each !== 503),
    'only 200 and 503',
  )

  const store = await openStore(url)
  t.teardown(() => store.close())
  const without: string[] = []
  await until(async () => {
    without.length = 0
    for (const id of answered.keys()) {
      if ((await store.ledger.entry(null, id)) === null) without.push(id)
    }
    return without.length === 0
  }, 20_000).catch(() => undefined)
  t.equal(without.length, 0, `${answered.size} replies, each with its entry`)
})

async function asked(served: Served): Promise<{ status: number; id: string; message: string }> {
  const res = await served.chat()
  const message = await res.text()
  return { status: res.status, id: res.headers.get('x-request-id') ?? '', message }
}

/** Mounts a file system of 6 MiB that only this test uses. */
function mounted(t: Test): string {
  // Not in `t.testdir()`, which empties the folder at each call.
  const disk = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk])
  if (status !== 0) throw new Error(`mount failed: ${String(stderr)}`)
  t.teardown(() => {
    spawnSync('umount', ['--lazy', disk])
    rmSync(disk, { recursive: true, force: true })
  })
  return disk
}

/** Fills the file system completely. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (let bytes = 65_536; bytes >= 1;) {
      try {
        writeSync(file, Buffer.alloc(bytes))
      } catch {
        bytes = Math.floor(bytes / 2)
      }
    }
  } finally {
    closeSync(file)
  }
}

async function until(isSo: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const endsMs = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > endsMs) throw new Error('the condition is not met in time')
    await sleep(20)
  }
}
