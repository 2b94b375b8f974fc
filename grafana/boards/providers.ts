/**
 * The board that compares upstreams and models: latency, speed, failures, cost, and what the gateway did
 * about failures.
 */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.js'
import { canaries, shadows } from './changes.js'
import { comparison, query, rateBy, series, states, withExemplars } from './panels.js'
import {
  COST,
  FAILED_ATTEMPT,
  GATEWAY,
  GEN_AI,
  inRange,
  increase,
  joined,
  max,
  mean,
  orNone,
  quantile,
  rate,
  REQUESTS,
  sum,
  timeLeft,
  UPSTREAM,
} from './promql.js'
import type { Row } from './rows.js'

const ROUTE = `${GATEWAY},route=~"$route"`
const BY_MODEL = ['gen_ai_provider_name', 'gen_ai_request_model'] as const
const LEGEND = '{{gen_ai_provider_name}} {{gen_ai_request_model}}'
const TO_STREAMS = {
  board: 'Streams',
  from: { upstream: 'gen_ai_provider_name', model: 'gen_ai_request_model' },
} as const
const UPSTREAM_TO_STREAMS = { board: 'Streams', from: { upstream: 'upstream' } } as const

/** The values of `sluice_breaker_state`, in order. */
const BREAKER = ['Closed', 'Half-open', 'Open']

/** OpenTelemetry's name for the upstream, as the other metrics have it. */
function byUpstream(expression: string): string {
  return `label_replace(${expression}, "upstream", "$1", "gen_ai_provider_name", "(.*)")`
}

/** Attempts that providers or the gateway made fail, over all. An upstream without a failure has 0. */
function failureShare(): string {
  const all = sum(rate('sluice_attempts_total', UPSTREAM), 'upstream')
  const failed = sum(rate('sluice_attempts_total', `${UPSTREAM},${FAILED_ATTEMPT}`), 'upstream')
  return `(${failed} or ${all} * 0) / ${all}`
}

/** US dollars of a million tokens of either direction, of those tokens that the cost counts. */
function perMillionTokens(): string {
  const usd = sum(rate('sluice_cost_usd_total', COST), 'upstream')
  return `${usd} / ${sum(rate('sluice_priced_tokens_total', COST), 'upstream')} * 1e6`
}

function sideBySide(): Row['panels'] {
  const firstToken = quantile(
    0.95,
    'gen_ai_server_time_to_first_token_seconds',
    GEN_AI,
    'gen_ai_provider_name',
  )
  const speed = mean('gen_ai_server_time_per_output_token_seconds', GEN_AI, 'gen_ai_provider_name')
  const plain = (expression: string): string => inRange(`sum by (upstream) (${byUpstream(expression)})`)
  return [
    comparison({
      title: 'Upstreams side by side',
      description:
        'One line per upstream over the time range, to compare them before and after a change of routes. The circuit breaker is that of the end.',
      label: 'upstream',
      columns: [
        {
          ...query(inRange(sum(rate('sluice_attempts_total', UPSTREAM), 'upstream')), 'Attempts per second'),
          unit: 'reqps',
        },
        {
          ...query(inRange(failureShare()), 'Failed attempts'),
          unit: 'percentunit',
          thresholds: { warn: 0.02, bad: 0.2 },
        },
        {
          ...query(plain(firstToken), 'Time to first token, p95'),
          unit: 's',
          thresholds: { warn: 5, bad: 10 },
        },
        { ...query(plain(`1 / (${speed})`), 'Output speed'), unit: 'suffix: tokens/s' },
        { ...query(inRange(perMillionTokens()), 'Cost of a million tokens'), unit: 'currencyUSD' },
        {
          ...query(max(`sluice_breaker_state{${UPSTREAM}}`, 'upstream'), 'Circuit breaker'),
          unit: 'short',
          states: BREAKER,
        },
        {
          ...query(
            `${max(`sluice_breaker_changed_timestamp_seconds{${UPSTREAM}}`, 'upstream')} * 1000 > 0`,
            'Circuit breaker changed',
          ),
          unit: 'dateTimeFromNow',
        },
      ],
      next: UPSTREAM_TO_STREAMS,
      runbook: ['Upstream down', 'Upstream failing'],
    }),
  ]
}

function speed(): Row['panels'] {
  const firstToken = 'gen_ai_server_time_to_first_token_seconds'
  const duration = 'gen_ai_server_request_duration_seconds'
  return [
    series({
      title: 'Time to first token',
      description: 'Streamed replies, median and 95th percentile. The objective is 5 s for 95 %.',
      unit: 's',
      thresholds: { warn: 5, bad: 10 },
      queries: [
        query(quantile(0.5, firstToken, GEN_AI, ...BY_MODEL), `${LEGEND} p50`),
        withExemplars(query(quantile(0.95, firstToken, GEN_AI, ...BY_MODEL), `${LEGEND} p95`)),
      ],
      next: TO_STREAMS,
      runbook: ['First tokens late'],
    }),
    series({
      title: 'Output tokens per second of a stream',
      description: 'How fast a reply is generated once it has begun: the mean over all streams.',
      unit: 'suffix: tokens/s',
      queries: [
        query(`1 / (${mean('gen_ai_server_time_per_output_token_seconds', GEN_AI, ...BY_MODEL)})`, LEGEND),
      ],
      next: TO_STREAMS,
    }),
    series({
      title: 'Time to the last byte',
      description: 'Whole replies and streams, median and 99th percentile.',
      unit: 's',
      queries: [
        query(quantile(0.5, duration, GEN_AI, ...BY_MODEL), `${LEGEND} p50`),
        withExemplars(query(quantile(0.99, duration, GEN_AI, ...BY_MODEL), `${LEGEND} p99`)),
      ],
      next: TO_STREAMS,
    }),
  ]
}

function failures(): Row['panels'] {
  return [
    series({
      title: 'Failed attempts by class',
      description:
        'Attempts that did not succeed, by upstream and error kind. `cancelled` lost a hedge; clients that left are `client_gone`.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          orNone(
            sum(rate('sluice_attempts_total', `${UPSTREAM},kind!="ok"`), 'upstream', 'kind'),
            'upstream',
          ),
          '{{upstream}} {{kind}}',
        ),
      ],
      next: UPSTREAM_TO_STREAMS,
      runbook: ['Upstream failing', 'Upstream denies the gateway'],
    }),
    series({
      title: 'Share of attempts that failed',
      description: 'Only failures of the provider. Yellow from 2 %, red from 20 %.',
      unit: 'percentunit',
      max: 1,
      thresholds: { warn: 0.02, bad: 0.2 },
      queries: [query(orNone(failureShare(), 'upstream'), '{{upstream}}')],
      next: UPSTREAM_TO_STREAMS,
      runbook: ['Upstream down', 'Upstream failing'],
    }),
    states({
      title: 'Circuit breakers',
      description:
        'Open: requests go to other targets, and a few probe the upstream. Half-open: one request tests the upstream.',
      unit: 'short',
      states: BREAKER,
      queries: [
        query(orNone(max(`sluice_breaker_state{${UPSTREAM}}`, 'upstream'), 'upstream'), '{{upstream}}'),
      ],
      next: UPSTREAM_TO_STREAMS,
      runbook: ['Circuit breaker open'],
    }),
  ]
}

function reactions(): Row['panels'] {
  return [
    series({
      title: 'Retries',
      description: 'Attempts repeated on the same target, by the error of the previous attempt.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          orNone(sum(rate('sluice_retries_total', UPSTREAM), 'upstream', 'reason'), 'upstream'),
          '{{upstream}} {{reason}}',
        ),
      ],
      runbook: ['Retry budget exhausted'],
    }),
    series({
      title: 'Retries refused by the retry budget',
      description: 'Retries that were not sent because the retry budget of the upstream was spent.',
      unit: 'reqps',
      thresholds: { warn: 0.01, bad: 1 },
      queries: [rateBy('sluice_retries_denied_total', UPSTREAM, 'upstream')],
      runbook: ['Retry budget exhausted'],
    }),
    series({
      title: 'Units by kind',
      description:
        'Pictures, seconds of sound, characters, searches, and tokens that are not text, as the ledger has them.',
      unit: 'suffix: /s',
      queries: [
        query(
          orNone(sum(rate('sluice_units_total', UPSTREAM), 'upstream', 'unit'), 'upstream'),
          '{{upstream}} {{unit}}',
        ),
      ],
    }),
    series({
      title: 'Lines of batches',
      description: 'Lines of batches that have ended, by result.',
      unit: 'suffix: /s',
      queries: [
        query(
          orNone(sum(rate('sluice_batch_lines_total', UPSTREAM), 'upstream', 'result'), 'upstream'),
          '{{upstream}} {{result}}',
        ),
      ],
    }),
    series({
      title: 'Open batches',
      description: 'Batches that have not ended, by state. Each gateway of a store reports all of them.',
      unit: 'short',
      queries: [query(orNone(max(`sluice_batches{${GATEWAY}}`, 'state'), 'state'), '{{state}}')],
    }),
    series({
      title: 'Polls of batches',
      description: 'Questions about batches at upstreams, by result. A failed one is repeated.',
      unit: 'reqps',
      queries: [
        query(
          orNone(sum(rate('sluice_batch_polls_total', UPSTREAM), 'upstream', 'result'), 'upstream'),
          '{{upstream}} {{result}}',
        ),
      ],
    }),
    series({
      title: 'Fallbacks',
      description: 'Requests that moved to another target, from one upstream to the next.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          orNone(
            joined(sum(rate('sluice_fallbacks_total', `${GATEWAY},from=~"$upstream"`), 'from', 'to'), {
              ...{ into: 'move', separator: ' to ', of: ['from', 'to'] },
            }),
            'move',
          ),
          '{{move}}',
        ),
      ],
      runbook: ['Upstream failing'],
    }),
  ]
}

function hedges(): Row['panels'] {
  return [
    series({
      title: 'Hedges',
      description:
        'Second requests because the first content was late. `denied`: the route, a limit or a budget has no room for hedges.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          orNone(sum(rate('sluice_hedges_total', UPSTREAM), 'upstream', 'result'), 'upstream'),
          '{{upstream}} {{result}}',
        ),
      ],
    }),
    series({
      title: 'Paused API keys of upstreams',
      description: 'Keys that a provider refused or throttled, until their cool-down ends.',
      unit: 'short',
      thresholds: { warn: 1, bad: 3 },
      queries: [
        query(orNone(max(`sluice_credentials_resting{${UPSTREAM}}`, 'upstream'), 'upstream'), '{{upstream}}'),
      ],
      runbook: ['Upstream denies the gateway'],
    }),
    series({
      title: 'Failed refreshes of cloud credentials',
      description:
        'Refreshes per second of the credentials of an identity at a cloud that failed. Requests are served while the old credentials are valid.',
      unit: 'ops',
      thresholds: { warn: 0.001, bad: 0.1 },
      queries: [
        query(
          orNone(
            sum(rate('sluice_credential_refreshes_total', `${UPSTREAM}, result="failed"`), 'upstream'),
            'upstream',
          ),
          '{{upstream}}',
        ),
      ],
    }),
    series({
      title: 'Cloud credentials expire in',
      description: 'Time until the credentials of an identity at a cloud expire; they are refreshed before.',
      unit: 's',
      queries: [
        query(
          timeLeft(`min by (upstream) (sluice_credential_expiry_timestamp_seconds{${UPSTREAM}})`),
          '{{upstream}}',
        ),
      ],
    }),
    states({
      title: 'Identities that cannot be refreshed',
      description:
        'Identities at a cloud whose last refresh failed. Their upstreams fail when the credentials expire.',
      unit: 'short',
      states: ['Refreshed', 'Failing'],
      queries: [
        query(
          orNone(max(`sluice_credential_refresh_failing{${UPSTREAM}}`, 'upstream'), 'upstream'),
          '{{upstream}}',
        ),
      ],
    }),
    series({
      title: 'Requests in progress',
      description: 'Requests that wait for an upstream or receive its reply now.',
      unit: 'short',
      queries: [query(orNone(sum(`sluice_inflight{${UPSTREAM}}`, 'upstream'), 'upstream'), '{{upstream}}')],
    }),
  ]
}

function cost(): Row['panels'] {
  return [
    series({
      title: 'Cost per hour',
      description: 'US dollars per hour, by upstream and model.',
      width: 6,
      unit: 'currencyUSD',
      isStacked: true,
      queries: [
        query(
          orNone(`${sum(rate('sluice_cost_usd_total', COST), 'upstream', 'model')} * 3600`, 'upstream'),
          '{{upstream}} {{model}}',
        ),
      ],
      runbook: ['Budget nearly spent'],
    }),
    series({
      title: "Prompt tokens read from the provider's cache",
      description: 'Share of all prompt tokens. Sticky routes raise it.',
      width: 6,
      unit: 'percentunit',
      max: 1,
      queries: [
        query(
          orNone(
            `${sum(rate('sluice_prompt_tokens_total', `${UPSTREAM},cache="hit"`), 'upstream')} / ${sum(rate('sluice_prompt_tokens_total', UPSTREAM), 'upstream')}`,
            'upstream',
          ),
          '{{upstream}}',
        ),
      ],
    }),
    series({
      title: 'Replies from the exact cache',
      description:
        'Share of the requests of routes with a cache, joined running requests included, and what they saved in US dollars per hour.',
      width: 6,
      unit: 'short',
      queries: [
        query(
          orNone(
            `${sum(rate('sluice_cache_requests_total', `${ROUTE},result=~"hit|shared"`), 'route')} / ${sum(rate('sluice_cache_requests_total', ROUTE), 'route')}`,
            'route',
          ),
          '{{route}} hits',
        ),
        query(
          orNone(`${sum(rate('sluice_cache_saved_usd_total', ROUTE), 'route')} * 3600`, 'route'),
          '{{route}} USD per hour',
        ),
      ],
    }),
    series({
      title: 'Tokens of a request, p90',
      description: 'Of input and output, by model.',
      width: 6,
      unit: 'short',
      queries: [
        query(
          quantile(0.9, 'gen_ai_client_token_usage', GEN_AI, 'gen_ai_request_model', 'gen_ai_token_type'),
          '{{gen_ai_request_model}} {{gen_ai_token_type}}',
        ),
      ],
    }),
  ]
}

function replies(): Row['panels'] {
  return [
    series({
      title: 'Requests by upstream and status',
      description: 'Statuses that clients received from each upstream.',
      unit: 'reqps',
      width: 12,
      isStacked: true,
      colours: 'status',
      queries: [
        query(
          orNone(sum(rate('sluice_requests_total', REQUESTS), 'upstream', 'status'), 'upstream'),
          '{{upstream}} {{status}}',
        ),
      ],
      next: UPSTREAM_TO_STREAMS,
    }),
    series({
      title: 'Requests sent again without earlier reasoning',
      description:
        'The upstream refused reasoning that another conversation or provider produced; the gateway repeated the request without it.',
      unit: 'short',
      width: 12,
      queries: [
        query(
          orNone(sum(increase('sluice_reasoning_dropped_total', UPSTREAM), 'upstream'), 'upstream'),
          '{{upstream}}',
        ),
      ],
    }),
  ]
}

/** The board. */
export function providersBoard(): DashboardBuilder {
  return board('Providers', 'Upstreams and models compared: latency, failures, cost.', [
    { title: 'Compared', panels: sideBySide() },
    { title: 'Latency and speed', panels: speed() },
    { title: 'Failures', panels: failures() },
    { title: 'Retries, fallbacks, hedges', panels: [...reactions(), ...hedges()] },
    { title: 'Cost', panels: [...cost(), ...replies()] },
    { title: 'Canaries and shadows', panels: [...canaries(), ...shadows()] },
  ])
}
