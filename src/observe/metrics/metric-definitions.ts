/**
 * The gateway's metrics with help, labels and buckets, as data. `docs/reference/metrics.md` is generated from
 * it.
 */
import { NOTIFY_GROUPS } from '../notification.js'
import type { Definition } from './metric-types.js'

export interface MetricDefinition<Type = 'counter' | 'gauge' | 'histogram'> extends Definition {
  readonly type: Type
}

/**
 * (Upstream, model) pairs with latency and token series of their own: eight, and one more for each upstream,
 * up to MAX_MODEL_PAIRS. A pair has 55 lines. Later pairs count as model `other`.
 */
export const MODEL_PAIRS = 8
export const MAX_MODEL_PAIRS = 100
/** Pairs with the model or the upstream `other`. */
export const FOLDED_PAIRS = 3

const GEN_AI = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'] as const

/** The texts, the aggregation and the growth of a metric. */
type Description = Pick<Definition, 'help' | 'aggregator' | 'fold' | 'perName'>
/** A counter or gauge without its name and labels. */
type CappedDescription = Description & Pick<Definition, 'maxLines'>

/** A histogram without its name and labels. */
interface HistogramDescription extends Description {
  readonly maxSeries: number
  readonly buckets: readonly number[]
}

/** A histogram of each (upstream, model) pair, without its name and labels. */
interface GenAiDescription extends Description {
  /** Series of each (upstream, model) pair. */
  readonly seriesPerPair: number
  readonly buckets: readonly number[]
}

/** A counter with `maxLines` exported lines, and `perName` more for each name of the configuration. */
function counter(
  name: string,
  labels: readonly string[],
  description: CappedDescription,
): MetricDefinition<'counter'> {
  return { type: 'counter', name, labels, ...description }
}

/** A gauge with `maxLines` exported lines, and `perName` more for each name of the configuration. */
function gauge(
  name: string,
  labels: readonly string[],
  description: CappedDescription,
): MetricDefinition<'gauge'> {
  return { type: 'gauge', name, labels, ...description }
}

/** A histogram with `maxSeries` series, and `perName` more for each name of the configuration. */
function histogram(
  name: string,
  labels: readonly string[],
  { maxSeries, perName = {}, ...description }: HistogramDescription,
): MetricDefinition<'histogram'> {
  const lines = description.buckets.length + 3
  const more = Object.entries(perName).map(([kind, series]) => [kind, series * lines] as const)
  return {
    type: 'histogram',
    name,
    labels,
    maxLines: maxSeries * lines,
    perName: Object.fromEntries(more),
    ...description,
  }
}

/**
 * A histogram per (upstream, model) pair, with the labels of OpenTelemetry's conventions for generative AI.
 */
function genAi(
  name: string,
  labels: readonly string[],
  { seriesPerPair, ...description }: GenAiDescription,
): MetricDefinition<'histogram'> {
  return histogram(name, [...GEN_AI, ...labels], {
    maxSeries: seriesPerPair * (MODEL_PAIRS + FOLDED_PAIRS),
    perName: { upstream: seriesPerPair },
    ...description,
  })
}

/** The labels and the closed sets of their values, as texts of the reference. */
export const LABELS: Readonly<Record<string, string>> = {
  route: 'a route of the configuration, or `none` if the request ended before routing',
  upstream: 'an upstream of the configuration, or `none`',
  status: 'the HTTP status of the reply (499: the client disconnected)',
  outcome: '`ok`, or an error kind of errors.md',
  kind: '`ok`, `cancelled` (another attempt was faster), or an error kind of errors.md; of limits: requests, tokens, concurrent, usd_, tokens_ or requests_ with day, week, month or total, and units_ with a unit; of ledger entries: see the help of the metric',
  model: 'a model of the catalogue, or `other`',
  resource: '`delay` (of the event loop), `heap`, `open_files`, `in_flight` (requests in flight)',
  hop: 'authenticate, receive, route, admit, guard, connect, first_byte, translate, relay, settle',
  guardrail: 'a guardrail of the configuration',
  plugin: 'the name of a plugin of the configuration',
  hook: 'a hook of the plugin: `guardrails.NAME`, `conditions.NAME` or `observers.NAME`',
  on: '`request` or `response`',
  verdict:
    '`pass`, `mask`, `block`, `report`, `error` (it could not judge), `unseen` (content that it cannot read)',
  event: `of webhooks ${NOTIFY_GROUPS.map((group) => `\`${group}\``).join(', ')}`,
  end: '`complete`; ended by the upstream: `truncated`, `malformed`, `upstream_timeout`, `upstream_error`; by the client: `client_gone`, `client_stalled`, `key_ended` (its key was revoked or expired); by the gateway: `draining`, `gateway_error`',
  scope:
    'what a budget limits: `key`, `account` (plans included), `model`, `upstream`, `user`; `label` for all labels, `dimension` for all dimensions',
  side: 'of backpressure: `client`, the client read slowly. Of shadow requests: `primary`, the request that the client received; `shadow`, its copy',
  from: 'of translations: the dialect of the request or reply; of fallbacks: the upstream that failed',
  to: 'of translations: the target dialect; of fallbacks: the next upstream',
  cache: "`hit`: read from the provider's cache; `miss`: all other prompt tokens",
  field: "a field of the client's format without array indices, or `other`",
  unit: 'a name of the ledger column `units`: `image`, `audio_second`, `input_image`, …',
  reason:
    'of retries: an error kind of errors.md; of dropped copies and of stored replies: see the help of the metric; of workers: `ended`, the process exited; `silent`, it did not answer pings for ten seconds and was killed',
  result: 'see the help of each metric',
  signal: '`metrics`, `logs` or `traces`',
  state: '`checking`, `submitted`, `running` or `finishing`',
  label: 'a label of keys that `metrics.labels` names. Keys without it are not counted by it',
  value:
    'a value of this label: the first ones that the gateway sees, as many as `metrics.labels` states, over all its workers; the rest is `other`',
  cause: '`ok`, or who has to act on a failure: `client`, `limits`, `gateway` or `provider`',
  ingress:
    "the client's format, which the API and the commands call `client_format`: `chat`, `completions`, `messages`, `responses`, `gemini`, `embeddings`, `rerank`, `moderations`, `images`, `image_edits`, `transcriptions`, `translations`, `speech`, `files`, `batches`, `native`; `none`: the path is unknown",
  op: 'find_key, admit, settle, renew, expire, cache_put, cache_get, probe; accounts, keys, tokens, audit_trail, throttle, usage, objects, values, sweep: all methods of one group; of the archive: insert, read, check',
  where: 'store or disk',
  gen_ai_operation_name: 'always `chat`',
  gen_ai_provider_name: 'an upstream of the configuration',
  gen_ai_request_model: 'a model of the catalogue, or `other`',
  gen_ai_token_type: '`input` or `output`',
}

const COMPARED = ['route', 'side', 'upstream', 'status', 'outcome'] as const
const REQUEST = ['ingress', 'route', 'upstream', 'status', 'outcome'] as const

const HOP_BUCKETS = [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 0.01, 0.05, 0.25, 1, 5, 30]
const OURS_BUCKETS = [50e-6, 100e-6, 200e-6, 300e-6, 500e-6, 750e-6, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.25]
const GUARD_BUCKETS = [1e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const STORE_BUCKETS = [10e-6, 25e-6, 50e-6, 100e-6, 500e-6, 2.5e-3, 0.01, 0.1, 1]
const ARCHIVE_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20]
const SHADOW_BUCKETS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30]
const GAP_BUCKETS = [1e-3, 5e-3, 0.02, 0.05, 0.1, 0.25, 1, 5, 20]

/** Every metric, by its name in the code. */
export const DEFINITIONS = {
  requests: counter('sluice_requests_total', REQUEST, {
    maxLines: 150,
    perName: { target: 60 },
    fold: ['route', 'upstream'],
    help: 'Completed requests on the data plane, by route, status and outcome.',
  }),
  hops: histogram('sluice_hop_duration_seconds', ['hop'], {
    maxSeries: 10,
    buckets: HOP_BUCKETS,
    help: 'Duration of each phase of a request in seconds; first_byte and relay include the upstream.',
  }),
  overhead: histogram('sluice_overhead_seconds', [], {
    maxSeries: 1,
    buckets: OURS_BUCKETS,
    help: "The gateway's own part of the duration of a request in seconds: without the time of upstreams and clients.",
  }),
  inflight: gauge('sluice_inflight', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Requests in flight to an upstream.',
  }),
  attempts: counter('sluice_attempts_total', ['upstream', 'kind'], {
    maxLines: 20,
    perName: { upstream: 40 },
    fold: ['upstream'],
    help: 'Attempts at an upstream by outcome; one client request may need several.',
  }),
  retries: counter('sluice_retries_total', ['upstream', 'reason'], {
    maxLines: 10,
    perName: { upstream: 30 },
    fold: ['upstream'],
    help: 'Retries on the same target, by the error kind of the previous attempt.',
  }),
  retriesDenied: counter('sluice_retries_denied_total', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Retries denied because the retry budget of the upstream was spent.',
  }),
  fallbacks: counter('sluice_fallbacks_total', ['from', 'to'], {
    maxLines: 10,
    perName: { target: 6 },
    fold: ['from', 'to'],
    help: 'Fallbacks to the next target of the route.',
  }),
  hedges: counter('sluice_hedges_total', ['upstream', 'result'], {
    maxLines: 4,
    perName: { upstream: 4 },
    fold: ['upstream'],
    help: 'Hedges (parallel second attempts) by target: won (its content came first), lost (cancelled), failed, denied (not sent: the hedge budget of the route is spent).',
  }),
  breakerState: gauge('sluice_breaker_state', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'The circuit breaker of an upstream: 0 closed, 1 half-open, 2 open; maximum over processes.',
    aggregator: 'max',
  }),
  breakerChanged: gauge('sluice_breaker_changed_timestamp_seconds', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'When the circuit breaker of an upstream last opened or closed, in Unix time; the latest over processes. 0: closed since the start.',
    aggregator: 'max',
  }),
  credentialsResting: gauge('sluice_credentials_resting', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'API keys of an upstream in cool-down after 401, 403 or 429; maximum over processes.',
    aggregator: 'max',
  }),
  canaryAborts: counter('sluice_canary_aborts_total', ['route', 'upstream'], {
    maxLines: 2,
    perName: { target: 1 },
    fold: ['route', 'upstream'],
    help: 'Canary aborts: targets with `abort` taken out of use because their error rate was too high.',
  }),
  canaryAborted: gauge('sluice_canary_aborted', ['route', 'upstream'], {
    maxLines: 2,
    perName: { target: 1 },
    fold: ['route', 'upstream'],
    help: 'State of a target with `abort`: 1 out of use, 0 in use.',
  }),
  shadowRequests: counter('sluice_shadow_requests_total', COMPARED, {
    maxLines: 10,
    perName: { target: 30 },
    fold: ['route', 'upstream'],
    help: 'Requests copied to a shadow target, counted on both sides when both have ended.',
  }),
  shadowFirstContent: histogram('sluice_shadow_time_to_first_token_seconds', ['route', 'side'], {
    maxSeries: 1,
    perName: { target: 2 },
    fold: ['route'],
    buckets: SHADOW_BUCKETS,
    help: 'Seconds to the first content of copied requests, or to the end of a whole reply, on both sides, without the time to receive the request.',
  }),
  shadowTokens: counter('sluice_shadow_tokens_total', ['route', 'side', 'gen_ai_token_type'], {
    maxLines: 4,
    perName: { target: 4 },
    fold: ['route'],
    help: 'Tokens of copied requests on both sides, reported or estimated.',
  }),
  shadowCost: counter('sluice_shadow_cost_usd_total', ['route', 'side'], {
    maxLines: 2,
    perName: { target: 2 },
    fold: ['route'],
    help: 'Cost of copied requests on both sides in US dollars, if the price is known. sluice_cost_usd_total contains the primary side only.',
  }),
  shadowDropped: counter('sluice_shadow_dropped_total', ['route', 'reason'], {
    maxLines: 9,
    perName: { target: 9 },
    fold: ['route'],
    help: 'Sampled requests that were not copied: concurrent or spend (a cap of the route), memory, overload, breaker (of the shadow target: open), store_unavailable, unsupported (the target lacks the operation or an API key), draining.',
  }),
  promptTokens: counter('sluice_prompt_tokens_total', ['upstream', 'cache'], {
    maxLines: 4,
    perName: { upstream: 2 },
    fold: ['upstream'],
    help: 'Prompt tokens that upstreams reported, by whether the provider read them from its prompt cache. The share of hits shows the gain of sticky routes.',
  }),
  streamEnds: counter('sluice_stream_ends_total', ['upstream', 'end'], {
    maxLines: 10,
    perName: { upstream: 12 },
    fold: ['upstream'],
    help: 'Streamed replies by end. Only `complete` ended with a terminator; the label distinguishes ends by the upstream, the client and the gateway.',
  }),
  chunkGap: histogram('sluice_chunk_gap_seconds', ['upstream'], {
    maxSeries: 1,
    perName: { upstream: 1 },
    fold: ['upstream'],
    buckets: GAP_BUCKETS,
    help: "Seconds between two chunks of an upstream's stream.",
  }),
  backpressure: counter('sluice_backpressure_seconds_total', ['side'], {
    maxLines: 1,
    help: 'Seconds in which streams were paused because their clients read too slowly.',
  }),
  losses: counter('sluice_translation_losses_total', ['from', 'to', 'field'], {
    maxLines: 60,
    fold: ['field'],
    help: 'Fields lost in translations.',
  }),
  escrow: counter('sluice_reasoning_escrow_total', ['result'], {
    maxLines: 5,
    help: 'Lookups of reasoning state by turn (hit, miss; most turns have none), and states of replies: stored, too_large; failed: the store was unavailable.',
  }),
  reasoningDropped: counter('sluice_reasoning_dropped_total', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Requests sent again without the reasoning of earlier turns, because the upstream rejected it as bound to another conversation.',
  }),
  cacheRequests: counter('sluice_cache_requests_total', ['route', 'result'], {
    maxLines: 10,
    perName: { target: 5 },
    fold: ['route'],
    help: 'Requests of routes with a cache, by result: hit, shared (joined an equal request that was running), miss, stored (not looked up, replaces the entry), bypass (not cached).',
  }),
  cacheSaved: counter('sluice_cache_saved_usd_total', ['route'], {
    maxLines: 2,
    perName: { target: 1 },
    fold: ['route'],
    help: 'What replies from the cache would have cost in US dollars, if the price is known.',
  }),
  cacheEntries: gauge('sluice_cache_entries', [], {
    maxLines: 1,
    help: 'Stored replies in the memory of the gateway.',
  }),
  cacheBytes: gauge('sluice_cache_bytes', [], {
    maxLines: 1,
    help: 'Size of the stored replies in the memory of the gateway.',
  }),
  cacheEvictions: counter('sluice_cache_evictions_total', ['reason'], {
    maxLines: 5,
    help: 'Stored replies dropped from memory, by reason: expired, memory (the least recently used, for others), cleared (`sluice cache clear`), revoked (of an account or key), route (it changed).',
  }),
  auth: counter('sluice_auth_total', ['result'], {
    maxLines: 17,
    help: 'Authentications by result: ok, missing, malformed, unknown, revoked, expired, disabled, throttled, store_unavailable; of tokens of workloads also identity_unavailable and the kind of the refusal (jwt_invalid, jwt_issuer, jwt_unknown_key, jwt_expired, jwt_audience, jwt_claims, jwt_revoked).',
  }),
  limitRejections: counter('sluice_limit_rejections_total', ['kind'], {
    maxLines: 19,
    help: 'Requests refused by a limit, by kind of limit.',
  }),
  budgetUsed: gauge('sluice_budget_used_ratio', ['scope', 'kind'], {
    maxLines: 28,
    help: 'The highest spent or reserved share (0 to 1) of the budgets that requests of the last minutes used.',
    aggregator: 'max',
  }),
  ledgerMemory: gauge('sluice_ledger_memory_bytes', [], {
    maxLines: 1,
    help: 'Memory of Redis that ledger entries use.',
    aggregator: 'max',
  }),
  ledgerMemoryMax: gauge('sluice_ledger_memory_max_bytes', [], {
    maxLines: 1,
    help: 'Memory of Redis that they may use (ledger.max_memory): the oldest leave before it is reached. NaN if neither the setting nor Redis has a limit in bytes.',
    aggregator: 'max',
  }),
  ledgerMemoryFull: gauge('sluice_ledger_memory_full_seconds', [], {
    maxLines: 1,
    help: 'Time until entries leave because their memory is used up, at the rate of the last 24 hours; 0 if they do. NaN if all of ledger.keep_days fit.',
    aggregator: 'max',
  }),
  archiveUp: gauge('sluice_archive_up', [], {
    maxLines: 1,
    help: 'Whether the archive takes entries: 1, or 0 if it does not, and without `archive`.',
    aggregator: 'max',
  }),
  archiveLag: gauge('sluice_archive_lag_seconds', [], {
    maxLines: 1,
    help: 'The age of the oldest entry that the archive has not confirmed.',
    aggregator: 'max',
  }),
  archiveWaiting: gauge('sluice_archive_rows_waiting', [], {
    maxLines: 1,
    help: 'Entries in the store that the archive has not confirmed.',
    aggregator: 'max',
  }),
  archiveBytes: gauge('sluice_archive_waiting_bytes', ['where'], {
    maxLines: 2,
    help: 'Size of the entries that the archive has not confirmed: in the memory of Redis (store), or in files of this gateway (disk).',
    aggregator: 'max',
  }),
  archiveBytesMax: gauge('sluice_archive_waiting_max_bytes', ['where'], {
    maxLines: 2,
    help: 'Their maximum size: archive.waiting_max_bytes (store) and archive.spool_max_bytes (disk); 0 without an archive.',
    aggregator: 'max',
  }),
  archiveRequest: histogram('sluice_archive_request_seconds', ['op'], {
    maxSeries: 3,
    buckets: ARCHIVE_BUCKETS,
    help: 'Duration of a request to the archive in seconds: insert, read (for a view or a command), check (what was written).',
  }),
  archiveRows: counter('sluice_archive_rows_total', ['result'], {
    maxLines: 5,
    help: 'Entries moved to the archive by this gateway: written, late (of an hour whose sums had moved), repeated (it had them), dropped (it refuses them).',
  }),
  limitsLocal: gauge('sluice_limits_local', [], {
    maxLines: 1,
    help: 'Processes that enforce their share of the limits alone because the store is unavailable.',
  }),
  overloadLevel: gauge('sluice_overload_level', [], {
    maxLines: 1,
    help: 'Overload level: 0 none, 1 low priority is refused, 2 all but high priority is refused, 3 all requests are refused; maximum over processes.',
    aggregator: 'max',
  }),
  shed: counter('sluice_shed_total', ['resource'], {
    maxLines: 4,
    help: 'Requests refused with 503 because of overload, by exhausted resource: delay (of the event loop), heap, open_files, in_flight.',
  }),
  storeDuration: histogram('sluice_store_duration_seconds', ['op'], {
    maxSeries: 17,
    fold: ['op'],
    buckets: STORE_BUCKETS,
    help: 'Duration of a store operation in seconds.',
  }),
  storeErrors: counter('sluice_store_errors_total', ['op'], {
    maxLines: 17,
    fold: ['op'],
    help: 'Failed store operations.',
  }),
  configGeneration: gauge('sluice_config_generation', [], {
    maxLines: 1,
    help: 'The generation of the configuration in force.',
    aggregator: 'max',
  }),
  configReloads: counter('sluice_config_reloads_total', ['result'], {
    maxLines: 2,
    help: 'Configuration reloads: ok, refused (the previous generation stays in force).',
  }),
  credentialRefreshes: counter('sluice_credential_refreshes_total', ['upstream', 'result'], {
    maxLines: 4,
    perName: { upstream: 2 },
    fold: ['upstream'],
    help: 'Refreshes of the credentials of an identity at a cloud, by the first upstream that uses it: ok, failed.',
  }),
  credentialExpiry: gauge('sluice_credential_expiry_timestamp_seconds', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Expiry of the credentials of an identity at a cloud in Unix time, by the first upstream that uses it; 0 without credentials.',
    aggregator: 'min',
  }),
  credentialFailing: gauge('sluice_credential_refresh_failing', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Whether the last refresh of the credentials of an identity at a cloud failed (1), by the first upstream that uses it.',
    aggregator: 'max',
  }),
  certificateExpiry: gauge('sluice_certificate_expiry_timestamp_seconds', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Expiry of a certificate in Unix time: of the data port (`none`), or of the client certificate for an upstream.',
    aggregator: 'min',
  }),
  startTime: gauge('sluice_start_time_seconds', [], {
    maxLines: 1,
    help: 'Start of the newest process of the gateway, in Unix time.',
    aggregator: 'max',
  }),
  fleetMembers: gauge('sluice_config_fleet_members', [], {
    maxLines: 1,
    help: 'Gateways that share the store and have published their configuration, including this one; 0 without a Redis store, or while it is unavailable.',
    aggregator: 'max',
  }),
  fleetDisagreement: gauge('sluice_config_fleet_disagreement', [], {
    maxLines: 1,
    help: "Gateways that share the store with a configuration that differs from this one's.",
    aggregator: 'max',
  }),
  cost: counter('sluice_cost_usd_total', ['upstream', 'model'], {
    maxLines: 30,
    perName: { upstream: 10 },
    fold: ['model'],
    help: 'Cost of requests in US dollars, if the price is known.',
  }),
  pricedTokens: counter('sluice_priced_tokens_total', ['upstream', 'model'], {
    maxLines: 30,
    perName: { upstream: 10 },
    fold: ['model'],
    help: 'Input and output tokens whose cost sluice_cost_usd_total has, estimated and assumed ones included. The cost divided by it is the price of a token.',
  }),
  usageRows: counter('sluice_usage_rows_total', ['kind'], {
    maxLines: 8,
    help: 'Ledger entries by source of their token counts: reported, estimated, assumed (the maximum that an unfinished request may have used), none (nothing was used). lost: settled for a process that crashed. Spool: spooled, replayed, damaged (unreadable line), dropped (written neither to the ledger nor to the spool).',
  }),
  labelRequests: counter('sluice_label_requests_total', ['label', 'value', 'upstream', 'cause'], {
    maxLines: 0,
    help: 'Completed requests by a label of their key that metrics.labels names, by upstream and by whose fault a failure was. Each series also has the label itself: team="search".',
  }),
  labelCost: counter('sluice_label_cost_usd_total', ['label', 'value', 'upstream'], {
    maxLines: 0,
    help: 'Cost of requests in US dollars, if the price is known, by a label of their key that metrics.labels names. Each series also has the label itself.',
  }),
  labelRejections: counter('sluice_label_limit_rejections_total', ['label', 'value', 'kind'], {
    maxLines: 0,
    help: 'Requests refused by a limit, by a label of their key that metrics.labels names. Each series also has the label itself.',
  }),
  tokensAfterDisconnect: counter('sluice_tokens_after_disconnect_total', ['upstream'], {
    maxLines: 2,
    perName: { upstream: 1 },
    fold: ['upstream'],
    help: 'Output tokens that an upstream charged for after the client disconnected.',
  }),
  units: counter('sluice_units_total', ['upstream', 'unit'], {
    maxLines: 12,
    perName: { upstream: 4 },
    fold: ['upstream'],
    help: 'Units other than text tokens that requests used, as their ledger entries have them: image, audio_second, character, page, search, document, line, and tokens by kind (input_image, output_audio, …).',
  }),
  batches: gauge('sluice_batches', ['state'], {
    maxLines: 4,
    aggregator: 'max',
    help: 'Batches of the store that have not ended, by state: checking (its lines are read), submitted (no upstream has begun), running, finishing (results are read and written). Every gateway of the store reports all of them.',
  }),
  batchLines: counter('sluice_batch_lines_total', ['upstream', 'result'], {
    maxLines: 10,
    perName: { upstream: 5 },
    fold: ['upstream'],
    help: 'Lines of batches that have ended, by result: ok, error, expired, cancelled, refused (not sent, because a direct request would be refused).',
  }),
  batchPolls: counter('sluice_batch_polls_total', ['upstream', 'result'], {
    maxLines: 6,
    perName: { upstream: 3 },
    fold: ['upstream'],
    help: "Questions about batches at an upstream's API for batches, by result: ok, rate_limited, error. A failed one is repeated.",
  }),
  workerRestarts: counter('sluice_worker_restarts_total', ['reason'], {
    maxLines: 2,
    help: 'Replaced worker processes.',
  }),
  logLinesLost: counter('sluice_log_lines_lost_total', [], {
    maxLines: 1,
    help: 'Log lines dropped because 8 MiB were already waiting, or the destination failed.',
  }),
  guardrailVerdicts: counter('sluice_guardrail_verdicts_total', ['guardrail', 'on', 'verdict'], {
    maxLines: 12,
    perName: { guardrail: 12 },
    fold: ['guardrail'],
    help: 'Judgements of guardrails, each verdict once for a request and once for its reply.',
  }),
  guardrailDuration: histogram('sluice_guardrail_duration_seconds', ['guardrail'], {
    maxSeries: 1,
    perName: { guardrail: 1 },
    fold: ['guardrail'],
    buckets: GUARD_BUCKETS,
    help: 'Duration of judgements in seconds: a call of a guard server or plugin, or own rules on a request or reply.',
  }),
  pluginErrors: counter('sluice_plugin_errors_total', ['plugin', 'hook'], {
    maxLines: 4,
    perName: { plugin: 10 },
    fold: ['plugin', 'hook'],
    help: 'Calls of plugins that threw, were late or returned another shape.',
  }),
  guardrailBreaker: gauge('sluice_guardrail_breaker_state', ['guardrail'], {
    maxLines: 2,
    perName: { guardrail: 1 },
    fold: ['guardrail'],
    aggregator: 'max',
    help: 'The circuit breaker of a guardrail: 0 closed, 1 half-open, 2 open; maximum over processes.',
  }),
  webhooks: counter('sluice_webhooks_total', ['event', 'result'], {
    maxLines: 24,
    help: 'Webhooks by result: delivered, retried (an attempt failed and another one follows), failed (the last attempt failed), dropped (the queue was full, the receiver is gone, or the gateway exited).',
  }),
  clientTelemetry: counter('sluice_client_telemetry_total', ['signal'], {
    maxLines: 3,
    help: 'Exports of telemetry by programs whose users signed in, such as Claude Code: accepted and dropped.',
  }),
  traceSpans: counter('sluice_trace_spans_total', ['result'], {
    maxLines: 3,
    help: 'Finished spans by result: exported, failed (the receiver rejected them), dropped (the queue was full).',
  }),
  seriesDropped: counter('sluice_series_dropped_total', [], {
    maxLines: 1,
    help: 'Label values that were counted as `other` because their metric had reached its cap.',
  }),
  tokenUsage: genAi('gen_ai_client_token_usage', ['gen_ai_token_type'], {
    seriesPerPair: 2,
    buckets: [16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144],
    help: 'Tokens of a request that the upstream reported.',
  }),
  requestDuration: genAi('gen_ai_server_request_duration_seconds', [], {
    seriesPerPair: 1,
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 120],
    help: 'Seconds from the arrival of a request to the last byte of its reply.',
  }),
  timeToFirstToken: genAi('gen_ai_server_time_to_first_token_seconds', [], {
    seriesPerPair: 1,
    buckets: [0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
    help: 'Seconds from the arrival of a request to the first content of its streamed reply.',
  }),
  timePerOutputToken: genAi('gen_ai_server_time_per_output_token_seconds', [], {
    seriesPerPair: 1,
    buckets: [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.5, 2],
    help: 'Seconds per output token after the first, of streamed replies.',
  }),
} as const satisfies Record<string, MetricDefinition>

/** The counters by labels of keys; `metrics.labels` bounds their series. */
export const LABEL_METRICS = ['labelRequests', 'labelCost', 'labelRejections'] as const
/** One of them. */
export type LabelMetric = (typeof LABEL_METRICS)[number]
