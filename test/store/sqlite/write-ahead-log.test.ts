/**
 * Goal: the write-ahead log stays short under constant writes and reads, and a reader that holds a snapshot
 * makes it grow but delays no write.
 * Method: an hour of entries in seconds, for a log that starts again at 1 MiB instead of 64, beside readers
 * in the thread and of another connection; then one that keeps its transaction open.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { connect } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import type { Store } from '../../../src/store/store.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { aRow, MINUTE, NOON } from '../ledger/sample-entries.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'

t.setTimeout(240_000)
const MEGABYTE = 1_048_576
const LONG_LOG = MEGABYTE
const HOUR = 60 * MINUTE

function append(store: Store, number: number, of: number): Promise<void> {
  return store.ledger.append(
    aRow({
      requestId: `req_${number}`,
      keyId: `key_${(number * 7_919) % 5_000}`,
      accountId: `acc_${(number * 104_729) % 1_000}`,
      atMs: NOON + Math.floor((number / of) * HOUR),
    }),
  )
}

void t.test('the log stays short under constant writes and reads', { skip: anotherDay(1, 6) }, async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openSqlite(path, { longLogBytes: LONG_LOG })
  const other = connect(path)
  t.teardown(async () => {
    other.close()
    await store.close()
  })
  const logBytes = (): number => statSync(`${path}-wal`).size
  const state = { isOver: false }
  const read = async (): Promise<void> => {
    const span = { fromMs: NOON, toMs: NOON + HOUR }
    while (!state.isOver) {
      await store.ledger.sums({ ...span, by: 'hour', accountId: null, per: 'model' })
      await store.ledger.keyUse({ ...span, accountId: 'acc_1' })
      other.prepare('SELECT count(*) FROM ledger_entries').get()
      await sleep(1)
    }
  }
  const readers = [read(), read()]
  const entries = 30_000
  let written = 0
  let largest = 0
  let before = 0
  for (let number = 0; number < entries; number += 10) {
    // A fast machine writes no more between two attempts to start the log again than others.
    await sleep(3)
    await Promise.all(Array.from({ length: 10 }, (_, each) => append(store, number + each, entries)))
    const now = logBytes()
    written += Math.max(0, now - before)
    before = now
    largest = Math.max(largest, now)
  }
  state.isOver = true
  await Promise.all(readers)
  const megabytes = Math.round(largest / MEGABYTE)
  t.ok(
    largest < 64 * MEGABYTE && written > 1.5 * largest,
    `at most ${megabytes} MiB of ${Math.round(written / MEGABYTE)} MiB`,
  )
})

void t.test('a reader that holds a snapshot delays no write, and the log is cut after it', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await openSqlite(path, { longLogBytes: LONG_LOG })
  const reader = connect(path)
  t.teardown(async () => {
    reader.close()
    await store.close()
  })
  await append(store, 0, 1)
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM ledger_entries').get()
  const logBytes = (): number => statSync(`${path}-wal`).size
  let slowestMs = 0
  let number = 1
  const write = async (): Promise<void> => {
    const watch = stopwatch()
    await append(store, (number += 1), 10_000)
    slowestMs = Math.max(slowestMs, watch())
  }
  const endMs = performance.now() + (IS_LONG ? 8_000 : 3_000)
  while (performance.now() < endMs || logBytes() < 3 * LONG_LOG) await write()
  t.ok(slowestMs < 2_000, `the slowest write took ${Math.round(slowestMs)} ms`)
  reader.exec('COMMIT')
  for (let tries = 0; tries < 100 && logBytes() > LONG_LOG; tries += 1) {
    await write()
    await sleep(200)
  }
  t.ok(logBytes() <= LONG_LOG, `${logBytes()} bytes after the reader has ended`)
})
