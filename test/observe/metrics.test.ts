/**
 * Goal: every method of `Metrics` changes the metric and labels that the contract names.
 * Method: each is called once and the text is searched; the definitions are checked against their limits.
 */
import t from 'tap'
import { DEFINITIONS, LABELS, type MetricDefinition } from '../../src/observe/metrics/metric-definitions.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'
import type { AuthResult } from '../../src/accounts/authentication/authentication-result.js'
import type { Hop } from '../../src/observe/metrics/closed-labels.js'
import { NOTIFY_GROUPS } from '../../src/observe/notification.js'
import { metricsPage } from '../../docs/generate/metrics-page.js'

const HOPS: Hop[] = [
  'authenticate',
  'receive',
  'route',
  'admit',
  'connect',
  'first_byte',
  'translate',
  'relay',
  'settle',
]
const RESULTS: AuthResult[] = [
  'ok',
  'missing',
  'malformed',
  'unknown',
  'revoked',
  'expired',
  'disabled',
  'store_unavailable',
]
const MODEL = 'gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m"'

void t.test('every method counts in its metric', async (t) => {
  const metrics = new Metrics()
  for (const hop of HOPS) metrics.hops[hop].observe(0.0002)
  for (const result of RESULTS) metrics.auth(result)
  metrics.overhead(0.00007)
  metrics.loss('openai-chat', 'anthropic', 'messages[2].content[0].detail')
  metrics.unrouted(401, 'unauthenticated')
  metrics.configLoaded(3)
  metrics.configReload('refused')
  metrics.storeOperation('findKey', 0.00002, true)
  metrics.tokensAfterDisconnect('anthropic', 12)
  const target = metrics.target('claude-', 'anthropic')
  t.equal(metrics.target('claude-', 'anthropic'), target, 'resolved once')
  target.inflight(1)
  target.inflight(1)
  target.inflight(-1)
  target.attempt('ok')
  target.attempt('upstream_busy')
  target.finished(200, 'ok', 'messages')
  target.finished(200, 'ok', 'messages')
  target.finished(502, 'upstream_failed')
  target.streamEnd('client_gone')
  target.chunkGap(0.03)
  target.backpressure('client', 1.5)
  target.served('m', { seconds: 3, ttftSeconds: 1, usage: { input: 100, output: 21 } })
  target.served('m', { seconds: 3, ttftSeconds: null, usage: { input: 100 } })
  target.served('m', { seconds: 3, ttftSeconds: null, usage: { input: 50, cacheRead: 30 } })
  metrics.retry('anthropic', 'upstream_busy')
  metrics.fallback('anthropic', 'openai')
  metrics.hedge('openai', 'won')
  metrics.gauges.upstreams([
    {
      name: 'gone',
      breaker: 2,
      breakerChangedAtMs: 9_000,
      resting: 1,
      retriesDenied: 0,
      certificateExpiry: null,
    },
  ])
  metrics.beforeCollect(() => {
    metrics.gauges.upstreams([
      {
        name: 'anthropic',
        breaker: 1,
        breakerChangedAtMs: 12_500,
        resting: 2,
        retriesDenied: 3,
        certificateExpiry: null,
      },
    ])
  })
  metrics.gauges.budgetUsed('key', 'usd_day', 0.5)
  metrics.gauges.budgetUsed('key', 'usd_day', 0.85)
  metrics.gauges.budgetUsed('key', 'usd_day', 0.2)
  metrics.gauges.listenerCertificate(1_900_000_000)
  const text = await metrics.text()
  for (const hop of HOPS) t.match(text, `sluice_hop_duration_seconds_count{hop="${hop}"} 1`)
  for (const result of RESULTS) t.match(text, `sluice_auth_total{result="${result}"} 1`)
  for (const line of [
    'sluice_hop_duration_seconds_bucket{le="0.0001",hop="relay"} 0',
    'sluice_hop_duration_seconds_bucket{le="0.00025",hop="relay"} 1',
    'sluice_overhead_seconds_bucket{le="0.0001"} 1',
    'sluice_translation_losses_total{from="openai-chat",to="anthropic",field="messages.content.detail"} 1',
    'sluice_requests_total{ingress="none",route="none",upstream="none",status="401",outcome="unauthenticated"} 1',
    'sluice_requests_total{ingress="messages",route="claude-",upstream="anthropic",status="200",outcome="ok"} 2',
    'sluice_requests_total{ingress="none",route="claude-",upstream="anthropic",status="502",outcome="upstream_failed"} 1',
    'sluice_config_generation 3',
    'sluice_config_reloads_total{result="ok"} 0',
    'sluice_config_reloads_total{result="refused"} 1',
    'sluice_store_duration_seconds_count{op="findKey"} 1',
    'sluice_store_errors_total{op="findKey"} 1',
    'sluice_tokens_after_disconnect_total{upstream="anthropic"} 12',
    'sluice_inflight{upstream="anthropic"} 1',
    'sluice_attempts_total{upstream="anthropic",kind="ok"} 1',
    'sluice_attempts_total{upstream="anthropic",kind="upstream_busy"} 1',
    'sluice_retries_total{upstream="anthropic",reason="upstream_busy"} 1',
    'sluice_retries_denied_total{upstream="anthropic"} 3',
    'sluice_budget_used_ratio{scope="key",kind="usd_day"} 0.85',
    'sluice_certificate_expiry_timestamp_seconds{upstream="none"} 1900000000',
    'sluice_fallbacks_total{from="anthropic",to="openai"} 1',
    'sluice_hedges_total{upstream="openai",result="won"} 1',
    'sluice_breaker_state{upstream="anthropic"} 1',
    'sluice_breaker_state{upstream="gone"} 0',
    'sluice_breaker_changed_timestamp_seconds{upstream="anthropic"} 12.5',
    'sluice_breaker_changed_timestamp_seconds{upstream="gone"} 0',
    'sluice_credentials_resting{upstream="anthropic"} 2',
    'sluice_prompt_tokens_total{upstream="anthropic",cache="hit"} 30',
    'sluice_prompt_tokens_total{upstream="anthropic",cache="miss"} 220',
    'sluice_stream_ends_total{upstream="anthropic",end="client_gone"} 1',
    'sluice_chunk_gap_seconds_bucket{le="0.05",upstream="anthropic"} 1',
    'sluice_backpressure_seconds_total{side="client"} 1.5',
    'sluice_series_dropped_total 0',
    `gen_ai_server_request_duration_seconds_sum{${MODEL}} 9`,
    `gen_ai_server_time_to_first_token_seconds_sum{${MODEL}} 1`,
    `gen_ai_server_time_per_output_token_seconds_sum{${MODEL}} 0.1`,
    `gen_ai_client_token_usage_sum{${MODEL},gen_ai_token_type="input"} 250`,
    `gen_ai_client_token_usage_count{${MODEL},gen_ai_token_type="output"} 1`,
    'nodejs_heap_size_used_bytes ',
  ]) {
    t.match(text, line)
  }
})

void t.test('every definition follows the rules and is documented', (t) => {
  const page = metricsPage()
  const all: MetricDefinition[] = Object.values(DEFINITIONS)
  t.equal(new Set(all.map(({ name }) => name)).size, all.length, 'names are distinct')
  for (const { name, help, labels, buckets = [], type } of all) {
    t.match(name, /^(sluice|gen_ai)_[a-z_]+$/)
    t.match(help, /^[A-Z].*\.$/)
    t.match(page, `### ${name}\n\n${help}\n`)
    t.ok(buckets.length <= 12, `${name}: at most 12 buckets`)
    t.strictSame(
      [...buckets].sort((a, b) => a - b),
      buckets,
      `${name}: ascending`,
    )
    t.equal(type === 'histogram', buckets.length > 0)
    t.equal(type === 'counter', name.endsWith('_total'), `${name}: counters end in _total`)
    for (const label of labels) t.hasOwnProp(LABELS, label)
  }
  t.end()
})

void t.test('all webhooks and budgets have series of their own', async (t) => {
  const metrics = new Metrics()
  const scopes = ['key', 'account', 'model', 'upstream', 'user', 'label', 'dimension']
  const kinds = ['usd_day', 'usd_week', 'usd_month', 'usd_total']
  for (const group of NOTIFY_GROUPS) {
    for (const result of ['delivered', 'retried', 'failed', 'dropped'] as const)
      metrics.webhook(group, result)
  }
  for (const scope of scopes) for (const kind of kinds) metrics.gauges.budgetUsed(scope, kind, 0.5)
  const text = await metrics.text()
  t.match(text, 'sluice_series_dropped_total 0')
  for (const group of NOTIFY_GROUPS) t.match(LABELS['event'], `\`${group}\``)
  for (const scope of scopes) t.match(LABELS['scope'], `\`${scope}\``)
})
