/** Adds up the metrics of several processes, such as the workers of a cluster. */
import { AggregatorRegistry, type Registry } from 'prom-client'
import type { Collected } from './metric.js'

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
