/**
 * `node build/test/store/upgrade/record.js TREE RELEASE` records the stores that a release writes: TREE is
 * its tag, its commit, or the folder of its build; RELEASE names the folder below `releases`. The program of
 * that tree makes an account and keys, serves requests and is killed while one of them runs, on SQLite and
 * on Redis. Run it once for each release that changes what is stored.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { treeOf, type Tree } from '../../../bench/processes/builds.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { startRedis } from '../../helpers/redis.js'
import { until } from '../../process/program.js'
import { dumpRedis, dumpSqlite } from './dump.js'
import {
  chat,
  configText,
  COSTLY,
  EMAIL,
  ENGINES,
  PASSWORD,
  recordingOf,
  Rows,
  USD_PER_MONTH,
  type Engine,
  type Expected,
} from './scene.js'

t.setTimeout(600_000)
const [treeName, release] = process.argv.slice(2)
if (treeName === undefined || release === undefined) throw new Error('usage: record.js TREE RELEASE')
const tree = treeOf(treeName)

for (const engine of ENGINES) {
  void t.test(engine, async (t) => {
    const folder = t.testdir()
    const redis = engine === 'redis' ? await startRedis(t) : null
    const emulator = await startEmulator()
    t.teardown(() => emulator.close())
    const file = join(folder, 'gateway.yaml')
    copyFileSync(tree.models, join(folder, 'models.yaml'))
    const store = redis?.url() ?? 'sqlite:./data/sluice.db'
    writeFileSync(file, configText(store, emulator.baseUrls.openai))
    const expected = await play(t, tree, file)
    const dump = redis === null ? dumpSqlite(join(folder, 'data/sluice.db')) : await dumpRedis(redis)
    write(engine, dump, expected)
    t.comment(`${expected.entries.length} entries`)
  })
}

function write(engine: Engine, dump: string, expected: Expected): void {
  const recording = recordingOf(release ?? '', engine)
  mkdirSync(recording.folder, { recursive: true })
  writeFileSync(recording.dump, dump)
  writeFileSync(recording.expected, `${JSON.stringify(expected, null, 1)}\n`)
}

/** Plays the scene with the program of the tree. */
async function play(t: Test, { main }: Tree, file: string): Promise<Expected> {
  const command = (args: readonly string[], input = ''): string => {
    const argv = [main, ...args, '--config', file]
    const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
      input,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
    return stdout.trim()
  }
  const create = (name: string, ...limits: string[]): string =>
    command(['keys', 'create', '--account', EMAIL, '--name', name, ...limits])
  const account = ['accounts', 'create', '--email', EMAIL, '--plan', 'pro', '--password-stdin']
  command(account, PASSWORD)
  const keys = {
    web: create('web', '--label', 'team=shop'),
    spent: create('spent', '--usd-per-month', USD_PER_MONTH),
    revoked: create('revoked'),
    busy: create('busy', '--concurrent', '1'),
  }
  const gateway = spawn(process.execPath, [main, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => gateway.kill('SIGKILL'))
  let out = ''
  gateway.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  await until(() => out.includes('"sluice serves"'))
  const port = Number(/"port":(\d+)/.exec(out)?.[1])
  const statusOf = async (secret: string, turn: object): Promise<number> => {
    const reply = await chat(port, secret, turn)
    await reply.text()
    return reply.status
  }
  t.equal(await statusOf(keys.web, {}), 200)
  t.equal(await statusOf(keys.web, { stream: true }), 200)
  t.equal(await statusOf(keys.web, { content: '[[fault: status code=500]]' }), 502)
  t.equal(await statusOf(keys.spent, COSTLY), 200)
  await until(async () => (await statusOf(keys.spent, COSTLY)) === 429)
  t.equal(await statusOf(keys.revoked, {}), 200)
  const list = Rows.parse(JSON.parse(command(['keys', 'list', '--account', EMAIL, '--json'])))
  const revoked = list.find(({ name }) => name === 'revoked')
  command(['keys', 'revoke', '--account', EMAIL, '--key', String(revoked?.['id'])])
  await until(async () => (await statusOf(keys.revoked, {})) === 401)
  const running = new AbortController()
  const slow = { content: '[[words: 400]] [[pace: 50]]', stream: true }
  const reply = await chat(port, keys.busy, slow, running.signal)
  t.equal(reply.status, 200)
  await until(async () => (await statusOf(keys.busy, {})) === 429)
  // Longer than the longest time in which a running request has no reservation, and entries wait.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  gateway.kill('SIGKILL')
  await once(gateway, 'close')
  await reply.text().catch(() => undefined)
  return {
    keys,
    entries: Rows.parse(
      command(['usage', 'export', '--format', 'jsonl'])
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ),
    summary: Rows.parse(JSON.parse(command(['usage', 'summary', '--by', 'key', '--json']))),
  }
}
