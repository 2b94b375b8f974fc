/**
 * Generates `docs/reference/openapi.yaml`, the data plane and the ops port in OpenAPI 3.1, from the tables of
 * endpoints and errors.
 */
import { stringify } from 'yaml'
import { ENDPOINTS, type EndpointRow } from '../../src/formats/match-endpoint.js'
import {
  COMPONENTS,
  REPLY_HEADERS,
  TEXT,
  errorsOf,
  parameter,
  ref,
  type Json,
  type Members,
} from './openapi-components.js'
import { OPS_ENDPOINTS } from './ops-endpoints.js'

/** The document as YAML text. */
export function openapiPage(version: string): string {
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      summary: 'One authenticated HTTP interface in front of the models of many providers',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://localhost:8080', description: 'The data plane, server.port' }],
    security: [{ bearer: [] }, { apiKey: [] }, { googleKey: [] }],
    tags: TAGS,
    paths: { ...dataPaths(), ...nativePath(), ...opsPaths() },
    components: COMPONENTS,
  }
  const text = stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })
  return `# Generated from docs/generate/openapi.ts by \`npm run generate\`; do not edit.\n${text}`
}

const TAGS: Json[] = [
  { name: 'chat', description: 'Generate text, in four client formats' },
  { name: 'embeddings', description: 'Embed texts' },
  { name: 'rerank', description: 'Rank documents by a query' },
  { name: 'files', description: 'The lines of batches, and their results' },
  { name: 'batches', description: 'Many requests that run within a day' },
  { name: 'moderations', description: 'Classify texts and pictures' },
  { name: 'images', description: 'Draw pictures' },
  { name: 'audio', description: 'Make speech, transcribe sound' },
  { name: 'models', description: 'Models that the key may use' },
  { name: 'native', description: "An upstream's own endpoints, passed through untranslated" },
  { name: 'operations', description: 'The ops port: metrics, health, configuration' },
]

/** The summary and body schema of an operation. */
interface Described {
  readonly tag: string
  readonly summary: string
  readonly body: string | null
  readonly streams: boolean
}

/** Pictures and sound. */
const MEDIA: Readonly<
  Record<'images' | 'image_edits' | 'transcriptions' | 'translations' | 'speech', Described>
> = {
  images: { tag: 'images', summary: 'Draw pictures', body: 'ImageRequest', streams: true },
  image_edits: {
    tag: 'images',
    summary: 'Change pictures; the body may also be JSON with `images: [{image_url}]`',
    body: 'ImageEditRequest',
    streams: true,
  },
  transcriptions: { tag: 'audio', summary: 'Transcribe sound', body: 'TranscriptionRequest', streams: true },
  translations: {
    tag: 'audio',
    summary: 'Transcribe sound in English',
    body: 'TranscriptionRequest',
    streams: false,
  },
  speech: {
    tag: 'audio',
    summary: 'Make speech of a text; the reply is the bytes of the sound, or events',
    body: 'SpeechRequest',
    streams: true,
  },
}

/** Bodies that are multipart forms. */
const FORMS: ReadonlySet<string> = new Set(['TranscriptionRequest', 'ImageEditRequest', 'FileRequest'])

/** Google's uploads: the start of one, a part of the bytes, or both in related parts. */
const BYTES = 'GeminiFileRequest'

function typeOf(body: string): string {
  if (body === BYTES) return '*/*'
  return FORMS.has(body) ? 'multipart/form-data' : 'application/json'
}

function describe({ path, endpoint, format, method }: EndpointRow): Described {
  switch (endpoint.operation) {
    case 'chat':
      return {
        tag: 'chat',
        summary: `Generate a reply (${format})`,
        body: bodyOf(format),
        streams: endpoint.stream !== false,
      }
    case 'completions':
      return {
        tag: 'chat',
        summary: 'Complete a prompt (legacy)',
        body: 'CompletionRequest',
        streams: true,
      }
    case 'count':
      return {
        tag: 'chat',
        summary: 'Count the tokens of a prompt',
        body: format === 'gemini' ? 'GeminiRequest' : 'CountTokensRequest',
        streams: false,
      }
    case 'embeddings':
      return {
        tag: 'embeddings',
        summary: 'Embed texts',
        body: format === 'gemini' ? 'GeminiRequest' : 'EmbeddingsRequest',
        streams: false,
      }
    case 'rerank':
      return {
        tag: 'rerank',
        summary: path.startsWith('/v2') ? 'Rank documents (Cohere v2)' : 'Rank documents (Cohere v1, Jina)',
        body: 'RerankRequest',
        streams: false,
      }
    case 'moderations':
      return {
        tag: 'moderations',
        summary: 'Classify texts and pictures that may be harmful',
        body: 'ModerationRequest',
        streams: false,
      }
    case 'images':
    case 'image_edits':
    case 'transcriptions':
    case 'translations':
    case 'speech':
      return MEDIA[endpoint.operation]
    case 'models':
      return {
        tag: 'models',
        summary: path.endsWith('models') ? 'List the models that the key may use' : 'Read one model',
        body: null,
        streams: false,
      }
    case 'stored':
      return {
        tag: 'chat',
        summary: method === 'DELETE' ? 'Delete a kept response' : 'Read a kept response',
        body: null,
        streams: false,
      }
    case 'stored-input':
      return {
        tag: 'chat',
        summary: 'Read the input of a kept response',
        body: null,
        streams: false,
      }
    case 'files':
    case 'batches':
      return describeObjects(path, endpoint.operation, { method, format })
    default:
      return endpoint.operation satisfies never
  }
}

const OBJECT_VERBS: Readonly<Partial<Record<string, string>>> = {
  POST: 'Make',
  GET: 'Read',
  DELETE: 'Delete',
}

/** The endpoints of files and of batches. */
function describeObjects(
  path: string,
  tag: 'files' | 'batches',
  { method, format }: Pick<EndpointRow, 'method' | 'format'>,
): Described {
  const what = tag === 'files' ? 'file' : 'batch'
  const isOne = path.includes('{id}')
  const isCreated = method === 'POST' && !isOne
  const verb = /[/:]cancel$/.test(path) ? 'Cancel' : (OBJECT_VERBS[method] ?? 'Read')
  const summary = path.endsWith('/content')
    ? 'Read the bytes of a file'
    : path.endsWith('/results')
      ? 'Read the results of a batch'
      : `${isOne || isCreated ? verb : 'List'} ${isOne || isCreated ? `a ${what}` : tag}`
  return { tag, summary, body: isCreated ? objectBody(tag, format) : null, streams: false }
}

function objectBody(tag: 'files' | 'batches', format: EndpointRow['format']): string {
  if (tag === 'files' && format === 'gemini') return BYTES
  if (tag === 'batches' && format === 'messages') return 'MessageBatchRequest'
  return tag === 'batches' && format === 'gemini' ? 'GeminiBatchRequest' : bodyOf(tag)
}

function bodyOf(format: EndpointRow['format']): string {
  switch (format) {
    case 'messages':
      return 'MessagesRequest'
    case 'responses':
      return 'ResponsesRequest'
    case 'gemini':
      return 'GeminiRequest'
    case 'completions':
      return 'CompletionRequest'
    case 'embeddings':
      return 'EmbeddingsRequest'
    case 'rerank':
      return 'RerankRequest'
    case 'moderations':
      return 'ModerationRequest'
    case 'images':
      return 'ImageRequest'
    case 'image_edits':
      return 'ImageEditRequest'
    case 'transcriptions':
    case 'translations':
      return 'TranscriptionRequest'
    case 'speech':
      return 'SpeechRequest'
    case 'files':
      return 'FileRequest'
    case 'batches':
      return 'BatchRequest'
    case 'chat':
      return 'ChatCompletionRequest'
    default:
      return format satisfies never
  }
}

function dataPaths(): Members {
  const paths: Record<string, Members> = {}
  for (const row of ENDPOINTS) {
    const item = (paths[row.path] ??= {})
    item[row.method.toLowerCase()] = operationOf(row)
  }
  return paths
}

function operationOf(row: EndpointRow): Members {
  const { tag, summary, body, streams } = describe(row)
  const names = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const isGemini = row.format === 'gemini'
  const parameters = [
    ...names.map((name) => ref('parameters', name)),
    ...(body === null ? [] : [ref('parameters', 'deadline'), ref('parameters', 'idempotency')]),
    ...(row.path.endsWith(':streamGenerateContent') ? [ref('parameters', 'alt')] : []),
  ]
  return {
    tags: [tag],
    // OpenAI's path to cancel a batch has the same words.
    operationId: `${operationId(row.method, row.path)}${row.path === '/v1/batches/{id}:cancel' ? 'Google' : ''}`,
    summary,
    ...(isGemini ? { security: [{ googleKey: [] }, { queryKey: [] }, { bearer: [] }] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === null
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              [typeOf(body)]: { schema: ref('schemas', body) },
            },
          },
        }),
    responses: {
      '200': {
        description: streams ? 'The reply, whole or as a stream' : 'The reply',
        headers: REPLY_HEADERS,
        content: {
          'application/json': { schema: { type: ['object', 'array'] } },
          ...(streams ? { 'text/event-stream': { schema: TEXT } } : {}),
        },
      },
      ...errorsOf(row.dialect),
    },
  }
}

function operationId(method: string, path: string): string {
  const words = path.split(/[/{}:_-]+/).filter((word) => word !== '')
  return [method.toLowerCase(), ...words]
    .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
}

const NATIVE_METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

function nativePath(): Members {
  const parameters = [
    parameter('upstream', {
      in: 'path',
      description: 'The name of an upstream with `native` entries',
      schema: TEXT,
    }),
    parameter('path', {
      in: 'path',
      description: "A path below the upstream's `base_url`, slashes included",
      schema: TEXT,
    }),
  ]
  const operation = (method: string): Members => ({
    tags: ['native'],
    operationId: `${method}Native`,
    summary: "Pass a request through with the upstream's credential",
    responses: { '200': { description: "The upstream's reply" }, ...errorsOf('openai-chat') },
  })
  return {
    '/native/{upstream}/{path}': {
      parameters,
      ...Object.fromEntries(NATIVE_METHODS.map((method) => [method, operation(method)])),
    },
  }
}

/** The address of the ops port. */
const OPS_SERVERS: Json[] = [
  { url: 'http://localhost:9464', description: 'server.ops_host and server.ops_port' },
]

function opsPaths(): Members {
  const paths: Record<string, Members> = {}
  for (const { method, path, summary, type, needsToken, statuses } of OPS_ENDPOINTS) {
    const item = (paths[path] ??= { servers: OPS_SERVERS })
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    item[method.toLowerCase()] = {
      tags: ['operations'],
      operationId: operationId(method, path),
      summary,
      security: needsToken ? [{ adminToken: [] }] : [],
      ...(names.length === 0
        ? {}
        : {
            parameters: names.map((name) =>
              parameter(name, {
                in: 'path',
                description: 'A generation',
                schema: { type: 'integer' },
              }),
            ),
          }),
      responses: Object.fromEntries(
        Object.entries(statuses).map(([status, description]) => [
          status,
          {
            description,
            content: { [type]: { schema: type === 'text/plain' ? TEXT : { type: 'object' } } },
          },
        ]),
      ),
    }
  }
  return paths
}
