/**
 * Starts the gateway for a benchmark: `sluice serve` from a build with every feature on: key authentication
 * against SQLite, five limits of the key, two of them budgets, routing, translation, a ledger entry, metrics,
 * and one log line per request to a file.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts, listening, type Children } from './children.js'
import { childOf, processTree } from './machine.js'
import { thisTree, type Tree } from './builds.js'

/** A running gateway. */
export interface RunningGateway {
  readonly port: number
  readonly opsPort: number
  /** The process that serves requests: the first worker, or the only process. */
  readonly pid: number
  /** All processes of the gateway, the primary first. */
  pids(): number[]
  readonly secret: string
  /** From the start of the program until `/readyz` returned 200. */
  readonly readyMs: number
  /** The log lines of exchanges since the last call, which empties the file. */
  takeLogLines(): number
}

/** The provider, and differences from one worker of this tree's build on `core`. */
export interface GatewaySettings {
  /** The port of the provider. */
  readonly upstreamPort: number
  readonly tree?: Tree
  readonly workers?: number
  /** `upstreams:` and `routes:` as YAML, in place of two upstreams at the port. */
  readonly upstreams?: string
  /** Further keys of `server:`, as YAML flow entries. */
  readonly server?: string
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>>
}

/** How long it may take until every worker is ready. */
const READY_MS = 60_000

/** Starts the gateway with a provider at that port that replies in both shapes. */
export async function startGateway(
  children: Children,
  core: number | null,
  { upstreamPort, ...settings }: GatewaySettings,
): Promise<RunningGateway> {
  const { tree = thisTree() } = settings
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = join(children.folder, `gateway-${port}`)
  mkdirSync(folder)
  const file = join(folder, 'gateway.yaml')
  copyFileSync(tree.models, join(folder, 'models.yaml'))
  writeFileSync(file, configText({ port, opsPort, upstreamPort, ...settings, tree }))
  const secret = makeKey(tree, file)
  const logFile = join(folder, 'gateway.log')
  const log = openSync(logFile, 'a')
  const command = [process.execPath, tree.main, 'serve', '--config', file]
  const from = performance.now()
  const started = children.start(core, command, {
    stdio: ['ignore', log, log],
    ...(settings.env === undefined ? {} : { env: settings.env }),
  })
  try {
    await listening(port, started)
    await ready(opsPort)
  } catch (error) {
    throw new Error(`the gateway did not start:\n${readFileSync(logFile, 'utf8')}`, {
      cause: error,
    })
  }
  return {
    port,
    opsPort,
    readyMs: performance.now() - from,
    pid: childOf(started.pid) ?? started.pid,
    pids: () => processTree(started.pid),
    secret,
    takeLogLines() {
      const lines = countLines(readFileSync(logFile))
      truncateSync(logFile)
      return lines
    },
  }
}

/** Resolves when every worker is ready. */
async function ready(opsPort: number): Promise<void> {
  const until = performance.now() + READY_MS
  while (performance.now() < until) {
    const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => null)
    const text = (await response?.text()) ?? ''
    if (response?.status === 200 && !/starting|restarting/.test(text)) return
    await sleep(5)
  }
  throw new Error(`the gateway was not ready within ${READY_MS} ms`)
}

interface ConfigSettings extends GatewaySettings {
  readonly tree: Tree
  readonly port: number
  readonly opsPort: number
  readonly upstreamPort: number
}

function configText(settings: ConfigSettings): string {
  const { tree, port, opsPort, workers = 1, server = '' } = settings
  const more = server === '' ? '' : `, ${server}`
  return `server: { host: 127.0.0.1, port: ${port}, ops_port: ${opsPort}, workers: ${workers}, drain_ms: 0${more} }
store: ${tree.store}
log: { level: info }
models: models.yaml
${settings.upstreams ?? twoUpstreams(settings.upstreamPort)}`
}

function twoUpstreams(port: number): string {
  const base = `http://127.0.0.1:${port}/v1`
  return `upstreams:
  anthropic: { dialect: anthropic, base_url: '${base}', api_key: measured }
  openai: { dialect: openai-chat, base_url: '${base}', api_key: measured }
routes:
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gpt-, upstream: openai }
`
}

/** Five limits that no benchmark reaches. */
const LIMITS = [
  ...['--rpm', '100000000', '--tpm', '100000000000', '--concurrent', '10000'],
  ...['--usd-per-day', '1000000', '--usd-per-month', '1000000'],
]

/** Through the tree's own command line, so that an older commit writes its own store. */
function makeKey({ main }: Tree, file: string): string {
  const email = 'bench@example.com'
  const sluice = (...args: string[]): string =>
    execFileSync(process.execPath, [main, ...args, '--config', file], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  sluice('accounts', 'create', '--email', email, '--plan', 'max')
  return sluice('keys', 'create', '--account', email, '--name', 'bench', ...LIMITS)
}

function countLines(bytes: Buffer): number {
  const marker = Buffer.from('"outcome":')
  let lines = 0
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) lines += 1
  return lines
}
