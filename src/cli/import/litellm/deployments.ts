/** Reads the entries of `model_list`: each becomes a target of a route, or a line with the reason why not. */
import { DAY_MS } from '../../../base/time-units.js'
import { MODEL_NAME } from '../../../formats/chat/model-facts.js'
import { EFFORTS } from '../../../formats/chat/request.js'
import type { Path } from '../../../config/config-problem.js'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import { isForeignReference, variableOf } from '../secrets.js'
import { addressed, NotCarried, type Addressed } from './address.js'
import { budgetLimit } from './budgets.js'
import {
  ignoreKeys,
  isSet,
  isTrue,
  mapAt,
  numberIn,
  refuseKeys,
  textAt,
  valueNow,
  type ImportContext,
} from './context.js'
import { checkServed, operationOf, type Served } from './modes.js'
import { isCost, readPrice } from './prices.js'
import { addressVendor, guessedPrefix, keyedPrefixes, vendorModel, vendorOf, type Vendor } from './vendors.js'

/** A deployment that can be carried. */
export interface Deployment {
  readonly index: number
  readonly at: Path
  /** `model_name`. */
  readonly name: string
  readonly upstream: string
  /** The model at the upstream; with `*` for a wildcard. */
  readonly model: string
  /** The prefix of the vendor, such as `openai`. */
  readonly vendor: string
  readonly variables: readonly string[]
  readonly defaults: JsonObject
  readonly weights: {
    readonly weight: number | null
    readonly rpm: number | null
    readonly tpm: number | null
  }
  readonly order: number | null
  readonly retries: number | null
  /** Dollars per million tokens by kind, if the entry has them. */
  readonly price: JsonObject | null
  /** Members of `limits` of this deployment. */
  readonly limits: JsonObject
  /** The model's window, if the entry has it. */
  readonly maxInput: number | null
  readonly served: Served
  readonly team: string | null
  /** Whether it is one of those that `*` of all vendors means. */
  readonly isOfAll?: true
}

/** An entry that cannot be carried. */
export interface LostDeployment {
  readonly at: Path
  readonly name: string
  readonly reason: string
}

/** The deployments of a configuration, and those that are lost. */
export interface Deployments {
  readonly carried: readonly Deployment[]
  readonly lost: readonly LostDeployment[]
}

/** Reads all entries. */
export function readDeployments(config: JsonObject, context: ImportContext): Deployments {
  const carried: Deployment[] = []
  const lost: LostDeployment[] = []
  const list = Array.isArray(config['model_list']) ? config['model_list'] : []
  for (const [index, entry] of list.entries()) {
    const at = ['model_list', index]
    const given = isObject(entry) ? entry['model_name'] : undefined
    if (!isObject(entry) || typeof given !== 'string' || given === '') {
      context.report.notCarried(at, 'has no model_name')
      continue
    }
    const name = valueNow(context, given).text ?? given
    try {
      carried.push(...readEntry(entry, name, { index, at, context }))
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error
      context.report.forgetBelow(at)
      context.report.notCarried(at, error.message)
      lost.push({ at, name, reason: error.message })
    }
  }
  return { carried, lost }
}

/** One deployment; for `*` of all vendors one for each vendor whose variable is set. Throws `NotCarried`. */
function readEntry(entry: JsonObject, name: string, place: Place): Deployment[] {
  if (!isId(name)) throw new NotCarried(`model_name ${NO_ID}`)
  const params = mapAt(entry, 'litellm_params')
  const isAll = name === '*' && params['model'] === '*' && params['custom_llm_provider'] === undefined
  if (!isAll) return [readDeployment(entry, name, place)]
  const { at, context } = place
  const all = keyedPrefixes().flatMap((prefix): Deployment[] => {
    const vendor = vendorOf(prefix)
    if (vendor === null || vendor === 'other') return []
    if (!vendor.variables.some((each) => isSet(context, each))) return []
    const own = { ...entry, litellm_params: { ...params, model: `${prefix}/*` } }
    try {
      return [{ ...readDeployment(own, `${prefix}/*`, place), isOfAll: true }]
    } catch (error) {
      // A vendor whose address is the customer's own.
      if (error instanceof NotCarried) return []
      throw error
    }
  })
  if (all.length === 0) {
    throw new NotCarried('the models of all vendors: set the variables with their keys, and import again')
  }
  const note = `the vendors whose variables are set now: ${all.map(({ vendor }) => vendor).join(', ')}`
  context.report.changed([...at, 'litellm_params', 'model'], 'routes.prefix', note)
  return all
}

const NO_ID = 'is empty, or has characters other than printable ASCII'

/** Whether an id, also with `*`, can be that of a model here. */
function isId(id: string): boolean {
  return MODEL_NAME.test(id) && id.length <= 256
}

interface Place {
  readonly index: number
  readonly at: Path
  readonly context: ImportContext
}

function readDeployment(entry: JsonObject, name: string, { index, at, context }: Place): Deployment {
  const { report } = context
  const own = mapAt(entry, 'litellm_params')
  const info = mapAt(entry, 'model_info')
  const paramsAt = [...at, 'litellm_params']
  const params = withUsual(own, paramsAt, context)
  const { vendor, model, variable } = vendorIn(params, context)
  const served = operationOf(info, model)
  const nameVariable = valueNow(context, textAt(entry, 'model_name')).variable
  nameValue(report, [...at, 'model_name'], 'routes.model', nameVariable)
  nameValue(report, [...paramsAt, 'model'], 'routes.targets.model', variable)
  report.carried([...paramsAt, 'custom_llm_provider'], 'upstreams')
  const address = addressed({ context, vendor, model, params, at: paramsAt, info })
  if (!isId(address.model) || address.deployment === '') throw new NotCarried(`the model ${NO_ID}`)
  checkServed(served, address.model, address.values)
  if (vendor.kind === 'address') {
    report.changed(
      [...paramsAt, 'model'],
      'upstreams.dialect',
      'an unknown vendor, as an OpenAI-compatible service',
    )
  }
  const defaults = defaultsIn(params, paramsAt, context)
  const forced = forcedMembers(params, paramsAt, context)
  const price = readPrice(params, info, {
    ...{ report, served, model: address.model },
    ...{ params: paramsAt, info: [...at, 'model_info'] },
  })
  const values = {
    ...address.values,
    ...headersIn(params, { at: paramsAt, address, context }),
    ...timeoutsIn(params, paramsAt, context),
    ...quirksIn(params, forced, { at: paramsAt, context }),
    ...context.usual.upstream,
    ...restIn(params, paramsAt, context),
  }
  const wanted = { ...address, values, price }
  const upstream = context.upstreams.for(wanted)
  const facts = readInfo(info, { at: [...at, 'model_info'], context })
  if (Object.keys(facts).length > 0 && !address.model.includes('*')) upstream.models.set(address.model, facts)
  readOthers(entry, params, { at, context })
  return {
    ...{ index, at, name, upstream: upstream.name, model: address.model, vendor: vendor.prefix },
    variables: address.variables,
    defaults,
    weights: {
      weight: numberIn(params['weight']),
      rpm: numberIn(params['rpm'] ?? entry['rpm']),
      tpm: numberIn(params['tpm'] ?? entry['tpm']),
    },
    order: numberIn(params['order']),
    retries: retriesIn(params, paramsAt, context),
    price,
    limits: limitsIn(params, paramsAt, context),
    maxInput: numberIn(info['max_input_tokens']),
    served,
    team: typeof info['team_id'] === 'string' ? info['team_id'] : null,
  }
}

/** A value that is carried; that of a variable is the one that it has now. */
function nameValue(report: ImportContext['report'], path: Path, to: string, variable: string | null): void {
  if (variable === null) report.carried(path, to)
  else report.changed(path, to, `the value that ${variable} has now`)
}

/** The members of the router and of a named credential, and those of the deployment, which win. */
function withUsual(own: JsonObject, at: Path, { usual, report }: ImportContext): JsonObject {
  const name = own['litellm_credential_name']
  const credential = typeof name === 'string' ? usual.credentials.get(name) : undefined
  if (name !== undefined) {
    if (credential === undefined) report.notCarried([...at, 'litellm_credential_name'], 'no such credential')
    else report.carried([...at, 'litellm_credential_name'], 'upstreams.api_key')
  }
  return { ...usual.litellmParams, ...credential, ...own }
}

/** The vendor and the model without its prefix. Throws `NotCarried`. */
function vendorIn(
  params: JsonObject,
  context: ImportContext,
): { readonly vendor: Vendor; readonly model: string; readonly variable: string | null } {
  const given = params['model']
  if (typeof given !== 'string' || given === '') throw new NotCarried('has no litellm_params.model')
  const { text, variable } = valueNow(context, given)
  if (text === null) {
    throw new NotCarried(`the model is in ${variable ?? ''}, which is not set: set it, and import again`)
  }
  const { vendor, model } = vendorOfModel(text, params)
  return { vendor, model: vendorModel(vendor.prefix, model), variable }
}

function vendorOfModel(
  full: string,
  params: JsonObject,
): { readonly vendor: Vendor; readonly model: string } {
  const hasAddress = typeof (params['api_base'] ?? params['base_url']) === 'string'
  const own = params['custom_llm_provider']
  const slash = full.indexOf('/')
  const prefix = slash === -1 ? '' : full.slice(0, slash)
  const rest = slash === -1 ? full : full.slice(slash + 1)
  if (typeof own === 'string' && own !== '') {
    const model = prefix === own ? rest : full
    return { vendor: knownVendor(own, hasAddress), model }
  }
  const vendor = prefix === '' ? null : vendorOf(prefix)
  if (vendor === 'other') throw new NotCarried(`${prefix} has a protocol of its own: keep LiteLLM for it`)
  if (vendor !== null) return { vendor, model: rest }
  const guess = guessedPrefix(full)
  if (guess !== null && prefix === '') return { vendor: knownVendor(guess, hasAddress), model: full }
  if (hasAddress) return { vendor: addressVendor(prefix), model: prefix === '' ? full : rest }
  throw new NotCarried('the vendor is unknown: add api_base for an OpenAI-compatible service')
}

function knownVendor(prefix: string, hasAddress: boolean): Vendor {
  const vendor = vendorOf(prefix)
  if (vendor === 'other') throw new NotCarried(`${prefix} has a protocol of its own: keep LiteLLM for it`)
  if (vendor !== null) return vendor
  if (hasAddress) return addressVendor(prefix)
  throw new NotCarried('the vendor is unknown: add api_base for an OpenAI-compatible service')
}

const BOUNDS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  max_tokens: [1, 100_000_000],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  seed: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
}
const WHOLE: ReadonlySet<string> = new Set(['max_tokens', 'seed'])

/** The members of `defaults`, by LiteLLM's names. */
const DEFAULTS: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  max_tokens: 'max_tokens',
  max_completion_tokens: 'max_tokens',
  reasoning_effort: 'reasoning_effort',
  verbosity: 'verbosity',
  seed: 'seed',
  stop: 'stop',
  presence_penalty: 'presence_penalty',
  frequency_penalty: 'frequency_penalty',
  parallel_tool_calls: 'parallel_tool_calls',
  service_tier: 'service_tier',
}

function defaultsIn(params: JsonObject, at: Path, { report }: ImportContext): JsonObject {
  const defaults: JsonObject = {}
  for (const [key, to] of Object.entries(DEFAULTS)) {
    const given = params[key]
    if (given === undefined || given === null) continue
    const value = key === 'reasoning_effort' && isObject(given) ? given['effort'] : numbered(to, given)
    if (value !== undefined && isDefault(to, value)) {
      defaults[to] = value
      if (!isObject(given)) report.carried([...at, key], `routes.targets.defaults.${to}`)
      else report.changed([...at, key], `routes.targets.defaults.${to}`, 'only the effort')
    } else report.notCarried([...at, key], 'a value that defaults cannot have: use quirks.set')
  }
  return defaults
}

/** A number that the file has as text. */
function numbered(name: string, value: JsonValue): JsonValue {
  const isNumber = typeof value === 'string' && BOUNDS[name] !== undefined && value.trim() !== ''
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value
}

function isDefault(name: string, value: JsonValue): boolean {
  const bounds = BOUNDS[name]
  if (bounds !== undefined) {
    const [least, most] = bounds
    const isNumber = typeof value === 'number' && value >= least && value <= most
    return isNumber && (!WHOLE.has(name) || Number.isInteger(value))
  }
  if (name === 'parallel_tool_calls') return typeof value === 'boolean'
  if (name === 'reasoning_effort') return EFFORTS.some((effort) => effort === value)
  if (name === 'verbosity') return value === 'low' || value === 'medium' || value === 'high'
  if (name === 'stop' && Array.isArray(value)) {
    return value.length > 0 && value.length <= 16 && value.every((each) => isShort(each, 256))
  }
  return isShort(value, name === 'stop' ? 256 : 64)
}

function isShort(value: JsonValue, most: number): boolean {
  return typeof value === 'string' && value !== '' && value.length <= most
}

/** Names of `litellm_params` that are no members of the vendor's request. */
const KNOWN: ReadonlySet<string> = new Set([
  ...Object.keys(DEFAULTS),
  ...'model custom_llm_provider api_key api_base base_url api_version organization azure_ad_token'.split(' '),
  ...'tenant_id client_id client_secret azure_scope vertex_project vertex_ai_project vertex_location'.split(
    ' ',
  ),
  ...'vertex_ai_location vertex_credentials vertex_ai_credentials rpm tpm weight order itpm otpm tpd'.split(
    ' ',
  ),
  ...'rpd max_parallel_requests timeout stream_timeout max_retries num_retries headers'.split(' '),
  ...'extra_headers extra_body drop_params additional_drop_params modify_params'.split(' '),
  ...'allowed_openai_params tags tag_regex mock_response use_in_pass_through'.split(' '),
  ...'litellm_credential_name max_budget budget_duration merge_reasoning_content_in_choices'.split(' '),
  ...'use_litellm_proxy cache cooldown_time ssl_verify ssl_certificate region_name'.split(' '),
])
const KNOWN_STARTS = /^(?:aws_|s3_|auto_router_|complexity_router_|litellm_)/

/**
 * Settings of LiteLLM itself, which it does not send to the vendor, and that have no equivalent by the same
 * means. Source: LiteLLM 1.110.2, `types/litellm_params.py` and `types/router.py`.
 */
const OF_LITELLM: Readonly<Record<string, string>> = {
  guardrails: 'use guardrails.NAME.apply_to',
  fallbacks: 'use router_settings.fallbacks',
  context_window_fallback_dict: 'use router_settings.context_window_fallbacks',
  retry_policy: 'use router_settings.retry_policy',
  silent_model: 'use routes.shadow',
  timeout_by_service_tier: 'use timeout',
  stream_timeout_by_service_tier: 'use stream_timeout',
  provider_specific_header: 'use extra_headers',
  metadata: 'use labels of keys, or dimensions',
  model_info: 'it belongs beside litellm_params, and LiteLLM does not send it',
  stream: 'the client decides whether it gets a stream',
  stream_options: 'the client decides; usage is always requested of the vendor',
  cache_control_injection_points: 'use routes.cache_control',
  enable_prompt_caching: 'use routes.cache_control',
  prompt_id: 'send the prompt with the request',
  ...Object.fromEntries(
    `adaptive_router_config adaptive_router_default_model allow_client_keepalive_override
      allowed_model_region api_surface assistant_continue_message azure_password azure_username base_model
      bos_token caching caching_groups chatgpt_auth_file configurable_clientside_auth_params
      custom_prompt_dict daily_reset_time data_residency default_api_key_rpm_limit
      default_api_key_tpm_limit disable_add_transform_inline_image_block enable_json_schema_validation
      enable_tag_filtering ensure_alternating_roles eos_token final_prompt_value fireworks_forward_user_id
      force_timeout hf_model_name initial_prompt_value keepalive_seconds logger_fn max_fallbacks
      max_file_size_mb mock_timeout model_alias_map no-log prompt_label prompt_variables prompt_version
      provider_affinity_header quality_router_config quality_router_default_model request_timeout
      responses_api_version roles routing_strategy search_tool_name stream_chunk_size
      supports_system_message switchyard_router_config thought_signature_in_tool_call_id ttl
      agentic_loop bedrock_batch bedrock_tags cost_per_query github_copilot_auth_type github_copilot_host
      github_copilot_user_session kubernetes_pod_discovery log_client_error_tracebacks max_agentic_loops
      model_config model_file_id_mapping no_log preset_cache_key prompt_environment proxy_server_request
      retry_strategy secret_fields shared_session trusted_callback_vars
      use_chat_completions_api use_xai_oauth user_continue_message vector_store_id verbose`
      .split(/\s+/)
      .map((name) => [name, 'a setting of LiteLLM, which the vendor does not get']),
  ),
}

/** Members that every request to the vendor gets. */
function forcedMembers(params: JsonObject, at: Path, { report, secrets }: ImportContext): JsonObject {
  const forced: JsonObject = {}
  const note = 'set on every request, also if the client sends its own'
  for (const [key, value] of Object.entries(params)) {
    if (KNOWN.has(key) || KNOWN_STARTS.test(key) || isCost(key) || value === undefined || value === null)
      continue
    if (Object.hasOwn(OF_LITELLM, key)) {
      report.notCarried([...at, key], OF_LITELLM[key] ?? '')
      continue
    }
    if (
      isForeignReference(value) ||
      variableOf(value) !== null ||
      looksSecret(key) ||
      secrets.isIn(JSON.stringify(value))
    ) {
      report.notCarried([...at, key], 'members of requests cannot have secrets or variables')
      continue
    }
    forced[key] = value
    report.changed([...at, key], `upstreams.quirks.set.${key}`, note)
  }
  const body = params['extra_body']
  if (!isObject(body)) return forced
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue
    if (variableOf(value) !== null || looksSecret(key)) {
      report.notCarried([...at, 'extra_body', key], 'members of requests cannot have secrets or variables')
      continue
    }
    forced[key] = value
    report.changed([...at, 'extra_body', key], `upstreams.quirks.set.${key}`, note)
  }
  if (Object.keys(body).every((key) => Object.hasOwn(forced, key))) {
    report.forgetBelow([...at, 'extra_body'])
    report.changed([...at, 'extra_body'], 'upstreams.quirks.set', note)
  }
  return forced
}

/** Whether a name is that of a credential. */
function looksSecret(name: string): boolean {
  return /authorization|cookie|(?:api|access|secret|private)[-_]?key|token$|secret|password|^x-.*key$/i.test(
    name,
  )
}

function quirksIn(
  params: JsonObject,
  set: JsonObject,
  { at, context: { report } }: Pick<Place, 'at' | 'context'>,
): JsonObject {
  const drop = params['additional_drop_params']
  const names = Array.isArray(drop) ? drop.filter((name) => typeof name === 'string') : []
  const plain = names.filter((name) => /^[\w-]{1,256}$/.test(name))
  if (plain.length > 0) report.carried([...at, 'additional_drop_params'], 'upstreams.quirks.drop')
  else if (drop !== undefined) report.notCarried([...at, 'additional_drop_params'], 'no names of members')
  const quirks = {
    ...(plain.length === 0 ? {} : { drop: plain }),
    ...(Object.keys(set).length === 0 ? {} : { set }),
  }
  return Object.keys(quirks).length === 0 ? {} : { quirks }
}

function headersIn(
  params: JsonObject,
  { at, address, context }: Pick<Place, 'at' | 'context'> & { readonly address: Addressed },
): JsonObject {
  const headers: JsonObject = {}
  const { organization } = params
  if (typeof organization === 'string' && organization !== '') {
    const isReference = variableOf(organization) !== null
    headers['openai-organization'] = isReference
      ? context.secrets.place(organization, 'OPENAI_ORGANIZATION').text
      : organization
    context.report.carried([...at, 'organization'], 'upstreams.headers.openai-organization')
  }
  for (const key of ['headers', 'extra_headers']) {
    for (const [name, value] of Object.entries(mapAt(params, key))) {
      const path = [...at, key, name]
      const isManaged =
        address.values['api_key'] !== undefined && /^(?:authorization|api-key|x-api-key)$/i.test(name)
      if (typeof value !== 'string' || isManaged || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)) {
        context.report.notCarried(path, 'a header that the gateway sets itself, or cannot send')
        continue
      }
      const isSecret =
        variableOf(value) !== null || looksSecret(name) || /auth|key|token|credential/i.test(name)
      const usual = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
      headers[name.toLowerCase()] = isSecret ? context.secrets.place(value, usual).text : value
      context.report.carried(path, `upstreams.headers.${name.toLowerCase()}`)
    }
  }
  return Object.keys(headers).length === 0 ? {} : { headers }
}

function timeoutsIn(params: JsonObject, at: Path, { report, usual }: ImportContext): JsonObject {
  for (const key of ['timeout', 'stream_timeout']) {
    if (params[key] === undefined) continue
    if (numberIn(params[key]) === 0)
      report.ignored([...at, key], '0 is no time-out of LiteLLM: the usual one')
    else if (numberIn(params[key]) === null) report.notCarried([...at, key], 'is no number of seconds')
    else report.carried([...at, key], 'upstreams.timeouts')
  }
  // LiteLLM takes the next one for 0, too.
  const whole = numberIn(params['timeout']) || usual.timeoutSeconds || null
  const stream = numberIn(params['stream_timeout']) || usual.streamTimeoutSeconds || whole
  if (whole === null && stream === null) return {}
  const ms = (seconds: number): number => Math.min(DAY_MS, Math.max(1, Math.round(seconds * 1_000)))
  const streamMs = stream === null ? null : ms(stream)
  const wholeMs = whole === null ? null : ms(whole)
  const totalMs = Math.max(900_000, streamMs ?? 0, wholeMs ?? 0)
  return {
    timeouts: {
      ...(streamMs === null ? {} : { first_byte_ms: streamMs }),
      ...(wholeMs === null ? {} : { first_byte_whole_ms: wholeMs }),
      ...(streamMs === null ? {} : { idle_ms: streamMs }),
      ...(totalMs === 900_000 ? {} : { total_ms: totalMs }),
    },
  }
}

/** How long the upstream rests after failures; LiteLLM's time of the deployment wins over the router's. */
function restIn(params: JsonObject, at: Path, { report, usual }: ImportContext): JsonObject {
  if (params['cooldown_time'] === undefined) return {}
  const seconds = numberIn(params['cooldown_time'])
  if (seconds === null || seconds < 1) {
    report.notCarried([...at, 'cooldown_time'], 'is no number of seconds from 1')
    return {}
  }
  const note = 'the upstream rests, and is then tested with one request'
  report.changed([...at, 'cooldown_time'], 'upstreams.breaker.open_seconds', note)
  return {
    breaker: { ...objectOf(usual.upstream['breaker']), open_seconds: Math.min(3_600, Math.round(seconds)) },
  }
}

function retriesIn(params: JsonObject, at: Path, { report }: ImportContext): number | null {
  let found: number | null = null
  for (const key of ['num_retries', 'max_retries']) {
    const value = numberIn(params[key])
    if (params[key] === undefined) continue
    if (value === null) report.notCarried([...at, key], 'is no number')
    else if (value > 9) report.changed([...at, key], 'routes.retry.attempts', 'at most 10 attempts')
    else report.carried([...at, key], 'routes.retry.attempts')
    found ??= value
  }
  return found
}

function limitsIn(params: JsonObject, at: Path, { report }: ImportContext): JsonObject {
  const limits: JsonObject = {}
  const concurrent = numberIn(params['max_parallel_requests'])
  if (concurrent !== null && concurrent >= 1) {
    limits['concurrent'] = Math.round(concurrent)
    report.carried([...at, 'max_parallel_requests'], 'limits.concurrent')
  }
  const tokens = numberIn(params['tpd'])
  if (tokens !== null && tokens >= 1) {
    limits['tokens_per_day'] = Math.round(tokens)
    report.carried([...at, 'tpd'], 'limits.tokens_per_day')
  }
  const budget = budgetLimit(params['max_budget'], params['budget_duration'])
  if (params['max_budget'] !== undefined && params['max_budget'] !== null) {
    const outcome = budget.note === null ? 'carried' : budget.limits === null ? 'not_carried' : 'changed'
    const to = budget.limits === null ? null : 'limits'
    report.claim([...at, 'max_budget'], outcome, to, budget.note)
    report.claim([...at, 'budget_duration'], outcome, to, budget.note)
    Object.assign(limits, budget.limits ?? {})
  }
  return limits
}

/** The facts of the model, and the outcome of all other members of `model_info`. */
function readInfo(info: JsonObject, { at, context }: Pick<Place, 'at' | 'context'>): JsonObject {
  const { report } = context
  const facts: JsonObject = {}
  for (const [key, value] of Object.entries(info)) {
    const path = [...at, key]
    if (report.has(path)) continue
    const number = numberIn(value)
    if (key === 'max_input_tokens' && number !== null && number >= 1) {
      facts['context_window'] = Math.round(number)
      report.carried(path, 'upstreams.models.context_window')
    } else if ((key === 'max_output_tokens' || key === 'max_tokens') && number !== null && number >= 1) {
      facts['max_output_tokens'] ??= Math.round(number)
      report.carried(path, 'upstreams.models.max_output_tokens')
    } else if (key === 'supports_vision' && typeof value === 'boolean') {
      facts['vision'] = value
      report.carried(path, 'upstreams.models.vision')
    } else if (key === 'supports_function_calling' && typeof value === 'boolean') {
      facts['tools'] = value
      report.carried(path, 'upstreams.models.tools')
    } else if (key === 'mode') report.carried(path, 'routes')
    else if (key === 'base_model') report.carried(path, 'upstreams.deployments')
    else if (key === 'access_groups') report.ignored(path, 'expanded in the lists of keys')
    else if (key === 'team_id') report.changed(path, 'routes.when.labels', 'keys have the label litellm_team')
    else report.ignored(path, 'text about the model')
  }
  return facts
}

/** The outcome of the members that are no part of the upstream. */
function readOthers(
  entry: JsonObject,
  params: JsonObject,
  { at, context: { report } }: Pick<Place, 'at' | 'context'>,
): void {
  const paramsAt = [...at, 'litellm_params']
  ignoreKeys(report, paramsAt, params, {
    modify_params: null,
    allowed_openai_params: 'members that the vendor takes are passed',
    merge_reasoning_content_in_choices: null,
    use_litellm_proxy: null,
  })
  if (Object.hasOwn(params, 'drop_params')) {
    const isPlain = isTrue(params['drop_params'])
    if (isPlain) report.carried([...paramsAt, 'drop_params'], 'on_loss')
    else
      report.changed(
        [...paramsAt, 'drop_params'],
        'on_loss',
        'members that cannot be sent are left out and reported',
      )
  }
  refuseKeys(report, paramsAt, params, {
    tags: 'use routes.when.labels',
    tag_regex: 'use routes.when.labels',
    mock_response: 'use `sluice emulate`',
    use_in_pass_through: 'use upstreams.native',
    itpm: 'use limits.tokens_per_minute with scope upstream',
    otpm: 'use limits.tokens_per_minute with scope upstream',
    tpd: 'use limits.tokens_per_day with scope upstream',
    rpd: 'use limits.requests_per_minute with scope upstream',
    ssl_verify: 'certificates are always checked: use upstreams.tls.ca',
    ssl_certificate: 'use upstreams.tls',
    cache: 'use routes.cache',
    region_name: 'use upstreams.region',
  })
  for (const key of Object.keys(params)) {
    if (/^(?:auto_router_|complexity_router_)/.test(key))
      report.notCarried([...paramsAt, key], 'use a plugin')
    else if (/^litellm_/.test(key) && key !== 'litellm_credential_name') report.ignored([...paramsAt, key])
  }
  for (const key of Object.keys(entry)) {
    if (['model_name', 'litellm_params', 'model_info', 'rpm', 'tpm'].includes(key)) continue
    report.notCarried([...at, key], 'unknown to the import')
  }
}
