/**
 * Finds the ids of objects that belong to an account: in paths, in members of requests, and in the objects
 * that replies contain. Pure.
 *
 * Sources: the API references of OpenAI, Anthropic and Gemini, read 2026-11-24.
 */
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { NativeRule } from '../../config/config.js'

/**
 * Segments of paths whose next segment is an id, with the words that may follow instead. `completions` are
 * stored chat completions, `jobs` those of fine-tuning.
 */
const COLLECTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['agents', []],
  ['assistants', []],
  ['batches', []],
  ['cachedContents', []],
  ['calls', []],
  ['completions', []],
  ['containers', []],
  ['conversations', []],
  ['corpora', []],
  ['environments', []],
  ['evals', []],
  ['file_batches', []],
  ['fileSearchStores', []],
  ['files', []],
  ['interactions', []],
  ['jobs', []],
  ['operations', []],
  ['responses', ['compact', 'input_tokens']],
  ['sessions', []],
  ['skills', []],
  ['threads', ['runs']],
  ['tunedModels', []],
  ['uploads', []],
  ['user_profiles', []],
  ['vaults', []],
  ['vector_stores', []],
  ['videos', []],
])

/** Segments whose next segment is the name of something public, such as a model. */
const PUBLIC = new Set([
  'deployments',
  'engines',
  'locations',
  // Bedrock: `/model/{id}/converse`.
  'model',
  'models',
  'projects',
  'publishers',
  'voices',
])

/** Other segments that a `*` of a rule may match without being an id. */
const WORDS = new Set(
  (
    'alpha audio batch beta cancel chat client_secrets content converse converse-stream count-tokens count_tokens download edits embeddings fine_tuning ' +
    'generate generations graders images invoke invoke-with-response-stream messages moderations ocr openai realtime rerank results run search ' +
    'speech transcription_sessions transcriptions translations upload validate variations'
  ).split(' '),
)
const VERSION = /^v\d[a-z0-9]*$/

/** What a native path names. */
export interface NamedObject {
  /** The id that must belong to the account; null if the path has none. */
  readonly id: string | null
  /** The path ends with this id. */
  readonly isWhole: boolean
  /** The last collection before the id, or at the end of the path; '' if there is none. */
  readonly collection: string
  /** The path is below `models`, whose lists are public. */
  readonly isPublic: boolean
}

/**
 * The object that a path names. A segment that a rule names itself, and not by `*`, is never an id: the
 * operator has opened it to every key.
 */
export function objectInPath(segments: readonly string[], rules: readonly NativeRule[]): NamedObject {
  let collection = ''
  let isPublic = false
  let previous = ''
  for (const [at, segment] of segments.entries()) {
    const followers = COLLECTIONS.get(previous)
    const isNamed = isNamedByRule(rules, at, segments.length)
    const isWord = followers === undefined ? isKnown(segment) : followers.includes(segment)
    const isName = PUBLIC.has(previous) && !segment.startsWith('ft:') && !COLLECTIONS.has(segment)
    if (!isNamed && !isWord && !isName) {
      const id = idOf(followers === undefined ? '' : previous, segment)
      return { id, isWhole: at === segments.length - 1, collection, isPublic: false }
    }
    if (COLLECTIONS.has(segment) && followers === undefined) {
      collection = segment
      isPublic = false
    } else if (PUBLIC.has(segment)) isPublic = true
    // What follows an id that the rule names is inside that object.
    if (isNamed && followers !== undefined && !isWord) {
      return { id: null, isWhole: false, collection: '', isPublic: true }
    }
    previous = segment
  }
  const isList = segments.at(-1) === collection
  return { id: null, isWhole: false, collection: isList ? collection : '', isPublic }
}

function isKnown(segment: string): boolean {
  return COLLECTIONS.has(segment) || PUBLIC.has(segment) || WORDS.has(segment) || VERSION.test(segment)
}

/** Whether a rule of the upstream names the segment of a path of this length itself, and not by `*`. */
export function isNamedByRule(rules: readonly NativeRule[], at: number, length: number): boolean {
  return rules.some((rule) => isLiteral(rule, at, length))
}

/** Whether the rule names the segment; between two stars it names none. */
function isLiteral({ segments: pattern }: NativeRule, at: number, length: number): boolean {
  const first = pattern.indexOf('*')
  if (first < 0 || at < first) return true
  return at >= length - (pattern.length - 1 - pattern.lastIndexOf('*'))
}

/** Google's names have their collection; the ids of others are unique by themselves. */
function idOf(collection: string, segment: string): string {
  // An action of Google's follows the name; models of fine-tuning have colons.
  const id = segment.startsWith('ft:') ? segment : segment.replace(/:[A-Za-z]+$/, '')
  return isResourceName(`${collection}/${id}`) ? `${collection}/${id}` : id
}

/**
 * The ids of OpenAI and Anthropic have a prefix with `-` or `_`, those of Mistral are UUIDs; Google's are
 * only unique within their collection, and clients may choose them.
 */
const GOOGLE =
  /^(?:batches|cachedContents|corpora|fileSearchStores|files|interactions|operations|tunedModels)\//
const UNIQUE =
  /\/(?:(?:file|batch|msgbatch|container|cntr|resp)[-_][A-Za-z0-9]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$)/

function isResourceName(name: string): boolean {
  return GOOGLE.test(name) && !UNIQUE.test(name)
}

/** The id in a value that names an object: an id, a resource name, or the URL of one. */
export function idInValue(value: string): string {
  if (!value.includes('/')) return value
  const [address = ''] = value.split(/[?#]/)
  const path = address.replace(/^[a-z]{1,10}:\/\/[^/]*/i, '')
  const segments = path.split('/').filter((segment) => segment !== '')
  return idOf(segments.at(-2) ?? '', segments.at(-1) ?? '')
}

/** Members of requests whose value is an id or a list of ids. */
const ID_MEMBERS = new Set([
  'agent_id',
  'assistant_id',
  'batch_id',
  'cached_content',
  'cachedContent',
  'container',
  'container_id',
  'conversation',
  'conversation_id',
  'environment_id',
  'eval_id',
  'file_id',
  'file_ids',
  'file_name',
  'file_search_store_names',
  'file_uri',
  'fileIds',
  'fileId',
  'fileName',
  'fileSearchStoreNames',
  'fileUri',
  'image_file_id',
  'input_file_id',
  'input_files',
  'previous_interaction_id',
  'previous_response_id',
  'response_id',
  'run_id',
  'skill_id',
  'thread_id',
  'training_file',
  'upload_id',
  'uri',
  'user_profile_id',
  'validation_file',
  'vector_store_id',
  'vector_store_ids',
  'video_id',
])
/** Members of requests whose object has the id as `id`. */
const ID_OBJECTS = new Set(['audio', 'container', 'conversation', 'prompt', 'source', 'video'])

/** A file of the Files API; other URLs are public. */
const GOOGLE_FILE = /^(?:https?:\/\/[^/]*googleapis\.com\/(?:[^?#]*\/)?)?files\//i

/** Members with schemas, and with data that providers only store, in which they read no ids. */
const FOREIGN: ReadonlySet<string> = new Set([
  ...['client_metadata', 'input_schema', 'json_schema', 'metadata', 'parameters_json_schema'],
  ...['response_json_schema', 'response_schema', 'schema'],
])

/**
 * Members with data of the client's own tools, by the members that they are in. Elsewhere these names mean
 * something else: a message of Realtime has a whole request in `response`.
 */
const FOREIGN_WITHIN: Readonly<Partial<Record<string, ReadonlySet<string>>>> = {
  args: new Set(['function_call', 'tool_call']),
  arguments: new Set(['function', 'function_call', 'tool_calls']),
  // Of Anthropic's blocks, and of Converse's.
  input: new Set(['content', 'tool_use']),
  // A result of Converse's.
  json: new Set(['content', 'input_schema']),
  parameters: new Set(['function', 'function_declarations', 'functions', 'tool_calls', 'tools']),
  response: new Set(['function_declarations', 'function_response', 'function_responses', 'tool_response']),
}

/**
 * Whether an object or a list in a request contains data in which ids have no meaning to the provider.
 * `parent`: the member that it is in, also as an item of its list.
 */
export function isForeignData(name: string, parent: string, isArray: boolean): boolean {
  const member = snakeCase(name)
  if (FOREIGN.has(member)) return true
  // The input of a call is an object, that of a Responses request a list.
  if (member === 'input' && isArray) return false
  return FOREIGN_WITHIN[member]?.has(snakeCase(parent)) === true
}

/** Google's APIs read each name in both spellings. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Whether a member has an id as its value, and never a text. */
export function isIdMember(name: string): boolean {
  return ID_MEMBERS.has(name) && !ID_OBJECTS.has(name) && !name.endsWith('ame')
}

/** Whether a member of a request may name an object. */
export function mayNameObject(name: string): boolean {
  return ID_MEMBERS.has(name) || ID_OBJECTS.has(name)
}

/**
 * The object that a member of a request names; null if it names none that belongs to an account: a public
 * file of the web, or a word such as `auto`.
 */
export function idInMember(name: string, parent: string, value: string): string | null {
  if (name === 'id' ? !ID_OBJECTS.has(parent) : !ID_MEMBERS.has(name)) return null
  if (value === '' || value === 'auto' || value === 'null') return null
  // An address or a text as the source of a search result.
  if (parent === 'source' && !/^[a-z]+[-_][\w-]+$/i.test(value)) return null
  if (name === 'file_uri' || name === 'fileUri' || name === 'uri') {
    return GOOGLE_FILE.test(value) ? idInValue(value) : null
  }
  // Anthropic's own skills have names, those of clients ids.
  if (name === 'skill_id' && /^[a-z]{1,32}$/.test(value)) return null
  // A name of a file is no id, except in Google's batches.
  if (name === 'file_name' || name === 'fileName') {
    return value.startsWith('files/') ? idInValue(value) : null
  }
  return idInValue(value)
}

interface ObjectInReply {
  readonly id: string
  readonly expiresAtMs: number | null
}

/** Kinds of objects that are kept longer than their `expires_at`, which is a deadline for their work. */
const KEPT_MS: Readonly<Record<string, number>> = {
  batch: 90 * 86_400_000,
  message_batch: 90 * 86_400_000,
  response: 31 * 86_400_000,
  'chat.completion': 31 * 86_400_000,
  container: 31 * 86_400_000,
  vector_store: 0,
}

/** The object that a reply is; null if it has no id. */
export function objectInReply(reply: JsonObject, nowMs: number): ObjectInReply | null {
  const id = stringOf(reply['id']) ?? resourceName(reply)
  if (id === undefined || id === '') return null
  const kind = stringOf(reply['object']) ?? stringOf(reply['type']) ?? ''
  const keptMs = Object.hasOwn(KEPT_MS, kind) ? KEPT_MS[kind] : undefined
  if (keptMs !== undefined) {
    return { id: idInValue(id), expiresAtMs: keptMs === 0 ? null : nowMs + keptMs }
  }
  return { id: idInValue(id), expiresAtMs: expiryOf(reply) }
}

function resourceName({ name }: JsonObject): string | undefined {
  const text = stringOf(name)
  return text?.includes('/') === true ? text : undefined
}

function expiryOf(reply: JsonObject): number | null {
  const value =
    reply['expires_at'] ?? reply['expirationTime'] ?? reply['expireTime'] ?? reply['expires_after']
  const ms = typeof value === 'string' ? Date.parse(value) : (numberOf(value) ?? NaN) * 1_000
  return Number.isFinite(ms) && ms > 0 ? ms : null
}

/** Members with the id of an object that the provider made; `output_file` and `error_file` are Mistral's. */
const MADE = ['output_file_id', 'error_file_id', 'output_file', 'error_file', 'fine_tuned_model']

/**
 * Further objects that a provider made for the account and names in a reply to it: the files of a batch, a
 * model of fine-tuning, the parts of an upload. Only members that clients cannot write are read.
 */
export function objectsMade(reply: JsonObject): string[] {
  const ids = MADE.map((name) => reply[name])
  const { file, result_files: files, response, metadata, dest } = reply
  const output = objectOf(objectOf(metadata)['output'])
  const isGoogle = typeof reply['name'] === 'string'
  const places = isGoogle ? [response, output, dest] : []
  const named = places.map((place) => objectOf(place)['responsesFile'] ?? objectOf(place)['fileName'])
  const made = objectOf(file)
  const all = [...ids, ...arrayOf(files), ...named, made['id'] ?? made['name']]
  return all.flatMap((id) => (typeof id === 'string' && id !== '' ? [idInValue(id)] : []))
}

/** The id of an item of a list; null if it has none. */
export function idOfItem(item: unknown): string | null {
  if (!isObject(item)) return null
  const id = stringOf(item['id']) ?? stringOf(item['name'])
  return id === undefined ? null : idInValue(id)
}
