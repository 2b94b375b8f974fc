/**
 * Goal: workers whose store cannot be written when they start keep serving: a step that fails after they
 * listen ends none of them.
 * Method: the built program with two workers, as a user who may only read the store; only as root.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { freePort } from '../../helpers/free-port.js'
import { until } from '../../helpers/redis.js'
import { aUser } from '../../store/contract/sample-records.js'

const MAIN = fileURLToPath(new URL('../../../../dist/main.js', import.meta.url))
/** Any user id but root's. */
const OTHER = 65_534
const skip = process.getuid?.() === 0 ? false : 'files of another user need root'

void t.test('workers with a store that is read-only', { skip }, async (t) => {
  const home = t.testdir()
  mkdirSync(home, { recursive: true })
  for (let folder = home; folder.includes('.tap'); folder = dirname(folder)) chmodSync(folder, 0o755)
  const [folder, ports] = [join(home, 'data'), [await freePort(), await freePort()]]
  mkdirSync(folder)
  const path = join(folder, 'sluice.db')
  const store = await openStore(`sqlite:${path}`)
  t.teardown(() => store.close())
  await store.users.create(aUser())
  const files = [path, `${path}-wal`, `${path}-shm`].filter((each) => existsSync(each))
  for (const each of [folder, ...files]) chownSync(each, OTHER, OTHER)
  for (const each of files) chmodSync(each, 0o400)
  chmodSync(folder, 0o500)
  writeFileSync(
    join(home, 'gateway.yaml'),
    `server: { host: 127.0.0.1, port: ${String(ports[0])}, ops_port: ${String(ports[1])}, workers: 2 }
store: sqlite:${path}
upstreams: { a: { dialect: openai, base_url: 'http://127.0.0.1:9/v1' } }
routes: [{ prefix: gpt-, upstream: a }]
`,
  )
  const program = spawn(process.execPath, [MAIN, 'serve', '--config', 'gateway.yaml'], {
    ...{ cwd: home, uid: OTHER, gid: OTHER, env: { ...process.env, HOME: home } },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (text) => (log += String(text)))
  t.teardown(async () => {
    if (program.exitCode !== null) return
    program.kill('SIGTERM')
    await once(program, 'exit')
  })
  const status = async () => {
    const reply = await fetch(`http://127.0.0.1:${String(ports[0])}/v1/models`).catch(() => null)
    await reply?.arrayBuffer()
    return reply?.status ?? null
  }
  await until(async () => (await status()) === 401, 'the start')
  const failed = () => log.split('no link for the first administrator').length - 1
  await until(() => Promise.resolve(failed() >= 2), 'the set-up step of both workers')
  for (let request = 0; request < 50; request += 1) t.equal(await status(), 401, 'it serves')
  t.equal(program.exitCode, null)
  t.notMatch(log, /worker.*(exited|ended)/)
  chmodSync(folder, 0o700)
})
