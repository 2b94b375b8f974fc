/** The board that an on-call engineer opens first: traffic, success, cost and refusals. */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.js'
import { query, rateBy, series, stat, statement, withExemplars } from './panels.js'
import {
  COST,
  FAILED,
  GATEWAY,
  GEN_AI,
  joined,
  max,
  orNone,
  orZero,
  quantile,
  rate,
  REQUESTS,
  SERVED,
  sum,
  UPSTREAM,
} from './promql.js'
import type { Row } from './rows.js'

const FAILED_REQUESTS = `${REQUESTS},${FAILED}`
const SERVED_REQUESTS = `${REQUESTS},${SERVED}`
const ALL_REQUESTS = sum(rate('sluice_requests_total', REQUESTS))
const TO_PROVIDERS = { board: 'Providers', from: { upstream: 'upstream' } } as const

/** The share of requests that failed over a window, as a multiple of the 0.1 % that the objective allows. */
function burn(window: string): string {
  const failed = `sum(rate(sluice_requests_total{${FAILED_REQUESTS}}[${window}])) or vector(0)`
  return `(${failed}) / sum(rate(sluice_requests_total{${SERVED_REQUESTS}}[${window}])) / 0.001`
}

function figures(): Row['panels'] {
  return [
    stat({
      title: 'Requests per second',
      description: 'Completed requests with any status.',
      unit: 'reqps',
      queries: [query(orZero(ALL_REQUESTS), 'Requests')],
      next: { board: 'Providers' },
    }),
    stat({
      title: 'Success rate',
      description:
        'Requests that succeeded, of all but those that clients or limits made fail. A 429 of a provider and a cut stream are failures. The objective is 99.9 %; yellow below it, red below 99 %.',
      unit: 'percentunit',
      decimals: 2,
      max: 1,
      thresholds: { warn: 0.999, bad: 0.99, isFloor: true },
      queries: [
        query(
          `1 - (${orZero(sum(rate('sluice_requests_total', FAILED_REQUESTS)))}) / ${sum(rate('sluice_requests_total', SERVED_REQUESTS))}`,
          'Success',
        ),
      ],
      next: { board: 'Providers' },
      runbook: ['Availability below its objective'],
    }),
    stat({
      title: 'Cost per hour',
      description: 'US dollars per hour at the current rate, for models with a known price.',
      unit: 'currencyUSD',
      decimals: 2,
      queries: [query(orZero(`${sum(rate('sluice_cost_usd_total', COST))} * 3600`), 'Cost')],
      next: { board: 'Providers' },
      runbook: ['Budget nearly spent'],
    }),
    stat({
      title: 'Refused by limits',
      description:
        'Requests per second that a rate limit or a budget refused with 429. Yellow from 0.1, red from 1.',
      unit: 'reqps',
      thresholds: { warn: 0.1, bad: 1 },
      queries: [query(orZero(sum(rate('sluice_limit_rejections_total', GATEWAY))), 'Refused')],
      runbook: ['Budget nearly spent'],
    }),
    stat({
      title: 'Time to first token, p95',
      description: 'Of streamed replies. The objective is 5 s for 95 %; yellow from 5 s, red from 10 s.',
      unit: 's',
      thresholds: { warn: 5, bad: 10 },
      queries: [
        withExemplars(query(quantile(0.95, 'gen_ai_server_time_to_first_token_seconds', GEN_AI), 'p95')),
      ],
      next: { board: 'Streams' },
      runbook: ['First tokens late'],
    }),
    stat({
      title: 'Requests in progress',
      description: 'Requests that wait for an upstream or receive its reply now.',
      unit: 'short',
      queries: [query(orZero(sum(`sluice_inflight{${UPSTREAM}}`)), 'In progress')],
      next: { board: 'Providers' },
    }),
  ]
}

function traffic(): Row['panels'] {
  return [
    series({
      title: 'Requests by status',
      description: 'Statuses that clients received. 499: the client left before the reply ended.',
      unit: 'reqps',
      isStacked: true,
      colours: 'status',
      queries: [rateBy('sluice_requests_total', REQUESTS, 'status')],
      next: { board: 'Providers' },
    }),
    series({
      title: 'Failed requests by kind',
      description: 'Failed requests by error kind. docs/reference/errors.md explains each kind.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_requests_total', `${REQUESTS},outcome!="ok"`, 'outcome')],
      next: { board: 'Providers' },
      runbook: ['Availability below its objective'],
    }),
    series({
      title: 'Error budget burn rate',
      description:
        'Rate of failures of providers and of the gateway as a multiple of the rate that the objective of 99.9 % allows. At 14.4 the error budget of 30 days is spent in two days, at 6 in five. A window that begins before the first sample has the time since then.',
      unit: 'short',
      thresholds: { warn: 6, bad: 14.4 },
      queries: [query(burn('5m'), '5 minutes'), query(burn('1h'), '1 hour'), query(burn('6h'), '6 hours')],
      runbook: ['Availability below its objective'],
    }),
  ]
}

function destinations(): Row['panels'] {
  return [
    series({
      title: 'Requests by route',
      description: 'The route of each request. `none`: the request was refused before a route was chosen.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_requests_total', REQUESTS, 'route')],
      next: { board: 'Providers', from: { route: 'route' } },
    }),
    series({
      title: 'Requests by upstream',
      description: 'The upstream that replied. `none`: the gateway replied without one.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_requests_total', REQUESTS, 'upstream')],
      next: TO_PROVIDERS,
    }),
    series({
      title: 'Requests by client format',
      description: 'Requests by client format.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_requests_total', REQUESTS, 'ingress')],
    }),
  ]
}

function cost(): Row['panels'] {
  return [
    series({
      title: 'Cost per hour by model',
      description: 'US dollars per hour. A model without a price in the catalogue costs nothing here.',
      unit: 'currencyUSD',
      isStacked: true,
      queries: [
        query(
          orNone(`${sum(rate('sluice_cost_usd_total', COST), 'upstream', 'model')} * 3600`, 'model'),
          '{{upstream}} {{model}}',
        ),
      ],
      next: { board: 'Providers', from: { upstream: 'upstream', model: 'model' } },
      runbook: ['Budget nearly spent'],
    }),
    series({
      title: 'Tokens per second',
      description: 'Tokens that upstreams reported, by direction.',
      unit: 'suffix: tokens/s',
      queries: [rateBy('gen_ai_client_token_usage_sum', GEN_AI, 'gen_ai_token_type')],
      next: { board: 'Providers' },
    }),
    series({
      title: 'Highest share of a budget used',
      description:
        'The most used budget of all that applied to requests of the last minutes. Yellow from 80 %, red from 95 %; at 100 % requests are refused.',
      unit: 'percentunit',
      max: 1,
      thresholds: { warn: 0.8, bad: 0.95 },
      queries: [
        query(
          orNone(max(`sluice_budget_used_ratio{${GATEWAY}}`, 'scope', 'kind'), 'scope'),
          '{{scope}} {{kind}}',
        ),
      ],
      runbook: ['Budget nearly spent'],
    }),
    statement({
      title: 'Cost by account',
      description: 'A link to the cost of every account and API key, in the ledger of the gateway.',
      text: `Accounts and API keys are no labels of metrics, because their number has no bound. Their exact cost is in the ledger:
[cost by account](\${dashboard}/usage?account=all&group=account) and [by API key](\${dashboard}/usage?account=all&group=key) on the gateway's own dashboard, for administrators.
Its address is the variable "Sluice dashboard" of this board. Programs get the same figures from \`GET /admin/v1/usage?by=account\`.`,
    }),
  ]
}

function refusals(): Row['panels'] {
  return [
    series({
      title: 'Requests refused by a limit',
      description:
        'By the quantity that the limit counts: requests or tokens per minute, concurrent requests, US dollars.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_limit_rejections_total', GATEWAY, 'kind')],
      runbook: ['Budget nearly spent'],
    }),
    series({
      title: 'API key checks',
      description:
        'By result. Many `unknown` or `malformed` keys are a misconfigured client or an attempt to guess keys.',
      unit: 'reqps',
      isStacked: true,
      queries: [rateBy('sluice_auth_total', GATEWAY, 'result')],
    }),
    series({
      title: 'Requests refused because of overload',
      description: 'By the exhausted resource. Yellow from the first refusal.',
      unit: 'reqps',
      thresholds: { warn: 0.001, bad: 1 },
      queries: [rateBy('sluice_shed_total', GATEWAY, 'resource')],
      next: { board: 'Gateway internals' },
      runbook: ['Overloaded'],
    }),
  ]
}

/** Lines of a panel by value: colours of more lines look alike. */
const MOST_VALUES = 15

/** The values of all labels with the highest sums. */
function topValues(expression: string, ...more: readonly string[]): string {
  const top = `topk(${MOST_VALUES}, ${sum(expression, 'label', 'value', ...more)})`
  const named = joined(top, { into: 'name', separator: ' ', of: ['label', 'value'] })
  const whole = joined(named, { into: 'name', separator: ': ', of: ['name', ...more] })
  return orNone(more.length === 0 ? named : whole, 'name')
}

function teamsAndApps(): Row['panels'] {
  return [
    series({
      title: 'Failures of providers by label',
      description:
        'Which teams or apps a failing provider hits: requests that failed because of an upstream, by the labels of keys that `metrics.labels` names.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        query(
          topValues(rate('sluice_label_requests_total', `${UPSTREAM},cause="provider"`), 'upstream'),
          '{{name}}',
        ),
      ],
      next: TO_PROVIDERS,
      runbook: ['Label hit by a provider'],
    }),
    series({
      title: 'Cost per hour by label',
      description:
        'Who spends: US dollars per hour, by the labels of keys that `metrics.labels` names. A model without a price costs nothing here.',
      unit: 'currencyUSD',
      queries: [query(topValues(`${rate('sluice_label_cost_usd_total', UPSTREAM)} * 3600`), '{{name}}')],
      next: { board: 'Providers' },
      runbook: ['Label spends more'],
    }),
    series({
      title: 'Requests refused by a limit, by label',
      description:
        'Which teams or apps hit limits, and which kind, by the labels of keys that `metrics.labels` names.',
      unit: 'reqps',
      isStacked: true,
      queries: [query(topValues(rate('sluice_label_limit_rejections_total', GATEWAY), 'kind'), '{{name}}')],
      runbook: ['Label refused by limits'],
    }),
  ]
}

/** The board. */
export function overviewBoard(): DashboardBuilder {
  return board('Overview', 'Traffic, success, cost and refusals of the gateway.', [
    { title: 'Now', panels: figures() },
    { title: 'Traffic', panels: [...traffic(), ...destinations()] },
    { title: 'Cost and budgets', panels: cost() },
    { title: 'Teams and apps', panels: teamsAndApps() },
    { title: 'Refusals', panels: refusals() },
  ])
}
