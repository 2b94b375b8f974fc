/** Starts the other processes of the tests of stores, and ends them with the test. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { Order } from './store-process.js'
import { testProgram } from '../../helpers/test-program.js'

const CHILD = testProgram('store/processes/store-process')

export interface OtherProcess<T> {
  /** Resolves with the result of the store of the other process. */
  tell(order: T): Promise<unknown>
}

/** Another process that opens the store and runs orders until the end of the test. */
export function otherProcess(t: Test, url: string): Promise<OtherProcess<Order>> {
  return obedientProcess<Order>(t, CHILD, url)
}

/** The same for any program that takes orders as store-process.ts does. */
export function obedientProcess<T extends object>(
  t: Test,
  program: string,
  url: string,
): Promise<OtherProcess<T>> {
  return killableProcess(t, program, url)
}

/** The same, for a process that a test may kill. */
export async function killableProcess<T extends object>(
  t: Test,
  program: string,
  url: string,
): Promise<OtherProcess<T> & { kill(): Promise<void> }> {
  const child = fork(program, [url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const pending = new Map<number, (reply: { answer?: unknown; error?: string }) => void>()
  let last = 0
  await once(child, 'message')
  child.on('message', (reply: { id: number; answer?: unknown; error?: string }) => {
    pending.get(reply.id)?.(reply)
    pending.delete(reply.id)
  })
  t.teardown(() => end(child))
  return {
    kill: () => end(child),
    async tell(order) {
      const id = (last += 1)
      const reply = new Promise<{ answer?: unknown; error?: string }>((resolve) => {
        pending.set(id, resolve)
      })
      child.send({ id, order })
      const { answer, error } = await reply
      if (error !== undefined) throw new Error(error)
      return answer
    },
  }
}

/** Runs a writer until it has reported `lines` lines, kills it, and returns the lines. */
export async function killedWriter(url: string, accountId: string, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, url, accountId], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    if (output.split('\n').length > lines) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return output.split('\n').slice(0, -1)
}

/** The output and the exit status of a process. */
export interface Ended {
  readonly lines: string[]
  readonly status: number | null
  readonly stderr: string
}

/** Runs a writer until its file may not grow; returns its lines, exit status and errors. */
export function fullDisk(url: string, accountId: string): Promise<Ended> {
  return onFullDisk([CHILD, url, accountId, 'full'])
}

/** Runs a program whose files may not exceed two megabytes. */
export async function onFullDisk(program: readonly string[]): Promise<Ended> {
  // The limit simulates a full disk: a write beyond it fails if the signal is ignored. The options that the
  // test runner adds to each Node process would end it on that signal.
  const script = 'unset NODE_OPTIONS; trap \'\' XFSZ; ulimit -f 4096; exec "$@"'
  const args = ['-c', script, 'sh', process.execPath, ...program]
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { lines: out.split('\n').slice(0, -1), status: child.exitCode, stderr }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
