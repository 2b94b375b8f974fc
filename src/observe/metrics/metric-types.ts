/**
 * Types of metric definitions and of collected samples.
 */
import { AggregatorRegistry, Registry, type OpenMetricsContentType } from 'prom-client'

/** The definition of a metric; label values are given in the order of `labels`. */
export interface Definition {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  /** Maximum number of lines in the text format, without those of `perName`. */
  readonly maxLines: number
  /** Further lines for each name that the configuration has or had since the start, by its kind. */
  readonly perName?: Readonly<Partial<Record<NameKind, number>>>
  /** Upper bounds, ascending, at most 12; histograms only. */
  readonly buckets?: readonly number[]
  /** How values of several processes are combined; default `sum`. */
  readonly aggregator?: 'sum' | 'max' | 'min'
  /** The labels that become `other` when the metric is full; default all. */
  readonly fold?: readonly string[]
}

/** A name of the configuration that is a label value; `target`: a route's name with an upstream's. */
export type NameKind = 'upstream' | 'target' | 'guardrail' | 'plugin'

/** One counted value and the trace of its request; only the OpenMetrics format has them. */
export interface Exemplar {
  readonly labelSet: { readonly trace_id: string }
  readonly value: number
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** One line of the text format. */
export interface Sample {
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
  readonly metricName?: string
  /** Labels that prom-client may format once and cache. */
  readonly sharedLabels?: Readonly<Record<string, string>>
  /** prom-client's own histograms have null. */
  readonly exemplar?: Exemplar | null
}

/** A metric with its samples, as a worker sends it to the primary. */
export interface Collected {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly aggregator: string
  readonly values: readonly Sample[]
}

/** Combines the metrics of several processes, each by its own aggregator. */
export function aggregate(processes: readonly Collected[][]): Promise<Collected[]> {
  return collectFrom(AggregatorRegistry.aggregate([...processes]))
}

/** Prometheus's text format, or OpenMetrics, which has exemplars. */
export type TextFormat = 'prometheus' | 'openmetrics'

/** Like `aggregate`, as text. */
export function aggregateText(
  processes: readonly Collected[][],
  format: TextFormat = 'prometheus',
): Promise<string> {
  if (format === 'prometheus') return AggregatorRegistry.aggregate([...processes]).metrics()
  return openMetricsText(processes)
}

async function openMetricsText(processes: readonly Collected[][]): Promise<string> {
  // prom-client appends `_total` to each counter, and its aggregation omits exemplars.
  const named = processes.map((metrics) =>
    metrics.map((metric) =>
      metric.type === 'counter' ? { ...metric, name: metric.name.replace(/_total$/, '') } : metric,
    ),
  )
  const registry = AggregatorRegistry.aggregate<OpenMetricsContentType>(named)
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const exemplars = newestExemplars(processes)
  if (exemplars.size > 0) {
    for (const { values } of await registry.getMetricsAsJSON()) {
      for (const sample of values) {
        const exemplar = exemplars.get(seriesOf(sample))
        if (exemplar !== undefined) Object.assign(sample, { exemplar })
      }
    }
  }
  return registry.metrics()
}

function newestExemplars(processes: readonly Collected[][]): Map<string, Exemplar> {
  const newest = new Map<string, Exemplar>()
  for (const { values } of processes.flat()) {
    for (const sample of values) {
      const { exemplar } = sample
      if (exemplar === undefined || exemplar === null) continue
      const series = seriesOf(sample)
      const known = newest.get(series)
      if (known === undefined || known.timestamp < exemplar.timestamp) newest.set(series, exemplar)
    }
  }
  return newest
}

/** The name and the labels of a line. Every process has the labels of a metric in the same order. */
function seriesOf({ metricName, labels }: Pick<Sample, 'metricName' | 'labels'>): string {
  return JSON.stringify([metricName, labels])
}

/**
 * The metrics of a registry as data. Values that are not finite (a mean of nothing) are omitted, since JSON
 * cannot represent them.
 */
export async function collectFrom(registry: Pick<Registry, 'getMetricsAsJSON'>): Promise<Collected[]> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => ({
    name: metric.name,
    help: metric.help,
    type: String(metric.type),
    aggregator: metric.aggregator,
    values: metric.values.filter((sample) => Number.isFinite(sample.value)),
  }))
}
