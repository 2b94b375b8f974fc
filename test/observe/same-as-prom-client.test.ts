/**
 * Goal: the gateway's counters, gauges and histograms export the same text as prom-client's own.
 * Method: both get the same random observations; the texts and the aggregated texts must be equal.
 */
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type OpenMetricsContentType,
} from 'prom-client'
import t from 'tap'
import { aggregate, aggregateText } from '../../src/observe/metrics/metric-types.js'
import { MetricSet } from '../../src/observe/metrics/capped-registry.js'

const BUCKETS = [0.001, 0.05, 1, 30]
const HELP = 'A help with a \\ and\na second line.'
const AWKWARD = ['plain', 'with "quotes"', 'back\\slash', 'new\nline', 'ünïcödé', '']

function theirs() {
  const register = new Registry()
  const labelNames = ['a', 'b']
  const common = { help: HELP, labelNames, registers: [register] }
  return {
    register,
    counter: new Counter({ name: 'c_total', ...common }),
    gauge: new Gauge({ name: 'g', ...common }),
    histogram: new Histogram({ name: 'h_seconds', buckets: BUCKETS, ...common }),
  }
}

function ours() {
  const set = new MetricSet()
  const common = { help: HELP, labels: ['a', 'b'], maxLines: 1000 }
  return {
    set,
    counter: set.counter({ name: 'c_total', ...common }),
    gauge: set.gauge({ name: 'g', ...common }),
    histogram: set.histogram({ name: 'h_seconds', buckets: BUCKETS, ...common }),
  }
}

function observe(mine: ReturnType<typeof ours>, other: ReturnType<typeof theirs>): void {
  for (let index = 0; index < 400; index += 1) {
    const a = AWKWARD[Math.floor(Math.random() * AWKWARD.length)] ?? ''
    const b = `b${Math.floor(Math.random() * 3)}`
    const edge = BUCKETS[index % BUCKETS.length] ?? 0
    const value = index % 5 === 0 ? edge : Math.exp(Math.random() * 14 - 9)
    mine.counter.child(a, b).add(value)
    other.counter.inc({ a, b }, value)
    mine.gauge.child(a, b).add(index % 2 === 0 ? 1 : -1)
    other.gauge.inc({ a, b }, index % 2 === 0 ? 1 : -1)
    mine.histogram.child(a, b).observe(value)
    other.histogram.observe({ a, b }, value)
  }
}

/** Lines with their labels in one order. */
function lines(text: string): string[] {
  const sorted = (labels: string): string => (labels.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? []).sort().join(',')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/\{.*\}/, (labels) => `{${sorted(labels)}}`))
    .sort()
}

void t.test('one process exports the same text', async (t) => {
  const mine = ours()
  const other = theirs()
  observe(mine, other)
  t.strictSame(lines(await mine.set.registry.metrics()), lines(await other.register.metrics()))
})

void t.test('OpenMetrics has the same text, and the newest exemplars of all processes', async (t) => {
  const processes = [ours(), ours()]
  const other = theirs()
  for (const mine of processes) mine.histogram.child('a', 'b').observe(0.01, 'f'.repeat(32))
  for (const mine of processes) mine.counter.child('a', 'b').add(2)
  processes[1]?.histogram.child('a', 'b').observe(0.5, 'e'.repeat(32))
  const registry = new Registry<OpenMetricsContentType>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const histogram = new Histogram({
    name: 'h_seconds',
    help: HELP,
    buckets: BUCKETS,
    labelNames: ['a', 'b'],
    registers: [registry],
    enableExemplars: true,
  })
  const labels = { a: 'a', b: 'b' }
  for (const [value, digit] of [
    [0.01, 'f'],
    [0.01, 'f'],
    [0.5, 'e'],
  ] as const) {
    // Their declaration allows only the names of the series' own labels.
    const exemplarLabels: object = { trace_id: digit.repeat(32) }
    histogram.observe({ labels, value, exemplarLabels })
  }
  other.counter.inc(labels, 4)
  registry.registerMetric(other.counter as never)
  registry.registerMetric(other.gauge as never)
  const collected = await Promise.all(processes.map(({ set }) => set.collect()))
  const untimed = (text: string): string[] =>
    lines(text.replaceAll(/( # \{.*\} \S+) \d+\.?\d*$/gm, '$1 TIME'))
  const text = await aggregateText(collected, 'openmetrics')
  t.strictSame(untimed(text), untimed(await registry.metrics()))
  t.match(text, /_bucket\{a="a",b="b",le="0\.05"\} 2 # \{trace_id="f{32}"\} 0\.01 \d+/)
  t.match(text, /^c_total\{.*\} 4$/m)
  t.ok(text.endsWith('\n# EOF\n'))
  t.notMatch(await aggregateText(collected), 'trace_id', 'the other format has no exemplars')
  const set = processes[0]?.set
  t.match(await set?.registry.metrics(), /^c_total\{/m, 'and the metrics keep their names')
})

void t.test('several processes export the same sums, also after serialisation', async (t) => {
  const mine = [ours(), ours(), ours()]
  const other = [theirs(), theirs(), theirs()]
  mine.forEach((one, index) => {
    const twin = other[index]
    if (twin !== undefined) observe(one, twin)
  })
  const collected = await Promise.all(mine.map(({ set }) => set.collect()))
  const journey: unknown = JSON.parse(JSON.stringify(collected))
  t.strictSame(journey, collected, 'nothing is lost on the way')
  const wanted = AggregatorRegistry.aggregate(
    await Promise.all(other.map(({ register }) => register.getMetricsAsJSON())),
  )
  t.strictSame(lines(await aggregateText(collected)), lines(await wanted.metrics()))
  const halves = [await aggregate(collected.slice(0, 2)), ...collected.slice(2)]
  const close = (text: string): string => text.replace(/(\d+\.\d{6})\d*/g, '$1')
  t.strictSame(
    lines(close(await aggregateText(halves))).map((line) => line.split(' ')[0]),
    lines(close(await aggregateText(collected))).map((line) => line.split(' ')[0]),
    'in steps or at once',
  )
})

void t.test('invalid values do not affect a series', async (t) => {
  const { set, counter, histogram } = ours()
  const series = histogram.child('a', 'b')
  series.observe(NaN)
  series.observe(Infinity)
  series.observe(-3)
  series.observe(2)
  counter.child('a', 'b').add(5)
  counter.child('a', 'b').add(-1)
  counter.child('a', 'b').add(NaN)
  const text = await set.registry.metrics()
  t.match(text, 'h_seconds_count{a="a",b="b"} 2')
  t.match(text, 'h_seconds_sum{a="a",b="b"} 2')
  t.match(text, 'h_seconds_bucket{le="0.001",a="a",b="b"} 1')
  t.match(text, 'c_total{a="a",b="b"} 5')
})

void t.test('a reset of the registry keeps the counts, which callers hold', async (t) => {
  const { set, counter } = ours()
  const series = counter.child('a', 'b')
  series.add(4)
  set.registry.resetMetrics()
  series.add(1)
  t.match(await set.registry.metrics(), 'c_total{a="a",b="b"} 5')
})
