/**
 * A fleet on this machine: Redis, two gateways with two workers each, HAProxy with the file of the
 * documentation, and two emulators as the providers. The gateways serve HTTPS.
 */
import { execFile, execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { newAuthority, newPair, type Pair } from '../../test/helpers/certificates.js'
import { thisTree } from '../processes/builds.js'
import { freePorts, listening, type Children, type Started } from '../processes/children.js'
import { balancerCommand, balancerFile } from '../processes/load-balancer.js'
import { processTree } from '../processes/machine.js'

const run = promisify(execFile)
const { main, models } = thisTree()
const EMAIL = 'fleet@example.com'
/** How long a start, a restart or a change may take before the benchmark gives up. */
const WITHIN_MS = 60_000
/** The interval of polls. */
const POLL_MS = 50
/** Milliseconds between the words of the emulators: requests are in flight at every moment. */
const PACE_MS = 20

/** A server of Redis with an append-only file, on a port that stays. */
export class RedisServer {
  readonly url: string
  private readonly children: Children
  private readonly port: number
  private readonly folder: string
  private started: Started | null = null

  constructor(children: Children, port: number) {
    this.children = children
    this.port = port
    this.url = `redis://127.0.0.1:${port}`
    this.folder = join(children.folder, 'redis')
    mkdirSync(this.folder)
  }

  async start(): Promise<void> {
    const place = ['--bind', '127.0.0.1', '--port', String(this.port), '--dir', this.folder]
    const kept = ['--appendonly', 'yes', '--save', '']
    const command = ['redis-server', ...place, ...kept]
    this.started = this.children.start(null, command, { stdio: 'ignore' })
    await listening(this.port, this.started)
  }

  async kill(): Promise<void> {
    if (this.started !== null) await killed(this.started.process, [this.started.pid])
  }
}

async function killed(child: ChildProcess, pids: readonly number[]): Promise<void> {
  const ended = once(child, 'exit')
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await ended
}

/** One gateway: its files, and the running program. */
export class Gateway {
  readonly port: number
  readonly opsPort: number
  private readonly children: Children
  private readonly folder: string
  private readonly textOf: (folder: string) => string
  private started: Started | null = null

  constructor(
    children: Children,
    folder: string,
    textOf: (ports: string, folder: string) => string,
    [port = 0, opsPort = 0]: readonly number[],
  ) {
    this.children = children
    this.port = port
    this.opsPort = opsPort
    this.folder = folder
    this.textOf = (place) => textOf(`port: ${port}, ops_port: ${opsPort}`, place)
    mkdirSync(folder)
    copyFileSync(models, join(folder, 'models.yaml'))
    this.writeSecret('provider-key-1')
  }

  get file(): string {
    return join(this.folder, 'gateway.yaml')
  }

  get log(): string {
    return join(this.folder, 'gateway.log')
  }

  private output(): string {
    const files = [join(this.folder, 'output.log'), this.log].filter((path) => existsSync(path))
    return files.map((path) => readFileSync(path, 'utf8').slice(-2_000)).join('\n')
  }

  /** The primary and its workers. */
  pids(): number[] {
    return this.started === null ? [] : processTree(this.started.pid)
  }

  async start(): Promise<void> {
    const log = openSync(join(this.folder, 'output.log'), 'a')
    const command = [process.execPath, main, 'serve', '--config', this.file]
    this.started = this.children.start(null, command, { stdio: ['ignore', log, log] })
    closeSync(log)
    await this.ready()
  }

  /** Resolves when all workers are ready. */
  async ready(): Promise<void> {
    await until(async () => {
      if (this.started?.process.exitCode !== null) throw new Error(this.output())
      const { status, text } = await this.ops('/readyz')
      return status === 200 && !/starting|restarting/.test(text)
    })
  }

  async ops(path: string): Promise<{ status: number; text: string }> {
    try {
      const reply = await fetch(`http://127.0.0.1:${this.opsPort}${path}`)
      return { status: reply.status, text: await reply.text() }
    } catch {
      return { status: 0, text: '' }
    }
  }

  /** SIGKILL to all of its processes. */
  async kill(): Promise<void> {
    if (this.started !== null) await killed(this.started.process, this.pids())
  }

  /** SIGKILL to one worker; resolves when it is gone. */
  async killWorker(): Promise<void> {
    const [, worker] = this.pids()
    if (worker === undefined) throw new Error('the gateway has no worker')
    process.kill(worker, 'SIGKILL')
    await until(() => !this.pids().includes(worker), 1)
  }

  /** SIGTERM; resolves when it has drained and exited. */
  async stop(): Promise<void> {
    if (this.started === null) return
    const { process: child } = this.started
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }

  /** `sluice restart`: resolves when the new workers serve. */
  async restartWorkers(): Promise<void> {
    await run(process.execPath, [main, 'restart', '--config', this.file])
  }

  /** The generation in force. */
  async generation(): Promise<number> {
    const { text } = await this.ops('/metrics')
    return Number(/^sluice_config_generation\S* (\d+)/m.exec(text)?.[1])
  }

  /** Writes the file, with `more` after it, and waits until it is in force. */
  async reload(more: string): Promise<void> {
    const before = await this.generation()
    this.write(more)
    await until(async () => (await this.generation()) > before)
  }

  write(more: string): void {
    replace(this.file, `${this.textOf(this.folder)}${more}`)
  }

  /** The provider's key, which the file reads with `\${file:…}`. */
  writeSecret(secret: string): void {
    replace(join(this.folder, 'provider.key'), secret)
  }

  /** The certificate of the data port. */
  writeCertificate({ cert, key }: Pair): void {
    replace(join(this.folder, 'tls.key'), readFileSync(key, 'utf8'))
    replace(join(this.folder, 'tls.crt'), readFileSync(cert, 'utf8'))
  }

  /** Renames the log and reopens it, as logrotate does; resolves with the number of processes that did. */
  async rotateLog(): Promise<number> {
    renameSync(this.log, `${this.log}.1`)
    process.kill(this.pids()[0] ?? 0, 'SIGUSR1')
    const reopened = (): number => {
      const text = existsSync(this.log) ? readFileSync(this.log, 'utf8') : ''
      return text.split('"log file reopened"').length - 1
    }
    await until(() => reopened() >= this.pids().length)
    return reopened()
  }
}

/** In one step, as careful editors do. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** The whole fleet. */
export interface Fleet {
  /** The port of HAProxy. */
  readonly port: number
  readonly redis: RedisServer
  readonly gateways: readonly Gateway[]
  readonly emulators: readonly Emulator[]
  /** Routes all models to one of the emulators, at the next reload of each gateway. */
  swapTo(emulator: Emulator): void
  /** A new certificate for 127.0.0.1. */
  certificate(name: string): Pair
  createKey(name: string): Promise<string>
  revokeKey(name: string): Promise<void>
  close(): Promise<void>
}

export async function startFleet(children: Children): Promise<Fleet> {
  const [port = 0, redisPort = 0, ...ports] = await freePorts(6)
  const redis = new RedisServer(children, redisPort)
  await redis.start()
  const options = { models: 'any', ledger: 200_000, paceMs: PACE_MS } as const
  const emulators = [await startEmulator(options), await startEmulator(options)]
  let [current] = emulators
  const textOf = (place: string): string => `server:
  { host: 127.0.0.1, ${place}, workers: 2, drain_ms: 30000, tls: { cert: tls.crt, key: tls.key } }
store: ${redis.url}
log: { file: gateway.log }
upstreams:
  openai: { dialect: openai-chat, base_url: ${current?.baseUrls.openai ?? ''}, api_key: '\${file:provider.key}' }
routes:
  - { prefix: gpt-, upstream: openai }
`
  const folder = join(children.folder, 'certificates')
  mkdirSync(folder)
  const authority = newAuthority(folder, 'authority')
  const certificate = (name: string): Pair => newPair(folder, name, { authority })
  const gateways = [0, 1].map((at) => {
    const place = join(children.folder, `gateway-${at + 1}`)
    const gateway = new Gateway(children, place, textOf, ports.slice(at * 2, at * 2 + 2))
    gateway.writeCertificate(certificate('first'))
    gateway.write('')
    return gateway
  })
  const [{ file }] = gateways as [Gateway]
  const sluice = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [main, ...args, '--config', file])).stdout.trim()
  await sluice('accounts', 'create', '--email', EMAIL, '--plan', 'max')
  await Promise.all(gateways.map((gateway) => gateway.start()))
  await startBalancer(children, port, gateways)
  return {
    port,
    redis,
    gateways,
    emulators,
    swapTo(emulator) {
      current = emulator
    },
    certificate,
    createKey: (name) => sluice('keys', 'create', '--account', EMAIL, '--name', name),
    async revokeKey(name) {
      const list = JSON.parse(await sluice('keys', 'list', '--account', EMAIL, '--json')) as {
        id: string
        name: string
      }[]
      const id = list.find((key) => key.name === name)?.id ?? ''
      await sluice('keys', 'revoke', '--account', EMAIL, '--key', id)
    },
    async close() {
      await Promise.all(emulators.map((emulator) => emulator.close()))
    },
  }
}

async function startBalancer(children: Children, port: number, gateways: readonly Gateway[]): Promise<void> {
  const { folder } = children
  const file = join(folder, 'haproxy.cfg')
  const text = balancerFile('haproxy', { port, folder, gateways })
  // HAProxy checks another port than that of the requests without TLS.
  const tls = 'default-server ssl verify none'
  writeFileSync(file, text.replace('default-server', tls))
  execFileSync('haproxy', ['-c', '-q', '-f', file])
  const started = children.start(null, balancerCommand('haproxy', file), { stdio: 'ignore' })
  await listening(port, started)
}

/** The status of one request with the key, to one worker of a gateway. */
export function askDirectly({ port }: Gateway, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, connection: 'close' }
  return new Promise((resolve, reject) => {
    const place = { host: '127.0.0.1', port, path: '/v1/models', rejectUnauthorized: false }
    request({ ...place, headers, agent: false }, (res) => {
      res.resume().once('end', () => resolve(res.statusCode ?? 0))
    })
      .once('error', reject)
      .end()
  })
}

/** Polls until the condition is true; rejects after a minute. */
export async function until(isTrue: () => boolean | Promise<boolean>, pollMs = POLL_MS): Promise<void> {
  const endMs = performance.now() + WITHIN_MS
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`not within a minute: ${isTrue.toString()}`)
    await sleep(pollMs)
  }
}
