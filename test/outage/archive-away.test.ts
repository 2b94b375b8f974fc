/**
 * Goal: while the archive is stopped, frozen, read-only, without a table, of a newer release or another
 * store, or refuses the user, requests are served as before and `/readyz` stays 200 with the reason; then
 * every entry is in the archive once. A gateway that has used its archive starts while it is away.
 * Method: the whole program with an emulator under a steady load, a real PostgreSQL, and each store; a
 * ClickHouse over TLS whose password is in a file that changes. A day has a third of the failures. The long
 * suite stops the archive for a minute at 200 requests a second: none is refused, and the slowest hundredth
 * takes at most half as long again.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openArchiveEngine } from '../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../src/store/archive/schema-statements.js'
import type { ArchiveEngine } from '../../src/store/archive/archive-engine.js'
import { engineMissing, startArchive, type ArchiveServer } from '../helpers/archive-engines.js'
import { newAuthority, newPair } from '../helpers/certificates.js'
import { IS_LONG, ofToday } from '../helpers/long-suite.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { startServe, until, type Served } from '../process/program.js'
import { archiveConfig } from '../store/archive/archive-config.js'
import { Load, type Answer } from './load.js'

const OUTAGE_MS = 3_000
const MINUTE_MS = 60_000
/** Requests a second of the long outage. */
const RATE = 200
const NOISE_MS = 20
/** Retries wait for up to 30 s. */
const AGAIN_MS = 90_000
t.setTimeout(400_000)

interface Scene {
  readonly server: ArchiveServer
  readonly engine: ArchiveEngine
  readonly served: Served
}

/** How the archive fails; `reports` is the reason that readiness names, if it is known within the outage. */
interface Outage {
  readonly name: string
  readonly reports: RegExp | null
  begin(scene: Scene): unknown
  end(scene: Scene): unknown
}

async function readOnly({ engine }: Scene, is: 'on' | 'off'): Promise<void> {
  await engine.run(`ALTER SYSTEM SET default_transaction_read_only = ${is}`)
  await engine.run('SELECT pg_reload_conf()')
}

function asUser({ served }: Scene, from: string, to: string): void {
  served.write(readFileSync(served.file, 'utf8').replace(`//${from}@`, `//${to}@`))
  served.program.child.kill('SIGHUP')
}

const OUTAGES: readonly Outage[] = [
  {
    name: 'stopped',
    reports: /ECONNREFUSED/,
    begin: ({ server }) => server.stop(),
    end: ({ server }) => server.start(),
  },
  {
    name: 'frozen',
    reports: null,
    begin: ({ server }) => server.freeze(),
    end: ({ server }) => server.thaw(),
  },
  {
    name: 'read-only',
    reports: /read-only transaction/,
    begin: (scene) => readOnly(scene, 'on'),
    end: (scene) => readOnly(scene, 'off'),
  },
  {
    name: 'without a table',
    reports: /relation "sluice_entries" does not exist|table is missing/,
    begin: ({ engine }) => engine.run('ALTER TABLE sluice_entries RENAME TO other_entries'),
    end: ({ engine }) => engine.run('ALTER TABLE other_entries RENAME TO sluice_entries'),
  },
  {
    name: 'of a newer release',
    reports: /version 2, made by a newer release/,
    begin: ({ engine }) => engine.run("UPDATE sluice_archive SET value = '2' WHERE name = 'schema'"),
    end: ({ engine }) => engine.run("UPDATE sluice_archive SET value = '1' WHERE name = 'schema'"),
  },
  {
    name: 'of another store',
    reports: /belong to another store/,
    begin: ({ engine }) => engine.run("UPDATE sluice_archive SET value = value || 'x' WHERE name = 'store'"),
    end: ({ engine }) =>
      engine.run("UPDATE sluice_archive SET value = left(value, length(value) - 1) WHERE name = 'store'"),
  },
  {
    name: 'with a refused user',
    reports: /refuses the user/,
    begin: (scene) => asUser(scene, 'postgres', 'other'),
    end: (scene) => asUser(scene, 'other', 'postgres'),
  },
]

async function healthOf(served: Served): Promise<string> {
  const { status, text } = await served.ops('/readyz')
  const { checks } = JSON.parse(text) as { checks: Record<string, string> }
  return `${status} ${checks['archive'] ?? ''}`
}

async function countIn(engine: ArchiveEngine): Promise<number> {
  // The first statement after an outage may meet a connection that has ended.
  const [row] = await engine.query('SELECT count(*) AS n FROM sluice_requests').catch(() => [])
  return Number(row?.['n'] ?? -1)
}

async function store(t: Test, kind: 'sqlite' | 'redis'): Promise<{ store?: string }> {
  return kind === 'sqlite' ? {} : { store: (await startRedis(t)).url() }
}

async function sceneOf(t: Test, kind: 'sqlite' | 'redis'): Promise<Scene> {
  const server = await startArchive(t, 'postgresql')
  const config = archiveConfig({ url: server.url })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: 'postgresql', config })) await engine.run(statement)
  const served = await startServe(t, {
    ...(await store(t, kind)),
    server: 'workers: 1, drain_ms: 1000',
    more: `archive: { url: '${server.url}' }`,
  })
  return { server, engine, served }
}

/** The time within which 99 of 100 requests were served. */
function p99Of(answers: readonly Answer[]): number {
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] ?? 0
}

for (const kind of ofToday(['sqlite', 'redis'] as const, 2)) {
  const skip = !IS_LONG || engineMissing('postgresql') || (kind === 'redis' && redisMissing())
  void t.test(`the archive of ${kind} is away for a minute`, { skip, timeout: 380_000 }, async (t) => {
    const { server, engine, served } = await sceneOf(t, kind)
    const load = new Load(served.port, [
      { name: 'app', secret: () => served.secret, perSecond: RATE, keeps: true, catchesUp: true },
    ])
    await until(async () => (await countIn(engine)) > 0, AGAIN_MS, 250)
    await delay(MINUTE_MS / 3)
    const stoppedMs = performance.now()
    await server.stop()
    await delay(MINUTE_MS)
    const startedMs = performance.now()
    await server.start()
    await until(async () => (await countIn(engine)) > RATE * (MINUTE_MS / 1_000), AGAIN_MS, 250)
    const drainedMs = performance.now()
    await load.stop()
    const { length } = load.answers
    await until(async () => (await countIn(engine)) >= length, AGAIN_MS, 250)
    t.equal(await countIn(engine), length, 'each entry is in the archive once')
    t.strictSame(
      load.answers.filter(({ status, isWhole }) => status !== 200 || !isWhole),
      [],
      'none is refused',
    )
    const before = p99Of(load.between(stoppedMs - MINUTE_MS / 4, stoppedMs, 'app'))
    const during = p99Of(load.between(stoppedMs, startedMs, 'app'))
    const after = p99Of(load.between(startedMs, drainedMs, 'app'))
    const rate = Math.round(load.between(stoppedMs, startedMs, 'app').length / (MINUTE_MS / 1_000))
    t.comment(
      `${rate} a second; p99 ${before.toFixed(1)} ms before, ${during.toFixed(1)} while it was away, ` +
        `${after.toFixed(1)} while ${Math.round((drainedMs - startedMs) / 1_000)} s of copying`,
    )
    // Differences of a few ms are those of a machine that runs other tests.
    t.ok(Math.max(during, after) <= 1.5 * Math.max(before, NOISE_MS))
  })
}

for (const kind of ofToday(['sqlite', 'redis'] as const, 2)) {
  const skip = engineMissing('postgresql') || (kind === 'redis' && redisMissing())
  void t.test(`the archive of ${kind} fails`, { skip, timeout: 380_000 }, async (t) => {
    const scene = await sceneOf(t, kind)
    const { server, engine, served } = scene
    const load = new Load(served.port, [
      { name: 'app', secret: () => served.secret, perSecond: 20, keeps: true },
    ])
    await until(async () => (await countIn(engine)) > 0, AGAIN_MS, 250)
    for (const outage of ofToday(OUTAGES, 3)) {
      await outage.begin(scene)
      const { reports } = outage
      if (reports === null) await delay(OUTAGE_MS)
      else {
        const away = /^200 away since \d\d:\d\d \(/
        await until(async () => away.test(await healthOf(served)), AGAIN_MS, 250)
        t.match(await healthOf(served), reports, outage.name)
      }
      await outage.end(scene)
      await until(async () => (await healthOf(served)) === '200 ok', AGAIN_MS, 250)
    }
    await load.stop()
    const failed = load.answers.filter(({ status, isWhole }) => status !== 200 || !isWhole)
    t.strictSame(failed, [], 'every request is served')
    const { length } = load.answers
    await until(async () => (await countIn(engine)) >= length, AGAIN_MS, 250)
    t.equal(await countIn(engine), length, 'each entry is in the archive once')
    t.equal(Number((await engine.query('SELECT count(*) AS n FROM sluice_entries'))[0]?.['n']), length)

    await server.stop()
    served.program.child.kill('SIGTERM')
    await served.program.ended
    const again = served.again()
    await until(() => again.out().includes('"sluice serves"'))
    again.child.kill('SIGTERM')
    t.equal(await again.ended, 0, 'it starts without its archive')
  })
}

void t.test(
  'a password of ClickHouse in a file, over TLS',
  { skip: engineMissing('clickhouse') },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-clickhouse-tls-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'password'), 'right')
    const authority = newAuthority(folder, 'authority')
    const pair = newPair(folder, 'server', { authority, subject: 'DNS:ch.internal' })
    const own = ['--cert', pair.cert, '--key', pair.key, '--user', 'sluice:right:all']
    const { port } = await startArchive(t, 'clickhouse', own)
    const config = archiveConfig({
      url: `clickhouses://sluice:right@127.0.0.1:${port}/default`,
      tls: { ca: authority.cert, cert: null, key: null, serverName: 'ch.internal' },
    })
    const engine = await openArchiveEngine(config)
    t.teardown(() => engine.close())
    for (const statement of schemaStatements({ engine: 'clickhouse', config })) await engine.run(statement)
    const url = `clickhouses://sluice:\${file:${folder}/password}@127.0.0.1:${port}/default`
    const tls = `{ ca: '${authority.cert}', server_name: ch.internal }`
    const served = await startServe(t, {
      server: 'workers: 1, drain_ms: 1000',
      more: `archive: { url: '${url}', tls: ${tls} }`,
    })
    const replaced = async (password: string, health: RegExp): Promise<void> => {
      writeFileSync(join(folder, 'password'), password)
      served.program.child.kill('SIGHUP')
      await until(async () => health.test(await healthOf(served)), AGAIN_MS, 250)
      t.equal((await served.chat()).status, 200)
    }
    await replaced('right', /^200 ok$/)
    await replaced('another', /^200 away since .*refuses the user/)
    await replaced('right', /^200 ok$/)
    await until(async () => (await countIn(engine)) === 3, AGAIN_MS, 250)
    t.notMatch(served.program.out() + served.program.err(), /another@|right@|"right"/)
  },
)
