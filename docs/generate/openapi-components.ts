/**
 * The components of the OpenAPI document: authentication, parameters, headers, schemas and error responses.
 * Bodies are described as far as the gateway reads them; the vendors' references describe the rest.
 */
import type { DialectName } from '../../src/formats/dialect.js'
import { ERRORS } from '../../src/errors.js'

/** A value of the document. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
/** An object of the document. */
export type Members = Record<string, Json>

/** A reference to a component. */
export const ref = (kind: string, name: string): Members => ({
  $ref: `#/components/${kind}/${name}`,
})

const SECURITY: Members = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An API key: `sk_…`' },
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
  googleKey: { type: 'apiKey', in: 'header', name: 'x-goog-api-key' },
  queryKey: { type: 'apiKey', in: 'query', name: 'key', description: 'On Gemini paths only' },
  adminToken: { type: 'http', scheme: 'bearer', description: '`server.admin_token`' },
}

/** The members of a parameter object, except its name. */
export interface ParameterDescription {
  /** `path`, `query` or `header`. */
  readonly in: string
  readonly description: string
  readonly schema: Json
}

/** A parameter of an operation. */
export function parameter(
  name: string,
  { in: location, description, schema }: ParameterDescription,
): Members {
  return { name, in: location, required: location === 'path', description, schema }
}

/** A schema. */
export const TEXT: Json = { type: 'string' }

const PARAMETERS: Members = {
  model: parameter('model', {
    in: 'path',
    description: 'A model id, or an alias of the configuration',
    schema: TEXT,
  }),
  id: parameter('id', { in: 'path', description: 'The id of a kept response', schema: TEXT }),
  deadline: parameter('x-request-timeout-ms', {
    in: 'header',
    description: "The client's deadline in milliseconds, at most `timeouts.total_ms` of the upstream",
    schema: { type: 'integer', minimum: 1 },
  }),
  idempotency: parameter('idempotency-key', {
    in: 'header',
    description: 'Forwarded; lets the gateway repeat a request that may have been executed',
    schema: TEXT,
  }),
  alt: parameter('alt', {
    in: 'query',
    description: '`sse` streams server-sent events; without it, one JSON array',
    schema: {
      type: 'string',
      enum: ['sse', 'json'],
    },
  }),
}

function header(description: string, type = 'string'): Members {
  return { description, schema: { type } }
}

const HEADERS: Members = {
  'x-request-id': header('The id of the request, first column of the ledger'),
  'x-sluice-upstream': header('The upstream that replied'),
  'x-sluice-model': header('The model requested from the upstream'),
  'x-sluice-generation': header('The generation of the configuration', 'integer'),
  'x-sluice-lost': header('Fields that could not be translated, separated by commas'),
  'x-sluice-attempts': header('`upstream:outcome` of each attempt, if there were several'),
  'retry-after': header('Seconds until another attempt may succeed', 'integer'),
}

/** The headers of model replies. */
export const REPLY_HEADERS: Members = Object.fromEntries(
  Object.keys(HEADERS)
    .filter((name) => name !== 'retry-after')
    .map((name) => [name, ref('headers', name)]),
)

const KIND: Json = {
  type: 'string',
  enum: Object.keys(ERRORS),
  description: 'See docs/reference/errors.md',
}

function object(properties: Members, required: string[] = []): Members {
  return {
    type: 'object',
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: true,
  }
}

const LIST: Json = { type: 'array', items: { type: 'object' } }
const MODEL: Json = { type: 'string', description: 'Selects the upstream by the routes' }
const STREAM: Json = { type: 'boolean', default: false }

const SCHEMAS: Members = {
  ChatCompletionRequest: object({ model: MODEL, messages: LIST, stream: STREAM }, ['model', 'messages']),
  CompletionRequest: object({ model: MODEL, prompt: {}, stream: STREAM }, ['model', 'prompt']),
  ResponsesRequest: object(
    {
      model: MODEL,
      input: {},
      stream: STREAM,
      store: { type: 'boolean' },
      previous_response_id: TEXT,
    },
    ['model'],
  ),
  MessagesRequest: object(
    { model: MODEL, max_tokens: { type: 'integer', minimum: 1 }, messages: LIST, stream: STREAM },
    ['model', 'max_tokens', 'messages'],
  ),
  CountTokensRequest: object({ model: MODEL, messages: LIST }, ['model', 'messages']),
  GeminiRequest: object({ contents: LIST, systemInstruction: {}, generationConfig: {} }),
  EmbeddingsRequest: object(
    {
      model: MODEL,
      input: {},
      dimensions: { type: 'integer' },
      encoding_format: { type: 'string', enum: ['float', 'base64'] },
    },
    ['model', 'input'],
  ),
  RerankRequest: object(
    {
      model: MODEL,
      query: TEXT,
      documents: { type: 'array', items: {} },
      top_n: { type: 'integer', minimum: 1 },
      return_documents: { type: 'boolean' },
    },
    ['model', 'query', 'documents'],
  ),
  ModerationRequest: object({ model: MODEL, input: {} }, ['input']),
  ImageRequest: object(
    {
      model: MODEL,
      prompt: TEXT,
      n: { type: 'integer', minimum: 1, maximum: 10 },
      size: TEXT,
      quality: TEXT,
      output_format: TEXT,
      background: TEXT,
      partial_images: { type: 'integer', minimum: 0, maximum: 3 },
      stream: { type: 'boolean' },
    },
    ['model', 'prompt'],
  ),
  ImageEditRequest: object(
    {
      model: MODEL,
      prompt: TEXT,
      image: { type: 'array', items: { type: 'string', format: 'binary' }, maxItems: 16 },
      mask: { type: 'string', format: 'binary' },
      n: { type: 'integer', minimum: 1, maximum: 10 },
      size: TEXT,
      quality: TEXT,
      output_format: TEXT,
      stream: { type: 'boolean' },
    },
    ['model', 'prompt', 'image'],
  ),
  FileRequest: object(
    {
      file: { type: 'string', contentMediaType: 'application/octet-stream' },
      purpose: { type: 'string', const: 'batch' },
    },
    ['file', 'purpose'],
  ),
  BatchRequest: object(
    {
      input_file_id: TEXT,
      endpoint: TEXT,
      completion_window: { type: 'string', examples: ['24h'] },
      metadata: { type: 'object' },
    },
    ['input_file_id', 'endpoint', 'completion_window'],
  ),
  MessageBatchRequest: object(
    {
      requests: {
        type: 'array',
        items: object({ custom_id: TEXT, params: ref('schemas', 'MessagesRequest') }, [
          'custom_id',
          'params',
        ]),
        maxItems: 100_000,
      },
    },
    ['requests'],
  ),
  GeminiFileRequest: { type: 'string', contentMediaType: 'application/octet-stream' },
  GeminiBatchRequest: object({ batch: { type: 'object' } }, ['batch']),
  TranscriptionRequest: object(
    {
      model: MODEL,
      file: { type: 'string', format: 'binary' },
      language: TEXT,
      prompt: TEXT,
      response_format: TEXT,
      stream: { type: 'boolean' },
    },
    ['model', 'file'],
  ),
  SpeechRequest: object(
    {
      model: MODEL,
      input: TEXT,
      voice: {},
      instructions: TEXT,
      response_format: TEXT,
      speed: { type: 'number', minimum: 0.25, maximum: 4 },
      stream_format: { type: 'string', enum: ['audio', 'sse'] },
    },
    ['model', 'input', 'voice'],
  ),
  OpenAIError: object(
    {
      error: object(
        {
          message: TEXT,
          type: TEXT,
          code: { type: ['integer', 'string', 'null'] },
          param: {},
          kind: KIND,
        },
        ['message', 'type'],
      ),
    },
    ['error'],
  ),
  AnthropicError: object(
    {
      type: { const: 'error' },
      error: object({ type: TEXT, message: TEXT, kind: KIND }, ['type', 'message']),
      request_id: TEXT,
    },
    ['type', 'error'],
  ),
  GeminiError: object(
    {
      error: object({ code: { type: 'integer' }, message: TEXT, status: TEXT, details: LIST }, [
        'code',
        'message',
        'status',
      ]),
    },
    ['error'],
  ),
}

const ERROR_SCHEMA: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'OpenAIError',
  'openai-responses': 'OpenAIError',
  anthropic: 'AnthropicError',
  gemini: 'GeminiError',
  converse: 'OpenAIError',
}

/** The kinds of error by status, in the order of the table. */
function kindsByStatus(): Map<number, string[]> {
  const kinds = new Map<number, string[]>()
  for (const [kind, { status }] of Object.entries(ERRORS)) {
    if (status < 400) continue
    kinds.set(status, [...(kinds.get(status) ?? []), kind])
  }
  return kinds
}

/** The statuses that are listed separately; all others are `default`. */
const SHOWN = [400, 401, 403, 404, 413, 429, 500, 502, 503, 504]

function errorResponse(status: number, kinds: readonly string[], schema: string): Members {
  const waits = status === 429 || status === 503
  return {
    description: kinds.join(', '),
    headers: {
      'x-request-id': ref('headers', 'x-request-id'),
      ...(waits ? { 'retry-after': ref('headers', 'retry-after') } : {}),
    },
    content: { 'application/json': { schema: ref('schemas', schema) } },
  }
}

const RESPONSES: Members = Object.fromEntries(
  Object.values(ERROR_SCHEMA).flatMap((schema): [string, Members][] => [
    ...[...kindsByStatus()]
      .filter(([status]) => SHOWN.includes(status))
      .map(([status, kinds]): [string, Members] => [
        `${schema}${String(status)}`,
        errorResponse(status, kinds, schema),
      ]),
    [schema, errorResponse(0, ['Another error; `kind` names it'], schema)],
  ]),
)

/** The error responses of an operation, in the format of its dialect. */
export function errorsOf(dialect: DialectName): Members {
  const schema = ERROR_SCHEMA[dialect]
  const shown = [...kindsByStatus().keys()].filter((status) => SHOWN.includes(status))
  return {
    ...Object.fromEntries(
      shown.sort().map((status) => [String(status), ref('responses', `${schema}${String(status)}`)]),
    ),
    default: ref('responses', schema),
  }
}

/** All components. */
export const COMPONENTS: Members = {
  securitySchemes: SECURITY,
  parameters: PARAMETERS,
  headers: HEADERS,
  schemas: SCHEMAS,
  responses: RESPONSES,
}
