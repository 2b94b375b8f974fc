/**
 * Names of other gateways (LiteLLM, Portkey, OpenRouter) and what they are here, for the messages about a
 * configuration. Data only.
 */

/** What several keys of other gateways are here. */
const FALLBACK = 'fallback of a route'
const RETRY = 'retry: { attempts } of a route'
const TOTAL = 'timeouts: { total_ms }'
const BUDGET = 'usd_per_day, usd_per_week, usd_per_month or usd_total of limits'
const AWS = 'auth: { aws: … } of an upstream with platform: bedrock'
const AZURE = 'auth: { azure: … } of an upstream with platform: azure'
const REDIS = 'store: redis://:PASSWORD@HOST:PORT'
const EVENTS = 'sections of their own: notify, telemetry, metrics, log'
const RULES = 'guardrails of the file, which a route names'

/** Keys of LiteLLM, Portkey and others: the key here, with ` of ` and its place, or where to find it. */
export const FOREIGN_KEYS: Readonly<Record<string, string>> = {
  ...keys('api_base base_uri endpoint url custom_host api_url', 'base_url'),
  ...keys('azure_resource_name resource_name', 'base_url of an upstream with platform: azure'),
  ...keys('custom_llm_provider provider', 'dialect'),
  ...keys('virtual_key api_token bearer_token', 'api_key of an upstream'),
  ...keys('azure_api_version', 'api_version of an upstream with platform: azure'),
  ...keys('azure_deployment_id deployment_id', 'deployments of an upstream with platform: azure'),
  ...keys('aws_region_name aws_region region_name', 'region of an upstream with platform: bedrock'),
  ...keys('aws_access_key_id aws_secret_access_key aws_session_token', AWS),
  ...keys('aws_role_name aws_role_arn aws_session_name aws_profile_name', AWS),
  ...keys('tenant_id client_id client_secret azure_ad_token', AZURE),
  ...keys('vertex_project vertex_project_id', 'project of an upstream with platform: vertex'),
  ...keys('vertex_location vertex_region', 'location of an upstream with platform: vertex'),
  ...keys('vertex_credentials vertex_service_account_json', 'auth: { google: { credentials_file } }'),
  ...keys('organization openai_organization', 'headers: { openai-organization } of an upstream'),
  ...keys('extra_headers default_headers http_referer x_title', 'headers of an upstream'),
  ...keys('extra_body override_params', 'quirks: { set } of an upstream'),
  ...keys('additional_drop_params', 'quirks: { drop } of an upstream'),
  ...keys('drop_params', 'on_loss: report, the default'),
  ...keys('ssl_verify verify_ssl ssl_certificate', 'tls: { ca } of an upstream'),
  ...keys('model_list', 'upstreams and routes'),
  ...keys('providers', 'upstreams'),
  ...keys('model_name', 'model of a route'),
  ...keys('model_group_alias', 'a route with the alias as model, and a target with the model'),
  ...keys('litellm_params', 'an entry of upstreams, and targets of a route'),
  ...keys('model_info', 'models and prices of an upstream'),
  ...keys('max_tokens', 'defaults: { max_tokens } of a target'),
  ...keys('supports_vision', 'models: [{ id, vision }] of an upstream'),
  ...keys('max_input_tokens', 'models: [{ id, context_window }] of an upstream'),
  ...keys('litellm_settings', 'sections of their own: cache, limits, guardrails'),
  ...keys('router_settings', 'retry, fallback and balance of a route'),
  ...keys('general_settings', 'sections of their own: server, store, dashboard'),
  ...keys('environment_variables', '${NAME} in a value, from the environment or a file .env'),
  ...keys('credential_list', 'api_key: ${NAME} of an upstream'),
  ...keys('cache_params', 'cache of a route'),
  ...keys('max_age', 'ttl_seconds of cache in a route'),
  ...keys('master_key', 'server.admin_token'),
  ...keys('database_url', 'store'),
  ...keys('redis_host redis_port redis_password redis_url', REDIS),
  ...keys('callbacks success_callback failure_callback service_callback alerting', EVENTS),
  ...keys(
    'fallbacks allow_fallbacks context_window_fallbacks content_policy_fallbacks default_fallbacks',
    FALLBACK,
  ),
  ...keys('num_retries max_retries retries retry_policy', RETRY),
  ...keys('allowed_fails allowed_fails_policy', 'breaker: { failures } of an upstream'),
  ...keys('cooldown_time', 'breaker: { open_seconds } of an upstream'),
  ...keys('routing_strategy lb_strategy load_balancing', 'balance of a route'),
  ...keys('strategy', 'targets, balance and fallback of a route'),
  ...keys('order', 'the order of the targets, or fallback of a route'),
  ...keys('conditions tags', 'when of a route'),
  ...keys('input_guardrails output_guardrails before_request_hooks after_request_hooks', RULES),
  ...keys('mock_response', 'an upstream that is the emulator (sluice emulate)'),
  ...keys('request_timeout timeout', TOTAL),
  ...keys('stream_timeout', 'timeouts: { first_byte_ms }'),
  ...keys('rpm rpm_limit', 'requests_per_minute of limits'),
  ...keys('tpm tpm_limit', 'tokens_per_minute of limits'),
  ...keys('tpd tpd_limit', 'tokens_per_day of limits'),
  ...keys('max_parallel_requests global_max_parallel_requests', 'concurrent of limits'),
  ...keys('max_budget budget_duration', BUDGET),
  ...keys('input_cost_per_second', 'prices: { MODEL: { per_second_audio } }, in dollars'),
  ...keys('input_cost_per_token', priceOf('input')),
  ...keys('output_cost_per_token', priceOf('output')),
  ...keys('cache_read_input_token_cost', priceOf('cache_read')),
  ...keys('cache_creation_input_token_cost', priceOf('cache_write')),
}

function keys(names: string, here: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, here]))
}

function priceOf(kind: string): string {
  return `prices: { MODEL: { ${kind} } }, in dollars for a million tokens`
}

/** Other names of vendors, in small letters with hyphens: the `preset`, `dialect` or `platform` here. */
export const VENDOR_ALIASES: Readonly<Record<string, string>> = {
  ...keys('google google-ai-studio palm', 'gemini'),
  ...keys('claude', 'anthropic'),
  ...keys('chatgpt gpt text-completion-openai', 'openai'),
  ...keys('vertex-ai vertexai vertex-ai-beta google-vertex', 'vertex'),
  ...keys('azure-ai azure-openai azure-text', 'azure'),
  ...keys('aws aws-bedrock amazon-bedrock bedrock-converse', 'bedrock'),
  ...keys('together-ai', 'together'),
  ...keys('fireworks-ai', 'fireworks'),
  ...keys('mistral-ai mistralai', 'mistral'),
  ...keys('x-ai', 'xai'),
  ...keys('perplexity-ai', 'perplexity'),
  ...keys('z-ai zai-org', 'zai'),
  ...keys('moonshotai moonshot-ai kimi', 'moonshot'),
  ...keys('workers-ai cloudflare-workers-ai', 'cloudflare'),
  ...keys('nvidia-nim', 'nvidia'),
  ...keys('cohere-chat', 'cohere'),
  ...keys('jina-ai', 'jina'),
  ...keys('vercel-ai-gateway', 'vercel'),
  ...keys('lmstudio', 'lm-studio'),
  ...keys('llama.cpp llamafile llamacpp', 'llama-cpp'),
  ...keys('ollama-chat', 'ollama'),
  ...keys('qwen', 'dashscope'),
  ...keys('github-models', 'github'),
  ...keys('hosted-vllm', 'vllm'),
  ...keys('openai-like openai-compatible custom-openai', 'openai-chat'),
}
