/**
 * Counters, gauges and histograms that cost nanoseconds, collected by prom-client's registry.
 * Knows no metric by name; `hops.ts` does.
 *
 * prom-client checks and hashes the labels of every observation (about 1 µs each); here a series is
 * resolved once and kept by the caller, so that an observation is an addition.
 */
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'

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
  readonly aggregator?: 'sum' | 'max'
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

/** What prom-client's `Registry` asks of a metric. */
interface Collectable {
  readonly name: string
  get(): Promise<Collected>
  getForPromString(): Promise<Collected>
  reset(): void
}

declare module 'prom-client' {
  // The parameter must be spelled as prom-client spells it for the declarations to merge.
  interface Registry<BoundRegistryContentType extends RegistryContentType = PrometheusContentType> {
    readonly contentType: BoundRegistryContentType
    registerMetric(metric: Collectable): void
  }
}

/** A counter's series. */
export class Count {
  private value = 0

  /** Adds `amount`; a negative one or NaN is ignored, since a counter only rises. */
  add(amount = 1): void {
    if (amount > 0) this.value += amount
  }

  samples(labels: Record<string, string>): Sample[] {
    return [{ labels: {}, sharedLabels: labels, value: this.value }]
  }

  reset(): void {
    this.value = 0
  }
}

/** A gauge's series. */
class Level {
  private value = 0

  add(amount: number): void {
    this.value += amount
  }

  set(value: number): void {
    this.value = value
  }

  samples(labels: Record<string, string>): Sample[] {
    return [{ labels: {}, sharedLabels: labels, value: this.value }]
  }

  reset(): void {
    this.value = 0
  }
}

/** A histogram's series. */
export class Distribution {
  private readonly name: string
  private readonly bounds: Float64Array
  private readonly counts: Float64Array
  private sum = 0

  constructor(name: string, buckets: readonly number[]) {
    this.name = name
    // The closing Infinity keeps the search inside the array without a test of its length.
    this.bounds = Float64Array.from([...buckets, Infinity])
    this.counts = new Float64Array(this.bounds.length)
  }

  /** Counts one value. A negative one (a clock that stepped back) counts as 0; NaN is ignored. */
  observe(value: number): void {
    if (!Number.isFinite(value)) return
    const seen = value < 0 ? 0 : value
    let bucket = 0
    while (seen > (this.bounds[bucket] ?? Infinity)) bucket += 1
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sum += seen
  }

  samples(labels: Record<string, string>): Sample[] {
    const samples: Sample[] = []
    const line = (suffix: string, own: Sample['labels'], value: number): void => {
      samples.push({
        labels: own,
        sharedLabels: labels,
        value,
        metricName: `${this.name}_${suffix}`,
      })
    }
    let total = 0
    this.bounds.forEach((bound, index) => {
      total += this.counts[index] ?? 0
      line('bucket', { le: bound === Infinity ? '+Inf' : bound }, total)
    })
    line('sum', {}, this.sum)
    line('count', {}, total)
    return samples
  }

  reset(): void {
    this.counts.fill(0)
    this.sum = 0
  }
}

type Series = Count | Level | Distribution

/** A metric and its series. Registers nothing itself. */
class Family<One extends Series> implements Collectable {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly aggregator: string
  private readonly definition: Definition
  private readonly make: () => One
  private readonly budget: Budget
  private readonly children = new Map<string, { labels: Record<string, string>; series: One }>()
  /** Takes what is refused a series of its own; never exported. */
  private readonly sink: One
  private readonly linesPerSeries: number

  constructor(definition: Definition, type: Family<One>['type'], make: () => One, budget: Budget) {
    this.name = definition.name
    this.help = definition.help
    this.type = type
    this.aggregator = definition.aggregator ?? 'sum'
    this.definition = definition
    this.make = make
    this.budget = budget
    this.sink = make()
    this.linesPerSeries = definition.buckets === undefined ? 1 : definition.buckets.length + 3
  }

  /**
   * The series of these label values, made where it is new and fits; otherwise the folded series,
   * or one that goes nowhere, with `sluice_series_dropped_total` raised. Keep the result: this is
   * the slow path.
   */
  child(...values: string[]): One {
    const held = this.children.get(JSON.stringify(values))
    if (held !== undefined) return held.series
    const room = (this.children.size + 1) * this.linesPerSeries <= this.definition.maxLines
    if (room && this.budget.take(this.linesPerSeries)) return this.add(values)
    this.budget.dropped.add()
    return this.folded(values) ?? this.sink
  }

  /** For prom-client's JSON and for other processes: labels in one object. */
  get(): Promise<Collected> {
    return Promise.resolve(
      this.collect((sample) => ({
        labels: { ...sample.sharedLabels, ...sample.labels },
        value: sample.value,
        ...(sample.metricName === undefined ? {} : { metricName: sample.metricName }),
      })),
    )
  }

  /** For prom-client's text: shared labels apart, so that they are formatted once. */
  getForPromString(): Promise<Collected> {
    return Promise.resolve(this.collect((sample) => sample))
  }

  /** Sets every series to zero; callers keep the ones they hold. */
  reset(): void {
    for (const { series } of this.children.values()) series.reset()
  }

  private collect(shape: (sample: Sample) => Sample): Collected {
    const values: Sample[] = []
    for (const { labels, series } of this.children.values()) {
      for (const sample of series.samples(labels)) values.push(shape(sample))
    }
    const { name, help, type, aggregator } = this
    return { name, help, type, aggregator, values }
  }

  /** The series that refused label values share; it may go over the metric's cap, never the total. */
  private folded(values: readonly string[]): One | null {
    const at = this.definition.labels.indexOf(this.definition.fold ?? '')
    if (at === -1) return null
    const other = values.map((value, index) => (index === at ? 'other' : value))
    const held = this.children.get(JSON.stringify(other))
    if (held !== undefined) return held.series
    return this.budget.take(this.linesPerSeries) ? this.add(other) : null
  }

  private add(values: readonly string[]): One {
    const labels: Record<string, string> = {}
    this.definition.labels.forEach((name, index) => {
      labels[name] = values[index] ?? ''
    })
    const series = this.make()
    this.children.set(JSON.stringify(values), { labels, series })
    return series
  }
}

/** The lines that all metrics of a process share. */
class Budget {
  readonly dropped = new Count()
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

/** Lines for our own metrics: 1,500 in all, less what Node's defaults need. */
export const MAX_LINES = 1340

/** Makes metrics and keeps them within one budget of lines. */
export class MetricSet {
  readonly registry = new Registry()
  private readonly budget: Budget

  constructor(maxLines = MAX_LINES) {
    this.budget = new Budget(maxLines)
  }

  counter(definition: Definition): Family<Count> {
    return this.register(new Family(definition, 'counter', () => new Count(), this.budget))
  }

  gauge(definition: Definition): Family<Level> {
    return this.register(new Family(definition, 'gauge', () => new Level(), this.budget))
  }

  histogram(definition: Definition): Family<Distribution> {
    const { name, buckets = [] } = definition
    const make = (): Distribution => new Distribution(name, buckets)
    return this.register(new Family(definition, 'histogram', make, this.budget))
  }

  /** The counter that counts refused series. It has no labels and needs no room. */
  droppedSeries(definition: Definition): void {
    const family = new Family(definition, 'counter', () => this.budget.dropped, this.budget)
    this.register(family).child()
  }

  /** Adds Node's own metrics: CPU, memory, event loop, garbage collection, handles. */
  addProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  /** Every metric of the registry as data that another process can aggregate. */
  collect(): Promise<Collected[]> {
    return collectFrom(this.registry)
  }

  private register<One extends Series>(family: Family<One>): Family<One> {
    this.registry.registerMetric(family)
    return family
  }
}

/** The metrics of several processes as one, each by its own aggregator. */
export function aggregate(processes: readonly Collected[][]): Promise<Collected[]> {
  return collectFrom(AggregatorRegistry.aggregate([...processes]))
}

/** As `aggregate`, in Prometheus's text format. */
export function aggregateText(processes: readonly Collected[][]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics()
}

/** Values that are no number (a mean of nothing) are left out: JSON has no word for them. */
async function collectFrom(registry: Pick<Registry, 'getMetricsAsJSON'>): Promise<Collected[]> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => ({
    name: metric.name,
    help: metric.help,
    type: String(metric.type),
    aggregator: metric.aggregator,
    values: metric.values.filter((sample) => Number.isFinite(sample.value)),
  }))
}
