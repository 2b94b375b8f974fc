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
  MappingType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as StatesBuilder } from '@grafana/grafana-foundation-sdk/statetimeline'
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table'
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

/** Values from which a panel warns. */
export interface Thresholds {
  readonly warn: number
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

/** The rate of a counter for each value of a label; 0 as `none` without any series. */
export function rateBy(metric: string, selector: string, label: string): Query {
  return query(orNone(sum(rate(metric, selector), label), label), `{{${label}}}`)
}

function thresholdsOf({ warn, bad, isFloor = false }: Thresholds): ThresholdsConfigBuilder {
  const steps = isFloor
    ? [
        { value: null, color: RED },
        { value: bad, color: YELLOW },
        { value: warn, color: GREEN },
      ]
    : [
        { value: null, color: GREEN },
        { value: warn, color: YELLOW },
        { value: bad, color: RED },
      ]
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
function withCommonOptions<Builder extends AnyBuilder>(
  builder: Builder,
  options: PanelOptions,
): Builder {
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
  for (const [index, { expr, legend }] of queries.entries()) {
    builder.withTarget(queryOf(expr, legend, index).range())
  }
  return builder
}

function queryOf(expr: string, legend: string, index: number): DataqueryBuilder {
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

/** Lines over time. `isStacked`: areas on top of each other. */
export function series(options: PanelOptions & { readonly isStacked?: boolean }): SeriesBuilder {
  const { width = 8, isStacked = false, thresholds } = options
  const builder = withCommonOptions(new SeriesBuilder(), options)
    .span(width)
    .height(8)
    .lineWidth(1)
    .fillOpacity(isStacked ? 30 : 5)
    .axisSoftMin(0)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
    .tooltip(
      new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending),
    )
  if (isStacked) builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'))
  if (thresholds !== undefined) {
    builder.thresholdsStyle(
      new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed),
    )
  }
  return builder
}

/**
 * A bar per series that changes its colour with its state. `states` names the values 0, 1, 2, …, the last the
 * worst.
 */
export function states(
  options: PanelOptions & { readonly states: readonly string[] },
): StatesBuilder {
  const colours = [GREEN, YELLOW, 'orange', RED]
  const named = options.states.map((text, value) => {
    const isLast = value === options.states.length - 1
    return [String(value), { text, color: isLast ? RED : (colours[value] ?? RED), index: value }]
  })
  const mappings: ValueMapping[] = [
    {
      type: MappingType.ValueToText,
      options: Object.fromEntries(named) as Record<string, { text: string; color: string }>,
    },
  ]
  return withCommonOptions(new StatesBuilder(), options)
    .span(options.width ?? 8)
    .height(8)
    .fillOpacity(70)
    .lineWidth(0)
    .mappings(mappings)
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.Hidden).showLegend(false))
}

/** A column of a comparison: an instant query by the label of the row. */
export interface Column extends Query {
  readonly unit: string
  readonly thresholds?: Thresholds
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
  for (const [index, { expr, legend, unit, thresholds }] of columns.entries()) {
    const target = queryOf(expr, legend, index).instant().format(PromQueryFormat.Table)
    builder.withTarget(target)
    const column = `Value #${String.fromCharCode('A'.charCodeAt(0) + index)}`
    shown[column] = legend
    builder.overrideByName(legend, [
      { id: 'unit', value: unit },
      ...(thresholds === undefined
        ? []
        : [
            { id: 'thresholds', value: thresholdsOf(thresholds).build() },
            { id: 'custom.cellOptions', value: { type: 'color-text' } },
          ]),
    ])
  }
  return builder.withTransformation({ id: 'merge', options: {} }).withTransformation({
    id: 'organize',
    options: { excludeByName: { Time: true }, renameByName: shown },
  })
}

/** A name as a label of the page. */
export function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
