/**
 * What a process of test files reports in TAP: its totals, and what failed. The text is searched and not
 * parsed, which costs a hundredth of the CPU time: the process itself has judged, by its exit code.
 */

export interface Counts {
  readonly pass: number
  readonly fail: number
  readonly skip: number
}

export const NOTHING: Counts = { pass: 0, fail: 0, skip: 0 }
/** tap ends a stream with a line like `# { total: 331, pass: 330, fail: 1 }`; an absent figure is zero. */
const TOTALS = /^# \{ total: (.*) \}$/gm
/** A process without tests has a plan of none. */
const NO_TESTS = /^1\.\.0\b/m

/** The totals of a process that ended; null if it ended before it had them. */
export function totalsIn(tap: string): Counts | null {
  const line = [...tap.matchAll(TOTALS)].at(-1)?.[0]
  if (line === undefined) return NO_TESTS.test(tap) ? NOTHING : null
  const figure = (name: string): number => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0)
  return { pass: figure('pass'), fail: figure('fail'), skip: figure('skip') }
}

/** tap's last line; `.ci/run` looks for it. */
export function totalsLine({ pass, fail, skip }: Counts): string {
  return `# { total: ${String(pass + fail + skip)}, pass: ${String(pass)}, fail: ${String(fail)}, skip: ${String(skip)} }`
}

const FAILED = /^ *not ok \d+(?! .*# (?:TODO|SKIP))/
/** After the name of a test, which tells less than the assertion that failed in it. */
const TIME = / # time=[\d.]+ms$/

/** Each failed assertion with what tap reports of it, and the tests that it is in. */
export function failuresIn(tap: string): string[] {
  const lines = tap.split('\n')
  return lines.flatMap((line, index) => {
    if (!FAILED.test(line)) return []
    const start = lines[index + 1] ?? ''
    if (TIME.test(line) || start.trim() !== '---') return [line]
    return lines.slice(index, lines.indexOf(start.replace('---', '...'), index) + 1)
  })
}

/** Of a group's files, those in which something failed. */
export function failedFilesIn(tap: string, files: readonly string[]): string[] {
  const tests = [...tap.matchAll(/^not ok \d+ - (.*)$/gm)].map(([, name = '']) => name)
  return files.filter((file) => tests.some((name) => name.startsWith(file)))
}
