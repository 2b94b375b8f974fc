/** Draws a chart with uPlot. It is loaded with the first chart. */
import { useEffect, useRef, useState, type MouseEvent } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { bucketName } from '../../format/time.js'
import { useTheme } from '../../shell/theme.js'
import { Swatch, type ChartContent, type Pick } from './chart.js'
import { dataOf, indexAt, optionsOf, seriesAt, type Hover } from './chart-plot.js'

interface CanvasProps extends ChartContent {
  readonly title: string
  readonly log: boolean
  readonly onPick: Pick | undefined
}

/** The drawing of a chart. */
export function ChartCanvas({ title, log, onPick, ...content }: CanvasProps) {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const latest = useRef(content)
  latest.current = content
  const [hover, setHover] = useState<Hover | null>(null)
  const theme = useTheme()
  const { buckets, series, kind } = content
  // Changes of these values need a new drawing; other changes only update the data.
  const shape = `${theme} ${log} ${kind} ${buckets.bucketMs} ${series.map(({ id }) => id).join(' ')}`
  useEffect(() => {
    const element = container.current
    if (element === null) return undefined
    const made = new UPlot(
      optionsOf(element, { content: () => latest.current, log, hover: setHover }),
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
  }, [shape, log])
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [buckets, series])
  const pick = (event: MouseEvent): void => {
    const made = plot.current
    if (made === null) return
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
        className={onPick === undefined ? 'canvas-place' : 'canvas-place picks'}
        role="img"
        aria-label={`${title}: ${summary(content)}. The same numbers are in its table.`}
      />
      {hover === null ? null : <Readout hover={hover} {...content} />}
    </div>
  )
}

function summary({ series, buckets, format }: ChartContent): string {
  const { startsMs, bucketMs } = buckets
  const [first, last] = [startsMs[0], startsMs.at(-1)]
  if (first === undefined || last === undefined) return 'no data'
  const peaks = series.map(({ label, values }) => {
    const peak = Math.max(0, ...values.map((value) => value ?? 0))
    return `${label} up to ${format(peak)}`
  })
  return `${bucketName(first, bucketMs)} to ${bucketName(last, bucketMs)}; ${peaks.join(', ')}`
}

function Readout({ hover, series, buckets, format, kind }: ChartContent & { hover: Hover }) {
  const start = buckets.startsMs[hover.index]
  if (start === undefined) return null
  const values = series.map((one) => ({ ...one, value: one.values[hover.index] ?? null }))
  const shown = values.filter(({ value }) => value !== null && (value > 0 || values.length === 1))
  const sum = values.reduce((total, { value }) => total + (value ?? 0), 0)
  const side = hover.right ? 'readout right' : 'readout'
  const partial = buckets.partial && hover.index === buckets.startsMs.length - 1
  return (
    <div className={side} style={{ transform: `translateX(${hover.left}px)` }} aria-hidden="true">
      <p className="readout-time">
        {bucketName(start, buckets.bucketMs)}
        {partial ? ' · so far' : ''}
      </p>
      {shown.map(({ id, label, colour, value }) => (
        <p key={id} className="readout-line">
          <Swatch colour={colour} />
          <span>{label}</span>
          <b>{format(value ?? 0)}</b>
        </p>
      ))}
      {shown.length === 0 ? <p className="soft">none</p> : null}
      {kind !== 'lines' && shown.length > 1 ? (
        <p className="readout-line readout-sum">
          <span>Total</span>
          <b>{format(sum)}</b>
        </p>
      ) : null}
    </div>
  )
}
