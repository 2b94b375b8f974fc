/**
 * prom-client's registry, counters and gauges with a cap on the exported lines of each metric, so that no
 * client can make the page grow. The caps follow the configuration: a gateway with 500 upstreams has room for
 * the failures of all of them. `metrics.ts` names the metrics.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { collectFrom, type Collected, type Definition, type NameKind } from './metric-types.js'
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

/**
 * The series of one metric, up to its cap. What is above it counts under the label value `other`, so that the
 * sum over all series stays exact.
 */
export class Family<Series> {
  private readonly definition: Definition
  private readonly caps: Caps
  private readonly make: (values: readonly string[]) => Series
  private readonly series = new Map<string, Series>()
  private readonly linesPerSeries: number
  private folded = 0

  constructor(definition: Definition, caps: Caps, make: (values: readonly string[]) => Series) {
    this.definition = definition
    this.caps = caps
    this.make = make
    this.linesPerSeries = definition.buckets === undefined ? 1 : definition.buckets.length + 3
  }

  /**
   * The series of these label values, created if it is new and below the cap. Otherwise returns one with
   * `other`, and raises `sluice_series_dropped_total`. Keep the result: this is the slow path.
   */
  child(...values: string[]): Series {
    const existing = this.series.get(JSON.stringify(values))
    if (existing !== undefined) return existing
    const lines = (this.series.size - this.folded + 1) * this.linesPerSeries
    if (values.length === 0 || lines <= this.caps.linesOf(this.definition)) return this.add(values)
    this.caps.dropped.add()
    return this.fold(values)
  }

  /** The series for values above the cap: with `other` in the labels of `fold`, at last in all labels. */
  private fold(values: readonly string[]): Series {
    const { labels, fold = labels } = this.definition
    let other = values.map((value, at) => (fold.includes(labels[at] ?? '') ? OTHER : value))
    const isFull = this.folded >= FOLDED + this.caps.count('upstream')
    if (isFull && !this.series.has(JSON.stringify(other))) other = values.map(() => OTHER)
    const existing = this.series.get(JSON.stringify(other))
    if (existing !== undefined) return existing
    this.folded += 1
    return this.add(other)
  }

  private add(values: readonly string[]): Series {
    const series = this.make(values)
    this.series.set(JSON.stringify(values), series)
    return series
  }
}

const OTHER = 'other'

/** Series of a metric with `other` in the labels of `fold` only; one more for each upstream. */
const FOLDED = 20

/** Names of the configuration that are counted, which bounds memory when it changes without end. */
const MAX_NAMES = 20_000

/** The caps of all metrics of a process: they grow with the names of its configurations. */
class Caps {
  dropped = new Count()
  private readonly names: Readonly<Record<NameKind, Set<string>>> = {
    upstream: new Set(),
    target: new Set(),
    guardrail: new Set(),
    plugin: new Set(),
  }

  /** Adds names. Former ones count on, because their series stay. */
  add(kind: NameKind, names: Iterable<string>): void {
    const known = this.names[kind]
    for (const name of names) if (known.size < MAX_NAMES) known.add(name)
  }

  /** The number of names of this kind that the configurations since the start had. */
  count(kind: NameKind): number {
    return this.names[kind].size
  }

  linesOf({ maxLines, perName = {} }: Definition): number {
    const { upstream = 0, target = 0, guardrail = 0, plugin = 0 } = perName
    const { names } = this
    const more = upstream * names.upstream.size + target * names.target.size
    return maxLines + more + guardrail * names.guardrail.size + plugin * names.plugin.size
  }
}

/**
 * prom-client's gauges with names of counters, which `promtool check metrics` refuses. The same gauges
 * without `_total` exist, by type.
 */
const MISNAMED = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`)

/** Creates metrics with caps on their lines. */
export class MetricSet {
  readonly registry = new Registry()
  /** Grow with the configuration. */
  readonly caps = new Caps()

  counter(definition: Definition): Family<Count> {
    return new Family(definition, this.caps, this.newCounter(definition))
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
    return new Family(definition, this.caps, (values) => keep(all, labels, values, new Level()))
  }

  histogram(definition: Definition): Family<Distribution> {
    const histogram = new SeriesHistogram(definition)
    this.registry.registerMetric(histogram)
    return new Family(definition, this.caps, (values) => histogram.add(values))
  }

  /** The counter of label values that were folded. */
  droppedSeries(definition: Definition): void {
    this.caps.dropped = this.newCounter(definition)([])
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
