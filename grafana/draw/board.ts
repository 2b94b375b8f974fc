/** A board as one SVG: its panels in Grafana's grid, with data from Prometheus. */
import { isObject } from '../../src/base/json.js'
import { drawPanel, type Drawn } from './panel.js'
import type { Line, PrometheusClient, Range } from './query.js'
import { element, text } from './svg.js'

const COLUMN_PX = 50
const ROW_PX = 30
const HEAD_PX = 46

/** The members of a board's JSON that are drawn. */
export interface BoardJson {
  readonly title: string
  readonly description?: string
  readonly panels: readonly PanelJson[]
}

interface PanelJson {
  /** The panels of a collapsed row, which is drawn open. */
  readonly panels?: readonly PanelJson[]
  readonly title: string
  readonly type: string
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string
      readonly thresholds?: { readonly steps: Drawn['steps'] }
      readonly mappings?: readonly { readonly options: Drawn['names'] }[]
      readonly custom?: { readonly stacking?: { readonly mode: string } }
    }
    readonly overrides?: readonly {
      readonly matcher: { readonly options?: unknown }
      readonly properties: readonly { readonly id: string; readonly value?: unknown }[]
    }[]
  }
}

/** Whether a value has the form of a board. Panels are not checked, since Grafana's builder made them. */
export function isBoard(value: unknown): value is BoardJson {
  return isObject(value) && typeof value.title === 'string' && Array.isArray(value.panels)
}

/** Draws a board. `rateInterval` replaces `$__rate_interval`; at least four scrapes. */
export async function drawBoard(
  board: BoardJson,
  prometheus: PrometheusClient,
  range: Range,
  rateInterval: string,
): Promise<string> {
  const parts: string[] = []
  let height = 0
  for (const panel of board.panels.flatMap((row) => [row, ...(row.panels ?? [])])) {
    const { x, y, w, h } = panel.gridPos
    const top = HEAD_PX + y * ROW_PX
    const box = { x: x * COLUMN_PX, y: top, width: w * COLUMN_PX, height: h * ROW_PX }
    height = Math.max(height, box.y + box.height)
    if (panel.type === 'row') {
      const style = { x: 8, y: top + 20, 'font-size': 14, 'font-weight': 600, fill: '#374151' }
      parts.push(text(panel.title, style))
      continue
    }
    parts.push(drawPanel(await filled(panel, prometheus, range, rateInterval), box, range))
  }
  const width = 24 * COLUMN_PX
  const title = text(board.title, {
    x: 8,
    y: 30,
    'font-size': 20,
    'font-weight': 600,
    fill: '#111827',
  })
  const ground = element('rect', { x: 0, y: 0, width, height: height + 8, fill: '#f3f4f6' })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 8}" font-family="Inter, Helvetica, Arial, sans-serif">
${[ground, title, ...parts].join('\n')}
</svg>
`
}

async function filled(
  { title, type, targets = [], fieldConfig }: PanelJson,
  prometheus: PrometheusClient,
  range: Range,
  rateInterval: string,
): Promise<Drawn> {
  const { unit = 'short', thresholds, mappings = [], custom } = fieldConfig?.defaults ?? {}
  const series: Drawn['series'][number][] = []
  for (const [column, { expr, legendFormat }] of targets.entries()) {
    const expression = interpolated(expr, rateInterval, range)
    const lines =
      type === 'table'
        ? await prometheus.instant(expression, range.to)
        : await prometheus.range(expression, range)
    for (const line of lines) series.push({ name: nameOf(line, legendFormat, type), line, column })
  }
  const columnOf = (name: string): Drawn['columns'][number] => {
    const found = fieldConfig?.overrides?.find(({ matcher }) => matcher.options === name)
    const valueOf = (id: string): unknown => found?.properties.find((one) => one.id === id)?.value
    const columnUnit = valueOf('unit')
    const [words] = (valueOf('mappings') ?? []) as readonly { readonly options: Drawn['names'] }[]
    return {
      title: name,
      unit: typeof columnUnit === 'string' ? columnUnit : 'short',
      names: words?.options ?? {},
    }
  }
  return {
    title,
    type,
    unit,
    isStacked: custom?.stacking?.mode === 'normal',
    steps: thresholds?.steps ?? [],
    names: mappings[0]?.options ?? {},
    columns: targets.map(({ legendFormat }) => columnOf(legendFormat)),
    series,
  }
}

function nameOf({ labels }: Line, legend: string, type: string): string {
  if (type === 'table') return labels['upstream'] ?? ''
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '')
}

/** The expression with all values of every variable. */
function interpolated(expression: string, rateInterval: string, { from, to }: Range): string {
  return expression
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('$__range', `${Math.round(to - from)}s`)
    .replaceAll(/\$(?:instance|route|upstream|model)\b/g, '.*')
}
