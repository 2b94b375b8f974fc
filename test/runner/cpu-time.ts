/**
 * The CPU time of each test file, in seconds with its children: `build/cpu.tsv`. Loaded before each test
 * file, so that the file's process writes its own figure when it ends. Only Linux has the figures of
 * children, and those of a child count when its parent has waited for it.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

export const CPU_TIMES = 'build/cpu.tsv'
/** The variable with the name of the unit; it is removed, so that programs that a test starts have none. */
export const UNIT_NAME = 'SLUICE_TEST_UNIT'

const SELF = '/proc/self/stat'
/** Fields of `proc(5)` after the program's name: utime, stime, cutime, cstime. */
const [FIRST_FIELD, END_FIELD] = [11, 15]
const TICKS_PER_SECOND = 100

/** CPU seconds of this process and of its ended children; 0 on systems without `/proc`. */
export function cpuSeconds(): number {
  if (!existsSync(SELF)) return 0
  const line = readFileSync(SELF, 'latin1')
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(FIRST_FIELD, END_FIELD).reduce((sum, field) => sum + Number(field), 0)
  return ticks / TICKS_PER_SECOND
}

/** Adds a line for a file or a unit. */
export function recordCpu(name: string, seconds: number): void {
  appendFileSync(CPU_TIMES, `${name}\t${seconds.toFixed(2)}\n`)
}

/** What is recorded so far, by name. */
export function recordedCpu(): ReadonlyMap<string, number> {
  const lines = existsSync(CPU_TIMES) ? readFileSync(CPU_TIMES, 'utf8').trim().split('\n') : []
  return new Map(lines.map((line) => [line.split('\t')[0] ?? '', Number(line.split('\t')[1])]))
}

const unit = process.env[UNIT_NAME]
if (unit !== undefined) {
  Reflect.deleteProperty(process.env, UNIT_NAME)
  process.on('exit', () => {
    recordCpu(unit, cpuSeconds())
  })
}
