/** Definitions of metrics by type: the cap on their exported lines, their labels and their buckets. */
import type { Definition } from './metric.js'

/** A definition with its type. */
export interface MetricDefinition extends Definition {
  readonly type: 'counter' | 'gauge' | 'histogram'
}

/**
 * The metrics per model have 11 lines per series, so that eleven (upstream, model) pairs with five series
 * each fit under the cap beside all other metrics.
 */
const GEN_AI = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'] as const
const GEN_AI_PAIRS = 11

/** The texts and the aggregation of a metric. */
export type Description = Pick<Definition, 'help' | 'aggregator' | 'fold'>
/** A counter or gauge without its name and labels. */
export type CappedDescription = Description & Pick<Definition, 'maxLines'>

/** A histogram without its name and labels. */
export interface HistogramDescription extends Description {
  readonly maxSeries: number
  readonly buckets: readonly number[]
}

/** A histogram of each (upstream, model) pair, without its name and labels. */
export interface GenAiDescription extends Description {
  /** Series of each (upstream, model) pair. */
  readonly seriesPerPair: number
  readonly buckets: readonly number[]
}

/** A counter with at most `maxLines` exported lines. */
export function counter(
  name: string,
  labels: readonly string[],
  description: CappedDescription,
): MetricDefinition {
  return { type: 'counter', name, labels, ...description }
}

/** A gauge with at most `maxLines` exported lines. */
export function gauge(
  name: string,
  labels: readonly string[],
  description: CappedDescription,
): MetricDefinition {
  return { type: 'gauge', name, labels, ...description }
}

/** A histogram with at most `maxSeries` series. */
export function histogram(
  name: string,
  labels: readonly string[],
  { maxSeries, ...description }: HistogramDescription,
): MetricDefinition {
  const maxLines = maxSeries * (description.buckets.length + 3)
  return { type: 'histogram', name, labels, maxLines, ...description }
}

/**
 * A histogram per (upstream, model) pair, with the labels of OpenTelemetry's conventions for generative AI.
 */
export function genAi(
  name: string,
  labels: readonly string[],
  { seriesPerPair, ...description }: GenAiDescription,
): MetricDefinition {
  const maxSeries = seriesPerPair * GEN_AI_PAIRS
  return histogram(name, [...GEN_AI, ...labels], { maxSeries, ...description })
}
