/**
 * The processes and the temporary folder of one suite. None of them outlives the suite; only processes that
 * it started are ended, by id.
 */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bound, childOf, pinned, processTree } from './machine.js'

/** How long a process may take to end before it is killed. */
const END_MS = 3000
/** How long a process may take to listen. */
const LISTEN_MS = 60_000

/** A process of the bench. */
export interface Started {
  readonly process: ChildProcess
  readonly pid: number
}

/** Settings of a child process. */
interface ChildSettings {
  readonly stdio: StdioOptions
  /** Variables beside those of this process. */
  readonly env?: NodeJS.ProcessEnv
}

export class Children {
  /** The temporary folder of the suite; removed at the end. */
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  private readonly running = new Map<ChildProcess, string>()
  private readonly onExit = (): void => this.kill()

  constructor() {
    process.once('exit', this.onExit)
  }

  /** Starts a program on one core, or on all if `core` is null. Throws if it cannot be started. */
  start(core: number | null, command: readonly string[], { stdio, env = {} }: ChildSettings): Started {
    const [program = '', ...args] = core === null ? bound(command) : pinned(core, bound(command))
    const child = spawn(program, args, { stdio, cwd: this.folder, env: { ...process.env, ...env } })
    this.running.set(child, command.slice(0, 2).join(' '))
    child.once('exit', () => this.running.delete(child))
    child.once('error', () => this.running.delete(child))
    if (child.pid === undefined) throw new Error(`${program} could not be started`)
    return { process: child, pid: child.pid }
  }

  /** Ends everything in reverse order and removes the folder. */
  async close(): Promise<void> {
    for (const child of [...this.running.keys()].reverse()) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await Promise.race([gone, sleep(END_MS, undefined, { ref: false })])
    }
    this.kill()
    process.removeListener('exit', this.onExit)
  }

  /** Ends the rest at once, workers included; also runs when this process ends. */
  private kill(): void {
    for (const child of this.running.keys()) {
      const all = child.pid === undefined ? [] : processTree(child.pid)
      child.kill('SIGKILL')
      for (const pid of all) endQuietly(pid)
    }
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function endQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    return
  }
}

/** The worker of a new primary. Rejects if none appears. */
export async function workerOf({ process: child, pid }: Started): Promise<number> {
  const until = performance.now() + LISTEN_MS
  while (performance.now() < until && child.exitCode === null) {
    const worker = childOf(pid)
    if (worker !== null) return worker
    await sleep(20)
  }
  throw new Error(`${child.spawnfile} (${pid}) has no worker`)
}

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports: number[] = []
  for (const server of servers) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address !== null && typeof address === 'object') ports.push(address.port)
  }
  for (const server of servers) server.close()
  return ports
}

/** Resolves when the port accepts connections; rejects if its process exits or takes too long. */
export async function listening(
  port: number,
  { process: child }: Started,
  withinMs = LISTEN_MS,
): Promise<void> {
  const until = performance.now() + withinMs
  while (performance.now() < until) {
    if (child.exitCode !== null)
      throw new Error(`${child.spawnargs.slice(-3).join(' ')} ended: ${child.exitCode}`)
    const socket = createConnection(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch {
      await sleep(30)
    } finally {
      socket.destroy()
    }
  }
  throw new Error(`nothing listens on port ${port}`)
}
