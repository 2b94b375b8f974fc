/** The board about streamed replies: how they begin, run and end. */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.js'
import { query, rateBy, series, stat, withExemplars } from './panels.js'
import {
  BROKEN,
  GATEWAY,
  GEN_AI,
  increase,
  joined,
  orNone,
  orZero,
  quantile,
  rate,
  sum,
  UPSTREAM,
} from './promql.js'
import type { Row } from './rows.js'

const ENDS = 'sluice_stream_ends_total'
const FIRST_TOKEN = 'gen_ai_server_time_to_first_token_seconds'
const TO_PROVIDERS = { board: 'Providers', from: { upstream: 'upstream' } } as const

function figures(): Row['panels'] {
  const all = sum(rate(ENDS, UPSTREAM))
  const share = (matcher: string): string =>
    orZero(`(${orZero(sum(rate(ENDS, `${UPSTREAM},${matcher}`)))}) / ${all}`)
  return [
    stat({
      title: 'Streams per second',
      description: 'Streamed replies that ended, complete or not.',
      unit: 'reqps',
      width: 6,
      queries: [query(orZero(all), 'Streams')],
    }),
    stat({
      title: 'Truncated streams',
      description:
        'Share of streams that the upstream truncated or corrupted. Yellow from 0.5 %, red from 2 %.',
      unit: 'percentunit',
      decimals: 2,
      width: 6,
      thresholds: { warn: 0.005, bad: 0.02 },
      queries: [query(share(BROKEN), 'Truncated')],
      next: { board: 'Providers' },
      runbook: ['Streams truncated'],
    }),
    stat({
      title: 'Streams that clients left',
      description:
        'Share of streams whose client disconnected or read nothing for too long. Yellow from 10 %, red from 30 %.',
      unit: 'percentunit',
      decimals: 2,
      width: 6,
      thresholds: { warn: 0.1, bad: 0.3 },
      queries: [query(share('end=~"client_gone|client_stalled"'), 'Left')],
    }),
    stat({
      title: 'Time to first token, p95',
      description: 'Yellow from 5 s, which is the objective, red from 10 s.',
      unit: 's',
      width: 6,
      thresholds: { warn: 5, bad: 10 },
      queries: [withExemplars(query(quantile(0.95, FIRST_TOKEN, GEN_AI), 'p95'))],
      runbook: ['First tokens late'],
    }),
  ]
}

function ends(): Row['panels'] {
  const broken = sum(rate(ENDS, `${UPSTREAM},${BROKEN}`), 'upstream')
  const all = sum(rate(ENDS, UPSTREAM), 'upstream')
  return [
    series({
      title: 'Stream ends by cause',
      description:
        "`truncated`, `malformed` and `upstream_…` are the upstream's, `client_…` and `key_ended` the client's, `draining` and `gateway_error` the gateway's.",
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy(ENDS, UPSTREAM, 'end')],
      next: { board: 'Providers' },
      runbook: ['Streams truncated'],
    }),
    series({
      title: 'Truncated streams by upstream',
      description: 'Share of its streams. The alert is at 2 %.',
      unit: 'percentunit',
      max: 1,
      thresholds: { warn: 0.005, bad: 0.02 },
      queries: [query(orNone(`(${broken} or ${all} * 0) / ${all}`, 'upstream'), '{{upstream}}')],
      next: TO_PROVIDERS,
      runbook: ['Streams truncated'],
    }),
    series({
      title: 'Tokens generated after the client left',
      description: 'Output tokens that upstreams charged for after the client disconnected.',
      unit: 'suffix: tokens/s',
      queries: [rateBy('sluice_tokens_after_disconnect_total', UPSTREAM, 'upstream')],
      next: TO_PROVIDERS,
    }),
  ]
}

function pace(): Row['panels'] {
  const gap = 'sluice_chunk_gap_seconds'
  const token = 'gen_ai_server_time_per_output_token_seconds'
  const label = 'gen_ai_provider_name'
  return [
    series({
      title: 'Time to first token',
      description: 'From the arrival of a request to the first content of its stream.',
      unit: 's',
      thresholds: { warn: 5, bad: 10 },
      queries: [0.5, 0.95, 0.99].map((q) =>
        withExemplars(query(quantile(q, FIRST_TOKEN, GEN_AI), `p${q * 100}`)),
      ),
      next: { board: 'Providers' },
      runbook: ['First tokens late'],
    }),
    series({
      title: 'Time per output token',
      description: 'After the first one: median and 99th percentile by upstream.',
      unit: 's',
      queries: [
        query(quantile(0.5, token, GEN_AI, label), `{{${label}}} p50`),
        query(quantile(0.99, token, GEN_AI, label), `{{${label}}} p99`),
      ],
      next: { board: 'Providers', from: { upstream: label } },
    }),
    series({
      title: 'Gaps between chunks',
      description:
        'Time between two chunks of an upstream. Long gaps with a steady time per token indicate a buffering proxy.',
      unit: 's',
      queries: [
        query(quantile(0.5, gap, UPSTREAM, 'upstream'), '{{upstream}} p50'),
        query(quantile(0.99, gap, UPSTREAM, 'upstream'), '{{upstream}} p99'),
      ],
      next: TO_PROVIDERS,
    }),
    series({
      title: 'Time blocked by slow clients',
      description: 'Seconds per second that streams waited for their clients to read.',
      unit: 's',
      width: 12,
      queries: [rateBy('sluice_backpressure_seconds_total', GATEWAY, 'side')],
    }),
    series({
      title: 'Streams and replies in progress',
      description: 'Requests that an upstream is processing.',
      unit: 'short',
      width: 12,
      isStacked: true,
      queries: [query(orNone(sum(`sluice_inflight{${UPSTREAM}}`, 'upstream'), 'upstream'), '{{upstream}}')],
      next: TO_PROVIDERS,
    }),
  ]
}

function translation(): Row['panels'] {
  return [
    series({
      title: 'Fields lost in translation',
      description:
        'Fields that the format on the other side cannot express. `x-sluice-lost` names them to the client; docs/reference/dialects.md lists them.',
      unit: 'reqps',
      width: 12,
      queries: [
        query(
          orNone(
            joined(
              joined(sum(rate('sluice_translation_losses_total', GATEWAY), 'from', 'to', 'field'), {
                ...{ into: 'loss', separator: ' to ', of: ['from', 'to'] },
              }),
              { into: 'loss', separator: ': ', of: ['loss', 'field'] },
            ),
            'loss',
          ),
          '{{loss}}',
        ),
      ],
    }),
    series({
      title: 'Reasoning state by result',
      description:
        'Lookups of the reasoning of earlier turns (hit, miss) and states stored, too large or failed.',
      unit: 'short',
      width: 12,
      queries: [
        query(
          orNone(sum(increase('sluice_reasoning_escrow_total', GATEWAY), 'result'), 'result'),
          '{{result}}',
        ),
      ],
    }),
  ]
}

/** The board. */
export function streamsBoard(): DashboardBuilder {
  return board('Streams', 'Streamed replies: how they begin, run and end.', [
    { title: 'Now', panels: figures() },
    { title: 'Ends', panels: ends() },
    { title: 'Pace', panels: pace() },
    { title: 'Translation', panels: translation() },
  ])
}
