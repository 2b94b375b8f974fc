/**
 * Starts real Redis servers (Debian's package `redis-server`) on free ports of the loopback: one, a
 * Cluster of three primaries with replicas, or a primary with a replica under three sentinels.
 * Folders are temporary, and every process ends with the test.
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

/** Long enough for a sentinel that did not run for 2 s and then waits for another 30 s. */
const DEADLINE_MS = 90_000

/** The reason to skip a test if the program is missing, otherwise false. In CI it is required. */
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
  /** The folder of its files. */
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

  /** Starts it; resolves when it replies. */
  async start(): Promise<void> {
    this.child = spawn('redis-server', this.args, { stdio: 'ignore' })
    await until(async () => (await this.ask('ping')) === 'PONG', `redis at ${this.port}`)
  }

  /** Runs one command on a separate connection. */
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

  /** Suspended: its connections stay open and it sends no reply. */
  freeze(): void {
    this.child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.child?.kill('SIGCONT')
  }

  /** Moves its files away while it is stopped; the returned function restores them. */
  forget(): () => void {
    const [files, aside] = [join(this.folder, 'appendonlydir'), join(this.folder, 'aside')]
    renameSync(files, aside)
    return () => {
      rmSync(files, { recursive: true, force: true })
      renameSync(aside, files)
    }
  }

  /** SIGKILL; resolves when it has exited. */
  async kill(): Promise<void> {
    const { child } = this
    this.child = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

/** One server with an append-only file, unless `args` disable it, and many databases. */
export async function startRedis(t: Test, args: readonly string[] = []): Promise<RedisServer> {
  const server = await newServer(t, ['--databases', '1000', ...args])
  await server.start()
  return server
}

/**
 * Returns the address of an unused database of the server on each call. The timeout is long, because a
 * machine that runs many tests delays the server.
 */
export function freshDatabases(server: RedisServer): () => string {
  let last = 0
  return () => `${server.url((last += 1))}?timeout_ms=2000`
}

/** How long nodes of a Cluster wait for a node before they replace it. */
const NODE_TIMEOUT_MS = 20_000

/** Three primaries, each with a replica; no node is replaced before `giveUpAfter`. */
export async function startRedisCluster(t: Test): Promise<{ url: string; servers: readonly RedisServer[] }> {
  const servers: RedisServer[] = []
  for (let at = 0; at < 6; at += 1) {
    const bus = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS)]
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

/** Sets the silence after which a node of a Cluster is replaced; without `ms`, almost never. */
export async function giveUpAfter(servers: readonly RedisServer[], ms = NODE_TIMEOUT_MS): Promise<void> {
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
        `sentinel down-after-milliseconds mymaster ${NODE_TIMEOUT_MS}`,
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
  // Different times: sentinels that become candidates at the same moment split the votes and retry after 6 s.
  const giveUp = async (ms: number): Promise<void> => {
    const set = ['set', 'mymaster', 'down-after-milliseconds']
    for (const [at, each] of sentinels.entries()) await each.ask('sentinel', ...set, ms * (1 + at))
  }
  return { url: `redis+sentinel://${hosts}/mymaster`, primary, giveUp }
}

/** Repeats `question` until it is true; throws after 90 s. */
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

/** Not the test's own directory, since each call of `testdir` empties it. */
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
