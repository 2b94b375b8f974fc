/**
 * The results of a benchmark: medians with their range, and ratios that are compared over time.
 */

/** One number of a suite. */
export interface Figure {
  /** Dotted path, unique over all suites: `load.whole.translated.replies_ratio`. */
  readonly name: string
  readonly unit: string
  readonly median: number
  /** The lowest and highest round. */
  readonly low: number
  readonly high: number
  readonly rounds: number
  /** The median of the part that helper threads took, of a figure of CPU time. */
  readonly helpers?: number
  /** Set for a ratio that `--check` compares with the baseline: the better direction. */
  readonly better?: 'higher' | 'lower'
  /** The goal of the design, as text. */
  readonly goal?: string
}

/** The results of one suite. */
export interface SuiteResult {
  readonly figures: readonly Figure[]
  /** Missing programs, losses and doubts, one sentence each; always printed. */
  readonly remarks: readonly string[]
  /** Failed requirements, one sentence each; any of them makes the benchmark exit 1. */
  readonly failures?: readonly string[]
  /** A picture of the figures; `--write` puts it beside the table. */
  readonly chart?: Chart
}

/** An SVG file of the folder `bench`. */
export interface Chart {
  readonly file: string
  readonly svg: string
}

/** The length of a run from the command line; null if it is not set. */
export interface Pace {
  /** Seconds of one round of one peer; the codec, which needs no other process, has its own. */
  readonly seconds: number | null
  readonly rounds: number | null
  /** Concurrent streams of `relay` and `peers`. */
  readonly streams: number | null
  /** Thousands of entries that the database of `archive` has besides those that are copied. */
  readonly archived: number | null
  /** An older commit of Sluice, or the folder of a build, to measure alternating with this one. */
  readonly commit: string | null
  /** Which peers `peers` measures; all if it is null. */
  readonly only: readonly string[] | null
  /** Installs missing peers first. */
  readonly install: boolean
}

/** The median of the samples. */
export function medianOf(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const half = Math.floor(sorted.length / 2)
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2
}

/** A figure of the samples of all rounds. */
export function figure(
  name: string,
  samples: readonly number[],
  { unit, ...more }: Pick<Figure, 'unit' | 'better' | 'goal' | 'helpers'>,
): Figure {
  return {
    name,
    unit,
    median: medianOf(samples),
    low: Math.min(...samples),
    high: Math.max(...samples),
    rounds: samples.length,
    ...more,
  }
}

/** A figure of the CPU time of all threads, with the part of the helper threads. */
export function cpuFigure(
  name: string,
  samples: readonly { readonly cpuMicrosecondsEach: number; readonly helperMicrosecondsEach: number }[],
  { unit, perUnit = 1 }: Pick<Figure, 'unit'> & { readonly perUnit?: number },
): Figure {
  const all = samples.map((sample) => sample.cpuMicrosecondsEach / perUnit)
  const helpers = medianOf(samples.map((sample) => sample.helperMicrosecondsEach / perUnit))
  return figure(name, all, { unit, helpers })
}

/** Ratios sample by sample, because programs of the same round share its noise. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, index) => value / (below[index] ?? Number.NaN))
}

/** A number with its significant digits. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  if (Math.abs(value) >= 100) return value.toFixed(0)
  if (Math.abs(value) >= 10) return value.toFixed(1)
  return value.toFixed(Math.abs(value) >= 2 ? 2 : 3)
}
