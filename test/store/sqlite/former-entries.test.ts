/**
 * Goal: entries of a store of version 7 are read at once and moved by pruning: each counts once before,
 * between and after, in every list, sum and statement, also if the process is killed at any moment.
 * Method: a store of this version, converted to version 7; other processes that move and are killed.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { newRequestId } from '../../../src/http/request-id.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { connect } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import type { EntryQuery } from '../../../src/store/usage-queries.js'
import { anotherDay, isToday } from '../../helpers/long-suite.js'
import { dice } from '../../helpers/seeded-random.js'
import { aRow, DAY, HOUR, NOON } from '../ledger/sample-entries.js'
import { realEntries } from '../size/real-entries.js'
import { toVersion7 } from './version-7.js'
import { testProgram } from '../../helpers/test-program.js'

const PROCESS = testProgram('store/processes/move-process')
const COUNT = 900
/** Of a copy of the store; of the five copies, a day has one. */
const MOST_KILLS = 12
const START = NOON - DAY / 2
const KEEP_ALL = { entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }
t.setTimeout(120_000)

/** Entries whose ids have their time, another time, and none; some of one millisecond. */
function someEntries(): LedgerEntry[] {
  return realEntries(COUNT, START).map((entry, at) => {
    const atMs = at % 50 < 3 ? START + Math.floor(at / 50) * HOUR : entry.atMs
    const ids = [newRequestId(atMs), newRequestId(atMs), newRequestId(atMs - 7), `req_${at}`]
    return { ...entry, atMs, requestId: ids[at % 4] ?? '', losses: at % 9 === 0 ? ['seed', 'user'] : [] }
  })
}

function isBefore(one: LedgerEntry, other: LedgerEntry): number {
  return one.atMs - other.atMs || (one.requestId < other.requestId ? -1 : 1)
}

/** Writes a store of version 7, which each test copies; resolves with its path and its entries. */
async function writeFormerStore(folder: string) {
  const path = join(folder, 'store')
  const entries = someEntries()
  const store = await openSqlite(path, { nowMs: () => NOON })
  // The last ones are in no sum yet.
  for (const entry of entries.slice(0, -40)) await store.ledger.append(entry)
  await store.ledger.prune(KEEP_ALL)
  for (const entry of entries.slice(-40)) await store.ledger.append(entry)
  // As the ledger has them: durations are in whole microseconds.
  const stored = (await listed(store)).sort(isBefore)
  await store.close()
  const db = connect(path)
  toVersion7(db)
  // Copies have the file alone, without its log.
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  return { path, entries: stored }
}

const former = writeFormerStore(t.testdir())

/** A copy of the store of version 7, and its entries. */
async function formerStore(folder: string) {
  const { path, entries } = await former
  const copy = join(folder, 'store')
  copyFileSync(path, copy)
  return { path: copy, entries }
}

/** Texts: the difference of two long lists takes minutes. */
function textsOf(of: readonly object[]): string {
  return of.map((each) => JSON.stringify(each)).join('\n')
}

type Opened = Awaited<ReturnType<typeof openSqlite>>

async function listed({ ledger }: Opened, query: Partial<EntryQuery> = {}): Promise<LedgerEntry[]> {
  const found: LedgerEntry[] = []
  for (let after: string | null = null; ;) {
    const page = await ledger.entries({ accountId: null, limit: 70, ...query, after })
    found.push(...page.entries)
    if (page.next === null) return found
    after = page.next
  }
}

/** What every door of the ledger shows. */
async function shown(store: Opened) {
  const { ledger } = store
  const span = { fromMs: START - DAY, toMs: START + 2 * DAY }
  const exported: LedgerEntry[] = []
  for await (const batch of ledger.export(0)) exported.push(...batch)
  const sorted = (of: readonly object[]) => of.map((each) => JSON.stringify(each)).sort()
  return {
    exported,
    failed: await listed(store, { failed: true }),
    ofAccount: await listed(store, { accountId: exported[5]?.accountId ?? '' }),
    labelled: await listed(store, { label: 'team=web' }),
    byCost: (await listed(store, { order: { column: 'costNanoUsd', isDescending: true } })).map(
      ({ costNanoUsd }) => costNanoUsd,
    ),
    byModel: (await listed(store, { order: { column: 'model', isDescending: false } })).length,
    days: sorted(await ledger.sums({ accountId: null, by: 'day', ...span })),
    labels: sorted(await ledger.groupUse({ accountId: null, by: 'label', ...span })),
    uses: sorted(await ledger.accountUse(span)),
  }
}

function formerRows(path: string): number {
  const db = connect(path)
  try {
    const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'former_entries'").get()
    return isThere === undefined
      ? 0
      : Number(db.prepare('SELECT count(*) AS n FROM former_entries').get()?.['n'])
  } finally {
    db.close()
  }
}

void t.test('entries of version 7', { skip: anotherDay(0, 2) }, async (t) => {
  const { path, entries } = await formerStore(t.testdir())
  const store = await openSqlite(path, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const { ledger } = store
  t.equal(formerRows(path), COUNT, 'opening moves none')
  t.equal(textsOf((await listed(store)).sort(isBefore)), textsOf(entries), 'each once, with every field')
  const before = await shown(store)
  t.equal(before.exported.length, COUNT)
  const [first] = entries
  if (first === undefined) throw new Error('no entry')
  for (const entry of entries.slice(0, 8)) {
    t.equal(await ledger.settle({ ...entry, costNanoUsd: 9 }), 'already', 'an entry counts once')
    t.same(await ledger.entry(null, entry.requestId), entry)
  }
  const added = aRow({ requestId: newRequestId(START + DAY), atMs: START + DAY, accountId: 'acc_new' })
  t.equal(await ledger.settle(added), 'settled')
  t.same((await listed(store))[0], added, 'a new entry is the first')
  const both = await shown(store)

  await ledger.prune(KEEP_ALL)
  t.equal(formerRows(path), 0, 'pruning moves all')
  const after = await shown(store)
  for (const name of Object.keys(both)) {
    const [one, other] = [both, after].map((all) =>
      JSON.stringify(Object.entries(all).find(([key]) => key === name)),
    )
    t.equal(one, other, `${name} is the same after the move`)
  }
  const old = (await listed(store)).filter(({ accountId }) => accountId !== 'acc_new')
  t.equal(textsOf(old.sort(isBefore)), textsOf(entries))
  for (const entry of entries.slice(0, 8)) {
    t.equal(await ledger.settle({ ...entry, atMs: entry.atMs + 5 }), 'already', 'it still counts once')
    t.same(await ledger.entry(null, entry.requestId), entry)
  }
  const half = START + DAY / 2
  const uses = await ledger.accountUse({ fromMs: 0, toMs: START + 2 * DAY })
  t.equal(
    await ledger.prune({ ...KEEP_ALL, entriesBeforeMs: half }),
    entries.filter(({ atMs }) => atMs < half).length,
  )
  const sorted = (of: readonly object[]) => of.map((each) => JSON.stringify(each)).sort()
  t.same(
    sorted(await ledger.accountUse({ fromMs: 0, toMs: START + 2 * DAY })),
    sorted(uses),
    'use of pruned ones',
  )
})

void t.test('an entry that cannot be read stays, and the others are moved', async (t) => {
  const { path, entries } = await formerStore(t.testdir())
  const db = connect(path)
  db.prepare("UPDATE ledger_entries SET losses = '{' WHERE request_id = ?").run(entries[3]?.requestId ?? '')
  db.close()
  const store = await openSqlite(path, { nowMs: () => NOON })
  t.teardown(() => store.close())
  await store.ledger.prune(KEEP_ALL)
  t.equal(formerRows(path), 1)
  t.same(await store.ledger.entry(null, entries[4]?.requestId ?? ''), entries[4])
  await t.rejects(store.ledger.entry(null, entries[3]?.requestId ?? ''))
})

void t.test('processes that are killed while they move entries', { skip: anotherDay(1, 2) }, async (t) => {
  const folder = t.testdir()
  const { path, entries } = await formerStore(folder)
  const random = dice(7)
  const all = textsOf(entries)
  for (const round of [0, 1, 2, 3, 4].filter((each) => isToday(each, 5))) {
    const copy = join(folder, `copy-${round}`)
    copyFileSync(path, copy)
    for (let kills = 0; kills === 0 || (formerRows(copy) > 0 && kills < MOST_KILLS); kills += 1) {
      const child = fork(PROCESS, [copy], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
      const exited = once(child, 'exit')
      await once(child, 'message')
      await delay(random() * 25)
      child.kill('SIGKILL')
      await exited
    }
    const store = await openSqlite(copy, { nowMs: () => NOON })
    t.equal(textsOf((await listed(store)).sort(isBefore)), all, 'each entry once')
    await store.ledger.prune(KEEP_ALL)
    t.equal(textsOf((await listed(store)).sort(isBefore)), all, 'also after the rest is moved')
    const sums = await store.ledger.sums({
      accountId: null,
      by: 'day',
      fromMs: START - DAY,
      toMs: START + DAY,
    })
    t.equal(
      sums.reduce((sum, { requests }) => sum + requests, 0),
      COUNT,
    )
    await store.close()
    t.equal(formerRows(copy), 0)
  }
})
