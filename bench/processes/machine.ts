/**
 * The machine: installed programs, the core of each process, and its CPU time. Linux only, since CPU time is
 * read from /proc.
 */
import { execFileSync } from 'node:child_process'
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { delimiter, join } from 'node:path'

/** Machine and time of a measurement. */
export interface Stamp {
  readonly date: string
  readonly commit: string
  readonly node: string
  readonly machine: string
  /** The one-minute load average before the suite began: above 0.5 the numbers are doubtful. */
  readonly loadAverage: number
}

/** The Debian package of each program that a bench may need. */
const PACKAGES = {
  haproxy: 'haproxy',
  nginx: 'nginx-light',
  wrk: 'wrk',
  taskset: 'util-linux',
  setpriv: 'util-linux',
  'redis-server': 'redis-server',
} as const
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin']
/** Linux counts process time in hundredths of a second on every machine that Node runs on. */
const TICK_MICROSECONDS = 10_000

/** The core of the process under test, and the one that everything else shares. */
export const CORES = { tested: 0, rest: 1 } as const

/** The program's path, or null if it is not installed. */
export function findProgram(name: keyof typeof PACKAGES): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_FOLDERS]
  for (const folder of folders) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      continue
    }
  }
  return null
}

/** A sentence for each missing program and its consequence. */
export function missingPrograms(): string[] {
  const without = {
    nginx: 'there is no peer to compare with, so no ratios',
    wrk: 'the slower built-in load generator is used, which may hold the peers back',
    taskset: 'nothing is pinned to a core, so peers and load compete',
    setpriv: 'peers stay behind if the bench itself is killed with SIGKILL',
  }
  const missing: string[] = []
  for (const name of ['nginx', 'wrk', 'taskset', 'setpriv'] as const) {
    if (findProgram(name) === null) {
      missing.push(`${name} is missing (Debian package ${PACKAGES[name]}): ${without[name]}.`)
    }
  }
  if (availableParallelism() < 2) missing.push('There is one core: peers and load compete for it.')
  return missing
}

/** The command line that runs the program on one core, or unchanged if `taskset` is missing. */
export function pinned(core: number, command: readonly string[]): string[] {
  const taskset = findProgram('taskset')
  if (taskset === null || availableParallelism() < 2) return [...command]
  return [taskset, '-c', String(core), ...command]
}

/** The command line of a program that gets a SIGTERM when the process that started it is gone. */
export function bound(command: readonly string[]): string[] {
  const setpriv = findProgram('setpriv')
  return setpriv === null ? [...command] : [setpriv, '--pdeathsig', 'TERM', ...command]
}

/** User and system time in microseconds. */
export interface CpuTime {
  /** Of all threads, also of those that have ended. */
  readonly all: number
  /**
   * The part outside the first thread of each process, which runs the event loop of a Node process: its
   * compiler and collector, libuv and workers.
   */
  readonly helpers: number
}

/** The CPU time of one process or of several. Throws if one of them has ended. */
export function cpuTime(pids: number | readonly number[]): CpuTime {
  let all = 0
  let first = 0
  for (const pid of typeof pids === 'number' ? [pids] : pids) {
    all += ticksIn(statFields(`/proc/${pid}/stat`))
    first += ticksIn(statFields(`/proc/${pid}/task/${pid}/stat`))
  }
  return { all: all * TICK_MICROSECONDS, helpers: (all - first) * TICK_MICROSECONDS }
}

/** The CPU time between two readings. */
export function cpuBetween(before: CpuTime, after: CpuTime): CpuTime {
  return { all: after.all - before.all, helpers: after.helpers - before.helpers }
}

function ticksIn(fields: readonly string[]): number {
  const [user, system] = fields.slice(11, 13).map(Number)
  return (user ?? Number.NaN) + (system ?? Number.NaN)
}

/** Resident memory of these processes, in bytes. Throws if one of them has ended. */
export function residentBytes(pids: readonly number[]): number {
  let bytes = 0
  for (const pid of pids) {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    bytes += Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1024
  }
  return bytes
}

/** A process and all its descendants, the process first. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const pid = Number(entry)
      const parent = Number(statFields(`/proc/${pid}/stat`)[1])
      children.set(parent, [...(children.get(parent) ?? []), pid])
    } catch {
      continue
    }
  }
  const found = [root]
  for (const pid of found) found.push(...(children.get(pid) ?? []))
  return found
}

/** The only child of a process: the worker of a primary. Null if it has none yet. */
export function childOf(parent: number): number | null {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      if (Number(statFields(`/proc/${entry}/stat`)[1]) === parent) return Number(entry)
    } catch {
      continue
    }
  }
  return null
}

/** The fields of the `stat` of a process or thread after the name, which may hold spaces: state, ppid, … */
function statFields(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

/** The line above every table of figures. */
export function stamp(): Stamp {
  const [cpu] = cpus()
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    commit: commit(),
    node: process.version,
    machine: `${availableParallelism()} × ${cpu?.model.trim() ?? 'unknown processor'}`,
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  }
}

function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    const changed = git('status', '--porcelain', '--', 'src', 'package-lock.json') !== ''
    return `${git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`
  } catch {
    return 'unknown'
  }
}
