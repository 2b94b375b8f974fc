/**
 * Goal: a batch of several statements is whole in the archive, also written again, and a row that the
 * database refuses is left out alone.
 * Method: real engines; a batch of more entries than a statement has, the last one but one with a cost that
 * no column has.
 */
import t from 'tap'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { BatchWriter } from '../../../src/store/archive/write-batch.js'
import { batchOf, NO_PROGRESS } from '../../../src/store/archive-feed.js'
import { archiveDatabase, ENGINES, engineMissing } from '../../helpers/archive-engines.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const COUNT = 5_003

for (const [at, name] of ENGINES.entries()) {
  const skip = engineMissing(name) || anotherDay(at, ENGINES.length)
  void t.test(`${name}: a batch of several statements`, { skip }, async (t) => {
    const server = await archiveDatabase(name)
    const config = archiveConfig({ url: server.url })
    const engine = await openArchiveEngine(config)
    t.teardown(() => engine.close())
    for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)

    const entries = Array.from({ length: COUNT }, (_, number) =>
      anEntry(number, { atMs: SOME_TIME_MS + number }),
    )
    const wrong = anEntry(COUNT - 2, { atMs: SOME_TIME_MS, costNanoUsd: 1.5 })
    const refused: string[] = []
    const writer = new BatchWriter({
      ...{ storeId: 'store', engine, config, nowMs: () => SOME_TIME_MS },
      refused: ({ requestId }) => refused.push(requestId),
    })
    const batch = batchOf({ entries: entries.with(COUNT - 2, wrong), corrected: new Set() })
    const leads = () => Promise.resolve()
    const right = entries.filter((_, number) => number !== COUNT - 2)
    const expected = {
      count: COUNT - 1,
      cost: right.reduce((sum, { costNanoUsd }) => sum + BigInt(costNanoUsd ?? 0), 0n),
    }
    for (let run = 1; run <= 2; run += 1) {
      const written = await writer.write({ number: 1, batch, progress: NO_PROGRESS, leads })
      t.equal(written.dropped, 1)
      t.strictSame(refused, Array<string>(run).fill(wrong.requestId))
      t.strictSame(await engine.countBatch(1, right), expected)
    }
  })
}
