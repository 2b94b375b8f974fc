/**
 * Matches the path of a request to an endpoint: method and path → client format and operation. To add one,
 * add a row here and register the client codec of its dialect in `index.ts`; rows of a dialect without one
 * are not served.
 */
import type { ClientFormat } from './chat/operations.js'
import type { DialectName, Endpoint, WireFormat } from './dialect.js'

export interface EndpointRow {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /**
   * As documented: `{model}` and `{id}` stand for one or more characters, and at most one of them is in a
   * path. Of several paths that match, the first in the table counts, so one with a suffix comes before one
   * without.
   */
  readonly path: string
  readonly dialect: DialectName
  /** The dialect itself for chats. */
  readonly wire: WireFormat
  readonly format: ClientFormat
  readonly endpoint: Endpoint
}

const GENERATE: Endpoint = { operation: 'chat', stream: false }
const GENERATE_STREAM: Endpoint = { operation: 'chat', stream: true }
const CHAT: Endpoint = { operation: 'chat' }
const COUNT: Endpoint = { operation: 'count' }
const STORED: Endpoint = { operation: 'stored' }
const STORED_INPUT: Endpoint = { operation: 'stored-input' }
const MODELS: Endpoint = { operation: 'models' }
const EMBEDDINGS: Endpoint = { operation: 'embeddings' }
const COMPLETIONS: Endpoint = { operation: 'completions' }
const RERANK: Endpoint = { operation: 'rerank' }
const MODERATIONS: Endpoint = { operation: 'moderations' }
const IMAGES: Endpoint = { operation: 'images' }
const IMAGE_EDITS: Endpoint = { operation: 'image_edits' }
const TRANSCRIPTIONS: Endpoint = { operation: 'transcriptions' }
const TRANSLATIONS: Endpoint = { operation: 'translations' }
const SPEECH: Endpoint = { operation: 'speech' }
const FILES: Endpoint = { operation: 'files' }
const BATCHES: Endpoint = { operation: 'batches' }

type Format = Pick<EndpointRow, 'dialect' | 'wire' | 'format'>

const CHATS: Format = { dialect: 'openai-chat', wire: 'openai-chat', format: 'chat' }
const RESPONSES: Format = {
  dialect: 'openai-responses',
  wire: 'openai-responses',
  format: 'responses',
}
const MESSAGES: Format = { dialect: 'anthropic', wire: 'anthropic', format: 'messages' }
const GEMINI: Format = { dialect: 'gemini', wire: 'gemini', format: 'gemini' }
// Operations with a format of their own.
const COMPACT_FORMAT: Format = { ...RESPONSES, wire: 'responses-compact' }
const COMPLETION_FORMAT: Format = { ...CHATS, wire: 'openai-completions', format: 'completions' }
const EMBEDDING_FORMAT: Format = { ...CHATS, wire: 'openai-embeddings', format: 'embeddings' }
const RERANK_FORMAT: Format = { ...CHATS, wire: 'rerank', format: 'rerank' }
const COHERE_FORMAT: Format = { ...CHATS, wire: 'cohere-rerank', format: 'rerank' }
const MODERATION_FORMAT: Format = { ...CHATS, wire: 'openai-moderations', format: 'moderations' }
const IMAGE_FORMAT: Format = { ...CHATS, wire: 'openai-images', format: 'images' }
const IMAGE_EDIT_FORMAT: Format = { ...CHATS, wire: 'openai-image-edits', format: 'image_edits' }
const TRANSCRIPT_FORMAT: Format = { ...CHATS, wire: 'openai-transcriptions', format: 'transcriptions' }
const TRANSLATION_FORMAT: Format = { ...CHATS, wire: 'openai-translations', format: 'translations' }
const SPEECH_FORMAT: Format = { ...CHATS, wire: 'openai-speech', format: 'speech' }
const FILE_FORMAT: Format = { ...CHATS, format: 'files' }
const BATCH_FORMAT: Format = { ...CHATS, format: 'batches' }
const GEMINI_EMBEDDING: Format = { ...GEMINI, wire: 'gemini-embedding' }
const GEMINI_EMBEDDINGS: Format = { ...GEMINI, wire: 'gemini-embeddings' }

/** Endpoints of OpenAI's API. */
const OPENAI_ENDPOINTS: readonly EndpointRow[] = [
  post('/v1/chat/completions', CHATS, CHAT),
  post('/v1/completions', COMPLETION_FORMAT, COMPLETIONS),
  post('/v1/embeddings', EMBEDDING_FORMAT, EMBEDDINGS),
  post('/v1/moderations', MODERATION_FORMAT, MODERATIONS),
  post('/v1/images/generations', IMAGE_FORMAT, IMAGES),
  post('/v1/images/edits', IMAGE_EDIT_FORMAT, IMAGE_EDITS),
  post('/v1/audio/transcriptions', TRANSCRIPT_FORMAT, TRANSCRIPTIONS),
  post('/v1/audio/translations', TRANSLATION_FORMAT, TRANSLATIONS),
  post('/v1/audio/speech', SPEECH_FORMAT, SPEECH),
  post('/v1/files', FILE_FORMAT, FILES),
  get('/v1/files', FILE_FORMAT, FILES),
  get('/v1/files/{id}/content', FILE_FORMAT, FILES),
  get('/v1/files/{id}', FILE_FORMAT, FILES),
  { ...get('/v1/files/{id}', FILE_FORMAT, FILES), method: 'DELETE' },
  post('/v1/batches', BATCH_FORMAT, BATCHES),
  get('/v1/batches', BATCH_FORMAT, BATCHES),
  post('/v1/batches/{id}/cancel', BATCH_FORMAT, BATCHES),
  get('/v1/batches/{id}', BATCH_FORMAT, BATCHES),
  post('/v1/responses', RESPONSES, CHAT),
  post('/v1/responses/input_tokens', RESPONSES, COUNT),
  post('/v1/responses/compact', COMPACT_FORMAT, CHAT),
  get('/v1/responses/{id}/input_items', RESPONSES, STORED_INPUT),
  get('/v1/responses/{id}', RESPONSES, STORED),
  { ...get('/v1/responses/{id}', RESPONSES, STORED), method: 'DELETE' },
]

/** OpenAI's list of models. Anthropic's and Google's clients send headers of their own to the same paths. */
const MODEL_ENDPOINTS: readonly EndpointRow[] = [
  get('/v1/models', CHATS, MODELS),
  get('/v1/models/{model}', CHATS, MODELS),
]

/** All endpoints except `/native/…`, whose paths are those of the upstreams. */
export const ENDPOINTS: readonly EndpointRow[] = [
  // Of Google's clients, before OpenAI's paths that match them too; both vendors share the others.
  post('/v1/batches/{id}:cancel', GEMINI, BATCHES),
  get('/v1/files/{id}:download', GEMINI, FILES),
  post('/upload/v1/files', GEMINI, FILES),
  ...OPENAI_ENDPOINTS,
  { ...get('/v1/batches/{id}', GEMINI, BATCHES), method: 'DELETE' },
  post('/v1/rerank', RERANK_FORMAT, RERANK),
  post('/v2/rerank', COHERE_FORMAT, RERANK),
  post('/v1/messages', MESSAGES, CHAT),
  post('/v1/messages/count_tokens', MESSAGES, COUNT),
  post('/v1/messages/batches', MESSAGES, BATCHES),
  get('/v1/messages/batches', MESSAGES, BATCHES),
  post('/v1/messages/batches/{id}/cancel', MESSAGES, BATCHES),
  get('/v1/messages/batches/{id}/results', MESSAGES, BATCHES),
  get('/v1/messages/batches/{id}', MESSAGES, BATCHES),
  { ...get('/v1/messages/batches/{id}', MESSAGES, BATCHES), method: 'DELETE' },
  ...['/v1beta/models/{model}', '/v1/models/{model}'].flatMap((path) => [
    post(`${path}:generateContent`, GEMINI, GENERATE),
    post(`${path}:streamGenerateContent`, GEMINI, GENERATE_STREAM),
    post(`${path}:countTokens`, GEMINI, COUNT),
    post(`${path}:embedContent`, GEMINI_EMBEDDING, EMBEDDINGS),
    post(`${path}:batchEmbedContents`, GEMINI_EMBEDDINGS, EMBEDDINGS),
    post(`${path}:batchGenerateContent`, GEMINI, BATCHES),
  ]),
  get('/v1beta/batches', GEMINI, BATCHES),
  post('/v1beta/batches/{id}:cancel', GEMINI, BATCHES),
  get('/v1beta/batches/{id}', GEMINI, BATCHES),
  { ...get('/v1beta/batches/{id}', GEMINI, BATCHES), method: 'DELETE' },
  post('/upload/v1beta/files', GEMINI, FILES),
  get('/v1beta/files', GEMINI, FILES),
  get('/v1beta/files/{id}:download', GEMINI, FILES),
  get('/download/v1beta/files/{id}:download', GEMINI, FILES),
  get('/v1beta/files/{id}', GEMINI, FILES),
  { ...get('/v1beta/files/{id}', GEMINI, FILES), method: 'DELETE' },
  get('/v1beta/models', GEMINI, MODELS),
  get('/v1beta/models/{model}', GEMINI, MODELS),
  ...MODEL_ENDPOINTS,
]

/** OpenAI's endpoints below `/openai`, for Groq's SDK and Azure's clients without an `api-version`. */
export const OPENAI_ALIASES: readonly EndpointRow[] = [...OPENAI_ENDPOINTS, ...MODEL_ENDPOINTS].map(
  (row) => ({ ...row, path: `/openai${row.path}` }),
)

/** Anthropic's files, in whose rows no header tells the format. */
const ANTHROPIC_FILES: Format = { ...MESSAGES, format: 'files' }

/**
 * Anthropic's endpoints below `/anthropic`: those of messages and, as its SDK calls them with the same base
 * URL, of files and models.
 */
const ANTHROPIC_ALIASES: readonly EndpointRow[] = [
  ...ENDPOINTS.filter(({ path }) => path.startsWith('/v1/messages')),
  ...OPENAI_ENDPOINTS.filter(({ endpoint }) => endpoint === FILES).map((row) => ({
    ...row,
    ...ANTHROPIC_FILES,
  })),
  ...MODEL_ENDPOINTS.map((row) => ({ ...row, ...MESSAGES })),
].map((row) => ({ ...row, path: `/anthropic${row.path}` }))

/** What Azure serves of a deployment: Azure's clients put the model into the path. */
const OF_DEPLOYMENTS: ReadonlySet<string> = new Set(
  ['chat/completions', 'completions', 'embeddings']
    .concat(['images/generations', 'images/edits'])
    .concat(['audio/speech', 'audio/transcriptions', 'audio/translations'])
    .map((name) => `/v1/${name}`),
)

/**
 * The same endpoints at the paths of other gateways and of Azure's deployments, for `server.bare_paths`:
 * without `/v1`, below a vendor's name, and with the model in the path.
 *
 * Sources: LiteLLM 1.110.2 (`proxy/proxy_server.py`), Azure OpenAI REST API reference.
 */
export const BARE_ENDPOINTS: readonly EndpointRow[] = [
  ...['/openai/deployments/{model}', '/engines/{model}'].flatMap((above) =>
    OPENAI_ENDPOINTS.filter(({ path }) => OF_DEPLOYMENTS.has(path)).map((row) => ({
      ...row,
      path: above + row.path.slice('/v1'.length),
    })),
  ),
  ...[...ENDPOINTS, ...OPENAI_ALIASES]
    .filter(({ path }) => /^(?:\/openai)?\/v1\//.test(path))
    .map((row) => ({ ...row, path: row.path.replace('/v1/', '/') })),
  ...ANTHROPIC_ALIASES,
]

/** A vendor's endpoint that the gateway does not have, and its replacement. */
interface Unserved {
  readonly dialect: DialectName
  readonly advice: string
  /** The page of the documentation about it. */
  readonly page: string
}

/** The path of an endpoint and of all below it, the format of its vendor, and what it serves. */
type NativeRow = readonly [path: string, dialect: DialectName, what: string]

/**
 * Vendors' endpoints that clients reach by native access only.
 *
 * Sources: the resources of the SDKs openai 6.49, @anthropic-ai/sdk 1.12 and @google/genai 2.32.
 */
const NATIVE: readonly NativeRow[] = [
  ...['agents', 'environments', 'sessions', 'user_profiles'].map(nativeRow('/v1/', 'anthropic')),
  ...['assistants', 'audio', 'chatkit', 'containers', 'conversations', 'evals'].map(
    nativeRow('/v1/', 'openai-chat'),
  ),
  ...['fine_tuning', 'graders', 'images', 'realtime', 'skills'].map(nativeRow('/v1/', 'openai-chat')),
  ...['threads', 'uploads', 'vector_stores', 'videos'].map(nativeRow('/v1/', 'openai-chat')),
  ...['/v1beta/', '/upload/v1beta/'].flatMap((base) =>
    ['cachedContents', 'corpora', 'fileSearchStores', 'files', 'interactions']
      .concat(['operations', 'tunedModels'])
      .map(nativeRow(base, 'gemini')),
  ),
]

function nativeRow(base: string, dialect: DialectName): (name: string) => NativeRow {
  return (name) => [`${base}${name}`, dialect, name.replaceAll('_', ' ')]
}

/** Methods of Gemini models that the gateway does not have. */
const NATIVE_METHOD =
  /^\/v1(?:beta)?\/models\/[^/]+:(predict|predictLongRunning|asyncBatchEmbedContent|batchEmbedText|generateAnswer|bidiGenerateContent)$/

const NATIVE_ADVICE = 'if "native" of the upstream allows it'

/** Endpoints below `/v1/responses` that the gateway does not have. */
const RESPONSES_ADVICE: readonly (readonly [path: RegExp, advice: string])[] = [
  [
    /^\/v1\/responses\/[^/]+\/cancel$/,
    'The gateway runs no responses in the background, which alone can be cancelled: close the connection of the request to end it.',
  ],
]

/** Advice for a vendor's endpoint that the gateway does not have; null for other paths. */
export function unservedEndpoint(method: string, path: string): Unserved | null {
  if (isAtOrBelow(path, '/v1/complete')) {
    const advice = 'Text completions are not served; send messages to POST /v1/messages.'
    return { dialect: 'anthropic', advice, page: '/reference/clients.md' }
  }
  const ofResponses = RESPONSES_ADVICE.find(([pattern]) => pattern.test(path))
  if (ofResponses !== undefined) {
    return { dialect: 'openai-responses', advice: ofResponses[1], page: '/reference/native-endpoints.md' }
  }
  const geminiMethod = NATIVE_METHOD.exec(path)?.[1]
  const [, dialect, what] =
    geminiMethod === undefined
      ? (NATIVE.find(([above]) => isAtOrBelow(path, above)) ?? [])
      : ['', 'gemini' as const, geminiMethod]
  if (dialect === undefined || what === undefined) return null
  const advice = `The gateway does not translate ${what}. Use native access: ${method} /native/{upstream}${shownPath(path)}, ${NATIVE_ADVICE}.`
  return { dialect, advice, page: '/reference/native-endpoints.md' }
}

function isAtOrBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`)
}

/** Maximum length of an unknown path in an error message. */
const SHOWN_CHARS = 100

/** The path for an error message. */
export function shownPath(path: string): string {
  return path.length > SHOWN_CHARS ? `${path.slice(0, SHOWN_CHARS)}…` : path
}

/** Whether the path is that of a method of a Gemini model, such as `…/models/gemini-4:generateContent`. */
export function isModelMethod(path: string): boolean {
  return /^\/v1(?:beta)?\/models\/.+:[^/:]*$/.test(path)
}

/** A row that matches a path, and the value of its `{model}` or `{id}`, percent-decoded. */
export interface Match {
  readonly row: EndpointRow
  readonly parameter: string | null
}

/** The rows of the first matching path in the table, one for each method; empty if no path matches. */
export function matchingRows(path: string, rows: readonly EndpointRow[]): Match[] {
  const matches: Match[] = []
  for (const row of rows) {
    const [first] = matches
    if (first !== undefined && first.row.path !== row.path) continue
    const parameter = parameterIn(path, row.path)
    if (parameter !== undefined) matches.push({ row, parameter })
  }
  return matches
}

/** Characters of an unknown path that are compared, which bounds the work. */
const COMPARED_CHARS = 128

/**
 * The row with the most similar path, by edit distance without the `{model}`; null if more than half of the
 * longer path differs in all rows. Rows of the same method are preferred.
 */
export function nearestRow(method: string, path: string, rows: readonly EndpointRow[]): EndpointRow | null {
  const requested = path.slice(0, COMPARED_CHARS).toLowerCase()
  let nearest: EndpointRow | null = null
  let minDistance = Number.POSITIVE_INFINITY
  for (const row of rows) {
    const [prefix, suffix] = partsOf(row.path)
    const hasPrefix = suffix !== null && requested.startsWith(prefix) && requested.length > prefix.length
    const known = suffix === null ? prefix : prefix + suffix
    const text = hasPrefix ? prefix + actionOf(requested) : requested
    const distance = editDistance(text, known.toLowerCase()) + (row.method === method ? 0 : 0.5)
    if (distance < minDistance && distance <= Math.max(text.length, known.length) / 2) {
      minDistance = distance
      nearest = row
    }
  }
  return nearest
}

/** The text from the last colon on: the action of a Gemini path. */
function actionOf(path: string): string {
  const colon = path.lastIndexOf(':')
  return colon === -1 ? '' : path.slice(colon)
}

/** The Levenshtein distance of two texts. */
function editDistance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const change = one[i - 1] === other[j - 1] ? 0 : 1
      current[j] = Math.min((current[j - 1] ?? 0) + 1, (above[j] ?? 0) + 1, (above[j - 1] ?? 0) + change)
    }
    above = current
  }
  return above[other.length] ?? 0
}

/** Null if the path matches without a parameter, undefined if it does not match. */
function parameterIn(path: string, pattern: string): string | null | undefined {
  const [prefix, suffix] = partsOf(pattern)
  if (suffix === null) return path === prefix ? null : undefined
  if (path.length <= prefix.length + suffix.length) return undefined
  if (!path.startsWith(prefix) || !path.endsWith(suffix)) return undefined
  try {
    return decodeURIComponent(path.slice(prefix.length, path.length - suffix.length))
  } catch {
    return undefined
  }
}

/** The text before and after the parameter; the second is null if there is no parameter. */
function partsOf(pattern: string): readonly [string, string | null] {
  const begin = pattern.indexOf('{')
  if (begin === -1) return [pattern, null]
  return [pattern.slice(0, begin), pattern.slice(pattern.indexOf('}') + 1)]
}

function post(path: string, { dialect, wire, format }: Format, endpoint: Endpoint): EndpointRow {
  return { method: 'POST', path, dialect, wire, format, endpoint }
}

function get(path: string, { dialect, wire, format }: Format, endpoint: Endpoint): EndpointRow {
  return { method: 'GET', path, dialect, wire, format, endpoint }
}
