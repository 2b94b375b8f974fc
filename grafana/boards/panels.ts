/**
 * Panels of the boards, made with Grafana's own builders: one function per kind of panel, with the settings
 * that panels of a kind share. A panel has a title, a description, a unit and at least one query.
 */
import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  SortOrder,
  StackingMode,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
  GraphThresholdsStyleConfigBuilder,
  StackingConfigBuilder,
  ReduceDataOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common'
import {
  DashboardLinkBuilder,
  DashboardLinkType,
  FieldColorModeId,
  MappingType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as StatesBuilder } from '@grafana/grafana-foundation-sdk/statetimeline'
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table'
import { PanelBuilder as TextBuilder, TextMode } from '@grafana/grafana-foundation-sdk/text'
import { PanelBuilder as SeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'
import { boardUrl, type Next } from './links.js'
import { orNone, rate, sum } from './promql.js'
import { runbookUrl } from './runbook.js'

/** The data source: the board's variable. */
export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const

/** A query of a panel. */
export interface Query {
  readonly expr: string
  /** Text, or `{{label}}`. */
  readonly legend: string
  /** Shows exemplars of its histogram, which lead to traces; see `withExemplars`. */
  readonly hasExemplars?: boolean
}

/** The options of every panel. */
export interface PanelOptions {
  readonly title: string
  /** The meaning of the values and of their colours, in one or two sentences. */
  readonly description: string
  /** One of Grafana's unit ids. */
  readonly unit: string
  readonly queries: readonly Query[]
  /** From this value on the panel is yellow or red; `isFloor`: below it. Of `stat` and `series`. */
  readonly thresholds?: Thresholds
  /** In columns; a board has 24. */
  readonly width?: number
  /** The board that explains a value of this panel. */
  readonly next?: Next
  /** Headings of the runbook that fit. */
  readonly runbook?: readonly string[]
  readonly min?: number
  readonly max?: number
  readonly decimals?: number
}

/** Values from which a panel warns. Without `warn` the panel has no yellow. */
export interface Thresholds {
  readonly warn?: number
  readonly bad: number
  /** Low values are bad, not high ones. */
  readonly isFloor?: boolean
}

const GREEN = 'green'
const YELLOW = 'yellow'
const RED = 'red'

/** A query with its legend. */
export function query(expr: string, legend: string): Query {
  return { expr, legend }
}

/** The same query with the exemplars of its histogram: points that link to the trace of one request. */
export function withExemplars(of: Query): Query {
  return { ...of, hasExemplars: true }
}

/** The rate of a counter for each value of a label; 0 as `none` without any series. */
export function rateBy(metric: string, selector: string, label: string): Query {
  return query(orNone(sum(rate(metric, selector), label), label), `{{${label}}}`)
}

/** Throws if a colour would never be shown. */
function thresholdsOf({ warn, bad, isFloor = false }: Thresholds): ThresholdsConfigBuilder {
  if (warn !== undefined && (isFloor ? warn <= bad : warn >= bad)) {
    throw new RangeError(`Nothing is yellow between the thresholds ${warn} and ${bad}`)
  }
  const yellow = (value: number) => (warn === undefined ? [] : [{ value, color: YELLOW }])
  const steps = isFloor
    ? [{ value: null, color: RED }, ...yellow(bad), { value: warn ?? bad, color: GREEN }]
    : [{ value: null, color: GREEN }, ...yellow(warn ?? bad), { value: bad, color: RED }]
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps)
}

/** Without thresholds of its own a panel has one colour. */
function noThresholds(): ThresholdsConfigBuilder {
  const steps = [{ value: null, color: GREEN }]
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps)
}

function linksOf({ next, runbook = [] }: PanelOptions): DashboardLinkBuilder[] {
  const link = (title: string, url: string): DashboardLinkBuilder =>
    new DashboardLinkBuilder(title).type(DashboardLinkType.Link).url(url)
  return [
    ...(next === undefined ? [] : [link(`Board: ${next.board}`, boardUrl(next))]),
    ...runbook.map((heading) => link(`Runbook: ${heading}`, runbookUrl(heading))),
  ]
}

type AnyBuilder = StatBuilder | SeriesBuilder | StatesBuilder | TableBuilder

/** Sets the options that every kind of panel has. */
function withCommonOptions<Builder extends AnyBuilder>(builder: Builder, options: PanelOptions): Builder {
  const { title, description, unit, queries, thresholds, min, max, decimals } = options
  const links = linksOf(options)
  builder
    .title(title)
    .description(description)
    .datasource(DATASOURCE)
    .unit(unit)
    .thresholds(thresholds === undefined ? noThresholds() : thresholdsOf(thresholds))
    .links(links)
    .dataLinks(links)
  if (min !== undefined) builder.min(min)
  if (max !== undefined) builder.max(max)
  if (decimals !== undefined) builder.decimals(decimals)
  for (const [index, each] of queries.entries()) {
    const target = queryOf(each, index).range()
    builder.withTarget(each.hasExemplars === true ? target.exemplar(true) : target)
  }
  builder.noValue('–')
  return builder
}

function queryOf({ expr, legend }: Query, index: number): DataqueryBuilder {
  return new DataqueryBuilder()
    .refId(String.fromCharCode('A'.charCodeAt(0) + index))
    .datasource(DATASOURCE)
    .expr(expr)
    .legendFormat(legend)
}

/** One large value with a small graph behind it. */
export function stat(options: PanelOptions): StatBuilder {
  return withCommonOptions(new StatBuilder(), options)
    .span(options.width ?? 4)
    .height(4)
    .colorMode(options.thresholds === undefined ? BigValueColorMode.None : BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.Area)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
}

/** The height of panels over time: the legend has a line for each series. */
const TALL = 9

/** Colours of the classes of HTTP statuses, which end the names of the series. */
const STATUS_CLASSES = [
  ['1|2', GREEN],
  ['3', 'blue'],
  ['4', YELLOW],
  ['5', RED],
] as const

interface SeriesOptions extends PanelOptions {
  /** Areas on top of each other. */
  readonly isStacked?: boolean
  /** `status`: a series is green, blue, yellow or red by the class of its HTTP status; 499 is grey. */
  readonly colours?: 'status'
}

/** Lines over time, from 0; the legend has the last, the highest and the mean value of each. */
export function series(options: SeriesOptions): SeriesBuilder {
  const { width = 8, isStacked = false, thresholds, colours } = options
  const builder = withCommonOptions(new SeriesBuilder(), { min: 0, ...options })
    .span(width)
    .height(TALL)
    .lineWidth(1)
    .fillOpacity(isStacked ? 30 : 5)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .calcs(['lastNotNull', 'max', 'mean'])
        .showLegend(true),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
  if (colours === 'status') colourByStatus(builder)
  if (isStacked) builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'))
  if (thresholds !== undefined) {
    builder.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed))
  }
  return builder
}

/** Shades of the colour of a class, so that 429 and 404 differ. The last matching override wins. */
function colourByStatus(builder: SeriesBuilder): void {
  const shades = (pattern: string, fixedColor: string): void => {
    const value = { mode: FieldColorModeId.Shades, fixedColor }
    builder.overrideByRegexp(`/(^| )${pattern}$/`, [{ id: 'color', value }])
  }
  for (const [digits, colour] of STATUS_CLASSES) shades(`(${digits})\\d\\d`, colour)
  shades('499', 'gray')
}

/** Words and colours for the values 0, 1, 2, …, the last the worst. */
function wordsOf(states: readonly string[]): ValueMapping[] {
  const colours = [GREEN, YELLOW, 'orange', RED]
  const named = states.map((text, value) => {
    const isLast = value === states.length - 1
    return [String(value), { text, color: isLast ? RED : (colours[value] ?? RED), index: value }]
  })
  const options = Object.fromEntries(named) as Record<string, { text: string; color: string }>
  return [{ type: MappingType.ValueToText, options }]
}

/**
 * A bar per series that changes its colour with its state. `states` names the values 0, 1, 2, …, the last the
 * worst.
 */
export function states(options: PanelOptions & { readonly states: readonly string[] }): StatesBuilder {
  return withCommonOptions(new StatesBuilder(), options)
    .span(options.width ?? 8)
    .height(TALL)
    .fillOpacity(70)
    .lineWidth(0)
    .mappings(wordsOf(options.states))
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.Hidden).showLegend(false))
}

/** A column of a comparison: an instant query by the label of the row. */
export interface Column extends Query {
  readonly unit: string
  readonly thresholds?: Thresholds
  /** Words for the values 0, 1, 2, …, the last the worst. */
  readonly states?: readonly string[]
}

/** A table with one row per value of `label` and one column per query. */
export function comparison(
  options: Omit<PanelOptions, 'queries' | 'unit' | 'thresholds'> & {
    readonly label: string
    readonly columns: readonly Column[]
  },
): TableBuilder {
  const { label, columns, width = 24 } = options
  const builder = withCommonOptions(new TableBuilder(), { ...options, unit: 'short', queries: [] })
    .span(width)
    .height(8)
  const shown: Record<string, string> = { [label]: capitalised(label) }
  const coloured = { id: 'custom.cellOptions', value: { type: 'color-text' } }
  for (const [index, each] of columns.entries()) {
    const { legend, unit, thresholds, states } = each
    builder.withTarget(queryOf(each, index).instant().format(PromQueryFormat.Table))
    const column = `Value #${String.fromCharCode('A'.charCodeAt(0) + index)}`
    shown[column] = legend
    builder.overrideByName(legend, [
      { id: 'unit', value: unit },
      ...(states === undefined ? [] : [{ id: 'mappings', value: wordsOf(states) }, coloured]),
      ...(thresholds === undefined
        ? []
        : [{ id: 'thresholds', value: thresholdsOf(thresholds).build() }, coloured]),
    ])
  }
  return builder.withTransformation({ id: 'merge', options: {} }).withTransformation({
    id: 'organize',
    options: { excludeByName: { Time: true }, renameByName: shown },
  })
}

/** A text in Markdown, for what no query can show. Variables are replaced. */
export function statement(options: {
  readonly title: string
  readonly description: string
  readonly text: string
}): TextBuilder {
  return new TextBuilder()
    .title(options.title)
    .description(options.description)
    .mode(TextMode.Markdown)
    .content(options.text)
    .span(24)
    .height(4)
}

/** A name as a label of the page. */
export function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
