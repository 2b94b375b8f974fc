/** Draws a chart with uPlot. It is loaded with the first chart. */
import { useEffect, useRef, useState, type MouseEvent } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { bucketName, HOUR_MS, MINUTE_MS, tick } from '../format/time.js'
import { useTheme } from '../shell/theme.js'
import { Swatch, type ChartContent, type ChartPick, type ChartZoom } from './chart-series.js'

interface CanvasProps extends ChartContent {
  readonly title: string
  readonly log: boolean
  readonly onPick: ChartPick | undefined
  readonly onZoom: ChartZoom | undefined
}

/** The drawing of a chart. */
export function ChartCanvas({ title, log, onPick, onZoom, ...content }: CanvasProps) {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const latest = useRef(content)
  latest.current = content
  const zoom = useRef(onZoom)
  zoom.current = onZoom
  // A drag ends with a click, which is none.
  const isDragged = useRef(false)
  const canZoom = onZoom !== undefined
  const [hover, setHover] = useState<Hover | null>(null)
  const theme = useTheme()
  const { buckets, series, kind } = content
  // Changes of these values need a new drawing; other changes only update the data.
  const shape = `${theme} ${log} ${kind} ${buckets.bucketMs} ${series.map(({ id }) => id).join(' ')}`
  useEffect(() => {
    const element = container.current
    if (element === null) return undefined
    const made = new UPlot(
      optionsOf(element, {
        content: () => latest.current,
        log,
        hover: setHover,
        zoom: canZoom
          ? (fromMs, toMs) => {
              isDragged.current = true
              zoom.current?.(fromMs, toMs)
            }
          : null,
      }),
      dataOf(latest.current),
      element,
    )
    plot.current = made
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: made.height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape, log, canZoom])
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [buckets, series])
  const pick = (event: MouseEvent): void => {
    const made = plot.current
    if (made === null || isDragged.current) return
    const box = made.over.getBoundingClientRect()
    const index = indexAt(made, content, event.clientX - box.left)
    const start = buckets.startsMs[index ?? -1]
    if (index === null || start === undefined) return
    onPick?.(
      start,
      start + buckets.bucketMs,
      seriesAt(made, content, { index, top: event.clientY - box.top }),
    )
  }
  return (
    <div className="canvas">
      <div
        ref={container}
        onClick={pick}
        onPointerDown={() => (isDragged.current = false)}
        className={onPick === undefined ? undefined : 'picks'}
        role="img"
        aria-label={`${title}: ${summary(content)}. The same numbers are in its table.`}
      />
      {hover === null ? null : <Readout hover={hover} {...content} />}
    </div>
  )
}

function summary({ series, buckets, format, marks = [] }: ChartContent): string {
  const { startsMs, bucketMs } = buckets
  const [first, last] = [startsMs[0], startsMs.at(-1)]
  if (first === undefined || last === undefined) return 'no data'
  const peaks = series.map(({ label, values }) => {
    const peak = Math.max(0, ...values.map((value) => value ?? 0))
    return `${label} up to ${format(peak)}`
  })
  const changes = marks.map(({ text, atMs }) => `${text} at ${bucketName(atMs, bucketMs)}`)
  const span = `${bucketName(first, bucketMs)} to ${bucketName(last, bucketMs)}`
  return [span, peaks.join(', '), ...(changes.length === 0 ? [] : [`changes: ${changes.join(', ')}`])].join(
    '; ',
  )
}

function Readout({ hover, ...content }: ChartContent & { hover: Hover }) {
  const { series, buckets, format, kind, marks = [] } = content
  const start = buckets.startsMs[hover.index]
  if (start === undefined) return null
  const values = series.map((one) => ({ ...one, value: one.values[hover.index] ?? null }))
  const shown = values.filter(({ value }) => value !== null && (value > 0 || values.length === 1))
  const sum = values.reduce((total, { value }) => total + (value ?? 0), 0)
  const side = hover.right ? 'readout right panel small' : 'readout panel small'
  const partial = buckets.partial && hover.index === buckets.startsMs.length - 1
  return (
    <div className={side} style={{ transform: `translateX(${hover.left}px)` }} aria-hidden="true">
      <p className="soft">
        {bucketName(start, buckets.bucketMs)}
        {partial ? ' · so far' : ''}
      </p>
      {shown.map(({ id, label, colour, value }) => (
        <p key={id} className="readout-line row line">
          <Swatch colour={colour} />
          <span>{label}</span>
          <b className="end">{format(value ?? 0)}</b>
        </p>
      ))}
      {shown.length === 0 ? <p className="soft">none</p> : null}
      {marks
        .filter(({ atMs }) => atMs >= start && atMs < start + buckets.bucketMs)
        .map(({ atMs, text }) => (
          <p key={`${atMs} ${text}`}>▲ {text}</p>
        ))}
      {kind === 'bars' && shown.length > 1 ? (
        <p className="readout-line readout-sum row line">
          <span>Total</span>
          <b className="end">{format(sum)}</b>
        </p>
      ) : null}
    </div>
  )
}

const HEIGHT = 200
const NARROW = 480
const AXIS_FONT = "12px Inter, 'Inter metrics', sans-serif"
/** uPlot's logarithmic scale. The enum exists only in its types. */
const LOGARITHMIC: object = { distr: 3 }

/** The bucket under the pointer. */
interface Hover {
  readonly index: number
  readonly left: number
  /** Show the readout to the left of the pointer. */
  readonly right: boolean
}

/** The values; stacked series as running sums, the topmost first so that the lower ones cover it. */
function dataOf({ buckets, series, kind }: ChartContent): UPlot.AlignedData {
  const xs = [...buckets.startsMs]
  if (kind === 'lines') return [xs, ...series.map(({ values }) => [...values])]
  const sums: number[][] = []
  let below = xs.map(() => 0)
  for (const { values } of series) {
    below = below.map((sum, index) => sum + (values[index] ?? 0))
    sums.push(below)
  }
  return [xs, ...sums.reverse()]
}

/** The content of a chart, and the receiver of its events. */
export interface ChartSource {
  /** Returns the current content. */
  readonly content: () => ChartContent
  /** A logarithmic scale. */
  readonly log: boolean
  /** Null when the pointer leaves the chart. */
  readonly hover: (at: Hover | null) => void
  /** Null: the chart cannot be zoomed. */
  readonly zoom: ChartZoom | null
}

/** The options of a chart in `element`. */
function optionsOf(element: HTMLElement, { content, log, hover, zoom }: ChartSource): UPlot.Options {
  const { series, kind, buckets } = content()
  const painted = kind === 'lines' ? series : [...series].reverse()
  const colourOf = (name: string): string => getComputedStyle(element).getPropertyValue(name).trim()
  return {
    width: Math.max(element.clientWidth, 1),
    height: HEIGHT,
    ms: 1,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: zoom !== null, y: false, setScale: false, dist: 8 },
      points: { show: kind !== 'bars' },
    },
    scales: {
      x: {
        time: true,
        range: (_, min, max) => [min, kind === 'bars' ? max + buckets.bucketMs : max],
      },
      y: log
        ? {
            ...LOGARITHMIC,
            range: (_, min, max) => wholeDecades(min, max),
          }
        : { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: axesOf(content, colourOf, element.clientWidth),
    series: [{}, ...painted.map(({ label, colour }) => seriesOf(kind, label, colourOf(colour)))],
    hooks: {
      draw: [
        (plot) => hatch(plot, content(), colourOf('--paper')),
        (plot) => drawMarks(plot, content(), colourOf('--accent')),
      ],
      setSelect: [(plot) => zoomTo(plot, zoom)],
      setCursor: [(plot) => hover(hoverOf(plot, content()))],
    },
  }
}

function axesOf(
  content: () => ChartContent,
  colourOf: (name: string) => string,
  width: number,
): UPlot.Axis[] {
  const shared = { stroke: colourOf('--soft'), font: AXIS_FONT }
  const line = { stroke: colourOf('--line'), width: 1 }
  return [
    {
      ...shared,
      grid: { show: false },
      ticks: { ...line, size: 4 },
      space: width < NARROW ? 64 : 80,
      size: 28,
      values: (_, ticks) => ticks.map((at) => tick(at, content().buckets.bucketMs)),
      // Only times that have data points.
      incrs: content().buckets.bucketMs < HOUR_MS ? [...MINUTES, ...HOURS] : HOURS,
    },
    {
      ...shared,
      grid: line,
      ticks: { show: false },
      size: 64,
      space: 44,
      gap: 8,
      // A logarithmic scale has ticks without a value.
      values: (_, ticks: (number | null)[]) =>
        ticks.map((value) => (value === null ? '' : markOf(value, content().format(value)))),
    },
  ]
}

/** The times between ticks. */
const MINUTES = [5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS)
const HOURS = [1, 2, 3, 6, 12, 24, 48, 72, 168, 336, 720].map((hours) => hours * HOUR_MS)

/** Extends a range to powers of ten, so that ticks are round. */
function wholeDecades(min: number, max: number): UPlot.Range.MinMax {
  const low = Math.floor(Math.log10(Math.max(min, 1)))
  return [10 ** low, 10 ** Math.max(Math.ceil(Math.log10(Math.max(max, 1))), low + 1)]
}

/** The text of a tick, without trailing zeros; empty for a fraction of a count, which would be rounded. */
function markOf(value: number, text: string): string {
  if (/^\d+$/.test(text) && Number(text) !== value) return ''
  return text.replace(/(\.\d\d)00$/, '$1')
}

/** The values of a line that have none beside them: alone they would not be drawn. */
const isolated: UPlot.Series.Points.Filter = ({ data }, series) => {
  const values = data[series] ?? []
  const isNone = (at: number): boolean => (values[at] ?? null) === null
  return [...values.keys()].filter((at) => !isNone(at) && isNone(at - 1) && isNone(at + 1))
}

function seriesOf(kind: ChartContent['kind'], label: string, colour: string): UPlot.Series {
  const shared = { label, stroke: colour, points: { show: false }, spanGaps: false }
  if (kind === 'lines') {
    const points = { show: true, size: 4, fill: colour, filter: isolated }
    return { ...shared, width: 1.5, points }
  }
  const paths = UPlot.paths.bars?.({ size: [0.8, 28], align: 1, gap: 1 })
  return { ...shared, width: 0, fill: colour, ...(paths === undefined ? {} : { paths }) }
}

/** The dragged part becomes the range. */
function zoomTo(plot: UPlot, zoom: ChartZoom | null): void {
  const { left, width } = plot.select
  if (zoom === null || width <= 0) return
  const [fromMs, toMs] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  if (toMs > fromMs) zoom(fromMs, toMs)
}

/** A triangle on the axis at each mark. */
function drawMarks(plot: UPlot, { marks = [] }: ChartContent, colour: string): void {
  const { ctx, bbox } = plot
  const [half, height] = [5 * devicePixelRatio, 8 * devicePixelRatio]
  const foot = bbox.top + bbox.height
  ctx.save()
  ctx.fillStyle = colour
  for (const { atMs } of marks) {
    const x = plot.valToPos(atMs, 'x', true)
    ctx.beginPath()
    ctx.moveTo(x, foot - height)
    ctx.lineTo(x + half, foot)
    ctx.lineTo(x - half, foot)
    ctx.fill()
  }
  ctx.restore()
}

/** Hatches the incomplete hour or day. */
function hatch(plot: UPlot, content: ChartContent, paper: string): void {
  const { startsMs, bucketMs, partial } = content.buckets
  const last = startsMs.at(-1)
  if (!partial || last === undefined) return
  const from = content.kind === 'bars' ? last : last - bucketMs
  const left = plot.valToPos(from, 'x', true)
  const right = plot.valToPos(from + bucketMs, 'x', true)
  const { top, height } = plot.bbox
  const { ctx } = plot
  const step = 6 * devicePixelRatio
  ctx.save()
  ctx.beginPath()
  outline(plot, content.kind, { left, right })
  ctx.clip()
  ctx.strokeStyle = paper
  ctx.lineWidth = 2 * devicePixelRatio
  ctx.beginPath()
  for (let x = left - height; x < right; x += step) {
    ctx.moveTo(x, top + height)
    ctx.lineTo(x + height, top)
  }
  ctx.stroke()
  ctx.restore()
}

/** The clip path of a bucket: below the topmost sum, or along each line. */
function outline(
  plot: UPlot,
  kind: ChartContent['kind'],
  { left, right }: { readonly left: number; readonly right: number },
): void {
  const { ctx, data } = plot
  const zero = plot.valToPos(0, 'y', true)
  const thick = 3 * devicePixelRatio
  const quad = (ys: readonly [number, number, number, number]): void => {
    ctx.moveTo(left, ys[0])
    ctx.lineTo(right, ys[1])
    ctx.lineTo(right, ys[2])
    ctx.lineTo(left, ys[3])
    ctx.closePath()
  }
  for (const values of kind === 'lines' ? data.slice(1) : data.slice(1, 2)) {
    const [before, end] = [values.at(-2), values.at(-1)]
    if (end === null || end === undefined) continue
    // A line that starts here has nothing to hatch.
    if (kind === 'lines' && typeof before !== 'number') continue
    const y = plot.valToPos(end, 'y', true)
    const start = typeof before === 'number' ? plot.valToPos(before, 'y', true) : y
    if (kind === 'bars') quad([y, y, zero, zero])
    else quad([start - thick, y - thick, y + thick, start + thick])
  }
}

function hoverOf(plot: UPlot, content: ChartContent): Hover | null {
  const { left } = plot.cursor
  if (left === undefined || left < 0) return null
  const index = indexAt(plot, content, left)
  if (index === null) return null
  const offset = plot.bbox.left / devicePixelRatio
  return { index, left: left + offset, right: left > plot.bbox.width / devicePixelRatio / 2 }
}

/** The bucket at a position in pixels from the left of the plot; null outside of it. */
function indexAt(plot: UPlot, content: ChartContent, left: number): number | null {
  const { buckets, kind } = content
  const [first] = buckets.startsMs
  if (first === undefined) return null
  const steps = (plot.posToVal(left, 'x') - first) / buckets.bucketMs
  // Bars start at their time; points are at their time.
  const index = kind === 'bars' ? Math.floor(steps) : Math.round(steps)
  return index in buckets.startsMs ? index : null
}

/** The series of a stack at a position in pixels from the top of the plot; null above the stack. */
function seriesAt(
  plot: UPlot,
  { series, kind }: ChartContent,
  { index, top }: { readonly index: number; readonly top: number },
): string | null {
  if (kind === 'lines') return null
  const value = plot.posToVal(top, 'y')
  let sum = 0
  for (const { id, values } of series) {
    sum += values[index] ?? 0
    if (value <= sum) return id
  }
  return null
}
