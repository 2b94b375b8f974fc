/** The figures of usage that every page, command, file and API shows: their sums and their spelling. Pure. */
import { addNanoUsd, withoutNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { NO_UNITS, unitCountsText, UNIT_NAMES, unitsOfFigures, type UnitFigure } from '../base/unit-counts.js'
import { usd } from '../ledger/export-columns.js'
import type { GroupUse } from '../store/usage-queries.js'

/** Figures of requests; whole numbers. */
export type Totals = Pick<
  GroupUse,
  'requests' | 'failed' | 'inputTokens' | 'outputTokens' | 'costNanoUsd' | 'unpriced' | UnitFigure
>
/** Totals that are being added up. */
export type RunningTotals = { -readonly [Name in keyof Totals]: Totals[Name] }

/** Figures of nothing. */
export function newTotals(): RunningTotals {
  return {
    ...NO_UNITS,
    ...{ requests: 0, failed: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0, unpriced: 0 },
  }
}

/** Adds figures. */
export function addTotals(to: RunningTotals, more: Totals): void {
  to.requests += more.requests
  to.failed += more.failed
  to.inputTokens += more.inputTokens
  to.outputTokens += more.outputTokens
  to.costNanoUsd = addNanoUsd(to.costNanoUsd, more.costNanoUsd)
  to.unpriced += more.unpriced
  for (const unit of UNIT_NAMES) to[unit] += more[unit]
}

/** The sum of figures. */
export function sumOfTotals(all: Iterable<Totals>): Totals {
  const sum = newTotals()
  for (const one of all) addTotals(sum, one)
  return sum
}

/** Takes figures away. Never below 0: the two sums may have been read at different moments. */
export function takeTotals(from: RunningTotals, part: Totals): void {
  const left = (a: number, b: number): number => Math.max(0, a - b)
  from.requests = left(from.requests, part.requests)
  from.failed = left(from.failed, part.failed)
  from.inputTokens = left(from.inputTokens, part.inputTokens)
  from.outputTokens = left(from.outputTokens, part.outputTokens)
  const cost = withoutNanoUsd(from.costNanoUsd, part.costNanoUsd)
  from.costNanoUsd = cost < 0 ? 0 : cost
  from.unpriced = left(from.unpriced, part.unpriced)
  for (const unit of UNIT_NAMES) from[unit] = left(from[unit], part[unit])
}

/** Figures in the spelling of the API. */
export interface ReportFigures {
  readonly requests: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_nano_usd: NanoUsd
  /** The same in dollars, with nine digits. */
  readonly cost_usd: string
  /** Units other than tokens, those that were used: `{ image: 2, audio_second: 61.5 }`. */
  readonly units: Readonly<Record<string, number>>
}

/** All figures of a group. */
export interface ReportTotals extends ReportFigures {
  readonly failed: number
  /** Requests whose price is unknown, which `cost_nano_usd` excludes. */
  readonly unpriced_requests: number
}

/** Figures in the spelling of the API. */
export function shownTotals(total: Totals): ReportTotals {
  return {
    requests: total.requests,
    failed: total.failed,
    input_tokens: total.inputTokens,
    output_tokens: total.outputTokens,
    cost_nano_usd: total.costNanoUsd,
    cost_usd: usd(total.costNanoUsd),
    unpriced_requests: total.unpriced,
    units: unitsOfFigures(total),
  }
}

/** The columns of figures in every file. */
export const FIGURE_COLUMNS = [
  'requests',
  'failed',
  'input_tokens',
  'output_tokens',
  'cost_nano_usd',
  'cost_usd',
  'unpriced_requests',
] as const satisfies readonly (keyof ReportTotals)[]

/** The units of figures as a text, as an entry has them: `audio_second=61.5 image=2`; empty for none. */
export function unitsCell(units: ReportFigures['units']): string {
  return unitCountsText(Object.entries(units)) ?? ''
}
