/**
 * Runs numbered inputs in sequence until the time or the number is reached or one fails. Independent of
 * terminal and test runner.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DialectName } from '../../src/formats/dialect.js'
import { faultOf } from './check-input.js'
import { inputOf, UPSTREAM_DIALECTS } from './generate-inputs.js'
import { toFile } from './fuzz-input.js'
import { shrink } from './shrink-input.js'

/** Options of a run. */
export interface FuzzOptions {
  /** Ends after this many inputs. */
  readonly inputs?: number
  /** Ends after this many seconds. */
  readonly seconds?: number
  /** The number of the first input. */
  readonly seed: number
  /** Only this upstream dialect. */
  readonly dialect?: DialectName
  /** Called about every five seconds. */
  readonly progress?: (line: string) => void
}

/** The result of a run. */
export interface FuzzResult {
  readonly inputs: number
  /** Number of inputs that were tried, by kind. */
  readonly kinds: Readonly<Record<string, number>>
  readonly failure: { readonly seed: number; readonly why: string; readonly file: string } | null
}

const FOLDER = 'build/fuzz'
/** Inputs between two checks of the clock, each in one turn of the event loop. */
const BATCH = 200

/** Runs inputs until the caller stops it or one fails; a failing input is reduced and written to a file. */
export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const { inputs = Infinity, seconds = Infinity, seed, dialect, progress } = options
  const dialects = dialect === undefined ? UPSTREAM_DIALECTS : [dialect]
  const began = performance.now()
  const kinds: Record<string, number> = {}
  let reportedMs = began
  let done = 0
  while (done < inputs && performance.now() - began < seconds * 1000) {
    for (let remaining = Math.min(BATCH, inputs - done); remaining > 0; remaining -= 1) {
      const input = inputOf(seed + done, dialects)
      kinds[input.kind] = (kinds[input.kind] ?? 0) + 1
      const why = faultOf(input)
      if (why !== null) return { inputs: done + 1, kinds, failure: report(seed + done, why, dialects) }
      done += 1
    }
    await new Promise((resolve) => setImmediate(resolve))
    if (performance.now() - reportedMs < 5000) continue
    reportedMs = performance.now()
    const rate = Math.round((done * 1000) / (reportedMs - began))
    progress?.(`${done} inputs, ${rate} per second: ${JSON.stringify(kinds)}`)
  }
  return { inputs: done, kinds, failure: null }
}

function report(seed: number, why: string, dialects: readonly DialectName[]): FuzzResult['failure'] {
  const word = wordOf(why)
  const small = shrink(inputOf(seed, dialects), (input) => wordOf(faultOf(input) ?? '') === word)
  mkdirSync(FOLDER, { recursive: true })
  const file = join(FOLDER, `${small.kind}-${seed}.json`)
  writeFileSync(file, toFile(small, faultOf(small) ?? why))
  return { seed, why, file }
}

/** The kind of a fault. Faults of one kind usually have one cause. */
function wordOf(why: string): string {
  return /^throws \w+: .*/.exec(why)?.[0] ?? why.split(' ', 1)[0] ?? ''
}
