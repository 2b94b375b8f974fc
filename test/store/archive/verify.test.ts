/**
 * Goal: `verify` names each value of an entry that was changed in the archive after its sums had moved: an
 * amount, a dimension, an outcome, a row that is missing or was added.
 * Method: real engines; entries are copied, then one row is changed for each case and changed back.
 */
import t from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import { openStore } from '../../../src/store/open-store.js'
import { archiveDatabase, ENGINES, engineMissing } from '../../helpers/archive-engines.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'
import { ofToday } from '../../helpers/long-suite.js'

/** A changed value of an entry, the value before, and what is different then. */
const CASES: readonly {
  readonly columns: Readonly<Record<string, readonly [is: string, was: string]>>
  readonly different: readonly Readonly<Record<string, string>>[]
}[] = [
  { columns: { cost_nano_usd: ['1001', '1000'] }, different: [{ of: 'cost_nano_usd', entries: '1001' }] },
  { columns: { input_tokens: ['107', '100'] }, different: [{ of: 'tokens' }] },
  {
    columns: { input_tokens: ['107', '100'], output_tokens: ['3', '10'] },
    different: [
      { of: 'input_tokens', entries: '107', sums: '100' },
      { of: 'output_tokens', entries: '3', sums: '10' },
    ],
  },
  {
    columns: { upstream: ["'other'", "'openai'"] },
    different: [
      { of: 'requests', upstream: 'other', entries: '1', sums: '0' },
      { of: 'requests', upstream: 'openai', entries: '0', sums: '1' },
    ],
  },
  {
    columns: { labels: ["'team=b'", "'team=a'"] },
    different: [
      { of: 'requests', labels: 'team=b', entries: '1', sums: '0' },
      { of: 'requests', labels: 'team=a', entries: '0', sums: '1' },
    ],
  },
  {
    columns: { outcome: ["'upstream_failed'", "'ok'"] },
    different: [{ of: 'errors', entries: '1', sums: '0' }, { of: 'errors_provider' }],
  },
  {
    columns: { model: ["'claude'", "'gpt-5.5'"] },
    different: ['requests', 'tokens', 'cost_nano_usd'].map((of) => ({ model: 'gpt-5.5', of, entries: '0' })),
  },
]

for (const name of ofToday(ENGINES, ENGINES.length)) {
  void t.test(`changed rows in ${name}`, { skip: engineMissing(name) }, async (t) => {
    const { url } = await archiveDatabase(name)
    const config = archiveConfig({ url, hotHours: 1 })
    const engine = await openArchiveEngine(config)
    t.teardown(() => engine.close())
    for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
    const store = await openStore(`sqlite:${t.testdir()}/store.db`)
    t.teardown(() => store.close())
    const of = {
      ...{ accountId: 'acc_1', keyId: 'key_1', model: 'gpt-5.5', upstream: 'openai' },
      labels: 'team=a',
      costNanoUsd: 1_000,
    }
    const all = Array.from({ length: 6 }, (_, at) => anEntry(at, at === 0 ? { ...of, outcome: 'ok' } : {}))
    for (const entry of all) await store.ledger.append(entry)
    const copier = new ArchiveCopier({
      ...{ store, engine, config, leader: { id: 'one', gateway: 'gw', pid: 1 } },
      refused: (_, reason) => t.fail(reason),
      warn: (message) => t.fail(message),
    })
    for (let quiet = 0; quiet < 2;) quiet = (await copier.step()) === true ? 0 : quiet + 1
    await copier.close()
    const verified = async () => (await verifyHours(store, engine, SOME_TIME_MS, Infinity)).different
    t.strictSame(await verified(), [])

    const row = `request_id = '${all[0]?.requestId ?? ''}'`
    let version = 1
    const change = async (values: Readonly<Record<string, string>>) => {
      version += 1
      const changes = Object.entries({ ...values, version: String(version) })
      // A mutation of ClickHouse takes seconds; a later version replaces the row, too.
      await engine.run(
        name === 'postgresql'
          ? `UPDATE sluice_entries SET ${changes.map(([column, value]) => `${column} = ${value}`).join(', ')} WHERE ${row}`
          : `INSERT INTO sluice_entries SELECT * REPLACE (${changes.map(([column, value]) => `${value} AS ${column}`).join(', ')})
             FROM sluice_entries FINAL WHERE ${row}`,
      )
    }
    for (const { columns, different } of CASES) {
      const valuesAt = (at: 0 | 1) =>
        Object.fromEntries(Object.entries(columns).map(([column, values]) => [column, values[at]]))
      await change(valuesAt(0))
      const found = await verified()
      for (const wanted of different) {
        const name = `${JSON.stringify(columns)}: ${JSON.stringify(wanted)} in ${JSON.stringify(found)}`
        t.ok(
          found.some((each) => isLike(each, wanted)),
          name,
        )
      }
      await change(valuesAt(1))
      t.strictSame(await verified(), [], `${JSON.stringify(columns)} as before`)
    }
    await engine.run(
      name === 'postgresql'
        ? `DELETE FROM sluice_entries WHERE ${row}`
        : `ALTER TABLE sluice_entries DELETE WHERE ${row} SETTINGS mutations_sync = 2`,
    )
    t.match(await verified(), [
      {
        ...{ account_id: 'acc_1', key_id: 'key_1', model: 'gpt-5.5' },
        of: 'requests',
        entries: '0',
        sums: '1',
      },
      { of: 'tokens', entries: '0' },
      { of: 'cost_nano_usd', entries: '0' },
    ])
  })
}

function isLike(found: Readonly<Record<string, unknown>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => found[name] === value)
}
