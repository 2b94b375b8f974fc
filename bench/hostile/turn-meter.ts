/**
 * Loaded into each process of the gateway by `--import`: measures the processor time that one iteration of
 * the event loop takes. Waiting for a core does not count, so that the figure also holds on a busy machine.
 * `TurnMeter` reads what the processes measured.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const FILE = 'SLUICE_BENCH_TURNS'
/** The interval of the timer that sees an iteration end. */
const TICK_MS = 2
/** Shorter iterations are not written. */
const LONG_MS = 10

/** The longest iterations of the processes of one gateway. */
export class TurnMeter {
  /** The environment of the gateway. */
  readonly env: Readonly<Record<string, string>>
  private readonly file: string

  constructor(file: string) {
    this.file = file
    writeFileSync(file, '')
    const options = `${process.env['NODE_OPTIONS'] ?? ''} --import ${import.meta.url}`
    this.env = { NODE_OPTIONS: options.trim(), [FILE]: file }
  }

  /** The longest iteration since the last call, in ms of processor time; `LONG_MS` if none was longer. */
  take(): number {
    const lines = existsSync(this.file) ? readFileSync(this.file, 'utf8').split('\n') : []
    writeFileSync(this.file, '')
    return Math.max(LONG_MS, ...lines.map(Number))
  }
}

/** Set in the gateway's processes only; their threads may take as long as they need. */
const measured = process.env[FILE]
if (measured !== undefined && isMainThread) watch(measured)

function watch(file: string): void {
  let lastMs = performance.now()
  let lastCpuMs = cpuMs()
  setInterval(() => {
    const nowMs = performance.now()
    const nowCpuMs = cpuMs()
    const turnMs = Math.min(nowMs - lastMs, nowCpuMs - lastCpuMs)
    lastMs = nowMs
    lastCpuMs = nowCpuMs
    if (turnMs > LONG_MS) appendFileSync(file, `${turnMs.toFixed(1)}\n`)
  }, TICK_MS).unref()
}

/** Of the main thread alone. */
function cpuMs(): number {
  return Number.parseInt(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8'), 10) / 1e6
}
