/**
 * Goal: the steps in the head of `deploy/compose/archive.yaml` work with each engine: tables are made, the
 * gateway serves, and a request reaches the archive.
 * Method: the file that compose.yaml mounts with its line for the archive, a real Redis and real engines; the
 * names of services are those of this machine, and the provider is the emulator.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'
import { archiveDatabase, ENGINES, engineMissing } from '../helpers/archive-engines.js'
import { sluiceHere } from '../cli/session.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { makeKey, run, until } from '../process/program.js'
import { ofToday } from '../helpers/long-suite.js'

for (const engine of ofToday(ENGINES, ENGINES.length)) {
  const skip = redisMissing() || engineMissing(engine)
  void t.test(`compose with ${engine}`, { skip, timeout: 300_000 }, async (t) => {
    const emulator = await startEmulator({ models: 'any' })
    t.teardown(() => emulator.close())
    const store = (await startRedis(t)).url()
    const folder = t.testdir({ config: {} })
    const file = join(folder, 'config', 'gateway.yaml')
    copyFileSync('config/models.yaml', join(folder, 'config', 'models.yaml'))
    const text = readFileSync('config/gateway.redis.yaml', 'utf8')
      .replace('# archive: {', 'archive: {')
      .replace('redis://:${REDIS_PASSWORD}@redis:6379', store)
      .replace('https://api.openai.com/v1', emulator.baseUrls.openai)
      .replace('port: 8080', 'port: 0')
      .replace('ops_port: 9464', 'ops_port: 0')
      .replace('workers: auto', 'workers: 1')
    t.match(text, "archive: { url: '${ARCHIVE_URL}'")
    writeFileSync(file, text)
    const env = { ARCHIVE_URL: (await archiveDatabase(engine)).url, OPENAI_API_KEY: 'sk-of-a-test' }
    const ended = (...words: readonly string[]) => sluiceHere([...words, '--config', file], { env })

    const before = await ended('check')
    t.equal(before.status, 1)
    t.match(before.out + before.err, /archive\.url: a table is missing: 'sluice archive schema --apply'/)
    const applied = await ended('archive', 'schema', '--apply')
    t.equal(applied.status, 0, applied.err)
    const after = await ended('check')
    t.equal(after.status, 0, after.out + after.err)

    const secret = await makeKey(store)
    const program = run(t, ['serve', '--config', file], env)
    await until(() => program.out().includes('"sluice serves"') || program.child.exitCode !== null)
    const port = Number(program.lines().find(({ msg }) => msg === 'sluice serves')?.['port'])
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    t.equal(response.status, 200, await response.text())
    const status = async () => {
      const { out } = await ended('archive', 'status', '--json')
      return JSON.parse(out) as Readonly<Record<string, unknown>>
    }
    await until(async () => (await status())['confirmed'] === 1, 120_000, 1_000)
    t.match(await status(), { engine, schema: 1, reachable: true, rows_waiting: 0 })
    t.match(await ended('archive', 'verify'), { status: 0 })
    program.child.kill('SIGTERM')
    t.equal(await program.ended, 0)
  })
}
