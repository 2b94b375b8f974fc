/**
 * A chart, its table of the same values, and a CSV file of them. The drawing code is loaded with the first
 * chart.
 */
import { useState, type ReactNode } from 'react'
import type { UsageGroup, UsagePoint, UsageReply } from '../../../control/dashboard/schema/schema.js'
import { csvOf, saveFile } from '../format/csv.js'
import { sumsOf, type Buckets } from '../format/time-buckets.js'
import { bucketName } from '../format/time.js'
import { Link } from '../routing.js'
import { IconButton } from './button.js'
import {
  Swatch,
  type ChartContent,
  type ChartPick,
  type ChartZoom,
  type Colour,
  type Series,
} from './chart-series.js'
import { later } from './later.js'
import { BlockSkeleton } from './loading-states.js'

const Canvas = later(
  async () => (await import('./chart-canvas.js')).ChartCanvas,
  () => <BlockSkeleton />,
)

interface ChartProps extends ChartContent {
  readonly title: string
  /** The unit and the period: `per hour, UTC days`. */
  readonly note: string
  /** A total beside the title. */
  readonly figure?: ReactNode
  /** Offers a logarithmic scale. */
  readonly canLog?: boolean
  /** Called with the clicked bar and its series; the series is null outside of the stack. */
  readonly onPick?: ChartPick
  /** Called when a part of the chart is dragged over. */
  readonly onZoom?: ChartZoom
  /** The link of a legend entry. */
  readonly seriesLink?: (id: string) => string
}

/** A chart with its title and controls. */
export function Chart({ title, note, figure, canLog = false, ...rest }: ChartProps) {
  const { onPick, onZoom, seriesLink, ...content } = rest
  const [asTable, setAsTable] = useState(false)
  const [log, setLog] = useState(false)
  const several = content.series.length > 1
  return (
    <figure className="chart panel">
      <figcaption className="chart-head row">
        <h2>{title}</h2>
        {figure === undefined ? null : <span>{figure}</span>}
        <span className="note cut">{note}</span>
        <span className="chart-tools row line end">
          {canLog ? (
            <button
              type="button"
              className="button quiet small"
              aria-pressed={log}
              onClick={() => setLog(!log)}
            >
              log
            </button>
          ) : null}
          <IconButton
            icon={asTable ? 'chart' : 'table'}
            label={asTable ? `${title} as a chart` : `${title} as a table`}
            onClick={() => setAsTable(!asTable)}
          />
          <IconButton
            icon="file"
            label={`Save ${title} as CSV`}
            onClick={() => saveFile(`${title.toLowerCase().replaceAll(' ', '-')}.csv`, csv(content))}
          />
        </span>
      </figcaption>
      {asTable ? (
        <ChartTable title={title} {...content} />
      ) : (
        <Canvas title={title} log={log} onPick={onPick} onZoom={onZoom} {...content} />
      )}
      {several ? <Legend series={content.series} link={seriesLink} /> : null}
    </figure>
  )
}

interface LegendProps {
  readonly series: readonly Series[]
  readonly link: ((id: string) => string) | undefined
}

function Legend({ series, link }: LegendProps) {
  return (
    <ul className="legend row small">
      {series.map(({ id, label, colour }) => (
        <li key={id} className="row line soft">
          <Swatch colour={colour} />
          {link === undefined ? label : <Link to={link(id)}>{label}</Link>}
        </li>
      ))}
    </ul>
  )
}

function csv({ buckets, series }: ChartContent): string {
  return csvOf([
    ['from', ...series.map(({ label }) => label)],
    ...buckets.startsMs.map((start, index) => [
      new Date(start).toISOString(),
      ...series.map(({ values }) => values[index] ?? null),
    ]),
  ])
}

function ChartTable({ title, buckets, series, format }: ChartContent & { readonly title: string }) {
  const { startsMs, bucketMs, partial } = buckets
  const newestFirst = startsMs.map((start, index) => ({ start, index })).reverse()
  return (
    <div className="chart-table" tabIndex={0} role="region" aria-label={`${title}, table`}>
      <table className="table">
        <caption className="unseen">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ id, label }) => (
              <th key={id} scope="col" className="numeric">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {newestFirst.map(({ start, index }) => (
            <tr key={start}>
              <th scope="row">
                {bucketName(start, bucketMs)}
                {partial && index === startsMs.length - 1 ? ' (so far)' : ''}
              </th>
              {series.map(({ id, values }) => (
                <td key={id} className="numeric">
                  <Value value={values[index] ?? null} format={format} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface ValueProps {
  readonly value: number | null
  readonly format: (value: number) => string
}

function Value({ value, format }: ValueProps) {
  return value === null ? <span className="soft">–</span> : <>{format(value)}</>
}

/** The groups beyond the largest, and requests without the property. */
const REST = '(rest)'
const RESTS = [REST, '(none)']

/** The name of the series of a group; a group may be called `other`, as the rest is. */
export function seriesId({ id, isRest }: Pick<UsageGroup, 'id' | 'isRest'>): string {
  return isRest === true ? REST : id
}

/** The series of the groups of usage: a sum for each bucket. */
export function groupSeries(
  { groups }: Pick<UsageReply, 'groups'>,
  buckets: Buckets,
  pick: (point: UsagePoint) => number,
): Series[] {
  const colourOf = coloursOf(groups.map(seriesId))
  return groups.map((group) => {
    const id = seriesId(group)
    const label = group.isRest === true ? 'all others' : group.label
    return { id, label, colour: colourOf(id), values: sumsOf(buckets, group.points, pick) }
  })
}

const COLOURS = 8

/** The colours that the view has given, by name; another page gives them anew. */
let given = { path: '', colours: new Map<string, number>() }

/**
 * The colours of the series of a chart, by their rank when the view opened: the first name has the first
 * colour. A name keeps its colour in all charts while the view is open.
 */
export function coloursOf(ids: readonly string[]): (id: string) => Colour {
  const { pathname: path } = window.location
  if (given.path !== path) given = { path, colours: new Map() }
  const { colours } = given
  for (const id of ids) {
    if (!RESTS.includes(id) && !colours.has(id)) colours.set(id, colours.size % COLOURS)
  }
  return (id) => {
    const colour = colours.get(id)
    return colour === undefined ? '--others' : `--series-${colour + 1}`
  }
}
