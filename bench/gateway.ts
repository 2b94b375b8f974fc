/**
 * The gateway as a bench runs it: `sluice serve` from the build, one worker, everything on.
 * Key authentication against LMDB, routing, translation, metrics, one log line per exchange to a file.
 */
import {
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { createAccount, createKey } from '../src/accounts/accounts.js'
import { loadConfig } from '../src/config/load.js'
import { formatProblem } from '../src/config/problem.js'
import { packageFile } from '../src/package-file.js'
import { openStore } from '../src/store/open.js'
import { freePorts, listening, workerOf, type Children } from './children.js'

/** A running gateway. */
export interface RunningGateway {
  readonly port: number
  /** The one worker. */
  readonly pid: number
  readonly secret: string
  /** The log lines of exchanges since the last call, which empties the file. */
  takeLogLines(): number
}

/** Starts the gateway over a provider that answers at that port in both shapes. */
export async function startGateway(
  children: Children,
  core: number,
  upstreamPort: number,
): Promise<RunningGateway> {
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = join(children.folder, `gateway-${port}`)
  mkdirSync(folder)
  const file = join(folder, 'gateway.yaml')
  copyFileSync(packageFile('config/models.yaml'), join(folder, 'models.yaml'))
  writeFileSync(file, configText(port, opsPort, upstreamPort))
  const secret = await makeKey(file)
  const logFile = join(folder, 'gateway.log')
  const log = openSync(logFile, 'a')
  const main = fileURLToPath(new URL('../src/main.js', import.meta.url))
  const command = [process.execPath, main, 'serve', '--config', file]
  const started = children.start(core, command, ['ignore', log, log])
  try {
    await listening(port, started)
  } catch (error) {
    throw new Error(`the gateway did not start:\n${readFileSync(logFile, 'utf8')}`, {
      cause: error,
    })
  }
  return {
    port,
    pid: await workerOf(started),
    secret,
    takeLogLines() {
      const lines = countLines(readFileSync(logFile))
      truncateSync(logFile)
      return lines
    },
  }
}

function configText(port: number, opsPort: number, upstreamPort: number): string {
  const base = `http://127.0.0.1:${upstreamPort}/v1`
  return `server: { host: 127.0.0.1, port: ${port}, ops_port: ${opsPort}, workers: 1, drain_ms: 0 }
store: sqlite:./data/sluice.db
log: { level: info }
upstreams:
  anthropic: { dialect: anthropic, base_url: '${base}', api_key: measured }
  openai: { dialect: openai-chat, base_url: '${base}', api_key: measured }
routes:
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gpt-, upstream: openai }
models: models.yaml
`
}

async function makeKey(file: string): Promise<string> {
  const loaded = loadConfig(file, process.env)
  if (!loaded.ok) throw new Error(loaded.errors.map(formatProblem).join('\n'))
  const store = await openStore(loaded.config.store)
  try {
    const { account } = await createAccount(store, {
      email: 'bench@example.com',
      plan: 'max',
      password: null,
    })
    const { secret } = await createKey(store, loaded.config.plans, account, 'bench')
    return secret
  } finally {
    await store.close()
  }
}

function countLines(bytes: Buffer): number {
  const marker = Buffer.from('"outcome":')
  let lines = 0
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) lines += 1
  return lines
}
