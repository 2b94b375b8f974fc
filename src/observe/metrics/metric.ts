/**
 * What a metric is made of, and what is collected of it. Counts nothing.
 */

/** What is fixed about a metric; `labels` are names, in the order in which values are given. */
export interface Definition {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  /** The metric's own cap, in lines of the text format. */
  readonly maxLines: number
  /** Upper bounds, ascending, at most 12; histograms only. */
  readonly buckets?: readonly number[]
  /** How the values of several processes become one; `sum` where absent. */
  readonly aggregator?: 'sum' | 'max' | 'min'
  /** The label whose value becomes `other` once the metric is full; without it a series is dropped. */
  readonly fold?: string
}

/** One line of the text format, without the metric's help. */
export interface Sample {
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
  readonly metricName?: string
  /** Labels that prom-client may format once and remember. */
  readonly sharedLabels?: Readonly<Record<string, string>>
}

/** A metric with its samples: what crosses from a worker to the primary. */
export interface Collected {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly aggregator: string
  readonly values: readonly Sample[]
}
