/**
 * Goal: the queries of the documentation run on the tables that this release makes.
 * Method: each of them is run on real engines.
 */
import t from 'tap'
import { ARCHIVE_QUERIES } from '../../../docs/generate/archive-queries.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { rowOfEntry, rowsOfCells } from '../../../src/store/archive/columns.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { cellsOfEntries } from '../../../src/store/archive/seal-hours.js'
import { ENGINES, engineMissing, archiveDatabase } from '../../helpers/archive-engines.js'
import { archiveConfig } from './archive-config.js'
import { anEntry } from './entries.js'

const HOUR_MS = 3_600_000

for (const name of ENGINES) {
  void t.test(`queries in ${name}`, { skip: engineMissing(name) }, async (t) => {
    const server = await archiveDatabase(name)
    const config = archiveConfig({ url: server.url })
    const engine = await openArchiveEngine(config)
    t.teardown(() => engine.close())
    for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
    const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
    const entries = Array.from({ length: 20 }, (_, at) =>
      anEntry(at, { atMs: startMs + at, cacheHit: at === 3 }),
    )
    await engine.insert(
      'entries',
      entries.map((entry) => rowOfEntry(entry, { version: 1, batch: 1 })),
      'test/e/1',
    )
    const cells = await cellsOfEntries(engine, {
      fromMs: startMs,
      toMs: startMs + HOUR_MS,
      batch: { upTo: 1 },
    })
    await engine.insert('hours', rowsOfCells(cells, 1), 'test/s/1')
    await engine.put({ confirmed: '1', round: '1', abandoned: '' }, 2)
    for (const query of ARCHIVE_QUERIES) {
      const rows = await engine.query(query[name])
      t.ok(rows.length > 0, `${query.question} ${JSON.stringify(rows[0])}`)
    }
  })
}
