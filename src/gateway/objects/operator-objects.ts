/**
 * What a cloud reads or calls with the gateway's own identity because a request names it: objects in buckets,
 * data stores, guardrails, connections, secrets. A client has no right to them of its own, so that a request
 * may name only those that the upstream lists (`allow_buckets`, `allow_tools`).
 *
 * Sources: the API references of Vertex AI, Amazon Bedrock and Azure OpenAI, read 2026-11-29.
 */
import type { UpstreamConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { hostedToolName, isHarmless } from '../../formats/chat/hosted-tools.js'
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { longTextOf } from '../../formats/chat/long-text.js'
import type { AssistantPart, Message, UserPart } from '../../formats/chat/request.js'
import type { WireFormat } from '../../formats/dialect.js'
import { hostedAt, type TargetFormat } from '../charges/unknown-use.js'
import type { CheckedRequest } from '../served-request.js'
import type { Generation } from '../generation.js'
import type { Candidate, Route } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import { cloudOf, isInScope, isPublicModel, isResource, type Cloud, type ForeignPart } from './cloud-names.js'
import { vendorOf } from './ids-in-request.js'
import { isForeignData } from './object-ids.js'

/** The settings of an upstream that decide. */
type CloudConfig = Pick<
  UpstreamConfig,
  'name' | 'allowBuckets' | 'allowTools' | 'platform' | 'preset' | 'baseUrl' | 'native'
>

/** What decides whether an upstream may receive a request. */
export interface CloudRules {
  readonly config: CloudConfig
  /** Whether the configuration names the model for this upstream. */
  readonly namesModel: (model: string) => boolean
}

/** The rules of an upstream in a generation. */
export function cloudRulesOf(config: UpstreamConfig, generation: Pick<Generation, 'namesModel'>): CloudRules {
  return { config, namesModel: (model) => generation.namesModel(config.name, model) }
}

const CLOUD_NAMES: Readonly<Record<Cloud, string>> = {
  bedrock: 'Amazon Bedrock',
  vertex: 'Vertex AI',
  azure: 'Azure',
}

/** Members that name an object or a service of the cloud's customer, by their names in `allow_tools`. */
const MEMBERS: Readonly<Record<Cloud, ReadonlySet<string>>> = {
  vertex: new Set([
    'api_auth',
    'auth_config',
    'example_store',
    'external_api',
    'model_armor_config',
    'retrieval',
  ]),
  bedrock: new Set([
    ...['amazon_bedrock_guardrail_config', 'guardrail_config', 'guardrail_identifier', 'guardrail_id'],
    ...['knowledge_base_configuration', 'knowledge_base_id', 'prompt_arn', 'retrieval_configuration'],
    ...['retrieve_and_generate_configuration', 'system_tool'],
  ]),
  azure: new Set([
    ...['agent', 'agent_reference', 'connection_id', 'data_sources', 'index_connection_id'],
    // Batches whose requests and results are in the customer's storage.
    ...['input_blob', 'output_folder'],
    ...['project_connection_id', 'project_connections', 'search_index', 'search_indexes'],
  ]),
}

/** Tools that use nothing of the cloud's customer; their own members may. Every other tool must be listed. */
const VENDORS_OWN: ReadonlySet<string> = new Set([
  ...['advisor', 'code_execution', 'code_interpreter', 'computer_use', 'file_search', 'google_maps'],
  ...[
    'image_generation',
    'inference_geo',
    'mcp',
    'service_tier',
    'shell',
    'speed',
    'url_context',
    'web_fetch',
  ],
  'web_search',
])

/**
 * Members whose value is text if it is a string, in which an address means nothing to the cloud. Objects and
 * lists below them are looked at as everywhere else.
 */
const TEXTS: ReadonlySet<string> = new Set([
  ...['arguments', 'cited_text', 'code', 'content', 'context', 'description', 'display_name'],
  ...['document_title', 'documents', 'input', 'input_text', 'instructions', 'message', 'output', 'preamble'],
  ...['prefix', 'prompt', 'prompt_cache_key', 'query', 'reasoning', 'reasoning_content', 'refusal'],
  ...['safety_identifier', 'stop', 'stop_sequences', 'suffix', 'summary', 'system', 'text', 'texts'],
  ...['thinking', 'title', 'user', 'user_id'],
])
/** Members with texts under names that the client chooses. */
const LABELS: ReadonlySet<string> = new Set([
  ...['client_metadata', 'labels', 'metadata', 'request_metadata', 'variables'],
])
/** A result of a search that the client made, and citations of it: their `source` is a text. */
const SEARCH_RESULT = 'search_result'
const CITATIONS: ReadonlySet<string> = new Set([SEARCH_RESULT, 'citations'])

const BUCKET = /^\s*(?:gs|s3|bq):\/\//i
/** Names of resources. A cache of Google's belongs to the account that created it. */
const RESOURCES: Readonly<Record<Cloud, RegExp | null>> = {
  bedrock: /^\s*arn:/i,
  vertex: /^\s*(?:\/\/[\w.-]+\/)?projects\//i,
  azure: null,
}
const CACHE = 'cached_content'
const MODEL = 'model'
const TOOLS = 'tools'

/**
 * The refusal of a body that the cloud receives unchanged; null if it names nothing that is not listed.
 * `body` has the members of the cloud's own API.
 */
export function refusalOfBody(body: JsonObject, rules: CloudRules): GatewayError | null {
  const cloud = cloudOf(rules.config)
  if (cloud === null) return null
  const pending: Pending[] = [{ value: body, path: '', name: '', isListed: false }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, path, name, isListed } = next
    if (typeof value === 'string') {
      const refusal = refusalOfText(value, { cloud, path, name, rules, isListed })
      if (refusal !== null) return refusal
    } else if (Array.isArray(value)) {
      for (const [at, item] of value.entries()) {
        if (typeof item !== 'number') pending.push({ value: item, path: `${path}[${at}]`, name, isListed })
      }
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        const tool = hostedToolName(key)
        if (isText(tool, { holder: value, key, parent: name })) continue
        const inner = value[key]
        if (inner === undefined || inner === null || isData(tool, name, inner)) continue
        const at = path === '' ? key : `${path}.${key}`
        const isAllowed = lists(rules, tool)
        const isIncluded = isListed && !APART.has(tool)
        if (MEMBERS[cloud].has(tool) && !isAllowed && !isIncluded)
          return refusedTool(tool, at, { cloud, rules })
        const refusal = key === TOOLS ? refusalOfTools(inner, at, { cloud, rules }) : null
        if (refusal !== null) return refusal
        pending.push({ value: inner, path: at, name: tool, isListed: isListed || isAllowed })
      }
    }
  }
  return null
}

/** The refusal of a list of tools with one that the cloud runs for its customer; null if it has none. */
function refusalOfTools(list: JsonValue, path: string, refusing: Refusing): GatewayError | null {
  // Google reads one tool without a list.
  const items = isObject(list) && refusing.cloud === 'vertex' ? [list] : arrayOf(list)
  for (const [at, item] of items.entries()) {
    for (const tool of isObject(item) ? toolNamesOf(item, refusing.cloud) : []) {
      if (isHarmless(tool) || VENDORS_OWN.has(tool) || lists(refusing.rules, tool)) continue
      return refusedTool(tool, `${path}[${at}]`, refusing)
    }
  }
  return null
}

/** The names of a tool: its type, or Google's members. */
function toolNamesOf(item: JsonObject, cloud: Cloud): string[] {
  if (typeof item['type'] === 'string') return [hostedToolName(item['type'])]
  if (cloud !== 'vertex' || item['name'] !== undefined) return []
  const given = Object.keys(item).filter((key) => item[key] !== null && item[key] !== undefined)
  return given.map(hostedToolName).filter((name) => name !== 'function_declarations')
}

interface Pending {
  readonly value: JsonValue
  readonly path: string
  /** The name of the member that has it, as `hostedToolName` spells it. */
  readonly name: string
  /** A member around it is in `allow_tools`. */
  readonly isListed: boolean
}

/** Members that are not included in a listed one around them: any host, with any secret of the project. */
const APART: ReadonlySet<string> = new Set(['external_api'])

interface TextPlace {
  readonly holder: JsonObject
  readonly key: string
  /** The name of the member that has the holder. */
  readonly parent: string
}

/** Whether a member is a string that is text. Long texts stay encoded. */
function isText(name: string, { holder, key, parent }: TextPlace): boolean {
  if (longTextOf(holder, key) === null && typeof holder[key] !== 'string') return false
  if (TEXTS.has(name) || LABELS.has(parent)) return true
  const { type } = holder
  if (name === 'data') return type === 'text'
  return name === 'source' && (type === SEARCH_RESULT || CITATIONS.has(parent))
}

/** Whether a member is data of the client's own tools. */
function isData(name: string, parent: string, value: JsonValue): boolean {
  if (typeof value !== 'object' || LABELS.has(name)) return false
  return isForeignData(name, parent, Array.isArray(value))
}

interface FoundText extends Omit<Pending, 'value'>, Refusing {}

function refusalOfText(text: string, { cloud, path, name, rules, isListed }: FoundText): GatewayError | null {
  // A list of texts, such as the inputs of embeddings.
  if (TEXTS.has(name)) return null
  if (name === MODEL) {
    return isResource(text, cloud) ? refusalOfModel(text, path, { cloud, rules }) : null
  }
  if (BUCKET.test(text)) return isBucketAllowed(text, rules) ? null : refusedBucket(path, { cloud, rules })
  if (isListed || RESOURCES[cloud]?.test(text) !== true) return null
  // Its owner is checked by its id.
  const isAccounts = rules.config.native.sharing === 'account'
  if (cloud === 'vertex' && name === CACHE) {
    return isInScope(text, rules.config, isAccounts) ? null : refusedTool(name, path, { cloud, rules })
  }
  return lists(rules, name) ? null : refusedTool(name, path, { cloud, rules })
}

/** Whether the tool is listed by its name: `*` allows tools of the provider, not what the gateway reads. */
function lists({ config: { allowTools } }: CloudRules, tool: string): boolean {
  return allowTools?.includes(tool) === true
}

/** Whether an entry of `allow_buckets` is the object, or a folder or bucket around it. */
function isBucketAllowed(url: string, { config: { allowBuckets } }: CloudRules): boolean {
  const [, scheme = '', path = ''] = /^([a-z0-9]+):\/\/(.*)$/is.exec(url) ?? []
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) return false
  const named = `${scheme.toLowerCase()}://${path}`
  return allowBuckets.some(
    (entry) => named === entry || named.startsWith(entry.endsWith('/') ? entry : `${entry}/`),
  )
}

interface Refusing {
  readonly cloud: Cloud
  readonly rules: CloudRules
}

function refusedBucket(path: string, { cloud, rules }: Refusing): GatewayError {
  const message = `${CLOUD_NAMES[cloud]} would read or write the object that \`${path}\` names with the gateway's identity: it is not in allow_buckets of the upstream '${rules.config.name}'.`
  return new GatewayError('untranslatable', message, { param: path })
}

/** Why the cloud must not open the model; null if it may. */
function refusalOfModel(model: string, path: string, { cloud, rules }: Refusing): GatewayError | null {
  if (isPublicModel(model, cloud, rules.config) || rules.namesModel(model)) return null
  const message = `${CLOUD_NAMES[cloud]} would open the model that \`${path}\` names with the gateway's identity: it is none of the cloud's own, and no route, price or model list of the upstream '${rules.config.name}' names it.`
  return new GatewayError('untranslatable', message, { param: path })
}

/** The refusal of a native path whose part the client must not choose. */
export function refusedPath(
  { what, name }: ForeignPart,
  { config }: Pick<CloudRules, 'config'>,
): GatewayError {
  const cloud = CLOUD_NAMES[cloudOf(config) ?? 'vertex']
  const shown = /^[\w./:@-]{1,200}$/.test(name) ? ` '${name}'` : ''
  const way =
    what === 'model'
      ? 'no route, price or model list of the upstream names it'
      : what === 'service'
        ? 'it may run what the operator has made at the upstream'
        : `it is not the ${what} of the upstream`
  const message = `${cloud} would open the ${what}${shown} of the path with the gateway's identity: ${way} '${config.name}', nor does a rule of its native paths.`
  return new GatewayError('untranslatable', message)
}

function refusedTool(tool: string, path: string, { cloud, rules }: Refusing): GatewayError {
  const message = `${CLOUD_NAMES[cloud]} would use what \`${path}\` names with the gateway's identity: '${tool}' is not in allow_tools of the upstream '${rules.config.name}'.`
  return new GatewayError('untranslatable', message, { param: path })
}

/**
 * The route without the candidates whose cloud would use what its upstream does not list. Throws
 * `untranslatable` if none is left.
 */
export function withoutOperatorObjects(route: Route, { call, generation }: CheckedRequest): Route {
  const refusals = route.candidates.map((candidate) => refusalAt(call, candidate, generation))
  const candidates = route.candidates.filter((_, at) => refusals[at] === null)
  if (candidates.length === route.candidates.length) return route
  const [first, ...others] = candidates
  if (first !== undefined) return { ...route, candidates: [first, ...others] }
  throw refusals.find((refusal) => refusal !== null) ?? new GatewayError('bug', 'no candidate is left')
}

/** Why the upstream of a candidate must not receive the request; null if it may. */
export function refusalAt(
  call: Call,
  { target, model }: Pick<Candidate, 'target' | 'model'>,
  generation: Pick<Generation, 'namesModel'>,
): GatewayError | null {
  const rules = cloudRulesOf(target.upstream.config, generation)
  const cloud = cloudOf(rules.config)
  const refusal = cloud === null ? null : refusalOfModel(model, MODEL, { cloud, rules })
  return refusal ?? refusalOfCall(call, target, rules)
}

/** The same for any request that an upstream receives in a format. */
export function refusalOfCall(
  call: Pick<Call, 'wire' | 'request' | 'body' | 'history'>,
  target: TargetFormat,
  rules: CloudRules,
): GatewayError | null {
  const cloud = cloudOf(rules.config)
  if (cloud === null) return refusalWithoutCloud(call, target, rules)
  const unlisted = hostedAt(call, target).find(({ name }) => !VENDORS_OWN.has(name) && !lists(rules, name))
  if (unlisted !== undefined) return refusedTool(unlisted.name, unlisted.path, { cloud, rules })
  // Members that the gateway does not translate pass between formats of one vendor; an earlier turn was
  // judged for the upstream that it went to.
  if (isPassedOn(call.wire, target.wire)) {
    const body = call.history?.bodyFor(rules.config.name, () => undefined) ?? call.body
    return refusalOfBody(body, rules)
  }
  // Members of the upstream's own format that clients of others send.
  const inRest = refusalOfBody(call.request.rest, rules)
  if (inRest !== null) return inRest
  for (const message of call.request.messages) {
    const url = bucketUrlOf(message)
    if (url !== null && !isBucketAllowed(url, rules)) {
      return refusedBucket(`messages[${message.index}]`, { cloud, rules })
    }
  }
  return null
}

/** Google's own API judges the addresses of its clients; other vendors read no buckets. */
function refusalWithoutCloud(
  { wire, request }: Pick<Call, 'wire' | 'request'>,
  target: TargetFormat,
  { config: { name } }: CloudRules,
): GatewayError | null {
  if (wire === 'gemini' && target.wire === wire) return null
  const found = request.messages.find((message) => bucketUrlOf(message) !== null)
  if (found === undefined) return null
  const param = `messages[${found.index}]`
  const message = `${param} names an object in a bucket, which the upstream '${name}' does not read: send the data, or use an upstream on Vertex AI or Bedrock with allow_buckets.`
  return new GatewayError('untranslatable', message, { param })
}

function isPassedOn(client: WireFormat, upstream: WireFormat): boolean {
  return client === upstream || (vendorOf(client) !== null && vendorOf(client) === vendorOf(upstream))
}

/** The address of a file in a bucket; null if the message has none. */
function bucketUrlOf({ parts }: Message): string | null {
  for (const part of parts as readonly (UserPart | AssistantPart)[]) {
    if (part.type !== 'image' && part.type !== 'file') continue
    const { source } = part
    const url = source.kind === 'url' ? source.url : source.kind === 'file-id' ? source.id : ''
    if (BUCKET.test(url)) return url
  }
  return null
}
