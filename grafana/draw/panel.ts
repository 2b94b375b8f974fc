/** One panel as SVG: a large value, lines or areas over time, bars of states, or a table. */
import { formatValue } from './format.js'
import type { Line, Range } from './query.js'
import { cut, element, pathOf, text, type Box } from './svg.js'

/** The members of a panel that are drawn. */
export interface Drawn {
  readonly title: string
  readonly type: string
  readonly unit: string
  readonly isStacked: boolean
  readonly steps: readonly { readonly value: number | null; readonly color: string }[]
  /** Names of the values in a panel of states. */
  readonly names: Readonly<Record<string, { readonly text: string; readonly color: string }>>
  /** The heading, the unit and the names of the values of each column of a table. */
  readonly columns: readonly {
    readonly title: string
    readonly unit: string
    readonly names: Drawn['names']
  }[]
  readonly series: readonly {
    readonly name: string
    readonly line: Line
    readonly column: number
  }[]
}

const INK = '#1f2937'
const FAINT = '#6b7280'
const GRID = '#e5e7eb'
const PALETTE = [
  '#2563eb',
  '#d97706',
  '#059669',
  '#dc2626',
  '#7c3aed',
  '#0891b2',
  '#be185d',
  '#65a30d',
  '#475569',
  '#b45309',
]
const NAMED: Readonly<Record<string, string>> = {
  green: '#059669',
  yellow: '#d97706',
  orange: '#ea580c',
  red: '#dc2626',
}
const LEGEND_PX = 15

function colourOf(name: string): string {
  return NAMED[name] ?? name
}

function colour(index: number): string {
  return PALETTE[index % PALETTE.length] ?? INK
}

/** The colour of a value by the thresholds. */
function stepColour(value: number, steps: Drawn['steps']): string {
  let found = 'green'
  for (const step of steps) if (step.value === null || value >= step.value) found = step.color
  return steps.length < 2 ? INK : colourOf(found)
}

/** Draws the panel within its box. */
export function drawPanel(panel: Drawn, box: Box, range: Range): string {
  const { x, y, width, height } = box
  const frame = element('rect', {
    x: x + 3,
    y: y + 3,
    width: width - 6,
    height: height - 6,
    rx: 4,
    fill: '#ffffff',
    stroke: GRID,
  })
  const title = text(cut(panel.title, width - 30), {
    x: x + 13,
    y: y + 22,
    'font-size': 12,
    'font-weight': 600,
    fill: INK,
  })
  const inner = { x: x + 13, y: y + 32, width: width - 26, height: height - 44 }
  return `${frame}${title}${contents(panel, inner, range)}`
}

function contents(panel: Drawn, box: Box, range: Range): string {
  switch (panel.type) {
    case 'stat':
      return drawStat(panel, box)
    case 'table':
      return drawTable(panel, box)
    case 'text':
      return ''
    case 'state-timeline':
      return drawStates(panel, box, range)
    default:
      return drawLines(panel, box, range)
  }
}

function drawStat({ series, unit, steps }: Drawn, { x, y, width, height }: Box): string {
  const points = series[0]?.line.points ?? []
  const value = points.at(-1)?.[1] ?? 0
  const fill = stepColour(value, steps)
  const highest = Math.max(...points.map(([, each]) => each), 1e-12)
  const spark = points.map(([, each], index) => {
    const at = x + (width * index) / Math.max(1, points.length - 1)
    return [at, y + height - (Math.max(0, each) / highest) * height * 0.35] as const
  })
  return `${element('path', { d: pathOf(spark), fill: 'none', stroke: fill, 'stroke-opacity': 0.35 })}${text(
    formatValue(value, unit),
    { x: x + width / 2, y: y + height / 2 + 6, 'font-size': 24, 'text-anchor': 'middle', fill },
  )}`
}

function drawTable({ series, columns }: Drawn, { x, y, width }: Box): string {
  const rows = [...new Set(series.map(({ name }) => name))].sort()
  const columnPx = width / (columns.length + 1)
  const cell = (content: string, column: number, row: number, fill = INK): string =>
    text(cut(content, columnPx), {
      x: x + column * columnPx,
      y: y + 16 + row * 22,
      'font-size': 12,
      fill,
    })
  const head = ['Upstream', ...columns.map(({ title }) => title)]
  const lines = rows.flatMap((name, row) => [
    cell(name, 0, row + 1),
    ...columns.map(({ unit, names }, column) => {
      const found = series.find((each) => each.name === name && each.column === column)
      const value = found?.line.points.at(-1)?.[1]
      if (value === undefined) return cell('–', column + 1, row + 1)
      return cell(names[String(value)]?.text ?? formatValue(value, unit), column + 1, row + 1)
    }),
  ])
  return [...head.map((title, column) => cell(title, column, 0, FAINT)), ...lines].join('')
}

function drawStates({ series, names }: Drawn, { x, y, width, height }: Box, range: Range): string {
  const rowPx = Math.min(30, height / Math.max(1, series.length))
  const labelPx = 80
  const scale = (width - labelPx) / Math.max(1, range.to - range.from)
  return series
    .map(({ name, line }, row) => {
      const top = y + row * rowPx
      const bars = line.points.map(([time, value]) =>
        element('rect', {
          x: x + labelPx + (time - range.from) * scale,
          y: top + 3,
          width: range.step * scale + 0.5,
          height: rowPx - 6,
          fill: colourOf(names[String(value)]?.color ?? 'green'),
        }),
      )
      const label = text(cut(name, labelPx), {
        x,
        y: top + rowPx / 2 + 4,
        'font-size': 11,
        fill: INK,
      })
      return `${label}${bars.join('')}`
    })
    .join('')
}

/** Stacks the series: each point gets the sum of the points below it, at the same index. */
function stacked(series: Drawn['series']): { points: Line['points']; floor: Line['points'] }[] {
  const sums = new Map<number, number>()
  return series.map(({ line }) => {
    const floor = line.points.map(([time]) => [time, sums.get(time) ?? 0] as const)
    const points = line.points.map(([time, value]) => {
      const sum = (sums.get(time) ?? 0) + value
      sums.set(time, sum)
      return [time, sum] as const
    })
    return { points, floor }
  })
}

/** Parts of a series without a missing sample: a gap is not drawn over. */
function segments(points: Line['points'], step: number): { begin: number; end: number }[] {
  const begins = points.flatMap(([time], index) => {
    const before = points[index - 1]?.[0]
    return before === undefined || time - before > 1.5 * step ? [index] : []
  })
  return begins.map((begin, index) => ({ begin, end: begins[index + 1] ?? points.length }))
}

/** Steps of 1, 2 or 5 times a power of ten. */
function ticksUpTo(highest: number): number[] {
  const rough = highest / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough
  return Array.from({ length: Math.ceil(highest / step - 1e-9) + 1 }, (_, index) => index * step)
}

function drawLines(panel: Drawn, box: Box, range: Range): string {
  const shapes = panel.isStacked
    ? stacked(panel.series)
    : panel.series.map(({ line }) => ({ points: line.points, floor: [] as Line['points'] }))
  const values = shapes.flatMap(({ points }) => points.map(([, value]) => value))
  const most = Math.max(0, ...values)
  const ticks = ticksUpTo(most === 0 ? 1 : most)
  const highest = ticks.at(-1) ?? 1
  const legendRows = Math.min(2, Math.ceil(panel.series.length / 3))
  const plot = {
    x: box.x + 74,
    y: box.y + 4,
    width: box.width - 78,
    height: box.height - 22 - legendRows * LEGEND_PX,
  }
  const place = ([time, value]: readonly [number, number]) =>
    [
      plot.x + (plot.width * (time - range.from)) / Math.max(1, range.to - range.from),
      plot.y + plot.height - (plot.height * Math.max(0, value)) / highest,
    ] as const
  const drawn = shapes.map(({ points, floor }, index) => {
    const stroke = colour(index)
    return segments(points, range.step).map(({ begin, end }) => {
      const part = points.slice(begin, end).map(place)
      const area = [...part, ...floor.slice(begin, end).toReversed().map(place)]
      const fill = panel.isStacked
        ? element('path', { d: `${pathOf(area)}Z`, fill: stroke, 'fill-opacity': 0.25 })
        : ''
      const line = { d: pathOf(part), fill: 'none', stroke, 'stroke-width': 1.2 }
      return `${fill}${element('path', line)}`
    })
  })
  return [
    ...ticks.map((tick) => drawTick(tick, panel.unit, plot, place([range.from, tick])[1])),
    ...drawn.flat(),
    ...panel.steps.map(({ value, color }) =>
      value === null || value > highest
        ? ''
        : element('line', {
            x1: plot.x,
            x2: plot.x + plot.width,
            y1: place([range.from, value])[1],
            y2: place([range.from, value])[1],
            stroke: colourOf(color),
            'stroke-dasharray': '6 4',
          }),
    ),
    drawLegend(panel, box, legendRows),
  ].join('')
}

function drawTick(tick: number, unit: string, plot: Box, y: number): string {
  const line = element('line', { x1: plot.x, x2: plot.x + plot.width, y1: y, y2: y, stroke: GRID })
  const label = text(formatValue(tick, unit), {
    x: plot.x - 5,
    y: y + 3.5,
    'font-size': 10,
    'text-anchor': 'end',
    fill: FAINT,
  })
  return `${line}${label}`
}

function drawLegend({ series }: Drawn, box: Box, rows: number): string {
  const columnPx = box.width / 3
  const shown = series.slice(0, rows * 3)
  return shown
    .map(({ name }, index) => {
      const x = box.x + (index % 3) * columnPx
      const y = box.y + box.height - 2 - (rows - 1 - Math.floor(index / 3)) * LEGEND_PX
      const isLast = index === shown.length - 1 && series.length > shown.length
      const label = isLast ? `and ${series.length - shown.length + 1} more` : name
      return `${element('rect', { x, y: y - 8, width: 9, height: 3, fill: isLast ? GRID : colour(index) })}${text(
        cut(label, columnPx - 16),
        { x: x + 13, y: y - 3, 'font-size': 10.5, fill: FAINT },
      )}`
    })
    .join('')
}
