/**
 * Starts real Redis servers (Debian's package `redis-server`) on free ports of the loopback: one, a
 * Cluster of three and three, or a primary with a replica under three sentinels.
 * Knows nothing of the gateway. Folders are temporary, and every process ends with the test.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { freePort } from './free-port.js'

/** Also for a sentinel that was kept from its processor for 2 s, and does nothing for 30 s more. */
const DEADLINE_MS = 90_000

/** What to say where the program is missing; false where it is there. Under CI it must be there. */
export function redisMissing(): string | false {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  if (folders.some((folder) => existsSync(join(folder, 'redis-server')))) return false
  const message = 'redis-server is missing: apt-get install -y redis-server'
  if (process.env['CI'] === 'true') throw new Error(message)
  process.stderr.write(`\nSKIPPED, NOT PASSED: ${message}\n\n`)
  return message
}

/** A server process that can be stopped, killed and started again over the same files. */
export class RedisServer {
  readonly port: number
  private readonly args: readonly string[]
  /** Where its files are. */
  private readonly folder: string
  private child: ChildProcess | null = null

  constructor(port: number, args: readonly string[]) {
    this.port = port
    this.args = args
    this.folder = args[args.indexOf('--dir') + 1] ?? ''
  }

  /** The address of one of its databases. */
  url(db = 0): string {
    return `redis://127.0.0.1:${this.port}/${db}`
  }

  /** Starts it; resolves when it answers. */
  async start(): Promise<void> {
    this.child = spawn('redis-server', this.args, { stdio: 'ignore' })
    await until(async () => (await this.ask('ping')) === 'PONG', `redis at ${this.port}`)
  }

  /** One command on a connection of its own. */
  async ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    const client = new Redis(this.port, '127.0.0.1', {
      retryStrategy: null,
      lazyConnect: true,
      enableReadyCheck: false,
    })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return await client.call(command, args)
    } finally {
      client.disconnect()
    }
  }

  /** Frozen: its connections stay open and nothing is answered. */
  freeze(): void {
    this.child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.child?.kill('SIGCONT')
  }

  /** What it has written is put aside, while it does not run; the answer puts it back. */
  forget(): () => void {
    const [files, aside] = [join(this.folder, 'appendonlydir'), join(this.folder, 'aside')]
    renameSync(files, aside)
    return () => {
      rmSync(files, { recursive: true, force: true })
      renameSync(aside, files)
    }
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    const { child } = this
    this.child = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

/** One server, with an append-only file unless `args` say otherwise, and many databases. */
export async function startRedis(t: Test, args: readonly string[] = []): Promise<RedisServer> {
  const server = await newServer(t, ['--databases', '1000', ...args])
  await server.start()
  return server
}

/**
 * From a test to the address of a database of the server that nobody has used; patient, since a machine
 * that runs many tests keeps a server waiting for its processor.
 */
export function freshDatabases(server: RedisServer): () => string {
  let last = 0
  return () => `${server.url((last += 1))}?timeout_ms=2000`
}

/** How long nodes of a Cluster wait for one that a busy machine holds up; then they take it for dead. */
const PATIENT_MS = 20_000

/** Three primaries, each with a replica; nobody is replaced before `giveUpAfter`. */
export async function startRedisCluster(
  t: Test,
): Promise<{ url: string; servers: readonly RedisServer[] }> {
  const servers: RedisServer[] = []
  for (let at = 0; at < 6; at += 1) {
    const bus = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(PATIENT_MS)]
    const quick = ['--cluster-port', String(bus), '--repl-diskless-sync-delay', '0']
    servers.push(await newServer(t, [...cluster, ...quick]))
  }
  await Promise.all(servers.map((server) => server.start()))
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
  const create = spawn(
    'redis-cli',
    ['--cluster', 'create', ...nodes, '--cluster-replicas', '1', '--cluster-yes'],
    { stdio: 'ignore' },
  )
  const [code] = (await once(create, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`redis-cli --cluster create ended with ${String(code)}`)
  await until(async () => {
    const states = await Promise.all(servers.map((server) => server.ask('cluster', 'info')))
    return states.every((state) => String(state).includes('cluster_state:ok'))
  }, 'the cluster')
  await until(async () => {
    const roles = await Promise.all(servers.map((server) => server.ask('info', 'replication')))
    return roles.filter((role) => /master_link_status:up/.test(String(role))).length === 3
  }, 'the replicas of the cluster')
  return { url: `redis+cluster://${nodes.join(',')}`, servers }
}

/** From now on a node of a Cluster that is silent for so long is replaced; without `ms`, hardly any is. */
export async function giveUpAfter(servers: readonly RedisServer[], ms = PATIENT_MS): Promise<void> {
  for (const server of servers) await server.ask('config', 'set', 'cluster-node-timeout', ms)
}

/** A primary and a replica, watched by three sentinels as `mymaster`; they act after `giveUp`. */
export async function startSentinels(
  t: Test,
): Promise<{ url: string; primary: RedisServer; giveUp: (ms: number) => Promise<void> }> {
  const primary = await startRedis(t)
  const replica = await startRedis(t, ['--replicaof', '127.0.0.1', String(primary.port)])
  const sentinels: RedisServer[] = []
  for (let at = 0; at < 3; at += 1) {
    const port = await freePort()
    const folder = newFolder(t)
    const file = join(folder, 'sentinel.conf')
    writeFileSync(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${folder}`,
        `sentinel monitor mymaster 127.0.0.1 ${primary.port} 2`,
        `sentinel down-after-milliseconds mymaster ${PATIENT_MS}`,
        'sentinel failover-timeout mymaster 3000',
        '',
      ].join('\n'),
    )
    sentinels.push(ending(t, new RedisServer(port, [file, '--sentinel'])))
  }
  await Promise.all(sentinels.map((sentinel) => sentinel.start()))
  await until(async () => {
    const info = await Promise.all(sentinels.map((sentinel) => sentinel.ask('info', 'sentinel')))
    return info.every((text) => /slaves=1,sentinels=3/.test(String(text)))
  }, 'the sentinels')
  await until(async () => {
    return /master_link_status:up/.test(String(await replica.ask('info', 'replication')))
  }, 'the replica')
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
  // One after the other: those that stand for election at the same moment share the votes, and try again 6 s later.
  const giveUp = async (ms: number): Promise<void> => {
    const set = ['set', 'mymaster', 'down-after-milliseconds']
    for (const [at, each] of sentinels.entries()) await each.ask('sentinel', ...set, ms * (1 + at))
  }
  return { url: `redis+sentinel://${hosts}/mymaster`, primary, giveUp }
}

/** Asks again and again; throws where it does not become true within 90 s. */
export async function until(question: () => Promise<boolean>, of: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    if (await question().catch(() => false)) return
    if (performance.now() > deadline) throw new Error(`not ready in time: ${of}`)
    await delay(20)
  }
}

async function newServer(t: Test, args: readonly string[]): Promise<RedisServer> {
  const port = await freePort()
  const folder = newFolder(t)
  const base = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  return ending(t, new RedisServer(port, [...base, '--appendonly', 'yes', ...args]))
}

/** Not the test's own directory: asking for that a second time empties it. */
function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function ending(t: Test, server: RedisServer): RedisServer {
  const last = (): void => void server.kill()
  process.once('exit', last)
  t.teardown(async () => {
    process.off('exit', last)
    await server.kill()
  })
  return server
}
