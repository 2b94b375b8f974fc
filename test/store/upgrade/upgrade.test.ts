/**
 * Goal: this version starts on a store that an earlier release wrote: keys, revocations, passwords, used-up
 * budgets, running requests, ledger entries and sums are kept; a second start finds a current store. The
 * page of store versions lists each release that is tested, and the current version of the schema.
 * Method: the recordings in `releases` (see `record.ts`), made into stores; then the real program.
 */
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startEmulator } from '../../../src/emulator/server.js'
import { monthOf } from '../../../src/store/limit-arithmetic.js'
import { connect, numberIn } from '../../../src/store/sqlite/driver.js'
import { Browser } from '../../dashboard/fixtures/stage.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { get, hasAllWorkers, run, until, type Program } from '../../process/program.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { restoreRedis, restoreSqlite } from './dump.js'
import {
  chat,
  configText,
  COSTLY,
  EMAIL,
  ENGINES,
  Expected,
  PASSWORD,
  recordingOf,
  RELEASES,
  Rows,
  type Engine,
} from './scene.js'

const PAGE = 'docs/reference/store-versions.md'
const releases = readdirSync(RELEASES)
t.setTimeout(170_000)
t.jobs = 2

/** Makes the store of a recording and returns its address, and its version if it has one. */
async function restore(t: Test, release: string, engine: Engine, folder: string) {
  const dump = readFileSync(recordingOf(release, engine).dump, 'utf8')
  if (engine === 'redis') {
    const redis = await startRedis(t)
    await restoreRedis(redis, dump)
    // As if the upgrade took place in the month of the recording.
    for (const key of (await redis.ask('keys', '*:usd_month:*')) as string[]) {
      await redis.ask('hset', key, 'p', monthOf(Date.now()))
    }
    return { url: `${redis.url()}?timeout_ms=2000`, version: () => 0 }
  }
  const path = join(folder, 'data', 'sluice.db')
  restoreSqlite(path, dump)
  const db = connect(path)
  db.prepare('UPDATE limits SET month = ?').run(monthOf(Date.now()))
  db.close()
  const version = (): number => {
    const db = connect(path)
    try {
      return numberIn(db.prepare('PRAGMA user_version').get() ?? {}, 'user_version')
    } finally {
      db.close()
    }
  }
  return { url: 'sqlite:./data/sluice.db', version }
}

/** Starts the gateway and returns its ports. */
async function serve(t: Test, file: string) {
  const program = run(t, ['serve', '--config', file])
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it exited: ${program.err()}`)
    return program.out().includes('"sluice serves"')
  }, 60_000)
  const serves = program.lines().find(({ msg }) => msg === 'sluice serves')
  const opsPort = Number(serves?.['ops_port'])
  await until(async () => hasAllWorkers(await get(`http://127.0.0.1:${opsPort}/readyz`)))
  return { program, port: Number(serves?.['port']) }
}

async function end(t: Test, program: Program): Promise<void> {
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
  t.same(
    program.lines().filter(({ level }) => level === 'error'),
    [],
  )
}

async function printed(t: Test, file: string, ...args: readonly string[]): Promise<string> {
  const program = run(t, [...args, '--config', file])
  t.equal(await program.ended, 0, program.err())
  return program.out()
}

for (const [releaseAt, release] of releases.entries()) {
  for (const [engineAt, engine] of ENGINES.entries()) {
    const skip = anotherDay(releaseAt + 2 * engineAt, 4) || (engine === 'redis' && redisMissing())
    void t.test(`${engine} of ${release}`, { skip }, async (t) => {
      const emulator = await startEmulator()
      t.teardown(() => emulator.close())
      const folder = t.testdir({})
      const { url, version } = await restore(t, release, engine, folder)
      const file = join(folder, 'gateway.yaml')
      copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
      writeFileSync(file, configText(url, emulator.baseUrls.openai))
      const { expected: path } = recordingOf(release, engine)
      const expected = Expected.parse(JSON.parse(readFileSync(path, 'utf8')))
      const { keys } = expected
      const exported = async (): Promise<Record<string, unknown>[]> =>
        Rows.parse(
          (await printed(t, file, 'usage', 'export', '--format', 'jsonl'))
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as unknown),
        )

      const first = await serve(t, file)
      const statusOf = async (secret: string, turn: object = {}): Promise<number> => {
        const reply = await chat(first.port, secret, turn)
        await reply.text()
        return reply.status
      }
      t.equal(await statusOf(keys.web), 200, 'a key is served')
      t.equal(await statusOf(keys.revoked), 401, 'a revoked one is not')
      t.equal(await statusOf(keys.spent, COSTLY), 402, 'a budget that is used up stays so')
      // The killed gateway held its one place; the lease has ended since.
      await until(async () => (await statusOf(keys.busy)) === 200, 60_000, 500)
      const { status } = await new Browser(`http://127.0.0.1:${first.port}`).signIn(EMAIL, PASSWORD)
      t.equal(status, 200, 'the password is the same')
      // Each entry of the earlier release, and what it had in flight, is there with every field.
      const isLost = ({ outcome }: Record<string, unknown>): boolean => outcome === 'lost'
      await until(async () => (await exported()).some(isLost), 60_000, 1_000)
      await end(t, first.program)

      const entries = await exported()
      const found = new Map(entries.map((entry) => [entry['request_id'], entry]))
      for (const old of expected.entries) {
        t.match(found.get(old['request_id']), old, String(old['request_id']))
      }
      t.equal(entries.filter(isLost).length, 1)
      const args = ['usage', 'summary', '--by', 'key', '--json', '--since', '3649d']
      const summary = Rows.parse(JSON.parse(await printed(t, file, ...args)))
      for (const old of expected.summary) {
        const row = summary.find((each) => each['key'] === old['key'])
        t.ok(Number(row?.['requests']) >= Number(old['requests']), JSON.stringify(row))
        t.ok(Number(row?.['cost_usd']) >= Number(old['cost_usd']))
      }
      const current = version()
      const again = await serve(t, file)
      t.equal(version(), current, 'the second start changes nothing')
      await end(t, again.program)
      t.equal((await exported()).length, entries.length)
      const page = readFileSync(PAGE, 'utf8')
      if (current > 0) t.match(page, new RegExp(`^\\| next +\\| ${current} +\\|`, 'm'))
    })
  }
}

void t.test('the page lists each release that is tested', (t) => {
  const page = readFileSync(PAGE, 'utf8')
  const rows = [...page.matchAll(/^\| `(v[\d.]+)` +\| (\d+) +\|/gm)]
  t.strictSame(rows.map(([, name]) => name).sort(), [...releases].sort())
  for (const [, name = '', schema] of rows) {
    const dump = readFileSync(recordingOf(name, 'sqlite').dump, 'utf8')
    t.match(dump, `PRAGMA user_version = ${schema ?? ''};`, name)
  }
  t.end()
})
