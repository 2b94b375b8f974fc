// Moves `claude-` from one provider to another under load, and back: plan, swap, graph from Prometheus,
// rollback. Two emulators play the providers. Needs Prometheus in the PATH. SECONDS_PER_PHASE (default 10)
// sets the pace.
import { execFile, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startLoad } from './load.mjs'
import { graph } from './graph.mjs'

const MAIN = process.env.SLUICE_MAIN ?? 'dist/main.js'
const PHASE_MS = Number(process.env.SECONDS_PER_PHASE ?? '10') * 1000
const PER_SECOND = 40
const folder = mkdtempSync(join(tmpdir(), 'sluice-swap-'))
const file = join(folder, 'gateway.yaml')
const newFile = join(folder, 'new.yaml')
const children = []

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

function start(program, args) {
  const child = spawn(program, args, { stdio: 'ignore' })
  child.once('error', (error) => {
    console.error(`${program} cannot be started: ${error.message}`)
    process.exit(1)
  })
  children.push(child)
}

async function run(...args) {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args])
  return stdout.trim().replaceAll(`${folder}/`, '')
}

/** Prints the command as a user types it, and what it prints. */
async function sluice(...args) {
  const typed = args.map((arg) => (arg.includes(' ') ? `'${arg}'` : arg.replace(`${folder}/`, '')))
  console.log(`\n$ sluice ${typed.join(' ')}\n${await run(...args)}`)
}

async function until(url) {
  for (let tries = 0; tries < 300; tries += 1) {
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return
    await delay(100)
  }
  throw new Error(`${url} does not answer`)
}

function configOf({ port, opsPort, old, next }, target) {
  return `server: { host: 127.0.0.1, port: ${port}, ops_port: ${opsPort}, workers: 2, drain_ms: 2000, admin_token: Demo-token-9152 }
store: sqlite:${join(folder, 'sluice.db')}
log: { level: error }
upstreams:
  anthropic: { dialect: anthropic, base_url: 'http://127.0.0.1:${old}/anthropic/v1', api_key: demo }
  openai: { dialect: openai, base_url: 'http://127.0.0.1:${next}/openai/v1', api_key: demo }
routes:
  - { prefix: claude-, targets: [ ${target} ] }
`
}

async function main() {
  const [port, opsPort, old, next, prometheusPort] = await Promise.all(Array.from({ length: 5 }, freePort))
  const ports = { port, opsPort, old, next }
  writeFileSync(file, configOf(ports, '{ upstream: anthropic }'))
  writeFileSync(newFile, configOf(ports, '{ upstream: openai, model: gpt-5.4 }'))
  const scrape = { job_name: 'sluice', static_configs: [{ targets: [`127.0.0.1:${opsPort}`] }] }
  const prometheusFile = join(folder, 'prometheus.yaml')
  writeFileSync(
    prometheusFile,
    JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: [scrape] }),
  )
  for (const at of [old, next]) start(process.execPath, [MAIN, 'emulate', '--port', String(at)])
  const account = 'demo@example.com'
  await run('accounts', 'create', '--config', file, '--email', account, '--plan', 'max')
  const key = await run('keys', 'create', '--config', file, '--account', account, '--name', 'demo')
  start(process.execPath, [MAIN, 'serve', '--config', file])
  start('prometheus', [
    `--config.file=${prometheusFile}`,
    `--storage.tsdb.path=${join(folder, 'prometheus')}`,
    `--web.listen-address=127.0.0.1:${prometheusPort}`,
    '--log.level=error',
  ])
  const prometheus = `http://127.0.0.1:${prometheusPort}`
  await until(`http://127.0.0.1:${opsPort}/readyz`)
  await until(`${prometheus}/-/ready`)

  const beganMs = Date.now()
  const show = async () => console.log(await graph(prometheus, beganMs))
  const load = startLoad({ port, key, perSecond: PER_SECOND })
  console.log(`${PER_SECOND} streams a second ask for claude-sonnet-5-5`)
  await delay(PHASE_MS)

  await sluice('plan', newFile, '--config', file)
  console.log('\n$ cp new.yaml gateway.yaml')
  copyFileSync(newFile, file)
  await delay(PHASE_MS)
  await show()

  await sluice('generations', 'rollback', '1', '--reason', 'the demo is over', '--config', file)
  await delay(PHASE_MS)
  await show()
  await sluice('generations', 'list', '--config', file)
  const { complete, failed } = await load.stop()
  console.log(`\n${complete} streams complete, ${failed} failed`)
  return complete > 0 && failed === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} finally {
  const ended = children.map(
    (child) => child.exitCode ?? new Promise((resolve) => child.once('exit', resolve)),
  )
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(ended)
  rmSync(folder, { recursive: true, force: true })
}
