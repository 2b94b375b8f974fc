/**
 * Gemini's embedding formats, for clients and upstreams: `embedContent` for one text, `batchEmbedContents`
 * for several.
 *
 * Source: Gemini API reference, "Embeddings", and @google/genai 2.32.0, read 2026-11-20.
 */
import { GatewayError } from '../../errors.js'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { Vectors, ChatRequest } from '../chat/request.js'
import { tokenCount } from '../chat/usage.js'
import type { Endpoint, Losses, VectorReader, UpstreamCodec, ClientCodec, FormatCodecs } from '../dialect.js'
import { vectorAt, vectorText, type Outline } from '../wire/embedding-vectors.js'
import { array, given, integer, object, refuse, string } from '../wire/json/check-fields.js'
import type { Edit } from '../wire/json/splice.js'
import { modelOf } from './client/decode-request.js'
import { upstreamCodec, clientCodec } from './index.js'
import { decodeStreamError } from './upstream/decode-error.js'
import { target } from './upstream/request-path.js'

const MAX_INPUTS = 2048
const MAX_DIMENSIONS = 65_536
/** Fields that only Gemini upstreams accept. */
const GEMINI_ONLY = ['taskType', 'title', 'autoTruncate', 'documentOcr', 'audioTrackExtraction']

/** Decodes `batchEmbedContents`. Throws `malformed_request` naming the field that breaks a rule. */
function decodeBatch(body: JsonObject, endpoint: Endpoint): ChatRequest {
  const requests = array(body['requests'], 'requests', MAX_INPUTS)
  if (requests.length === 0) refuse('requests', 'must not be empty')
  const inputs = requests.map((each, at) => decodeInput(object(each, `requests[${at}]`), `requests[${at}].`))
  return requestOf(modelOf(endpoint), inputs)
}

/** Decodes `embedContent`. Throws like `decodeBatch`. */
function decodeSingle(body: JsonObject, endpoint: Endpoint): ChatRequest {
  return requestOf(modelOf(endpoint), [decodeInput(body, '')])
}

/** One text, and the parameters of its vector. */
interface EmbeddingInput {
  readonly text: string
  readonly dimensions: number | undefined
  readonly rest: Readonly<Record<string, JsonValue>>
}

function decodeInput(body: JsonObject, path: string): EmbeddingInput {
  const camel = Object.fromEntries(Object.entries(body).map(([key, value]) => [camelOf(key), value]))
  const content = object(camel['content'], `${path}content`)
  const parts = array(content['parts'], `${path}content.parts`, MAX_INPUTS)
  const texts = parts.map((part, at) => {
    const { text } = object(part, `${path}content.parts[${at}]`)
    return string(text, `${path}content.parts[${at}].text`)
  })
  const size = camel['outputDimensionality']
  return {
    text: texts.join('\n'),
    dimensions: given(size)
      ? integer(size, `${path}outputDimensionality`, { min: 1, max: MAX_DIMENSIONS })
      : undefined,
    rest: Object.fromEntries(GEMINI_ONLY.flatMap((key) => (given(camel[key]) ? [[key, camel[key]]] : []))),
  }
}

/** The camelCase name; ProtoJSON allows both spellings. */
function camelOf(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}

function requestOf(model: string, inputs: readonly EmbeddingInput[]): ChatRequest {
  const dimensions = inputs[0]?.dimensions
  const isUniform = inputs.every((input) => input.dimensions === dimensions)
  const texts = inputs.map(({ text }) => text)
  const mixed = {
    path: 'requests.outputDimensionality',
    refusal: 'Only Gemini supports vectors of different sizes in one request. Request one size.',
  }
  return {
    model,
    messages: [{ role: 'user', index: 0, parts: texts.map((text) => ({ type: 'text', text })) }],
    stream: false,
    includeUsage: false,
    tools: [],
    maxOutputTokens: 0,
    rest: Object.assign({}, ...inputs.map(({ rest }) => rest)) as Record<string, JsonValue>,
    ...(!isUniform && { native: [mixed] }),
    embedding: {
      inputs: texts,
      base64: false,
      ...(dimensions !== undefined && { dimensions }),
    },
  }
}

/** The path of an embedding request. Throws like `target`. */
function embeddingPath(model: string, action: 'embedContent' | 'batchEmbedContents'): string {
  return target(model, false).path.replace(/:generateContent$/, `:${action}`)
}

/**
 * The body of `batchEmbedContents`, for a client of another format. Throws `untranslatable` for token ids,
 * which belong to another model's vocabulary.
 */
function encodeBatch(request: ChatRequest, losses: Losses): JsonObject {
  const { inputs = [], dimensions } = request.embedding ?? {}
  for (const key of Object.keys(request.rest)) losses.drop(key, 'no-equivalent')
  if (request.userId !== undefined) losses.drop('user', 'no-equivalent')
  const requests = inputs.map((input, at) => {
    if (typeof input !== 'string') {
      const path = inputs.length === 1 ? 'input' : `input[${at}]`
      const message = `${path} has token ids, which Gemini does not accept. Send the text.`
      throw new GatewayError('untranslatable', message, { param: path })
    }
    return {
      model: `models/${request.model}`,
      content: { parts: [{ text: input }] },
      ...(dimensions !== undefined && { outputDimensionality: dimensions }),
    }
  })
  return { requests }
}

/** The edits that set the model's name in a client's body: at the top level and in each request. */
function embeddingEdits(body: JsonObject, model: string): Edit[] {
  const name = `models/${model}`
  const edits: Edit[] = []
  if (given(body['model']) && body['model'] !== name) {
    edits.push({ key: 'model', json: JSON.stringify(name) })
  }
  const { requests } = body
  if (!Array.isArray(requests)) return edits
  const isNamed = (each: JsonValue): boolean => (objectOf(each)['model'] ?? name) === name
  if (requests.every(isNamed)) return edits
  const renamed = requests.map((each) => (isNamed(each) ? each : { ...objectOf(each), model: name }))
  edits.push({ key: 'requests', json: JSON.stringify(renamed) })
  return edits
}

/** Decodes the reply of either format. */
const readVectors: VectorReader = ({ body, arrays }: Outline) => {
  if (isObject(body['error'])) return decodeStreamError(body['error'])
  const list = body['embeddings'] ?? (isObject(body['embedding']) ? [body['embedding']] : null)
  if (!Array.isArray(list)) return null
  const vectors = list.map((each) => vectorAt(objectOf(each)['values'], { arrays }))
  const found = vectors.filter((vector) => vector !== null)
  if (found.length !== list.length) return null
  const input = tokenCount(objectOf(body['usageMetadata'])['promptTokenCount'])
  return { vectors: found, usage: input === undefined ? {} : { input, output: 0 }, model: null }
}

/** The reply to `batchEmbedContents`; null if a vector is damaged. */
function encodeBatchReply({ vectors, usage }: Vectors): string | null {
  const values = vectors.map((vector) => vectorText(vector, 'json'))
  if (values.includes(null)) return null
  const embeddings = values.map((text) => `{"values":${text ?? '[]'}}`).join(',')
  return `{"embeddings":[${embeddings}],${countOf(usage)}}`
}

/** The reply to `embedContent`; null if the vector is damaged or missing. */
function encodeSingleReply({ vectors, usage }: Vectors): string | null {
  const [vector] = vectors
  const values = vector === undefined ? null : vectorText(vector, 'json')
  return values === null ? null : `{"embedding":{"values":${values}},${countOf(usage)}}`
}

function countOf({ input = 0 }: Vectors['usage']): string {
  return `"usageMetadata":{"promptTokenCount":${input}}`
}

function codecsOf(
  action: 'embedContent' | 'batchEmbedContents',
  parts: Pick<ClientCodec, 'decodeRequest' | 'encodeVectors'>,
): FormatCodecs {
  const upstream: UpstreamCodec = {
    ...upstreamCodec,
    target: (model) => ({ path: embeddingPath(model, action), accept: 'application/json' }),
    encodeRequest: (request, _facts, losses) => encodeBatch(request, losses),
    edits: (body, model) => embeddingEdits(body, model),
    continuation: null,
    readVectors,
  }
  return { clientCodec: { ...clientCodec, ...parts }, upstreamCodec: upstream }
}

/** `:batchEmbedContents`. */
export const geminiEmbeddings = codecsOf('batchEmbedContents', {
  decodeRequest: decodeBatch,
  encodeVectors: encodeBatchReply,
})

/** `:embedContent`. */
export const geminiEmbedding = codecsOf('embedContent', {
  decodeRequest: decodeSingle,
  encodeVectors: encodeSingleReply,
})
