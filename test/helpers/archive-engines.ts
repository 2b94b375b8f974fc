/**
 * Starts real engines of archives on free ports of the loopback: ClickHouse (the program that the variable
 * SLUICE_CLICKHOUSE names serves its HTTP interface) and PostgreSQL (Debian's package `postgresql`). Folders
 * are temporary, and every process ends with the test.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { t as root, type Test } from 'tap'
import { freePort } from './free-port.js'

/** A kind of archive. */
export type EngineName = 'clickhouse' | 'postgresql'
export const ENGINES: readonly EngineName[] = ['clickhouse', 'postgresql']
const READY_MS = 300_000

const CLICKHOUSE = [
  process.env['SLUICE_CLICKHOUSE'] ?? '',
  '../shared/clickhouse/serve',
  '../../shared/clickhouse/serve',
]
const POSTGRES = '/usr/lib/postgresql'

function programOf(name: EngineName): string | undefined {
  if (name === 'clickhouse') {
    const path = CLICKHOUSE.find((each) => each !== '' && existsSync(each))
    return path === undefined ? undefined : resolve(path)
  }
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES).map(Number) : []
  const newest = Math.max(0, ...versions)
  const bin = join(POSTGRES, String(newest), 'bin')
  return existsSync(join(bin, 'initdb')) ? bin : undefined
}

/** The reason to skip a test if the engine is missing, otherwise false. */
export function engineMissing(name: EngineName): string | false {
  if (programOf(name) !== undefined) return false
  const message =
    name === 'clickhouse'
      ? 'ClickHouse is missing: SLUICE_CLICKHOUSE names no program that serves it'
      : 'PostgreSQL is missing: apt-get install -y postgresql'
  if (process.env['CI'] === 'true' && name === 'postgresql') throw new Error(message)
  process.stderr.write(`\nSKIPPED, NOT PASSED: ${message}\n\n`)
  return message
}

/** A database that can be stopped, killed and started again over the same files. */
export class ArchiveServer {
  readonly name: EngineName
  readonly port: number
  private readonly folder: string
  private readonly args: readonly string[]
  private child: ChildProcess | null = null

  constructor(name: EngineName, port: number, folder: string, args: readonly string[] = []) {
    this.name = name
    this.port = port
    this.folder = folder
    this.args = args
  }

  get url(): string {
    return this.name === 'clickhouse'
      ? `clickhouse://default@127.0.0.1:${this.port}/default`
      : `postgresql://postgres@127.0.0.1:${this.port}/postgres`
  }

  async start(): Promise<void> {
    const program = programOf(this.name) ?? ''
    const port = String(this.port)
    const [file = '', ...args] =
      this.name === 'clickhouse'
        ? ['python3', program, '--data', join(this.folder, 'data'), '--port', port, ...this.args]
        : [
            ...asOther(),
            join(program, 'postgres'),
            ...['-D', join(this.folder, 'data'), '-p', port, '-k', '', '-c', 'listen_addresses=127.0.0.1'],
            ...['-c', 'fsync=off', '-c', 'log_min_messages=fatal', ...this.args],
          ]
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: this.folder })
    this.child = child
    let words = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (words += text))
    if (this.name === 'clickhouse') {
      const ended = once(child, 'exit').then(() => {
        throw new Error(`ClickHouse ended at its start: ${words}`)
      })
      const ready = once(createInterface({ input: child.stdout }), 'line', {
        signal: AbortSignal.timeout(READY_MS),
      })
      await Promise.race([ready, ended])
      ended.catch(() => undefined)
    } else await this.connectable()
  }

  private async connectable(): Promise<void> {
    const { default: pg } = await import('pg')
    for (const endMs = performance.now() + READY_MS; performance.now() < endMs; await delay(100)) {
      const client = new pg.Client({ connectionString: this.url })
      client.on('error', () => undefined)
      try {
        await client.connect()
        await client.end()
        return
      } catch {
        // It starts.
      }
    }
    throw new Error('PostgreSQL does not start')
  }

  /** Ends it at once. */
  async stop(): Promise<void> {
    const { child } = this
    if (child === null) return
    this.child = null
    child.kill(this.name === 'clickhouse' ? 'SIGKILL' : 'SIGQUIT')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  /** Suspended: its connections stay open and it sends no reply. */
  freeze(): void {
    this.child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.child?.kill('SIGCONT')
  }
}

/** PostgreSQL refuses root. */
function asOther(): string[] {
  return process.getuid?.() === 0
    ? ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups']
    : []
}

/**
 * Writes the files of an empty PostgreSQL: those of the first one that the suite has made, because a copy
 * takes a fifth of the CPU time. Its name has the program and its arguments.
 */
function initialize(data: string): void {
  const program = join(programOf('postgresql') ?? '', 'initdb')
  const args = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']
  const name = createHash('sha256')
    .update([program, process.getuid?.(), ...args].join(' '))
    .digest('hex')
  const first = join('build', `postgresql-${name.slice(0, 8)}`)
  if (existsSync(first) && spawnSync('cp', ['-a', first, data]).status === 0) return
  const [file = '', ...rest] = [...asOther(), program, '-D', data, ...args]
  const made = spawnSync(file, rest, { cwd: dirname(data), encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
  const own = `${first}-${process.pid}`
  try {
    if (spawnSync('cp', ['-a', data, own]).status === 0) renameSync(own, first)
  } catch {
    // Another process was faster: the next one copies its files.
  }
  rmSync(own, { recursive: true, force: true })
}

/** A started database; it ends with the test. */
export async function startArchive(
  t: Test,
  name: EngineName,
  args: readonly string[] = [],
): Promise<ArchiveServer> {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  if (name === 'postgresql') {
    const [chown = ''] = asOther()
    if (chown !== '') spawnSync('chown', ['postgres', folder])
    else chmodSync(folder, 0o700)
    initialize(join(folder, 'data'))
  }
  const server = new ArchiveServer(name, await freePort(), folder, args)
  t.teardown(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await server.start()
  return server
}

/** A database of an engine that is running. */
export type ArchiveDatabase = Pick<ArchiveServer, 'name' | 'url'>

const shared = new Map<EngineName, Promise<ArchiveServer>>()
let databases = 0

/**
 * An empty database of the engine that the tests of this process share, for those that do not stop it: a
 * start takes more CPU time than most of them.
 */
export async function archiveDatabase(name: EngineName): Promise<ArchiveDatabase> {
  const starting = shared.get(name) ?? startArchive(root, name)
  shared.set(name, starting)
  const server = await starting
  databases += 1
  const database = `own${databases}`
  const sql = `CREATE DATABASE ${database}`
  if (name === 'clickhouse') {
    const reply = await fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST', body: sql })
    if (!reply.ok) throw new Error(`${sql}: ${await reply.text()}`)
  } else {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query(sql)
    await client.end()
  }
  return { name, url: server.url.replace(/[^/]+$/, database) }
}
