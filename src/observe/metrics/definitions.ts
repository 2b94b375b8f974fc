/**
 * Every metric of the gateway's own, by name, with help, labels and buckets.
 * Counts nothing; `metrics.ts` does, and `docs/reference/metrics.md` is made from this.
 */
import type { Definition } from './metric.js'

/** Each label, and the closed set that its values come from. */
export const LABELS: Readonly<Record<string, string>> = {
  route: 'a route of the configuration, or `none` where no route was reached',
  upstream: 'an upstream of the configuration, or `none`',
  status: 'the HTTP status that the client saw (499: it had left)',
  outcome: '`ok`, or an error kind of errors.md',
  kind: '`ok`, `cancelled` (another attempt was faster), or an error kind of errors.md; of limits: requests, tokens, concurrent, usd_day, usd_month; of rows: a word that their metric’s help lists',
  model: 'a model of the catalogue, or `other`',
  resource: '`delay` (of the event loop), `heap`, `open_files`, `in_flight` (requests under way)',
  hop: 'authenticate, receive, route, admit, connect, first_byte, translate, relay, settle',
  event: 'of webhooks `budget`, `breaker`, `config`, `canary`',
  end: '`complete`; the upstream’s doing: `truncated`, `malformed`, `upstream_timeout`, `upstream_error`; the client’s: `client_gone`, `client_stalled`, `key_ended` (its key was revoked or expired); the gateway’s: `draining`, `gateway_error`',
  scope:
    'what a budget limits: `key`, `account` (plans included), `model`, `upstream`, or `label` for all labels',
  side: 'of backpressure `client`: the client read slowly; `upstream`: the upstream took the request slowly. Of copied requests `primary`: what the client got; `shadow`: the copy',
  from: 'of translations the dialect of the request or reply; of fallbacks the upstream that failed',
  to: 'of translations the dialect that it was translated to; of fallbacks the upstream tried next',
  cache: '`hit`: read from the provider’s cache; `miss`: all other prompt tokens',
  field: 'a field of the interface with array indices removed, or `other`',
  reason:
    'of retries an error kind of errors.md; of dropped copies a word that their metric’s help lists; of workers `ended`: the process ended by itself; `silent`: it answered no ping for ten seconds and was killed',
  result: 'a verdict; each metric’s help lists its values',
  ingress:
    'the client’s format: `chat`, `completions`, `messages`, `responses`, `gemini`, `embeddings`, `native`; `none`: the path is unknown',
  op: 'find_key, admit, settle, renew, expire, shelf_put, shelf_get, probe; accounts, keys, usage, sweep, passes, trail, attempts: all methods of a kind',
  gen_ai_operation_name: 'always `chat`',
  gen_ai_provider_name: 'an upstream of the configuration',
  gen_ai_request_model: 'a model of the catalogue, or `other`',
  gen_ai_token_type: '`input` or `output`',
}

const COMPARED = ['route', 'side', 'upstream', 'status', 'outcome'] as const
const REQUEST = ['ingress', 'route', 'upstream', 'status', 'outcome'] as const

const HOP_BUCKETS = [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 0.01, 0.05, 0.25, 1, 5, 30]
const OURS_BUCKETS = [
  50e-6, 100e-6, 200e-6, 300e-6, 500e-6, 750e-6, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.25,
]
const STORE_BUCKETS = [10e-6, 25e-6, 50e-6, 100e-6, 500e-6, 2.5e-3, 0.01, 0.1, 1]
const SHADOW_BUCKETS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30]
const GAP_BUCKETS = [1e-3, 5e-3, 0.02, 0.05, 0.1, 0.25, 1, 5, 20]

/**
 * The models' own metrics have 11 lines a series, so that eleven (upstream, model) pairs with five
 * series each fit beside everything else under the cap.
 */
const GEN_AI = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'] as const
const GEN_AI_PAIRS = 11

/** How many (upstream, model) pairs get series of their own; later ones count as model `other`. */
export const MAX_MODEL_PAIRS = 8

/** Every metric, by the name that the code calls it. */
export const DEFINITIONS = {
  requests: counter('sluice_requests_total', 300, REQUEST, {
    help: 'Requests on the data plane that have ended, by what the client saw.',
  }),
  hops: histogram('sluice_hop_duration_seconds', 9, ['hop'], HOP_BUCKETS, {
    help: 'Seconds that each phase of a request took; first_byte and relay include the upstream.',
  }),
  overhead: histogram('sluice_overhead_seconds', 1, [], OURS_BUCKETS, {
    help: 'Seconds of a request that were the gateway’s own: its whole time less the waits.',
  }),
  inflight: gauge('sluice_inflight', 40, ['upstream'], {
    help: 'Requests that are with an upstream now.',
  }),
  attempts: counter('sluice_attempts_total', 120, ['upstream', 'kind'], {
    help: 'Requests sent to an upstream, by how they ended; one client request may need several.',
  }),
  retries: counter('sluice_retries_total', 80, ['upstream', 'reason'], {
    help: 'Retries on the same target, by the error kind of the attempt before.',
  }),
  retriesDenied: counter('sluice_retries_denied_total', 40, ['upstream'], {
    help: 'Retries that were not made because the retry budget of the upstream was spent.',
  }),
  fallbacks: counter('sluice_fallbacks_total', 80, ['from', 'to'], {
    help: 'Moves to another target of the route, from one upstream to the other.',
  }),
  hedges: counter('sluice_hedges_total', 60, ['upstream', 'result'], {
    help: 'Second requests because the first content was late, by the upstream they went to: won (its content came first), lost (cancelled), failed; denied (not sent: the budget of the route is spent).',
  }),
  breakerState: gauge('sluice_breaker_state', 40, ['upstream'], {
    help: 'The circuit breaker of an upstream: 0 closed, 1 half-open, 2 open; of several processes the highest.',
    aggregator: 'max',
  }),
  breakerChanged: gauge('sluice_breaker_changed_timestamp_seconds', 40, ['upstream'], {
    help: 'When the circuit breaker of an upstream last opened or closed, in seconds since 1970; of several processes the latest. 0: closed since the start.',
    aggregator: 'max',
  }),
  credentialsResting: gauge('sluice_credentials_resting', 40, ['upstream'], {
    help: 'API keys of an upstream that rest after 401, 403 or 429; of several processes the highest.',
    aggregator: 'max',
  }),
  canaryAborts: counter('sluice_canary_aborts_total', 40, ['route', 'upstream'], {
    help: 'Targets with `abort` that were taken out of use because the provider failed too many of their requests.',
  }),
  canaryAborted: gauge('sluice_canary_aborted', 40, ['route', 'upstream'], {
    help: 'Whether a target with `abort` is out of use now: 1, else 0.',
  }),
  shadowRequests: counter('sluice_shadow_requests_total', 80, COMPARED, {
    help: 'Requests that were copied to a shadow target, each counted on both sides when both have ended.',
  }),
  shadowFirstContent: histogram(
    'sluice_shadow_time_to_first_token_seconds',
    8,
    ['route', 'side'],
    SHADOW_BUCKETS,
    {
      help: 'Seconds until the first content of copied requests, or until the end of a whole reply, on both sides; without the time in which the request arrived.',
    },
  ),
  shadowTokens: counter('sluice_shadow_tokens_total', 32, ['route', 'side', 'gen_ai_token_type'], {
    help: 'Tokens of copied requests on both sides, reported or estimated.',
  }),
  shadowCost: counter('sluice_shadow_cost_usd_total', 16, ['route', 'side'], {
    help: 'US dollars that copied requests have cost on both sides, as far as prices are known. sluice_cost_usd_total has the primary side only.',
  }),
  shadowDropped: counter('sluice_shadow_dropped_total', 40, ['route', 'reason'], {
    help: 'Requests that were drawn and not copied: concurrent or spend (a cap of the route), memory, overload, breaker (that of the shadow target is open), store_unavailable, unsupported (the target has no such operation, or no key), draining.',
  }),
  promptTokens: counter('sluice_prompt_tokens_total', 80, ['upstream', 'cache'], {
    help: 'Prompt tokens that upstreams reported, by whether they were read from the prompt cache of the provider. The share of hits shows what sticky routes gain.',
  }),
  streamEnds: counter('sluice_stream_ends_total', 80, ['upstream', 'end'], {
    help: 'Streamed replies by how they ended. Only `complete` carried a proper end; the label separates what the upstream, the client and the gateway caused.',
  }),
  chunkGap: histogram('sluice_chunk_gap_seconds', 10, ['upstream'], GAP_BUCKETS, {
    help: 'Seconds between two pieces of a stream as they came from the upstream.',
  }),
  backpressure: counter('sluice_backpressure_seconds_total', 1, ['side'], {
    help: 'Seconds that streams stood still because their clients read too slowly.',
  }),
  losses: counter('sluice_translation_losses_total', 60, ['from', 'to', 'field'], {
    help: 'Fields that a translation could not carry.',
    fold: 'field',
  }),
  escrow: counter('sluice_reasoning_escrow_total', 5, ['result'], {
    help: 'Turns looked up for their reasoning state (hit, miss; most turns have none), and states of replies: stored, too_large; failed: the store did not answer.',
  }),
  reasoningDropped: counter('sluice_reasoning_dropped_total', 40, ['upstream'], {
    help: 'Requests sent again without the reasoning of earlier turns, because the upstream found it bound to another conversation.',
  }),
  auth: counter('sluice_auth_total', 9, ['result'], {
    help: 'Keys judged: ok, missing, malformed, unknown, revoked, expired, disabled, throttled, store_unavailable.',
  }),
  limitRejections: counter('sluice_limit_rejections_total', 5, ['kind'], {
    help: 'Requests refused by a limit, by what it limits.',
  }),
  budgetUsed: gauge('sluice_budget_used_ratio', 10, ['scope', 'kind'], {
    help: 'The highest share (0 to 1) of a budget that is spent or reserved, of the budgets that requests of the last minutes fell under.',
    aggregator: 'max',
  }),
  limitsLocal: gauge('sluice_limits_local', 1, [], {
    help: 'Processes that keep their share of the limits by themselves, because the store does not answer.',
  }),
  overloadLevel: gauge('sluice_overload_level', 1, [], {
    help: 'How overloaded the gateway is: 0 not, 1 low priority is refused, 2 all but high priority, 3 all; of several processes the highest.',
    aggregator: 'max',
  }),
  shed: counter('sluice_shed_total', 4, ['resource'], {
    help: 'Requests refused with 503 because of overload, by what was short: delay (of the event loop), heap, open_files, in_flight.',
  }),
  storeDuration: histogram('sluice_store_duration_seconds', 15, ['op'], STORE_BUCKETS, {
    help: 'Seconds that an operation of the store took.',
    fold: 'op',
  }),
  storeErrors: counter('sluice_store_errors_total', 15, ['op'], {
    help: 'Operations of the store that failed.',
    fold: 'op',
  }),
  configGeneration: gauge('sluice_config_generation', 1, [], {
    help: 'The number of the configuration in force.',
    aggregator: 'max',
  }),
  configReloads: counter('sluice_config_reloads_total', 2, ['result'], {
    help: 'Attempts to load a changed configuration: ok, refused (the one before stays in force).',
  }),
  certificateExpiry: gauge('sluice_certificate_expiry_timestamp_seconds', 40, ['upstream'], {
    help: 'When a certificate expires, in Unix time: of the data port (`none`), or the client certificate for an upstream.',
    aggregator: 'min',
  }),
  startTime: gauge('sluice_start_time_seconds', 1, [], {
    help: 'When the newest process of the gateway started, in Unix time.',
    aggregator: 'max',
  }),
  fleetMembers: gauge('sluice_config_fleet_members', 1, [], {
    help: 'Gateways that share the store and have published their configuration, this one included; 0 without a Redis store, or while it does not answer.',
    aggregator: 'max',
  }),
  fleetDisagreement: gauge('sluice_config_fleet_disagreement', 1, [], {
    help: 'Gateways that share the store and have another configuration in force than this one.',
    aggregator: 'max',
  }),
  cost: counter('sluice_cost_usd_total', 60, ['upstream', 'model'], {
    help: 'US dollars that requests have cost, as far as prices are known.',
    fold: 'model',
  }),
  usageRows: counter('sluice_usage_rows_total', 8, ['kind'], {
    help: 'Rows of the ledger, by where their token counts are from: reported, estimated, none (nothing was used). lost: settled for a process that died. On the way: spooled, replayed, damaged (a line of the spool that cannot be read), dropped (neither ledger nor spool took it).',
  }),
  tokensAfterDisconnect: counter('sluice_tokens_after_disconnect_total', 40, ['upstream'], {
    help: 'Output tokens that an upstream charged for after its client had left.',
  }),
  workerRestarts: counter('sluice_worker_restarts_total', 2, ['reason'], {
    help: 'Worker processes that were replaced while the gateway ran.',
  }),
  logLinesLost: counter('sluice_log_lines_lost_total', 1, [], {
    help: 'Log lines that were dropped because stdout did not take them: 8 MiB were already waiting, or it failed.',
  }),
  webhooks: counter('sluice_webhooks_total', 16, ['event', 'result'], {
    help: 'Webhooks by what became of them: delivered, retried (a try failed and another one follows), failed (the last try failed), dropped (the queue was full, the receiver is gone, or the gateway ended).',
  }),
  traceSpans: counter('sluice_trace_spans_total', 3, ['result'], {
    help: 'Finished spans of traces: exported, failed (the receiver did not take them), dropped (the queue was full).',
  }),
  seriesDropped: counter('sluice_series_dropped_total', 1, [], {
    help: 'Series refused because a metric, or all of them together, had reached the cap.',
  }),
  tokenUsage: genAi('gen_ai_client_token_usage', 2, ['gen_ai_token_type'], {
    buckets: [16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144],
    help: 'Tokens of a request, as the upstream reported them.',
  }),
  requestDuration: genAi('gen_ai_server_request_duration_seconds', 1, [], {
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 120],
    help: 'Seconds from a request’s arrival to the last byte of its answer.',
  }),
  timeToFirstToken: genAi('gen_ai_server_time_to_first_token_seconds', 1, [], {
    buckets: [0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
    help: 'Seconds from a request’s arrival to the first content of its streamed answer.',
  }),
  timePerOutputToken: genAi('gen_ai_server_time_per_output_token_seconds', 1, [], {
    buckets: [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.5, 2],
    help: 'Seconds per output token after the first, of streamed answers.',
  }),
} as const satisfies Record<string, MetricDefinition>

/** A definition that knows its own kind. */
export interface MetricDefinition extends Definition {
  readonly type: 'counter' | 'gauge' | 'histogram'
}

type Rest = Pick<Definition, 'help' | 'aggregator' | 'fold'>

function counter(
  name: string,
  maxLines: number,
  labels: readonly string[],
  rest: Rest,
): MetricDefinition {
  return { type: 'counter', name, labels, maxLines, ...rest }
}

function gauge(
  name: string,
  maxLines: number,
  labels: readonly string[],
  rest: Rest,
): MetricDefinition {
  return { type: 'gauge', name, labels, maxLines, ...rest }
}

function histogram(
  name: string,
  maxSeries: number,
  labels: readonly string[],
  buckets: readonly number[],
  rest: Rest,
): MetricDefinition {
  const maxLines = maxSeries * (buckets.length + 3)
  return { type: 'histogram', name, labels, maxLines, buckets, ...rest }
}

function genAi(
  name: string,
  seriesPerPair: number,
  labels: readonly string[],
  rest: Rest & { buckets: readonly number[] },
): MetricDefinition {
  const { buckets, ...others } = rest
  return histogram(name, seriesPerPair * GEN_AI_PAIRS, [...GEN_AI, ...labels], buckets, others)
}
