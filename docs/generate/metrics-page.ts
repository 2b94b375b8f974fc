/**
 * Generates `docs/reference/metrics.md` from the definitions.
 */
import { DEFINITIONS, LABELS, type MetricDefinition } from '../../src/observe/metrics/metric-definitions.js'

/** Node's own metrics that the dashboards use; prom-client documents the rest. */
const PROCESS_METRICS = [
  ['process_cpu_seconds_total', 'CPU time, all workers together.'],
  ['process_resident_memory_bytes', 'Memory that the system holds for the processes.'],
  ['nodejs_heap_size_used_bytes', 'JavaScript heap in use.'],
  ['nodejs_eventloop_lag_p99_seconds', 'Delay of the event loop, 99th percentile.'],
  ['nodejs_eventloop_lag_mean_seconds', 'Delay of the event loop, mean.'],
  ['nodejs_gc_duration_seconds', 'Garbage collection, by kind.'],
] as const

/** The whole page, ending in a newline. */
export function metricsPage(): string {
  const metrics: MetricDefinition[] = Object.values(DEFINITIONS)
  const lines = [
    '<!-- Generated from src/observe/metrics/metric-definitions.ts by `npm run generate`; do not edit. -->',
    '',
    '# Metrics',
    '',
    "The ops port (`server.ops_port`) serves `GET /metrics` in Prometheus's text format. With several",
    'workers the primary replies for all of them: counters, histograms and gauges are added up, and',
    '`sluice_config_generation` is the newest. The counts of an exited worker are kept.',
    '',
    "Label values come from closed sets, never from a client's text, except for labels of keys that `metrics.labels` names. Each metric has a cap,",
    'which grows with the names in the configuration: with each upstream, each target (an upstream of a route), each guardrail and each plugin.',
    'So a gateway has room for the failures of all its upstreams, and traffic alone cannot make the page grow. Values above the cap count under `other`:',
    'the sum over all series of a counter stays exact. `sluice_series_dropped_total` counts them, and the alert `SluiceMetricSeriesDropped` reports it.',
    'Accounts and API keys are no labels of metrics, because their number has no bound. Their exact cost is in the ledger: the Usage page of the dashboard,',
    '`GET /admin/v1/usage` of the admin API and `sluice usage` have it.',
    '',
    '## OpenMetrics and exemplars',
    '',
    'A client whose `Accept` header prefers `application/openmetrics-text`, as Prometheus does, gets the OpenMetrics format. If the gateway exports traces',
    '([traces.md](traces.md)), the buckets of `gen_ai_server_request_duration_seconds`, `gen_ai_server_time_to_first_token_seconds` and',
    "`sluice_overhead_seconds` have an exemplar: the last value with the `trace_id` of its request, only of sampled traces. Prometheus's text format has none.",
    '',
    "## The gateway's own",
    '',
  ]
  for (const metric of metrics) lines.push(...section(metric))
  lines.push('## Labels', '', '| label | values |', '| --- | --- |')
  for (const [name, values] of Object.entries(LABELS)) lines.push(`| \`${name}\` | ${values} |`)
  lines.push('', '## The process', '', '| metric | meaning |', '| --- | --- |')
  for (const [name, meaning] of PROCESS_METRICS) lines.push(`| \`${name}\` | ${meaning} |`)
  lines.push(
    '',
    "prom-client's other default metrics are there too, without the sums `nodejs_active_…_total`.",
    '',
  )
  return lines.join('\n')
}

function section(metric: MetricDefinition): string[] {
  const labels = metric.labels.map((label) => `\`${label}\``).join(', ')
  const lines = [`### ${metric.name}`, '', metric.help, '']
  lines.push(`- type: ${metric.type}`)
  lines.push(`- labels: ${labels === '' ? 'none' : labels}`)
  if (metric.buckets !== undefined) {
    lines.push(`- buckets: ${metric.buckets.map((bound) => String(bound)).join(', ')}`)
  }
  lines.push(
    metric.maxLines === 0
      ? '- at most 40 series for each value that `metrics.labels` allows, and none without it; further ones count as `other`'
      : `- at most ${capText(metric)} lines`,
  )
  if (metric.fold !== undefined) {
    lines.push(`- when full: ${metric.fold.map((label) => `\`${label}\``).join(' and ')} become \`other\``)
  }
  if (metric.aggregator === 'max') lines.push('- of several workers: the highest value')
  if (metric.aggregator === 'min') lines.push('- of several workers: the lowest value')
  return [...lines, '']
}

/** `4, and 2 more for each upstream`. */
function capText({ maxLines, perName = {} }: MetricDefinition): string {
  const more = Object.entries(perName).map(([kind, lines]) => `${String(lines)} more for each ${kind}`)
  return [String(maxLines), ...more].join(', and ')
}
