/** The vendor, address, credential and place of a deployment, as keys of an upstream. */
import { withoutSlashes } from '../../../config/platform-settings.js'
import { PRESETS } from '../../../config/presets.js'
import type { Path } from '../../../config/config-problem.js'
import type { JsonObject, JsonValue } from '../../../base/json.js'
import { isForeignReference, variableOf } from '../secrets.js'
import { isSet, textAt, type ImportContext } from './context.js'
import type { Vendor } from './vendors.js'

/** A deployment that cannot be carried. */
export class NotCarried extends Error {}

/** The start of an upstream, and the model as the vendor names it. */
export interface Addressed {
  readonly label: string
  readonly values: JsonObject
  readonly variables: readonly string[]
  readonly model: string
  /** Azure: the name of the deployment. */
  readonly deployment: string | null
}

/** What the address is made from. */
interface AddressParts {
  readonly context: ImportContext
  readonly vendor: Vendor
  /** The model without the prefix. */
  readonly model: string
  readonly params: JsonObject
  /** The path of `litellm_params`. */
  readonly at: Path
  readonly info: JsonObject
}

/** Throws `NotCarried`. */
export function addressed(parts: AddressParts): Addressed {
  switch (parts.vendor.kind) {
    case 'openai':
    case 'address':
      return openAi(parts)
    case 'anthropic':
      return dialectOf(parts, 'anthropic', 'https://api.anthropic.com/v1')
    case 'gemini':
      return gemini(parts)
    case 'vertex':
      return vertex(parts)
    case 'bedrock':
      return bedrock(parts)
    case 'azure':
    case 'azure_ai':
      return azure(parts)
    case 'preset':
      return preset(parts)
    default:
      return parts.vendor.kind satisfies never
  }
}

function openAi(parts: AddressParts): Addressed {
  const { vendor } = parts
  const [, isResponses, model = ''] = /^(responses\/)?(.*)$/s.exec(parts.model) ?? []
  const address = ownAddress(parts)
  const isOwn = address !== null && !/^https:\/\/api\.openai\.com(?:\/v1)?$/.test(address.text)
  const key = credential(parts, { isNeeded: !isOwn })
  const completions = vendor.isCompletion === true ? { completions: true } : {}
  if (!isOwn) {
    const dialect = isResponses === undefined ? 'openai' : 'openai-responses'
    const values = { dialect, base_url: 'https://api.openai.com/v1', ...key.values, ...completions }
    return { label: dialect, values, variables: key.variables, model, deployment: null }
  }
  const base = address.text.replace(/\/(?:chat\/completions|completions|embeddings|responses)$/, '')
  const dialect = isResponses === undefined ? 'openai-chat' : 'openai-responses'
  const values = { dialect, base_url: base, ...key.values, ...completions, ...address.values }
  return { label: dialect, values, variables: key.variables, model, deployment: null }
}

function dialectOf(parts: AddressParts, dialect: string, usual: string): Addressed {
  const address = ownAddress(parts)
  const key = credential(parts, { isNeeded: true })
  const own = address === null ? null : withVersion(address.text.replace(/\/v1\/messages$/, ''), '/v1')
  const values = { dialect, base_url: own ?? usual, ...key.values, ...(address?.values ?? {}) }
  return { label: dialect, values, variables: key.variables, model: parts.model, deployment: null }
}

function withVersion(address: string, end: string): string {
  return address.endsWith(end) ? address : address + end
}

const EXPRESS =
  /^https:\/\/(?:[a-z0-9-]+-)?aiplatform\.googleapis\.com(?:\/v\d[a-z0-9]*)?(?:\/publishers\/google)?$/

function gemini(parts: AddressParts): Addressed {
  const address = ownAddress(parts)
  const { model } = parts
  const key = credential(parts, { isNeeded: true })
  if (address !== null && EXPRESS.test(address.text)) {
    const values = { platform: 'vertex', dialect: 'gemini', ...key.values }
    return { label: 'vertex', values, variables: key.variables, model, deployment: null }
  }
  const usual = 'https://generativelanguage.googleapis.com/v1beta'
  const values = {
    dialect: 'gemini',
    base_url: address?.text ?? usual,
    ...key.values,
    ...(address?.values ?? {}),
  }
  return { label: 'gemini', values, variables: key.variables, model, deployment: null }
}

function vertex(parts: AddressParts): Addressed {
  const { context, params, at, model } = parts
  const name = model.replace(/^(?:gemini|claude|anthropic)\//, '')
  if (!/^(?:gemini|claude|text-embedding|text-multilingual|gemma)/.test(name)) {
    throw new NotCarried('a model of Vertex AI that is neither Gemini nor Claude: use native access')
  }
  const project = placeText(parts, ['vertex_project', 'vertex_ai_project'], 'project')
  const location = placeText(parts, ['vertex_location', 'vertex_ai_location'], 'location')
  const values: JsonObject = {
    platform: 'vertex',
    dialect: name.startsWith('claude') ? 'anthropic' : 'gemini',
    project:
      project ?? envText(context, ['VERTEXAI_PROJECT', 'GOOGLE_CLOUD_PROJECT']) ?? '${VERTEXAI_PROJECT}',
    location: location ?? envText(context, ['VERTEXAI_LOCATION', 'VERTEX_LOCATION']) ?? 'us-central1',
    auth: { google: 'default' },
  }
  const address = ownAddress(parts)
  if (address !== null) values['base_url'] = address.text
  const variables: string[] = []
  const credentials = params['vertex_credentials'] ?? params['vertex_ai_credentials']
  const key = params['vertex_credentials'] === undefined ? 'vertex_ai_credentials' : 'vertex_credentials'
  if (credentials !== undefined && credentials !== null) {
    values['auth'] = { google: { credentials_file: credentialsFile(parts, credentials) } }
    context.report.carried([...at, key], 'upstreams.vertex.auth.google')
    const variable = variableOf(credentials)
    if (variable !== null) variables.push(variable)
  }
  return { label: 'vertex', values, variables, model: name, deployment: null }
}

/** A path stays; JSON becomes a file beside the configuration. */
function credentialsFile({ context }: AddressParts, credentials: JsonValue): string {
  const variable = variableOf(credentials)
  if (variable !== null) return `\${${variable}}`
  const text = typeof credentials === 'string' ? credentials : JSON.stringify(credentials)
  if (!text.trim().startsWith('{')) return text
  const known = [...context.files].find(([, content]) => content === `${text}\n`)
  if (known !== undefined) return known[0]
  const number = context.files.size === 0 ? '' : `-${context.files.size + 1}`
  const name = `vertex-credentials${number}.json`
  context.files.set(name, `${text}\n`)
  return name
}

const AWS_KEYS: readonly (readonly [key: string, to: string, variable: string])[] = [
  ['aws_access_key_id', 'access_key_id', 'AWS_ACCESS_KEY_ID'],
  ['aws_secret_access_key', 'secret_access_key', 'AWS_SECRET_ACCESS_KEY'],
  ['aws_session_token', 'session_token', 'AWS_SESSION_TOKEN'],
  ['aws_profile_name', 'profile', ''],
  ['aws_role_name', 'role_arn', ''],
  ['aws_external_id', 'external_id', ''],
  ['aws_session_name', 'session_name', ''],
]

function bedrock(parts: AddressParts): Addressed {
  const { context, params, at, vendor } = parts
  const [, inPath, rest = parts.model] = /^([a-z]{2}(?:-[a-z]+)+-\d)\/(.*)$/s.exec(parts.model) ?? []
  const [, form = '', model = rest] = /^(converse|invoke|converse_like)\/(.*)$/s.exec(rest) ?? []
  const given = placeText(parts, ['aws_region_name'], 'region')
  const fromEnv = envText(context, ['AWS_REGION_NAME', 'AWS_REGION'])
  const region = given ?? inPath ?? fromEnv ?? 'us-west-2'
  if (given === null && inPath === undefined && fromEnv === null) {
    context.report.changed([...at, 'model'], 'upstreams.bedrock.region', 'no region is set: us-west-2')
  }
  const aws: JsonObject = {}
  const variables: string[] = []
  for (const [key, to, variable] of AWS_KEYS) {
    const value = params[key]
    if (typeof value !== 'string' || value === '') continue
    const isSecret = variable !== '' || variableOf(value) !== null
    const placed = isSecret ? context.secrets.place(value, variable) : null
    if (placed !== null) variables.push(placed.variable)
    aws[to] = placed?.text ?? value
    context.report.carried([...at, key], `upstreams.bedrock.auth.aws.${to}`)
  }
  const endpoint = placeText(parts, ['aws_bedrock_runtime_endpoint'], 'base_url')
  const isInvoke = form === 'invoke' && model.includes('anthropic')
  const values: JsonObject = {
    platform: 'bedrock',
    dialect: isInvoke && vendor.prefix === 'bedrock' ? 'anthropic' : 'converse',
    region,
    ...(endpoint === null ? {} : { base_url: withoutSlashes(endpoint) }),
    auth: { aws: Object.keys(aws).length === 0 ? 'default' : aws },
  }
  return { label: 'bedrock', values, variables, model, deployment: null }
}

function azure(given: AddressParts): Addressed {
  const parts = { ...given, params: withVersionOfAddress(given) }
  const { context, vendor, params, at, info } = parts
  const isFoundry = vendor.kind === 'azure_ai'
  const [, isResponses, deployment = parts.model] = /^(responses\/)?(.*)$/s.exec(parts.model) ?? []
  const address = ownAddress(parts)
  const base = address?.text ?? `\${${vendor.addressVariable ?? 'AZURE_API_BASE'}}`
  const root = base.replace(/\/openai(?:\/.*)?$/, '').replace(/\/(?:models|anthropic)(?:\/.*)?$/, '')
  const isClaude = isFoundry && deployment.startsWith('claude')
  const dialect = isClaude ? 'anthropic' : isResponses === undefined ? 'openai-chat' : 'openai-responses'
  const version = isFoundry || isResponses !== undefined ? null : apiVersion(parts)
  if (isFoundry || isResponses !== undefined) {
    if (params['api_version'] !== undefined) context.report.ignored([...at, 'api_version'], 'not needed')
  }
  const identity = entraOf(parts)
  const key = identity === null ? credential(parts, { isNeeded: true }) : { values: {}, variables: [] }
  const baseModel =
    typeof info['base_model'] === 'string' ? info['base_model'].replace(/^[a-z_]+\//, '') : null
  const model = baseModel ?? deployment
  const values: JsonObject = {
    platform: 'azure',
    dialect,
    base_url: root,
    ...(version === null ? {} : { api_version: version }),
    ...(identity ?? key.values),
  }
  return { label: 'azure', values, variables: key.variables, model, deployment: isClaude ? null : deployment }
}

/** The portal of Azure shows an address with the version as its query: it becomes the member of that name. */
function withVersionOfAddress({ params }: AddressParts): JsonObject {
  const key = textAt(params, 'api_base') === '' ? 'base_url' : 'api_base'
  const [, address, version] = /^([^?#]+)\?api-version=([\w.-]+)$/.exec(textAt(params, key)) ?? []
  if (address === undefined || version === undefined) return params
  return { ...params, [key]: address, api_version: params['api_version'] ?? version }
}

function apiVersion(parts: AddressParts): string | null {
  const { context, params, at } = parts
  const given = placeText(parts, ['api_version'], 'api_version')
  if (given === null) return envText(context, ['AZURE_API_VERSION'])
  const isDated = variableOf(params['api_version']) !== null || /^\d{4}-\d{2}-\d{2}(?:-preview)?$/.test(given)
  if (isDated) return given
  context.report.changed(
    [...at, 'api_version'],
    null,
    'the addresses without a version (/openai/v1) are used',
  )
  return null
}

function entraOf(parts: AddressParts): JsonObject | null {
  const { context, params, at } = parts
  if (params['azure_ad_token'] !== undefined) {
    context.report.notCarried([...at, 'azure_ad_token'], 'a token that ends: use auth.azure, which renews it')
  }
  const names = ['tenant_id', 'client_id', 'client_secret'] as const
  const given = names.map((name) => params[name])
  if (given.some((value) => typeof value !== 'string')) return null
  const azure = Object.fromEntries(
    names.map((name) => {
      const value = textAt(params, name)
      context.report.carried([...at, name], `upstreams.azure.auth.azure.${name}`)
      const isSecret = name === 'client_secret' || variableOf(value) !== null
      return [name, isSecret ? context.secrets.place(value, `AZURE_${name.toUpperCase()}`).text : value]
    }),
  )
  const scope = placeText(parts, ['azure_scope'], 'auth.scope')
  return { auth: { azure, ...(scope === null ? {} : { scope }) } }
}

function preset(parts: AddressParts): Addressed {
  const { context, vendor, model } = parts
  const name = vendor.preset ?? 'openai'
  const address = ownAddress(parts)
  const variable = vendor.addressVariable
  const fromEnv =
    address === null && variable !== undefined && isSet(context, variable) ? `\${${variable}}` : null
  const given = (address?.text ?? fromEnv)?.replace(/\/chat\/completions$/, '') ?? null
  const end = vendor.addressEnd ?? ''
  // LiteLLM uses other protocols of watsonx and Snowflake, whose paths are below these.
  const root = end.startsWith('/v') ? given : (given?.replace(/\/(?:api\/v2|ml)(?:\/.*)?$/, '') ?? null)
  const base =
    given === null ? (vendor.address ?? null) : end === '' ? given : withVersion(root ?? given, end)
  if (base === null && PRESETS[name].baseUrl === null) {
    throw new NotCarried(`the preset ${name} needs an address: add api_base`)
  }
  const isIbm = name === 'watsonx'
  const found = credential(parts, { isNeeded: base === null, to: isIbm ? 'auth.ibm.api_key' : 'api_key' })
  const key = isIbm ? ofIbm(found) : found
  const isPrivate = address?.values ?? (fromEnv === null ? {} : { allow_private_address: true })
  const values = { preset: name, ...(base === null ? {} : { base_url: base }), ...key.values, ...isPrivate }
  return { label: name, values, variables: key.variables, model, deployment: null }
}

const CLOUDS = /^https:\/\/[^/]*\.(?:openai|anthropic|azure|googleapis|amazonaws)\.com(?:[:/]|$)/

/** The address of the deployment, without a slash at its end; null if it has none. */
function ownAddress(parts: AddressParts): { readonly text: string; readonly values: JsonObject } | null {
  const text = placeText(parts, ['api_base', 'base_url'], 'base_url')
  if (text === null) return null
  // An operator's own service may be in a private network; services of clouds are not.
  const isCloud = CLOUDS.test(text)
  return { text: withoutSlashes(text), values: isCloud ? {} : { allow_private_address: true } }
}

/** The text at the first of the keys that is set: a reference to a variable, or the text itself. */
function placeText(
  { context, params, at }: AddressParts,
  keys: readonly string[],
  to: string,
): string | null {
  let found: string | null = null
  for (const key of keys) {
    const value = params[key]
    if (typeof value !== 'string' || value === '') continue
    if (isForeignReference(value)) {
      context.report.notCarried([...at, key], 'a reference that only LiteLLM resolves: use ${file:…}')
      continue
    }
    const variable = variableOf(value)
    if (key.endsWith('base') || key.endsWith('url')) assertAddress(variable === null ? value : null)
    context.report.carried([...at, key], `upstreams.${to}`)
    found ??= variable === null ? value : `\${${variable}}`
  }
  return found
}

/** A credential or a query in an address would get into the configuration. */
function assertAddress(address: string | null): void {
  if (address === null) return
  if (!URL.canParse(address)) throw new NotCarried('the address is no URL')
  const { username, password, search } = new URL(address)
  if (username !== '' || password !== '' || search !== '') {
    throw new NotCarried('the address has a user, a password or a query: use api_key, headers and query')
  }
}

function envText(context: ImportContext, names: readonly string[]): string | null {
  const name = names.find((each) => isSet(context, each))
  return name === undefined ? null : `\${${name}}`
}

/** The key of the deployment. Without one, that of the vendor's variable, if it is needed or set. */
/** The credential of an upstream, and the variables that hold it. */
interface Credential {
  readonly values: JsonObject
  readonly variables: readonly string[]
}

/** LiteLLM exchanges an API key of IBM Cloud for tokens, and sends a token unchanged. */
function ofIbm({ values, variables }: Credential): Credential {
  const { api_key: key } = values
  if (key === undefined || variables.includes('WATSONX_TOKEN')) return { values, variables }
  return { values: { auth: { ibm: { api_key: key } } }, variables }
}

function credential(
  parts: AddressParts,
  { isNeeded, to = 'api_key' }: { readonly isNeeded: boolean; readonly to?: string },
): Credential {
  const { context, vendor, params, at } = parts
  const value = params['api_key']
  const [usual = 'API_KEY'] = vendor.variables
  if (typeof value === 'string' && value !== '') {
    if (isForeignReference(value)) {
      context.report.notCarried([...at, 'api_key'], 'a reference that only LiteLLM resolves: use ${file:…}')
    } else {
      const { text, variable } = context.secrets.place(value, usual)
      const { [variable]: now = '' } = context.env
      if (variableOf(value) !== null || now === '' || now === value) {
        context.report.carried([...at, 'api_key'], `upstreams.${to}`)
      } else {
        const note = `${variable} is set to another value now, which comes before that of .env: unset it`
        context.report.changed([...at, 'api_key'], `upstreams.${to}`, note)
      }
      return { values: { api_key: text }, variables: [variable] }
    }
  }
  if (value === '')
    context.report.ignored([...at, 'api_key'], 'empty: LiteLLM reads the variable of the vendor')
  const set = vendor.variables.find((name) => isSet(context, name))
  const name = set ?? (isNeeded ? vendor.variables[0] : undefined)
  if (name === undefined) return { values: {}, variables: [] }
  return { values: { api_key: `\${${name}}` }, variables: [name] }
}
