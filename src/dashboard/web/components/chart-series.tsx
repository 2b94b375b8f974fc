/** The series of a chart: their values, colours and clicks. */
import type { Buckets } from '../format/time-buckets.js'

/** The custom property of a colour. */
export type Colour = `--series-${number}` | '--others' | '--soft' | '--bad' | '--good' | '--accent'

/** A line, or a colour of bars. */
export interface Series {
  readonly id: string
  readonly label: string
  readonly colour: Colour
  readonly values: readonly (number | null)[]
}

export interface ChartContent {
  readonly buckets: Buckets
  readonly series: readonly Series[]
  /** Bars are stacked; lines are not. */
  readonly kind: 'bars' | 'lines'
  /** Formats a value with its unit. */
  readonly format: (value: number) => string
  readonly marks?: readonly ChartMark[]
}

/** A change that is marked on the axis of time. */
export interface ChartMark {
  readonly atMs: number
  readonly text: string
}

/** Called with the dragged part of the axis of time. */
export type ChartZoom = (fromMs: number, toMs: number) => void

/** Called with the clicked bucket and series. */
export type ChartPick = (fromMs: number, toMs: number, series: string | null) => void

/** The colour of a series beside its name. */
export function Swatch({ colour }: { readonly colour: Colour }) {
  return <span className="swatch" style={{ backgroundColor: `var(${colour})` }} aria-hidden="true" />
}
