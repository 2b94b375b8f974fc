/**
 * Starts `program.ts` in a separate process, collects its output, and ends it with the test.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import { testProgram } from '../helpers/test-program.js'

/** A running service of the tests. */
export interface Service {
  readonly child: ChildProcess
  readonly port: number
  readonly ops: number
  /** Process ids of the workers that have announced themselves. */
  readonly pids: Set<number>
  /** Workers that reported that they enter an endless loop. */
  blocked(): number
  /** Everything written to stdout and stderr so far. */
  output(): string
  /** The reply of the shared port. */
  get(path: string): Promise<string>
  /** The reply of the ops port. */
  getOps(path: string): Promise<{ status: number; text: string }>
}

/** Starts the service; `port` is 0 if `env` prevents the start (`awaitPort: false`). */
export async function startService(
  t: Test,
  env: Record<string, string> = {},
  awaitPort = true,
): Promise<Service> {
  const program = testProgram('cluster/program')
  const child = fork(program, [], { env: { ...process.env, ...env }, silent: true })
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  let ops = 0
  let port = 0
  const pids = new Set<number>()
  let blocked = 0
  interface WorkerMessage {
    ops?: number
    port?: number
    pid?: number
    blocked?: true
  }
  child.on('message', (message: WorkerMessage) => {
    if (message.blocked === true) blocked += 1
    ops = message.ops ?? ops
    port = message.port ?? port
    if (message.pid !== undefined) pids.add(message.pid)
  })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const wanted = Number(env['WORKERS'] ?? 2)
  await until(() => ops !== 0 && (!awaitPort || pids.size === wanted))
  const fetched = async (at: number, path: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${at}${path}`, { headers: { connection: 'close' } })
  return {
    child,
    port,
    ops,
    pids,
    blocked: () => blocked,
    output: () => output,
    get: async (path) => (await fetched(port, path)).text(),
    getOps: async (path) => {
      const response = await fetched(ops, path)
      return { status: response.status, text: await response.text() }
    },
  }
}

/** Polls the condition until it is true; throws after `timeoutMs`, with the text of the condition. */
export async function until(met: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs
  while (!(await met())) {
    if (Date.now() > giveUpAt) throw new Error(`not true within ${timeoutMs} ms: ${met.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
