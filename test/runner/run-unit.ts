/** Runs a unit of the suite in a process, and tells how it ended. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { Unit } from './groups.js'
import { NOTHING, totalsIn, type Counts } from './test-output.js'

/** How a unit is run. */
export interface Launch {
  /** Node's arguments. */
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** When the process ends its tests itself; one that does not is killed after twice the time. */
  readonly limitMs: number
  /** Whether its standard error is shown at once, and not kept. */
  readonly isShown: boolean
}

/** A unit that has ended. */
export interface Ended {
  readonly unit: Unit
  readonly isPassed: boolean
  /** Its standard output. */
  readonly tap: string
  /** Its standard error. */
  readonly written: string
  /** The exit code, or the signal that ended it. */
  readonly end: number | string
  readonly counts: Counts
  readonly seconds: number
}

/** After tap's signal for a process that takes too long, which then reports what it waits for. */
const KILL_MS = 1_000

async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGALRM')
  await delay(KILL_MS)
  child.kill('SIGKILL')
}

async function all(stream: Readable | null): Promise<string> {
  return stream === null ? '' : text(stream)
}

/** A process without totals has failed, also if its exit code is 0. */
export async function runUnit(unit: Unit, { args, env, limitMs, isShown }: Launch): Promise<Ended> {
  const startMs = performance.now()
  const stdio = ['ignore', 'pipe', isShown ? 'inherit' : 'pipe'] as const
  const child = spawn(process.execPath, args, { env, stdio: [...stdio] })
  const late = setTimeout(() => void stop(child), 2 * limitMs)
  const [tap, written] = await Promise.all([all(child.stdout), all(child.stderr), once(child, 'close')])
  clearTimeout(late)
  const totals = totalsIn(tap)
  return {
    unit,
    tap,
    written,
    isPassed: child.exitCode === 0 && totals !== null && totals.fail === 0,
    end: child.signalCode ?? child.exitCode ?? 'unknown',
    counts: totals ?? NOTHING,
    seconds: (performance.now() - startMs) / 1_000,
  }
}
