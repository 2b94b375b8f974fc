/**
 * Goal: the commands of the archive, from an empty database to erased entries, with the built program.
 * Method: a real PostgreSQL; entries of two days ago are in the store.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js'
import { anEntry } from '../store/archive/entries.js'
import { engineMissing, startArchive } from '../helpers/archive-engines.js'
import { configFolder, sluice, sluiceHere } from './session.js'

const DAY_MS = 86_400_000

void t.test('from an empty database to erased entries', { skip: engineMissing('postgresql') }, async (t) => {
  const server = await startArchive(t, 'postgresql')
  const { good } = configFolder(t)
  const url = server.url.replace('postgres@', 'postgres:hidden-word@')
  writeFileSync(good, `${readFileSync(good, 'utf8')}\narchive: { url: '${url}', hot_hours: 1 }\n`)
  const archive = (...words: readonly string[]) => sluiceHere(['archive', ...words, '--config', good])
  const store = await openSqlite(join(dirname(good), 'data', 'sluice.db'))
  t.teardown(() => store.close())
  const startMs = Math.floor((Date.now() - 2 * DAY_MS) / DAY_MS) * DAY_MS
  for (let at = 0; at < 20; at += 1) await store.ledger.append(anEntry(at, { atMs: startMs + at * 1_000 }))

  const refused = await sluice(['check', '--config', good])
  t.equal(refused.status, 1)
  t.match(refused.out, /archive\.url: a table is missing: 'sluice archive schema --apply'/)
  const printed = await archive('schema')
  t.match(printed.out, /CREATE TABLE IF NOT EXISTS sluice_entries \([^;]*;/)
  const grants = await archive('schema', '--grants', 'gateway')
  t.match(grants.out, /GRANT SELECT, INSERT, UPDATE ON sluice_entries/)
  t.equal((await archive('status', '--json')).status, 1)
  for (let run = 0; run < 2; run += 1) t.equal((await archive('schema', '--apply')).status, 0)
  t.equal((await sluiceHere(['check', '--config', good])).status, 0)

  const moved = await archive('backfill', '--json')
  t.equal(moved.status, 0)
  t.match(JSON.parse(moved.out), { entries: 20, left: 0 })
  const status = await archive('status', '--json')
  t.match(JSON.parse(status.out), {
    engine: 'postgresql',
    schema: 1,
    reachable: true,
    error: null,
    confirmed: 1,
    rows_waiting: 0,
    oldest: new Date(startMs).toISOString(),
  })
  const verified = await archive('verify', '--json')
  t.match(JSON.parse(verified.out), { hours: 1, accounts: 3, different: [] })
  const exported = await sluiceHere(['usage', 'export', '--format', 'jsonl', '--config', good])
  t.equal(exported.out.trim().split('\n').length, 20)

  t.equal((await archive('erase', '--account', 'acc_1')).status, 2)
  t.equal((await archive('erase', '--account', 'acc_1', '--yes')).status, 0)
  const rest = await sluiceHere(['usage', 'export', '--format', 'jsonl', '--config', good])
  t.equal(rest.out.trim().split('\n').length, 13)
  t.equal((await archive('verify')).status, 0)
  await server.stop()
  const away = await archive('status', '--json')
  t.equal(away.status, 1)
  t.match(JSON.parse(away.out), { reachable: false, error: /does not reply/ })
  const late = await sluiceHere(['usage', 'export', '--format', 'jsonl', '--config', good])
  t.equal(late.status, 1)
  t.match(late.err, /archive does not reply/)
  for (const { out, err } of [refused, status, away, late]) t.notMatch(out + err, /hidden-word/)
})
