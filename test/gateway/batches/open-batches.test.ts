/**
 * Goal: counting open batches by their state reads no batch: one list has the states, which follow each
 * change, and a batch that has ended leaves it.
 * Method: records in both stores, with a count of what is read.
 */
import t from 'tap'
import { BatchRecords, type Batch } from '../../../src/policy/batch-records.js'
import { FileStore } from '../../../src/policy/file-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { startRedis } from '../../helpers/redis.js'
import { ofToday } from '../../helpers/long-suite.js'

const SETTINGS = {
  ...{ folder: null, maxBytes: 1e6, maxBytesPerAccount: 1e6, maxBytesTotal: 1e6, maxLineBytes: 1e6 },
  ...{ keepMs: 1e6, upstreams: { openai: null, anthropic: null, gemini: null } },
}

function batchOf(id: string): Batch {
  const owner = { accountId: 'acc_ada', keyId: 'key_ada' }
  const info = { state: 'creating', at: {}, isCancelled: false } as unknown as Batch['info']
  const secrets = { parts: [] } as unknown as Batch['secrets']
  return { id, ...owner, createdAtMs: Date.now(), expiresAtMs: Date.now() + 1e6, info, secrets }
}

for (const kind of ofToday(['sqlite', 'redis'] as const, 2)) {
  void t.test(kind, async (t) => {
    const url = kind === 'sqlite' ? `sqlite:${t.testdir()}/a.db` : (await startRedis(t)).url()
    const store = await openStore(url)
    t.teardown(() => store.close())
    const { sealedRecords } = store
    const files = new FileStore({ records: sealedRecords, secret: 'secret', settings: SETTINGS })
    const records = new BatchRecords(sealedRecords, files)
    await records.create(batchOf('batch_1'))
    await records.create(batchOf('batch_2'))
    const states = async (): Promise<string[]> => (await records.open()).map(({ state }) => state).toSorted()
    t.strictSame(await states(), ['creating', 'creating'])
    await records.change('batch_1', () => ({ state: 'validating' }))
    await Promise.all([
      records.change('batch_1', () => ({ state: 'in_progress' })),
      records.change('batch_2', () => ({ state: 'submitting' })),
    ])
    t.strictSame(await states(), ['in_progress', 'submitting'])
    await records.change('batch_2', () => ({ state: 'completed' }))
    await records.close('batch_2')
    await records.change('batch_2', () => ({ state: 'completed' }))
    t.strictSame(await states(), ['in_progress'])
  })
}
