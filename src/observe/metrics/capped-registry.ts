/**
 * prom-client's registry, counters and gauges with a cap on the number of exported lines, so that no client
 * can make the page grow. `metrics.ts` names the metrics.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { collectFrom, type Collected, type Definition } from './metric-types.js'
import { type Distribution, SeriesHistogram } from './histogram.js'
import type { LabelCounter } from './key-label-metrics.js'

declare module 'prom-client' {
  // The parameter must have prom-client's name for the declarations to merge.
  interface Registry<BoundRegistryContentType extends RegistryContentType = PrometheusContentType> {
    readonly contentType: BoundRegistryContentType
    registerMetric(metric: SeriesHistogram | LabelCounter): void
  }
}

/**
 * A counter's series: a number that prom-client gets when it collects. Its own `inc` costs 0.25 µs, and a
 * request counts about ten events.
 */
export class Count {
  value = 0

  /** Adds `amount` (default 1). Values of 0 or less are ignored, since a counter only rises. */
  add(amount = 1): void {
    if (amount > 0 && amount < Infinity) this.value += amount
  }
}

/** A gauge's series. */
export class Level {
  value = 0

  add(amount: number): void {
    this.value += amount
  }

  set(value: number): void {
    this.value = value
  }
}

/** Creates the series of one metric. */
interface SeriesSource<Series> {
  readonly make: (values: readonly string[]) => Series
  /** Counts values of refused series; it is not exported. */
  readonly sink: Series
}

/** The series of one metric, up to its cap. */
export class Family<Series> {
  private readonly definition: Definition
  private readonly budget: Budget
  private readonly make: (values: readonly string[]) => Series
  private readonly sink: Series
  private readonly series = new Map<string, Series>()
  private readonly linesPerSeries: number

  constructor(definition: Definition, budget: Budget, { make, sink }: SeriesSource<Series>) {
    this.definition = definition
    this.budget = budget
    this.make = make
    this.sink = sink
    this.linesPerSeries = definition.buckets === undefined ? 1 : definition.buckets.length + 3
  }

  /**
   * The series of these label values, created if it is new and below the cap. Otherwise returns the folded
   * series or one that is not exported, and raises `sluice_series_dropped_total`. Keep the result: this is
   * the slow path.
   */
  child(...values: string[]): Series {
    const existing = this.series.get(JSON.stringify(values))
    if (existing !== undefined) return existing
    const room = (this.series.size + 1) * this.linesPerSeries <= this.definition.maxLines
    if (room && this.budget.take(this.linesPerSeries)) return this.add(values)
    this.budget.dropped.add()
    return this.folded(values) ?? this.sink
  }

  /** The series for refused label values. It may exceed the metric's cap, never the total. */
  private folded(values: readonly string[]): Series | null {
    const at = this.definition.labels.indexOf(this.definition.fold ?? '')
    if (at === -1) return null
    const other = values.map((value, index) => (index === at ? 'other' : value))
    const existing = this.series.get(JSON.stringify(other))
    if (existing !== undefined) return existing
    return this.budget.take(this.linesPerSeries) ? this.add(other) : null
  }

  private add(values: readonly string[]): Series {
    const series = this.make(values)
    this.series.set(JSON.stringify(values), series)
    return series
  }
}

/** The number of lines left for all metrics of a process. */
class Budget {
  dropped = new Count()
  private left: number

  constructor(lines: number) {
    this.left = lines
  }

  take(lines: number): boolean {
    if (lines > this.left) return false
    this.left -= lines
    return true
  }
}

/** Lines for the gateway's own metrics: 1,500 in all, less Node's defaults. */
export const MAX_LINES = 1340

/**
 * prom-client's gauges with names of counters, which `promtool check metrics` refuses. The same gauges
 * without `_total` exist, by type.
 */
const MISNAMED = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`)

/** Creates metrics within one budget of lines. */
export class MetricSet {
  readonly registry = new Registry()
  private readonly budget: Budget

  constructor(maxLines = MAX_LINES) {
    this.budget = new Budget(maxLines)
  }

  counter(definition: Definition): Family<Count> {
    return new Family(definition, this.budget, {
      make: this.newCounter(definition),
      sink: new Count(),
    })
  }

  gauge(definition: Definition): Family<Level> {
    const { labels } = definition
    const all: NamedSeries<Level>[] = []
    new Gauge({
      ...this.configOf(definition),
      collect() {
        for (const { values, series } of all) this.set(values, series.value)
      },
    })
    const make = (values: readonly string[]): Level => keep(all, labels, values, new Level())
    return new Family(definition, this.budget, { make, sink: new Level() })
  }

  histogram(definition: Definition): Family<Distribution> {
    const histogram = new SeriesHistogram(definition)
    this.registry.registerMetric(histogram)
    // Not exported.
    const sink = new SeriesHistogram(definition).add([])
    return new Family(definition, this.budget, { make: (values) => histogram.add(values), sink })
  }

  /** The counter of refused series. It has no labels and is exempt from the cap. */
  droppedSeries(definition: Definition): void {
    this.budget.dropped = this.newCounter(definition)([])
  }

  /** Adds Node's own metrics: CPU, memory, event loop, garbage collection, handles. */
  addProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry })
    for (const name of MISNAMED) this.registry.removeSingleMetric(name)
  }

  /** All metrics as data, for aggregation by another process. */
  collect(): Promise<Collected[]> {
    return collectFrom(this.registry)
  }

  /** Creates the series of a counter, exported from 0; otherwise `rate()` would miss the first event. */
  private newCounter(definition: Definition): (values: readonly string[]) => Count {
    const { labels } = definition
    const all: NamedSeries<Count>[] = []
    new Counter({
      ...this.configOf(definition),
      collect() {
        this.reset()
        for (const { values, series } of all) this.inc(values, series.value)
      },
    })
    return (values) => keep(all, labels, values, new Count())
  }

  private configOf({ name, help, labels, aggregator = 'sum' }: Definition) {
    return { name, help, labelNames: [...labels], aggregator, registers: [this.registry] }
  }
}

/** A series with the values of its labels by name. */
interface NamedSeries<Series> {
  readonly values: Readonly<Record<string, string>>
  readonly series: Series
}

function keep<Series>(
  all: NamedSeries<Series>[],
  labels: readonly string[],
  values: readonly string[],
  series: Series,
): Series {
  const named = Object.fromEntries(labels.map((label, at) => [label, values[at] ?? '']))
  all.push({ values: named, series })
  return series
}
