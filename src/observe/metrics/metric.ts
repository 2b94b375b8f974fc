/**
 * Types of metric definitions and of collected samples.
 */
import { AggregatorRegistry, type Registry } from 'prom-client'

/** The definition of a metric; label values are given in the order of `labels`. */
export interface Definition {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  /** Maximum number of lines in the text format. */
  readonly maxLines: number
  /** Upper bounds, ascending, at most 12; histograms only. */
  readonly buckets?: readonly number[]
  /** How values of several processes are combined; default `sum`. */
  readonly aggregator?: 'sum' | 'max' | 'min'
  /** The label that becomes `other` when the metric is full; without it, new series are dropped. */
  readonly fold?: string
}

/** One line of the text format. */
export interface Sample {
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
  readonly metricName?: string
  /** Labels that prom-client may format once and cache. */
  readonly sharedLabels?: Readonly<Record<string, string>>
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

/** Like `aggregate`, in Prometheus's text format. */
export function aggregateText(processes: readonly Collected[][]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics()
}

/**
 * The metrics of a registry as data. Values that are not finite (a mean of nothing) are omitted, since JSON
 * cannot represent them.
 */
export async function collectFrom(
  registry: Pick<Registry, 'getMetricsAsJSON'>,
): Promise<Collected[]> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => ({
    name: metric.name,
    help: metric.help,
    type: String(metric.type),
    aggregator: metric.aggregator,
    values: metric.values.filter((sample) => Number.isFinite(sample.value)),
  }))
}
