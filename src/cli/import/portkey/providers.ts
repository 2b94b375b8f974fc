/** The upstreams of Portkey's providers. Source: the providers of its open gateway, read 2026-11-29. */
import { withoutSlashes } from '../../../config/platform-settings.js'
import { PRESET_NAMES, PRESETS, type PresetName } from '../../../config/presets.js'
import type { Path } from '../../../config/config-problem.js'
import type { JsonObject } from '../../../base/json.js'
import { textsIn } from '../litellm/context.js'
import type { ImportedUpstreams } from '../litellm/upstreams.js'
import type { ImportReport } from '../report.js'
import type { ImportedSecrets } from '../secrets.js'

/** What the parts of this import share. */
export interface PortkeyContext {
  readonly report: ImportReport
  readonly secrets: ImportedSecrets
  readonly upstreams: ImportedUpstreams
}

/** The start of an upstream. */
interface ProviderUpstream {
  readonly label: string
  readonly values: JsonObject
  readonly variables: readonly string[]
  /** Azure: the model of the deployment; null for others. */
  readonly model: string | null
  readonly deployment: string | null
}

/** Providers whose name is not that of the preset. */
const OTHER_NAMES: Readonly<Record<string, PresetName>> = {
  google: 'gemini',
  'together-ai': 'together',
  'mistral-ai': 'mistral',
  'fireworks-ai': 'fireworks',
  'perplexity-ai': 'perplexity',
  'x-ai': 'xai',
  'novita-ai': 'novita',
  'lambda-ai': 'lambda',
  'nvidia-nim': 'nvidia',
  'workers-ai': 'cloudflare',
}

interface ProviderContext {
  readonly at: Path
  readonly context: PortkeyContext
}

/** The upstream of a target; null if its provider is unknown and it has no address. */
export function upstreamOfProvider(
  provider: string,
  target: JsonObject,
  { at, context }: ProviderContext,
): ProviderUpstream | null {
  if (provider === 'azure-openai') return azure(target, { at, context })
  if (provider === 'bedrock') return bedrock(target, { at, context })
  if (provider === 'vertex-ai') return vertex(target, { at, context })
  const address = addressOf(target, { at, context })
  const name = OTHER_NAMES[provider] ?? PRESET_NAMES.find((each) => each === provider)
  const none = { model: null, deployment: null }
  if (name === undefined) {
    if (address === null) return null
    const key = keyOf(target, 'API_KEY', { at, context })
    const values = { dialect: 'openai-chat', base_url: address, allow_private_address: true, ...key.values }
    return { label: 'openai-chat', values, variables: key.variables, ...none }
  }
  if (address === null && PRESETS[name].baseUrl === null) return null
  const [usual = 'API_KEY'] = PRESETS[name].variables
  const key = keyOf(target, usual, { at, context })
  const base = address === null ? {} : { base_url: address, allow_private_address: true }
  const needed =
    key.variables.length > 0 || PRESETS[name].baseUrl?.startsWith('http:') === true ? [] : [usual]
  const own =
    address !== null && key.variables.length === 0 && needed.length > 0 ? { api_key: `\${${usual}}` } : {}
  return {
    label: name,
    values: { preset: name, ...base, ...key.values, ...own },
    variables: [...key.variables, ...needed],
    ...none,
  }
}

function azure(target: JsonObject, place: ProviderContext): ProviderUpstream | null {
  const { at, context } = place
  const resource = textsIn(target['azure_resource_name'] ?? target['resource_name'])[0]
  const deployment = textsIn(target['azure_deployment_id'] ?? target['deployment_id'])[0] ?? null
  const version = textsIn(target['azure_api_version'] ?? target['api_version'])[0]
  const address = addressOf(target, place)
  if (resource === undefined && address === null) return null
  for (const name of ['resource_name', 'deployment_id', 'api_version', 'model_name']) {
    for (const each of [name, `azure_${name}`]) context.report.carried([...at, each], 'upstreams.azure')
  }
  const key = keyOf(target, 'AZURE_API_KEY', place)
  const isDated = version !== undefined && /^\d{4}-\d{2}-\d{2}(?:-preview)?$/.test(version)
  const values = {
    platform: 'azure',
    dialect: 'openai-chat',
    base_url: address ?? `https://${resource ?? ''}.openai.azure.com`,
    ...(isDated ? { api_version: version } : {}),
    ...(key.variables.length === 0 ? { api_key: '${AZURE_API_KEY}' } : key.values),
  }
  const variables = key.variables.length === 0 ? ['AZURE_API_KEY'] : key.variables
  const model = textsIn(target['azure_model_name'])[0] ?? deployment
  return { label: 'azure', values, variables, model, deployment }
}

function bedrock(target: JsonObject, { at, context }: ProviderContext): ProviderUpstream {
  const { report, secrets } = context
  const region = textsIn(target['aws_region'])[0] ?? 'us-west-2'
  report.carried([...at, 'aws_region'], 'upstreams.bedrock.region')
  const variables: string[] = []
  const aws: JsonObject = {}
  for (const name of ['access_key_id', 'secret_access_key', 'session_token']) {
    const value = textsIn(target[`aws_${name}`])[0]
    if (value === undefined) continue
    const { text, variable } = secrets.place(value, `AWS_${name.toUpperCase()}`)
    aws[name] = text
    variables.push(variable)
    report.carried([...at, `aws_${name}`], `upstreams.bedrock.auth.aws.${name}`)
  }
  const auth = { aws: Object.keys(aws).length === 0 ? 'default' : aws }
  const values = { platform: 'bedrock', dialect: 'converse', region, auth }
  return { label: 'bedrock', values, variables, model: null, deployment: null }
}

function vertex(target: JsonObject, { at, context }: ProviderContext): ProviderUpstream | null {
  const project = textsIn(target['vertex_project_id'])[0]
  if (project === undefined) return null
  const location = textsIn(target['vertex_region'])[0] ?? 'us-central1'
  context.report.carried([...at, 'vertex_project_id'], 'upstreams.vertex.project')
  context.report.carried([...at, 'vertex_region'], 'upstreams.vertex.location')
  if (target['vertex_service_account_json'] !== undefined) {
    const note = 'use upstreams.vertex.auth.google.credentials_file'
    context.report.notCarried([...at, 'vertex_service_account_json'], note)
  }
  const values = { platform: 'vertex', dialect: 'gemini', project, location, auth: { google: 'default' } }
  return { label: 'vertex', values, variables: [], model: null, deployment: null }
}

function addressOf(target: JsonObject, { at, context }: ProviderContext): string | null {
  const host = textsIn(target['custom_host'])[0]
  if (host === undefined) return null
  const isPlain = URL.canParse(host) && new URL(host).search === '' && new URL(host).password === ''
  if (!isPlain) {
    context.report.notCarried([...at, 'custom_host'], 'is no address without a query and a password')
    return null
  }
  context.report.carried([...at, 'custom_host'], 'upstreams.base_url')
  return withoutSlashes(host)
}

function keyOf(
  target: JsonObject,
  usual: string,
  { at, context }: ProviderContext,
): { readonly values: JsonObject; readonly variables: readonly string[] } {
  const value = textsIn(target['api_key'])[0]
  if (value === undefined || value === '') return { values: {}, variables: [] }
  const { text, variable } = context.secrets.place(value, usual)
  context.report.carried([...at, 'api_key'], 'upstreams.api_key')
  return { values: { api_key: text }, variables: [variable] }
}
