/**
 * Goal: while the archive is away, entries that Redis has no room for move to files of the gateway and leave
 * Redis; when it is back they reach the archive once, with the same totals, and nothing is left on disk.
 * Method: a real Redis and a real PostgreSQL that is stopped; a clock of the test. Another gateway of the
 * same machine sends the files, also while it does not lead. The file of a full disk is /dev/full.
 */
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { withArchive } from '../../../src/store/archive/archived-ledger.js'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import { WaitingFiles } from '../../../src/store/archive/waiting-files.js'
import type { Config } from '../../../src/config/config.js'
import { GatewayError } from '../../../src/errors.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import { engineMissing, startArchive } from '../../helpers/archive-engines.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const HOUR_MS = 3_600_000
const skip = engineMissing('postgresql') || redisMissing()

void t.test('entries that wait move to files and back', { skip, timeout: 240_000 }, async (t) => {
  const clock = { nowMs: SOME_TIME_MS }
  const nowMs = () => clock.nowMs
  const store = await openStore(`${(await startRedis(t)).url()}?timeout_ms=9000`, {
    nowMs,
    monotonicMs: nowMs,
  })
  t.teardown(() => store.close())
  const server = await startArchive(t, 'postgresql')
  const config = archiveConfig({ url: server.url, hotHours: 1, waitingMaxBytes: 50_000 })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: 'postgresql', config })) await engine.run(statement)
  const settings = { archive: config, ledger: { hoursDays: 36_500, daysDays: 36_500 } }
  // Only these members are read.
  const joint = withArchive(store, () => settings as unknown as Pick<Config, 'archive' | 'ledger'>)
  const warnings: string[] = []
  const folder = join(t.testdir(), 'archive')
  const copierOf = (id: string, maxBytes = 10_000_000) =>
    new ArchiveCopier({
      ...{ store, engine, config, nowMs, leader: { id, gateway: `gateway ${id}`, pid: 1 } },
      files: new WaitingFiles(folder, store.id, maxBytes),
      refused: (_, reason) => t.fail(reason),
      warn: (message) => warnings.push(message),
    })
  const first = copierOf('one')
  const settle = async (copier: ArchiveCopier): Promise<void> => {
    for (let quiet = 0; quiet < 2;) {
      quiet = (await copier.step()) === true ? 0 : quiet + 1
      clock.nowMs += 6_000
    }
  }
  const all: LedgerEntry[] = []
  const add = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      const entry = anEntry(all.length, { atMs: clock.nowMs })
      all.push(entry)
      await store.ledger.append(entry)
      clock.nowMs += 10_000
    }
  }
  await add(30)
  await settle(first)

  await server.stop()
  await add(400)
  clock.nowMs += 2 * HOUR_MS
  await t.rejects(first.step())
  await first.spill()
  t.strictSame(warnings, [])
  const names = readdirSync(folder)
  t.equal(names.length, 2, 'also of what the archive had confirmed before')
  const progress = await store.ledger.archive.progress()
  t.match(progress, { confirmed: 3, onDisk: [{ gateway: 'gateway one', from: 2, to: 2, rows: 400 }] })
  t.equal((await store.ledger.archive.waiting()).rows, 0)
  const left = await store.ledger.entries({ accountId: null, after: null, limit: 10 })
  t.equal(left.entries.length, 0, 'they have left Redis')
  const span = { accountId: null, fromMs: SOME_TIME_MS, toMs: clock.nowMs, stepMs: 60_000 }
  const failure: unknown = await joint.ledger.cells(span).catch((error: unknown) => error)
  t.ok(failure instanceof GatewayError && failure.kind === 'archive_unavailable')
  t.match(String(failure), /400 on gateway "gateway one"/, 'a part is not shown as the whole')
  await first.spill()
  t.equal(readdirSync(folder).length, 2, 'what has room stays')

  // One entry settles late; another gateway leads when the archive is back.
  await first.close()
  await store.ledger.append(anEntry(5_000, { atMs: SOME_TIME_MS + 5_000 }))
  all.push(anEntry(5_000, { atMs: SOME_TIME_MS + 5_000 }))
  await server.start()
  const other = new ArchiveCopier({
    ...{ store, engine, config, nowMs, leader: { id: 'two', gateway: 'gateway two', pid: 2 } },
    refused: (_, reason) => t.fail(reason),
    warn: (message) => warnings.push(message),
  })
  await settle(other)
  const count = async (sql: string) => Number((await engine.query(sql))[0]?.['n'] ?? -1)
  t.equal(await count('SELECT coalesce(sum(requests), 0) AS n FROM sluice_usage'), 0, 'sums wait for files')
  const page = { accountId: null, after: null, limit: 50 }
  const filed = all[100]
  const lists: Record<string, () => Promise<unknown>> = {
    'a page': () => joint.ledger.entries({ ...page, toMs: (filed?.atMs ?? 0) + 1 }),
    'a page in another order': () =>
      joint.ledger.entries({ ...page, order: { column: 'costNanoUsd', isDescending: true } }),
    'an export': async () => {
      for await (const entries of joint.ledger.export(0)) t.ok(entries.length > 0)
    },
    'an entry': () => joint.ledger.entry(null, filed?.requestId ?? ''),
  }
  for (const [name, read] of Object.entries(lists)) {
    const refusal: unknown = await read().catch((error: unknown) => error)
    t.match(String(refusal), /400 on gateway "gateway one"/, `${name} does not lack them silently`)
  }
  const before = await joint.ledger.entries({ ...page, toMs: all[20]?.atMs ?? 0 })
  t.equal(before.entries.length, 20, 'earlier times are complete')
  for (const name of names) t.equal(await first.step(), null, `${name} is sent`)
  t.strictSame(readdirSync(folder), [])
  await settle(other)
  t.strictSame((await store.ledger.archive.progress())?.onDisk, [])
  t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), all.length)
  t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), all.length)
  const cost = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.equal(await count('SELECT sum(cost_nano_usd) AS n FROM sluice_usage'), cost)
  t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
  t.strictSame(warnings, [])

  // Files have a maximum; a damaged line is counted, and the other entries of the file arrive.
  await other.close()
  await server.stop()
  await add(200)
  const small = copierOf('three', 10_000)
  await t.rejects(small.step())
  await small.spill()
  t.match(warnings.splice(0), [/maximum size/])
  t.equal((await store.ledger.archive.waiting()).rows, 200, 'they stay in Redis')
  await small.close()

  // The disk of the files is full: entries stay in Redis until it has room.
  const full = copierOf('full')
  const next = String(((await store.ledger.archive.progress())?.confirmed ?? 0) + 1).padStart(15, '0')
  const part = join(folder, `batch-${store.id}-${next}.spool.part`)
  symlinkSync('/dev/full', part)
  await t.rejects(full.step())
  await t.rejects(full.spill(), { code: 'ENOSPC' })
  t.equal((await store.ledger.archive.waiting()).rows, 200, 'they stay in Redis')
  t.strictSame(readdirSync(folder), [basename(part)])
  rmSync(part)
  await full.close()

  const last = copierOf('four')
  await t.rejects(last.step())
  await last.spill()
  const [name = ''] = readdirSync(folder)
  const text = readFileSync(join(folder, name), 'utf8')
  writeFileSync(join(folder, name), text.slice(0, 40) + '#' + text.slice(41))
  await server.start()
  await settle(last)
  t.match(warnings, [/1 entries that waited for the archive are damaged/])
  t.equal(last.counts.dropped, 1)
  t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), all.length - 1)
  await joint.close()
})

const older = 'entries that the archive confirmed are in files before they leave while it is away'
void t.test(older, { skip, timeout: 240_000 }, async (t) => {
  const clock = { nowMs: SOME_TIME_MS }
  const nowMs = () => clock.nowMs
  const store = await openStore(`${(await startRedis(t)).url()}?timeout_ms=9000`, {
    nowMs,
    monotonicMs: nowMs,
  })
  t.teardown(() => store.close())
  const server = await startArchive(t, 'postgresql')
  const config = archiveConfig({ url: server.url, hotHours: 1, waitingMaxBytes: 50_000 })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: 'postgresql', config })) await engine.run(statement)
  const folder = join(t.testdir(), 'archive')
  const warnings: string[] = []
  const copierOf = (maxBytes: number) =>
    new ArchiveCopier({
      ...{ store, engine, config, nowMs, leader: { id: 'one', gateway: 'gw', pid: 1 } },
      files: new WaitingFiles(folder, store.id, maxBytes),
      refused: (_, reason) => t.fail(reason),
      warn: (message) => warnings.push(message),
    })
  const copier = copierOf(10_000_000)
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 2; clock.nowMs += 6_000) {
      quiet = (await copier.step()) === true ? 0 : quiet + 1
    }
  }
  const all: LedgerEntry[] = []
  const add = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1, clock.nowMs += 10_000) {
      const entry = anEntry(all.length, { atMs: clock.nowMs })
      all.push(entry)
      await store.ledger.append(entry)
    }
  }
  await add(30)
  await settle()
  const backup = await store.ledger.archive.progress()
  for (let part = 0; part < 5; part += 1) {
    await add(10)
    await settle()
  }
  await server.stop()
  await add(1)
  await t.rejects(copier.step())
  await copier.spill()
  await add(400)
  clock.nowMs += 3 * HOUR_MS
  await t.rejects(copier.step())
  const small = copierOf(200_000)
  await small.spill()
  const kept = await store.ledger.entries({ accountId: null, after: null, limit: 1_000 })
  t.equal(kept.entries.length, all.length, 'without room in files they stay')
  t.match(warnings.splice(0), [/entries stay in the store/])
  await copier.spill()
  const left = await store.ledger.entries({ accountId: null, after: null, limit: 10 })
  t.equal(left.entries.length, 0, 'they have left Redis')

  await server.start()
  await engine.run(`DELETE FROM sluice_entries WHERE batch > ${backup?.confirmed ?? 0}`)
  await engine.run(`DELETE FROM sluice_hours WHERE seal > ${backup?.round ?? 0}`)
  const values = {
    confirmed: backup?.confirmed ?? 0,
    round: backup?.round ?? 0,
    sums_to: backup?.sumsToMs ?? 0,
  }
  for (const [name, value] of Object.entries(values)) {
    await engine.run(`UPDATE sluice_archive SET value = '${value}', version = 0 WHERE name = '${name}'`)
  }
  await settle()
  const rows = await engine.query('SELECT request_id FROM sluice_entries ORDER BY 1')
  const ids = rows.map((row) => row['request_id'])
  t.strictSame(ids, all.map(({ requestId }) => requestId).sort(), 'each is in the archive, once')
  const count = async (sql: string) => Number((await engine.query(sql))[0]?.['n'] ?? -1)
  t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), all.length)
  const cost = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.equal(await count('SELECT sum(cost_nano_usd) AS n FROM sluice_usage'), cost)
  t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
  t.strictSame(readdirSync(folder), [])
  await copier.close()
})
