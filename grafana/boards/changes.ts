/** Panels about changes of upstreams: canaries, and requests that were copied to a shadow target. */
import { query, series, states } from './panels.js'
import { GATEWAY, increase, max, orNone, quantile, rate, sum, UPSTREAM } from './promql.js'
import type { Row } from './rows.js'

const BY_SIDE = ['route', 'side'] as const

/** Whether canaries are in use, and how often one was aborted. */
export function canaries(): Row['panels'] {
  return [
    states({
      title: 'Canaries',
      description:
        'Targets with `abort`. Aborted: the provider failed too many of its requests, and its weight is 0 until the configuration changes.',
      unit: 'short',
      states: ['In use', 'Aborted'],
      queries: [
        query(
          orNone(max(`sluice_canary_aborted{${UPSTREAM}}`, 'route', 'upstream'), 'upstream'),
          '{{route}} {{upstream}}',
        ),
      ],
    }),
    series({
      title: 'Aborted canaries',
      description: 'Number of targets with `abort` that were taken out of use.',
      unit: 'short',
      queries: [
        query(
          orNone(sum(increase('sluice_canary_aborts_total', UPSTREAM), 'route', 'upstream'), 'upstream'),
          '{{route}} {{upstream}}',
        ),
      ],
    }),
    series({
      title: 'Dropped copies',
      description: 'Requests that were selected for a shadow target but not copied, by reason.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          orNone(sum(rate('sluice_shadow_dropped_total', GATEWAY), 'route', 'reason'), 'route'),
          '{{route}} {{reason}}',
        ),
      ],
    }),
  ]
}

/** Both sides of copied requests. */
export function shadows(): Row['panels'] {
  const firstToken = 'sluice_shadow_time_to_first_token_seconds'
  return [
    series({
      title: 'Copied requests',
      description: 'Requests that were copied to a shadow target, on both sides, by outcome.',
      unit: 'reqps',
      queries: [
        query(
          orNone(sum(rate('sluice_shadow_requests_total', UPSTREAM), ...BY_SIDE, 'outcome'), 'route'),
          '{{route}} {{side}} {{outcome}}',
        ),
      ],
    }),
    series({
      title: 'Time to first token of copied requests',
      description: 'Median and 95th percentile of both sides, for the same requests.',
      unit: 's',
      queries: [
        query(quantile(0.5, firstToken, GATEWAY, ...BY_SIDE), '{{route}} {{side}} p50'),
        query(quantile(0.95, firstToken, GATEWAY, ...BY_SIDE), '{{route}} {{side}} p95'),
      ],
    }),
    series({
      title: 'Output tokens of copied requests',
      description: 'Tokens per second of both sides, reported or estimated.',
      unit: 'short',
      queries: [
        query(
          orNone(
            sum(rate('sluice_shadow_tokens_total', `${GATEWAY},gen_ai_token_type="output"`), ...BY_SIDE),
            'route',
          ),
          '{{route}} {{side}}',
        ),
      ],
    }),
    series({
      title: 'Cost of copied requests per hour',
      description: 'US dollars per hour of both sides, for models with a known price.',
      unit: 'currencyUSD',
      queries: [
        query(
          orNone(`${sum(rate('sluice_shadow_cost_usd_total', GATEWAY), ...BY_SIDE)} * 3600`, 'route'),
          '{{route}} {{side}}',
        ),
      ],
    }),
  ]
}
