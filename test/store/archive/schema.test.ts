/**
 * Goal: the printed statements make tables in which this release finds all that it needs, on both engines;
 * they can be repeated, and entries are read back unchanged.
 * Method: real engines; the statements are run twice, then entries are inserted, repeated and corrected.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { DAY_MS } from '../../../src/base/time-units.js'
import { Sql, type ArchiveEngine } from '../../../src/store/archive/archive-engine.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { entryOfRow, ENTRY_COLUMNS, rowOfEntry, rowsOfCells } from '../../../src/store/archive/columns.js'
import { inspectArchive } from '../../../src/store/archive/inspect-archive.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { cellsOfEntries } from '../../../src/store/archive/seal-hours.js'
import { ENGINES, engineMissing, archiveDatabase } from '../../helpers/archive-engines.js'
import { archiveConfig } from './archive-config.js'
import { anEntry } from './entries.js'

for (const name of ENGINES) {
  void t.test(`tables in ${name}`, { skip: engineMissing(name) }, async (t) => {
    const server = await archiveDatabase(name)
    const config = archiveConfig({ url: server.url })
    const engine = await openArchiveEngine(config)
    t.teardown(() => engine.close())
    const before = await inspectArchive(engine, null)
    t.strictSame(
      before.findings.map(({ kind }) => kind),
      ['missing'],
    )
    for (let run = 0; run < 2; run += 1) {
      for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
    }
    await engine.run(`DROP VIEW ${config.prefix}usage`)
    await engine.run(`ALTER TABLE ${config.prefix}hours DROP COLUMN images`)
    t.match((await inspectArchive(engine, null)).findings, [{ kind: 'columns', message: /columns images:/ }])
    for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
    const after = await inspectArchive(engine, null)
    t.strictSame(after.findings, [])
    t.equal(after.schema, 1)

    t.strictSame(await withoutComment(engine, config.prefix), [], 'each table, view and column has a comment')

    const first = anEntry(1)
    const entries = [first, anEntry(2, { upstream: null, costNanoUsd: null }), anEntry(3)]
    const rows = entries.map((entry) => rowOfEntry(entry, { version: 1, batch: 1 }))
    await engine.insert('entries', rows, 'test/e/1')
    await engine.insert('entries', rows, 'test/e/1')
    t.strictSame(await engine.countBatch(1, entries), {
      count: 3,
      cost: BigInt(entries.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)),
    })
    const sql = new Sql(engine.is)
    const columns = ENTRY_COLUMNS.map((column) => engine.is.quoted(column.name)).join(', ')
    const found = await engine.query(
      `SELECT ${engine.is.millis('at')} AS at_ms, ${columns} FROM ${engine.is.entries} WHERE
         at >= ${sql.time(0)} AND ${engine.is.isOneOf('account_id', sql.texts(entries.map(({ accountId }) => accountId)))}
       ORDER BY at`,
      sql.parameters,
    )
    t.strictSame(found.map(entryOfRow), entries)

    await engine.put({ confirmed: '1' }, 1)
    await engine.put({ confirmed: '2' }, 2)
    const view = await engine.query(`SELECT count(*) AS count FROM ${config.prefix}requests`)
    t.equal(Number(view[0]?.['count']), 3)
    const corrected = rowOfEntry({ ...first, costNanoUsd: 5 }, { version: 2, batch: 2 })
    await engine.insert('entries', [corrected], 'test/e/2')
    const [sum] = await engine.query(
      `SELECT count(*) AS count, sum(cost_usd) AS cost FROM ${config.prefix}requests`,
    )
    t.equal(Number(sum?.['count']), 3)
    const cost = 5 + (entries[2]?.costNanoUsd ?? 0)
    t.equal(Math.round(Number(sum?.['cost']) * 1e9), cost)
    // PostgreSQL counts what was written after a moment, and has no ANALYZE here.
    const rowsAre = async () => (await engine.size()).rows >= 3
    for (let waits = 0; waits < 100 && !(await rowsAre()); waits += 1) await delay(100)
    t.ok(await rowsAre(), 'rows before the first ANALYZE')
    const cells = await cellsOfEntries(engine, { fromMs: 0, toMs: Date.now() + DAY_MS, batch: { upTo: 2 } })
    for (const seal of [0, 1]) await engine.insert('hours', rowsOfCells(cells, seal), `test/s/${seal}`)
    await engine.put({ round: '1' }, 3)
    const totalOf = (rows: readonly Record<string, unknown>[]): number =>
      rows.flatMap(({ first_content: counts }) => [counts].flat().map(Number)).reduce((sum, n) => sum + n, 0)
    const usage = await engine.query(`SELECT first_content FROM ${config.prefix}usage`)
    t.ok(totalOf(cells) > 0)
    t.equal(totalOf(usage), 2 * totalOf(cells), 'the view adds up the lists of all transfers')
  })
}

/** Names of tables, views and columns of the archive without a comment in the database. */
async function withoutComment(engine: ArchiveEngine, prefix: string): Promise<unknown[]> {
  const names = ['entries', 'hours', 'archive', 'usage', 'requests'].map((name) => `'${prefix}${name}'`)
  const list = names.join(', ')
  const rows = await engine.query(
    engine.kind === 'clickhouse'
      ? `SELECT name FROM system.tables WHERE database = currentDatabase() AND name IN (${list}) AND comment = ''
         UNION ALL SELECT concat(table, '.', name) AS name FROM system.columns WHERE
           database = currentDatabase() AND table IN (${list}) AND comment = ''`
      : `SELECT relname AS name FROM pg_class WHERE relname IN (${list}) AND obj_description(oid, 'pg_class') IS NULL
         UNION ALL SELECT relname || '.' || attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE
           relname IN (${list}) AND attnum > 0 AND NOT attisdropped
           AND col_description(pg_class.oid, attnum) IS NULL
         UNION ALL SELECT proname FROM pg_proc WHERE
           proname = '${prefix}partitions' AND obj_description(oid, 'pg_proc') IS NULL`,
  )
  return rows.map((row) => row['name'])
}
