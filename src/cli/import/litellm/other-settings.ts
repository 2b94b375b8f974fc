/** `litellm_settings` and `general_settings`, and the sections without an equivalent. */
import type { JsonObject } from '../../../base/json.js'
import type { ImportReport } from '../report.js'
import { readEndUsers } from './end-users.js'
import { ignoreKeys, isTrue, listAt, mapAt, numberIn, refuseKeys } from './context.js'

const SETTINGS = 'litellm_settings'
const GENERAL = 'general_settings'

/** Sections of the new configuration, and keys of parts of it. */
export interface OtherSettings {
  readonly server: JsonObject
  readonly sections: JsonObject
  /** Keys of every route. */
  readonly cache: JsonObject
  /** Keys of every upstream. */
  readonly upstream: JsonObject
  readonly limits: readonly JsonObject[]
}

/** Reads both. */
export function readOtherSettings(config: JsonObject, report: ImportReport): OtherSettings {
  const settings = mapAt(config, SETTINGS)
  const general = mapAt(config, GENERAL)
  readCallbacks(settings, report)
  const isVerbose = isTrue(settings['set_verbose'])
  if (settings['set_verbose'] !== undefined) {
    if (isVerbose) report.carried([SETTINGS, 'set_verbose'], 'log.level')
    else report.ignored([SETTINGS, 'set_verbose'])
  }
  readDropParams(settings, report)
  const endUsers = readEndUsers(config, report)
  readPlainSettings(settings, report)
  const general_ = readGeneral(general, report)
  readSections(config, report)
  const { server, limits, upstream } = general_
  const cache = readCache(settings, report)
  const isShared = Object.keys(cache).length > 0
  return {
    server,
    sections: {
      ...(isVerbose ? { log: { level: 'debug' } } : {}),
      ...(isShared ? { cache: { store: true } } : {}),
      ...(endUsers.dimensions.length > 0 ? { dimensions: [...endUsers.dimensions] } : {}),
    },
    cache,
    upstream,
    limits: [...limits, ...endUsers.limits],
  }
}

function readDropParams(settings: JsonObject, report: ImportReport): void {
  if (settings['drop_params'] === undefined) return
  const at = [SETTINGS, 'drop_params']
  if (isTrue(settings['drop_params'])) report.carried(at, 'on_loss: report')
  else
    report.changed(
      at,
      'on_loss: report',
      'members that cannot be sent are left out and named in x-sluice-lost',
    )
}

const BUILT_IN: ReadonlySet<unknown> = new Set(['prometheus', 'prometheus_system'])
const TRACES =
  /^(?:otel|langfuse|langfuse_otel|arize|arize_phoenix|datadog\w*|opentelemetry|langsmith|logfire)$/

function readCallbacks(settings: JsonObject, report: ImportReport): void {
  for (const key of [
    'callbacks',
    'success_callback',
    'failure_callback',
    'service_callback',
    'service_callbacks',
    'audit_log_callbacks',
  ]) {
    const value = settings[key]
    const names = Array.isArray(value) ? value : value === undefined ? [] : [value]
    for (const [index, name] of names.entries()) {
      const at = Array.isArray(value) ? [SETTINGS, key, index] : [SETTINGS, key]
      if (BUILT_IN.has(name)) report.carried(at, 'metrics on the ops port')
      else if (typeof name === 'string' && TRACES.test(name)) {
        report.notCarried(at, 'set telemetry.otlp to send traces there')
      } else report.notCarried(at, 'use the ledger, notify or a plugin')
    }
  }
}

const TYPES: ReadonlySet<unknown> = new Set([undefined, 'local'])
const YEAR_SECONDS = 31_536_000

function readCache(settings: JsonObject, report: ImportReport): JsonObject {
  const params = mapAt(settings, 'cache_params')
  const at = [SETTINGS, 'cache_params']
  const { type, mode } = params
  if (!isTrue(settings['cache'])) {
    report.ignored([SETTINGS, 'cache'], 'off')
    report.ignored(at, 'the cache is off')
    return {}
  }
  const why =
    typeof type === 'string' && type.includes('semantic')
      ? 'only equal requests are answered from the cache'
      : mode === 'default_off'
        ? 'clients cannot ask for it: use routes.cache'
        : null
  if (why !== null) {
    report.notCarried([SETTINGS, 'cache'], why)
    report.notCarried(at, why)
    return {}
  }
  report.carried([SETTINGS, 'cache'], 'routes.cache')
  report.ignored(at, 'replies are kept in the memory of each process and in the store')
  if (!TYPES.has(type)) {
    report.changed([...at, 'type'], 'cache.store', 'replies are kept in the store of the gateway')
  }
  const ttl = numberIn(params['ttl'])
  if (ttl !== null && ttl >= 1 && ttl <= YEAR_SECONDS)
    report.carried([...at, 'ttl'], 'routes.cache.ttl_seconds')
  else if (ttl !== null) report.changed([...at, 'ttl'], 'routes.cache.ttl_seconds', 'from a second to a year')
  const types = listAt(params, 'supported_call_types').map(String)
  const methods = [
    ...(types.some((each) => /completion|responses|messages/.test(each)) ? ['chat'] : []),
    ...(types.some((each) => each.includes('embedding')) ? ['embeddings'] : []),
  ]
  if (types.length > 0) report.carried([...at, 'supported_call_types'], 'routes.cache.methods')
  const seconds = Math.min(YEAR_SECONDS, Math.max(1, Math.round(ttl ?? 3_600)))
  return { cache: { ttl_seconds: seconds, scope: 'shared', ...(methods.length === 0 ? {} : { methods }) } }
}

function readPlainSettings(settings: JsonObject, report: ImportReport): void {
  ignoreKeys(report, [SETTINGS], settings, {
    modify_params: 'requests are translated for each vendor',
    json_logs: 'logs are JSON',
    telemetry: null,
    turn_off_message_logging: 'content is not kept',
    redact_user_api_key_info: null,
    disable_error_logs: null,
    prometheus_initialize_budget_metrics: null,
    enable_json_schema_validation: null,
    suppress_debug_info: null,
    log_raw_request_response: null,
    store_audit_logs: 'every change is in the audit trail',
    user_url_validation: null,
    public_routes: null,
    retry_after: null,
  })
  refuseKeys(report, [SETTINGS], settings, {
    max_end_user_budget_id:
      'budgets of the database are not in this file: use limits with scope dimension:end_user',
    timezone: 'days, weeks and months are those of UTC',
    budget_reset_time: 'days, weeks and months begin at midnight UTC',
    default_team_settings: 'use plans, or guardrails with apply_to',
    default_key_generate_params: 'use plans',
    upperbound_key_generate_params: 'use plans',
    default_internal_user_params: 'use plans',
    max_internal_user_budget: 'use plans',
    max_user_budget: 'use plans',
    s3_callback_params: 'use the archive, or record',
    internal_user_budget_duration: 'use plans',
    ssl_verify: 'certificates are always checked: use upstreams.NAME.tls',
    ssl_certificate: 'use upstreams.NAME.tls',
    custom_provider_map: 'own Python code is not run: use an OpenAI-compatible service',
    forward_traceparent_to_llm_provider: 'use telemetry',
    key_generation_settings: 'use plans and roles',
    mcp_aliases: 'there is no MCP gateway: keep LiteLLM for it',
  })
  if (settings['max_budget'] !== undefined || settings['budget_duration'] !== undefined) {
    const note = 'of the account litellm above all imported ones, with --keys'
    for (const key of ['max_budget', 'budget_duration']) {
      if (settings[key] !== undefined && !report.has([SETTINGS, key]))
        report.notCarried([SETTINGS, key], note)
    }
  }
}

function readGeneral(
  general: JsonObject,
  report: ImportReport,
): Pick<OtherSettings, 'server' | 'limits' | 'upstream'> {
  const server: JsonObject = {}
  const limits: JsonObject[] = []
  const perKey = numberIn(general['max_parallel_requests'])
  if (perKey !== null && perKey >= 1) {
    limits.push({ scope: 'key', concurrent: Math.round(perKey) })
    report.carried([GENERAL, 'max_parallel_requests'], 'limits.concurrent')
  }
  const all = numberIn(general['global_max_parallel_requests'])
  if (all !== null && all >= 1) {
    server['overload'] = { max_inflight: Math.min(1_000_000, Math.round(all)) }
    report.changed(
      [GENERAL, 'global_max_parallel_requests'],
      'server.overload.max_inflight',
      'of each worker',
    )
  }
  const mib = numberIn(general['max_request_size_mb'])
  if (mib !== null && mib > 0) {
    server['max_body_bytes'] = Math.min(268_435_456, Math.max(1, Math.round(mib * 1_048_576)))
    report.carried([GENERAL, 'max_request_size_mb'], 'server.max_body_bytes')
  }
  const upstream: JsonObject = {}
  if (isTrue(general['background_health_checks'])) {
    const seconds = numberIn(general['health_check_interval']) ?? 300
    upstream['probe'] = { interval_ms: Math.min(86_400_000, Math.max(100, Math.round(seconds * 1_000))) }
    const note = 'a request for the list of models, not a chat'
    report.changed([GENERAL, 'background_health_checks'], 'upstreams.probe', note)
    report.carried([GENERAL, 'health_check_interval'], 'upstreams.probe.interval_ms')
  } else report.ignored([GENERAL, 'health_check_interval'], 'there are no probes')
  readGeneralWords(general, report)
  return { server, limits, upstream }
}

function readGeneralWords(general: JsonObject, report: ImportReport): void {
  const note = 'administrators sign in to the dashboard; with --keys it is the key litellm-master of apps'
  if (general['master_key'] !== undefined && !report.has([GENERAL, 'master_key'])) {
    report.notCarried([GENERAL, 'master_key'], note)
  }
  refuseKeys(report, [GENERAL], general, {
    custom_auth: 'own Python code is not run: use keys or identity',
    custom_auth_settings: 'use keys or identity',
    enable_jwt_auth: 'use identity',
    litellm_jwtauth: 'use identity',
    alerting: 'use notify',
    alerting_threshold: 'use notify',
    alert_types: 'use notify',
    alerting_args: 'use notify',
    key_management_system: 'use ${file:…}',
    key_management_settings: 'use ${file:…}',
    completion_model: "add a route with model: '*'",
    infer_model_from_keys: 'name the models in routes',
    allowed_routes: 'keys are for models; native access is listed in upstreams.NAME.native',
    forward_client_headers_to_llm_api: 'headers of clients are not passed on',
    pass_through_endpoints: 'use upstreams.NAME.native, below /native/NAME/',
    allowed_ips: 'use a firewall, or a proxy in front',
    custom_sso: 'use dashboard.oidc',
    custom_key_generate: 'use plans',
    database_url: 'the store is SQLite or Redis: store',
    litellm_key_header_name: 'keys are read from Authorization, x-api-key, api-key and x-litellm-api-key',
  })
  if (isTrue(general['store_model_in_db'])) {
    const models = 'models of the database are not in this file: GET /model/info of LiteLLM lists them'
    report.notCarried([GENERAL, 'store_model_in_db'], models)
  } else report.ignored([GENERAL, 'store_model_in_db'], 'models are in the file')
  for (const key of ['database_url', 'allowed_ips', 'custom_auth', 'alerting', 'user_header_name']) {
    if (general[key] === null) report.ignored([GENERAL, key], 'not set')
  }
  for (const key of Object.keys(general)) {
    const section = Object.hasOwn(MISPLACED, key) ? MISPLACED[key] : undefined
    if (report.has([GENERAL, key])) continue
    if (section === undefined) report.ignored([GENERAL, key], OWN)
    else report.notCarried([GENERAL, key], `LiteLLM does not read it here: move it to ${section}`)
  }
}

/** Settings that files have in `general_settings`, where LiteLLM does not read them, and their place. */
const MISPLACED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    `max_budget budget_duration request_timeout drop_params cache cache_params callbacks success_callback
      failure_callback max_end_user_budget`
      .split(/\s+/)
      .map((key) => [key, SETTINGS]),
  ),
  ...Object.fromEntries(
    `num_retries timeout stream_timeout fallbacks default_fallbacks context_window_fallbacks
      provider_budget_config enable_pre_call_checks optional_pre_call_checks retry_policy
      model_group_retry_policy allowed_fails_policy content_policy_fallbacks routing_strategy_args
      routing_strategy model_group_alias allowed_fails cooldown_time`
      .split(/\s+/)
      .map((key) => [key, 'router_settings']),
  ),
  rpm: 'litellm_params of each model, or limits',
  tpm: 'litellm_params of each model, or limits',
}

const OWN = "a setting of LiteLLM's own: database, page, jobs"

/** Sections without an equivalent. */
function readSections(config: JsonObject, report: ImportReport): void {
  refuseKeys(report, [], config, {
    files_settings: 'use upstreams.NAME.native for /v1/files',
    finetune_settings: 'use upstreams.NAME.native for /v1/fine_tuning',
    assistant_settings: 'use upstreams.NAME.native for /v1/assistants',
    vector_store_registry: 'use upstreams.NAME.native, or a tool of the provider',
    vector_stores: 'use upstreams.NAME.native, or a tool of the provider',
    mcp_servers: 'there is no MCP gateway: keep LiteLLM for it',
    mcp_tools: 'there is no MCP gateway: keep LiteLLM for it',
    search_tools: 'use a tool of the provider',
    prompts: 'there is no store of prompts: keep them in the app',
    agent_list: 'there is no registry of agents',
    callback_settings: 'use telemetry or notify',
  })
  report.carried(['include'], 'the files are part of the import')
}
