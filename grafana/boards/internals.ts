/**
 * The board about the gateway itself: its own time, the event loop, memory, the store, the ledger,
 * generations.
 */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.js'
import { query, rateBy, series, stat, states, withExemplars } from './panels.js'
import { GATEWAY, increase, max, mean, orNone, orZero, quantile, rate, sum, timeLeft } from './promql.js'
import type { Row } from './rows.js'

const OVERHEAD = 'sluice_overhead_seconds'
const HOPS = 'sluice_hop_duration_seconds'
const ROWS = 'sluice_usage_rows_total'
/** Without an archive the maximum is 0. */
const ARCHIVE_ROOM = `sluice_archive_waiting_bytes{${GATEWAY}} / (sluice_archive_waiting_max_bytes{${GATEWAY}} > 0)`
const CERTIFICATES = `sluice_certificate_expiry_timestamp_seconds{${GATEWAY}}`

function gauge(name: string): string {
  return `${name}{${GATEWAY}}`
}

function figures(): Row['panels'] {
  return [
    stat({
      title: 'Overhead, p99',
      description:
        'Time that the gateway itself adds to a request, without waiting for the client or the upstream. Yellow from 5 ms, red from 25 ms.',
      unit: 's',
      thresholds: { warn: 0.005, bad: 0.025 },
      queries: [withExemplars(query(quantile(0.99, OVERHEAD, GATEWAY), 'p99'))],
      next: { board: 'Overview' },
      runbook: ['Gateway adds latency'],
    }),
    stat({
      title: 'Event loop delay, p99',
      description: 'Mean over the workers of a gateway. Yellow from 50 ms, red from 100 ms.',
      unit: 's',
      thresholds: { warn: 0.05, bad: 0.1 },
      queries: [query(max(gauge('nodejs_eventloop_lag_p99_seconds')), 'p99')],
      runbook: ['Event loop delayed'],
    }),
    stat({
      title: 'Store errors',
      description: 'Failed store operations per second. Red from the first error.',
      unit: 'ops',
      thresholds: { warn: 0.0001, bad: 0.001 },
      queries: [query(orZero(sum(rate('sluice_store_errors_total', GATEWAY))), 'Errors')],
      next: { board: 'Overview' },
      runbook: ['Store unavailable'],
    }),
    stat({
      title: 'Ledger entries lost',
      description: 'Entries that neither the ledger nor the spool accepted, in the time range.',
      unit: 'short',
      thresholds: { bad: 1 },
      queries: [
        query(orZero(`sum(increase(${ROWS}{${GATEWAY},kind=~"dropped|damaged"}[$__range]))`), 'Lost'),
      ],
      runbook: ['Ledger entries lost'],
    }),
    stat({
      title: 'Configuration generation',
      description: 'The number of the configuration in force.',
      unit: 'short',
      queries: [query(max(gauge('sluice_config_generation')), 'Generation')],
      runbook: ['Reload failing'],
    }),
    stat({
      title: 'Running since',
      description: 'When the newest process of a gateway started.',
      unit: 'dateTimeFromNow',
      queries: [query(`${max(gauge('sluice_start_time_seconds'))} * 1000`, 'Start')],
      runbook: ['Workers restarting'],
    }),
  ]
}

function time(): Row['panels'] {
  return [
    series({
      title: 'Overhead of the gateway',
      description:
        "Time of a request that is the gateway's own. 99 % of requests should need less than 5 ms.",
      unit: 's',
      thresholds: { warn: 0.005, bad: 0.025 },
      queries: [0.5, 0.9, 0.99].map((q) =>
        withExemplars(query(quantile(q, OVERHEAD, GATEWAY), `p${q * 100}`)),
      ),
      runbook: ['Gateway adds latency'],
    }),
    series({
      title: 'Time of each hop, mean',
      description: 'Phases of a request. `first_byte` and `relay` include the upstream.',
      unit: 's',
      queries: [query(mean(HOPS, GATEWAY, 'hop'), '{{hop}}')],
      next: { board: 'Providers' },
      runbook: ['Gateway adds latency'],
    }),
    series({
      title: 'Time of each hop, p99',
      description: 'The slowest percent. `authenticate`, `admit` and `settle` wait for the store.',
      unit: 's',
      queries: [query(quantile(0.99, HOPS, GATEWAY, 'hop'), '{{hop}}')],
      next: { board: 'Providers' },
      runbook: ['Gateway adds latency'],
    }),
  ]
}

function processes(): Row['panels'] {
  return [
    series({
      title: 'Event loop delay',
      description: 'Mean and 99th percentile. Yellow from 50 ms, red from 100 ms.',
      unit: 's',
      thresholds: { warn: 0.05, bad: 0.1 },
      queries: [
        query(max(gauge('nodejs_eventloop_lag_p99_seconds'), 'instance'), '{{instance}} p99'),
        query(max(gauge('nodejs_eventloop_lag_mean_seconds'), 'instance'), '{{instance}} mean'),
      ],
      runbook: ['Event loop delayed'],
    }),
    series({
      title: 'CPU',
      description: 'Cores in use, all processes of a gateway together.',
      unit: 'short',
      queries: [query(sum(rate('process_cpu_seconds_total', GATEWAY), 'instance'), '{{instance}}')],
      runbook: ['Overloaded'],
    }),
    series({
      title: 'Memory',
      description: 'Resident memory and JavaScript heap, all processes of a gateway together.',
      unit: 'bytes',
      queries: [
        query(sum(gauge('process_resident_memory_bytes'), 'instance'), '{{instance}} resident'),
        query(sum(gauge('nodejs_heap_size_used_bytes'), 'instance'), '{{instance}} heap'),
      ],
      runbook: ['Overloaded'],
    }),
    series({
      title: 'Garbage collection',
      description: 'Seconds of garbage collection per second, by kind.',
      unit: 's',
      queries: [rateBy('nodejs_gc_duration_seconds_sum', GATEWAY, 'kind')],
      runbook: ['Event loop delayed'],
    }),
    series({
      title: 'Size of the stored replies',
      description: 'Of the exact cache, in the memory of the processes of a gateway.',
      unit: 'bytes',
      queries: [query(orZero(sum(gauge('sluice_cache_bytes'))), 'Size')],
    }),
    series({
      title: 'Stored replies',
      description:
        'Replies in the memory of the exact cache, and replies that it drops per minute, by reason.',
      unit: 'short',
      queries: [
        query(orZero(sum(gauge('sluice_cache_entries'))), 'Stored'),
        query(
          orNone(`${sum(rate('sluice_cache_evictions_total', GATEWAY), 'reason')} * 60`, 'reason'),
          'Dropped: {{reason}}',
        ),
      ],
    }),
    states({
      title: 'Overload level',
      description:
        'From level 1 on keys of low priority are refused, at level 2 all but high priority, at level 3 all.',
      unit: 'short',
      states: ['None', 'Low priority refused', 'Only high priority', 'All refused'],
      queries: [query(max(gauge('sluice_overload_level'), 'instance'), '{{instance}}')],
      next: { board: 'Overview' },
      runbook: ['Overloaded'],
    }),
    series({
      title: 'Workers replaced',
      description: 'Worker processes that exited by themselves or did not respond for ten seconds.',
      unit: 'short',
      thresholds: { warn: 1, bad: 3 },
      queries: [
        query(
          orNone(sum(increase('sluice_worker_restarts_total', GATEWAY), 'reason'), 'reason'),
          '{{reason}}',
        ),
      ],
      runbook: ['Workers restarting'],
    }),
  ]
}

function store(): Row['panels'] {
  const kinds = (list: string): string => `${GATEWAY},kind=~"${list}"`
  return [
    series({
      title: 'Store operations, p99',
      description: 'By operation. `find_key`, `admit` and `settle` are on the path of a request.',
      unit: 's',
      queries: [query(quantile(0.99, 'sluice_store_duration_seconds', GATEWAY, 'op'), '{{op}}')],
      runbook: ['Store unavailable'],
    }),
    series({
      title: 'Store errors',
      description: 'Failed operations per second.',
      unit: 'ops',
      thresholds: { warn: 0.0001, bad: 0.1 },
      queries: [rateBy('sluice_store_errors_total', GATEWAY, 'op')],
      runbook: ['Store unavailable'],
    }),
    series({
      title: 'Processes that enforce limits without the store',
      description: 'While the store is unavailable, each process enforces its share of every limit.',
      unit: 'short',
      thresholds: { bad: 1 },
      queries: [query(orZero(sum(gauge('sluice_limits_local'))), 'Processes')],
      runbook: ['Limits kept without the store'],
    }),
    series({
      title: 'Ledger entries by source of their token counts',
      description:
        'Reported by the upstream, estimated, assumed (the maximum that an unfinished request may have used), none used, or settled for a process that crashed.',
      unit: 'ops',
      width: 12,
      isStacked: true,
      queries: [
        query(
          orNone(sum(rate(ROWS, kinds('reported|estimated|assumed|none|lost')), 'kind'), 'kind'),
          '{{kind}}',
        ),
      ],
    }),
    series({
      title: 'Ledger entries waiting or lost',
      description:
        '`spooled` wait on disk until the store replies, `replayed` have left the spool, `dropped` and `damaged` are lost.',
      unit: 'short',
      width: 12,
      thresholds: { warn: 1, bad: 1000 },
      queries: [
        query(
          orNone(sum(increase(ROWS, kinds('spooled|replayed|dropped|damaged')), 'kind'), 'kind'),
          '{{kind}}',
        ),
      ],
      runbook: ['Ledger spooling', 'Ledger entries lost'],
    }),
    series({
      title: 'Memory of Redis for ledger entries',
      description: 'Used, and the maximum (`ledger.max_memory`). Empty with the embedded store.',
      unit: 'bytes',
      width: 12,
      queries: [
        query(max(gauge('sluice_ledger_memory_bytes')), 'Used'),
        query(max(gauge('sluice_ledger_memory_max_bytes')), 'Most'),
      ],
    }),
    series({
      title: 'Entries that wait for the archive',
      description:
        'In the store, until the archive has confirmed them (`archive`). Empty without an archive.',
      unit: 'short',
      width: 12,
      queries: [
        query(max(gauge('sluice_archive_rows_waiting')), 'Entries'),
        query(max(gauge('sluice_archive_up')), 'Archive takes entries (1)'),
      ],
      runbook: ['Archive behind'],
    }),
    series({
      title: 'Age of the oldest entry that waits for the archive',
      description: 'Views of what has left the store need the archive (`sluice_archive_up`).',
      unit: 's',
      width: 12,
      thresholds: { warn: 300, bad: 900 },
      queries: [query(max(gauge('sluice_archive_lag_seconds')), 'Age')],
      runbook: ['Archive behind'],
    }),
    series({
      title: 'Room for entries that wait for the archive',
      description:
        'The used share of `archive.waiting_max_bytes` (store: Redis) and of `archive.spool_max_bytes` (disk: files of a gateway).',
      unit: 'percentunit',
      width: 12,
      thresholds: { warn: 0.5, bad: 0.8 },
      queries: [query(max(ARCHIVE_ROOM, 'where'), '{{where}}')],
      runbook: ['Archive waiting full'],
    }),
    series({
      title: 'Duration of requests to the archive (p95)',
      description:
        'By operation: `insert` of rows, `read` for a view or a command, `check` of what was written.',
      unit: 's',
      width: 12,
      queries: [query(quantile(0.95, 'sluice_archive_request_seconds', GATEWAY, 'op'), '{{op}}')],
    }),
    series({
      title: 'Entries moved to the archive',
      description: 'By result; dropped ones are in the file `archive/refused` of the spool folder.',
      unit: 'short',
      width: 12,
      queries: [query(sum(rate('sluice_archive_rows_total', GATEWAY), 'result'), '{{result}}')],
    }),
    series({
      title: 'Ledger entries leave Redis in',
      description:
        'The time until the oldest entries leave before `ledger.keep_days`, at the rate of the last 24 hours.',
      unit: 's',
      width: 12,
      queries: [query(max(gauge('sluice_ledger_memory_full_seconds')), 'Time')],
    }),
  ]
}

function configuration(): Row['panels'] {
  return [
    series({
      title: 'Configuration generation by instance',
      description:
        'Gateways on one Redis store should reach the same configuration within seconds: `differs` counts those that have not, of `members`.',
      unit: 'short',
      queries: [query(max(gauge('sluice_config_generation'), 'instance'), '{{instance}}')],
      runbook: ['Reload failing'],
    }),
    series({
      title: 'Configuration reloads',
      description: '`refused`: the file has a mistake, and the previous configuration stays in force.',
      unit: 'short',
      queries: [
        query(
          orNone(sum(increase('sluice_config_reloads_total', GATEWAY), 'result'), 'result'),
          '{{result}}',
        ),
      ],
      next: { board: 'Overview' },
      runbook: ['Reload failing'],
    }),
  ]
}

function operation(): Row['panels'] {
  return [
    ...configuration(),
    series({
      title: 'Certificates: time left',
      description:
        'Until the certificate of the data port (`none`) or the client certificate for an upstream expires. Yellow below 14 days, red below 3.',
      unit: 's',
      thresholds: { warn: 14 * 86_400, bad: 3 * 86_400, isFloor: true },
      queries: [query(timeLeft(`min by (upstream) (${CERTIFICATES})`), '{{upstream}}')],
      runbook: ['Certificate expiring'],
    }),
    series({
      title: 'Gateways with another configuration',
      description:
        'Gateways that share the store, and those of them whose configuration differs. Brief differences are normal while a change is rolled out.',
      unit: 'short',
      thresholds: { bad: 1 },
      queries: [
        query(max(gauge('sluice_config_fleet_disagreement'), 'instance'), '{{instance}} differ'),
        query(max(gauge('sluice_config_fleet_members'), 'instance'), '{{instance}} members'),
      ],
      runbook: ['Fleet disagrees'],
    }),
    series({
      title: 'Log lines lost',
      description: 'Lines dropped because nothing read standard output fast enough.',
      unit: 'ops',
      thresholds: { warn: 0.001, bad: 1 },
      queries: [query(orZero(sum(rate('sluice_log_lines_lost_total', GATEWAY))), 'Lost')],
      runbook: ['Log lines lost'],
    }),
    series({
      title: 'Metric series dropped',
      description: 'Series refused because a metric had reached its cap: these boards are incomplete.',
      unit: 'short',
      thresholds: { warn: 1, bad: 100 },
      queries: [query(orZero(sum(gauge('sluice_series_dropped_total'))), 'Dropped')],
      runbook: ['Metric series dropped'],
    }),
  ]
}

function reports(): Row['panels'] {
  return [
    series({
      title: 'Trace spans',
      description:
        'Finished spans per second by result. `failed`: the OTLP receiver did not accept them; `dropped`: the queue was full.',
      unit: 'ops',
      width: 12,
      queries: [rateBy('sluice_trace_spans_total', GATEWAY, 'result')],
    }),
    series({
      title: 'Webhooks',
      description: 'Webhooks per second by result. `retried`: an attempt failed and will be repeated.',
      unit: 'ops',
      width: 12,
      queries: [rateBy('sluice_webhooks_total', GATEWAY, 'result')],
    }),
    series({
      title: 'Telemetry of programs',
      description:
        'Exports per second of programs whose users signed in, such as Claude Code, by signal: accepted and dropped.',
      unit: 'ops',
      width: 12,
      queries: [rateBy('sluice_client_telemetry_total', GATEWAY, 'signal')],
    }),
  ]
}

function guardrails(): Row['panels'] {
  return [
    series({
      title: 'Verdicts of guardrails',
      description: 'Requests and replies per minute by guardrail and verdict; without those that pass.',
      unit: 'short',
      queries: [
        query(
          orNone(
            `${sum(rate('sluice_guardrail_verdicts_total', `${GATEWAY},verdict!="pass"`), 'guardrail', 'verdict')} * 60`,
            'guardrail',
          ),
          '{{guardrail}} {{verdict}}',
        ),
      ],
    }),
    series({
      title: 'Duration of guardrails, p95',
      description: 'Time of one judgement: a call of a guard server or plugin, or own rules.',
      unit: 's',
      queries: [
        query(quantile(0.95, 'sluice_guardrail_duration_seconds', GATEWAY, 'guardrail'), '{{guardrail}}'),
      ],
    }),
    states({
      title: 'Circuit breakers of guardrails',
      description: 'While a breaker is open, no call is made and on_error decides.',
      unit: 'short',
      states: ['Closed', 'Half-open', 'Open'],
      queries: [
        query(
          orNone(max(gauge('sluice_guardrail_breaker_state'), 'guardrail'), 'guardrail'),
          '{{guardrail}}',
        ),
      ],
    }),
    series({
      title: 'Errors of plugins',
      description: 'Calls per minute that threw, were late or returned another shape.',
      unit: 'short',
      queries: [
        query(
          orNone(`${sum(rate('sluice_plugin_errors_total', GATEWAY), 'plugin', 'hook')} * 60`, 'plugin'),
          '{{plugin}} {{hook}}',
        ),
      ],
    }),
  ]
}

/** The board. */
export function internalsBoard(): DashboardBuilder {
  return board('Gateway internals', 'The gateway itself: hops, processes, store, ledger.', [
    { title: 'Now', panels: figures() },
    { title: 'Time', panels: time() },
    { title: 'Processes', panels: processes() },
    { title: 'Store and ledger', panels: store() },
    { title: 'Guardrails', panels: guardrails() },
    { title: 'Operation', panels: [...operation(), ...reports()] },
  ])
}
