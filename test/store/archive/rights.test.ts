/**
 * Goal: a user with the printed rights can do all that the gateway does, and can neither alter nor drop a
 * table; erasing without the right to delete prints the statement.
 * Method: real engines; an administrator makes the tables, then the gateway's user copies, verifies, erases.
 */
import t from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { eraseEntries } from '../../../src/store/archive/erase-entries.js'
import { inspectArchive } from '../../../src/store/archive/inspect-archive.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { grantStatements, schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import { openStore } from '../../../src/store/open-store.js'
import { ENGINES, engineMissing, startArchive } from '../../helpers/archive-engines.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'
import { ofToday } from '../../helpers/long-suite.js'

const HOUR_MS = 3_600_000
/** ClickHouse as a library has no users of its own; its front gives them these rights. */
const USERS = ['--user', 'default::all', '--user', 'sluice:pass:select,insert']

for (const name of ofToday(ENGINES, ENGINES.length)) {
  void t.test(`rights in ${name}`, { skip: engineMissing(name) }, async (t) => {
    const server = await startArchive(t, name, name === 'clickhouse' ? USERS : [])
    const config = archiveConfig({ url: server.url, hotHours: 1 })
    const admin = await openArchiveEngine(config)
    t.teardown(() => admin.close())
    const schema = { engine: name, config }
    for (const statement of schemaStatements(schema)) await admin.run(statement)
    if (name === 'postgresql') await admin.run("CREATE ROLE sluice LOGIN PASSWORD 'pass'")
    const grants = grantStatements(schema, { user: 'sluice', database: 'default' })
    t.ok(grants.every((grant) => /^GRANT (?:SELECT|EXECUTE|DELETE|ALTER DELETE)/.test(grant)))
    if (name === 'postgresql') {
      for (const grant of grants) if (!grant.includes('optional')) await admin.run(grant)
    }
    const url = server.url.replace(/\/\/\w+@/, '//sluice:pass@')
    const engine = await openArchiveEngine({ ...config, url })
    t.teardown(() => engine.close())
    t.strictSame((await inspectArchive(engine, null)).findings, [])

    const store = await openStore(`sqlite:${t.testdir()}/store.db`)
    t.teardown(() => store.close())
    for (let at = 0; at < 5; at += 1) await store.ledger.append(anEntry(at))
    // An entry of another day needs a partition that only the function may make.
    await store.ledger.append(anEntry(9, { atMs: SOME_TIME_MS - 20 * 24 * HOUR_MS }))
    const copier = new ArchiveCopier({
      ...{ store, engine, config, leader: { id: 'one', gateway: 'gw', pid: 1 } },
      refused: (_, reason) => t.fail(reason),
      warn: (message) => t.fail(message),
    })
    for (let quiet = 0; quiet < 2;) quiet = (await copier.step()) === true ? 0 : quiet + 1
    await copier.close()
    t.equal((await store.ledger.archive.progress())?.confirmed, 1)
    t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
    const { statement } = await eraseEntries({ store, engine, accountId: 'acc_1', untilMs: Date.now() })
    t.match(statement, /^DELETE FROM sluice_entries/)
    for (const forbidden of ['DROP TABLE sluice_entries', 'ALTER TABLE sluice_hours ADD COLUMN more Int']) {
      const failure: unknown = await engine.run(forbidden).catch((error: unknown) => error)
      t.match(failure, { kind: 'denied' }, forbidden)
    }
    const wrong = await openArchiveEngine({ ...config, url: url.replace('pass@', 'other@') })
    t.teardown(() => wrong.close())
    const { findings } = await inspectArchive(wrong, null)
    // PostgreSQL trusts the loopback in this test.
    if (name === 'clickhouse') t.equal(findings[0]?.kind, 'password')
  })
}
