/**
 * Gemini's embedding calls, both as what clients speak and as what upstreams speak: `embedContent` for one text,
 * `batchEmbedContents` for many.
 *
 * Source: Gemini API reference, "Embeddings", and @google/genai 2.32.0, read 2026-11-20.
 */
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../../chat/json.js'
import type { Vectors } from '../../../chat/embedding.js'
import type { ChatRequest } from '../../../chat/request.js'
import { GatewayError } from '../../../errors.js'
import { tokenCount } from '../../../chat/usage.js'
import { array, given, integer, object, refuse, string } from '../../../wire/json/check-fields.js'
import type { Edit } from '../../../wire/json/splice.js'
import { vectorAt, vectorText, type Outline } from '../../../wire/vectors.js'
import type { Endpoint, Losses, VectorReader } from '../../dialect.js'
import { decodeStreamError } from '../upstream/decode-error.js'
import { target } from '../upstream/request-path.js'

const MAX_INPUTS = 2048
const MAX_DIMENSIONS = 65_536
/** Fields that only Google's models have. */
const GOOGLES = ['taskType', 'title', 'autoTruncate', 'documentOcr', 'audioTrackExtraction']

/** Reads `batchEmbedContents`. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeBatch(body: JsonObject, { model = '' }: Endpoint): ChatRequest {
  const requests = array(body['requests'], 'requests', MAX_INPUTS)
  if (requests.length === 0) refuse('requests', 'must not be empty')
  const read = requests.map((each, at) =>
    readOne(object(each, `requests[${at}]`), `requests[${at}].`),
  )
  return requestOf(model, read)
}

/** Reads `embedContent`. Throws as `decodeBatch`. */
export function decodeSingle(body: JsonObject, { model = '' }: Endpoint): ChatRequest {
  return requestOf(model, [readOne(body, '')])
}

/** One text, and what is asked of its vector. */
interface One {
  readonly text: string
  readonly dimensions: number | undefined
  readonly rest: Readonly<Record<string, JsonValue>>
}

function readOne(body: JsonObject, path: string): One {
  const camel = Object.fromEntries(
    Object.entries(body).map(([key, value]) => [camelOf(key), value]),
  )
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
      ? integer(size, `${path}outputDimensionality`, 1, MAX_DIMENSIONS)
      : undefined,
    rest: Object.fromEntries(
      GOOGLES.flatMap((key) => (given(camel[key]) ? [[key, camel[key]]] : [])),
    ),
  }
}

/** Both spellings are legal JSON of a protobuf message. */
function camelOf(key: string): string {
  return key.replace(/_([a-z])/g, (_found, letter: string) => letter.toUpperCase())
}

function requestOf(model: string, read: readonly One[]): ChatRequest {
  const [first] = read
  const dimensions = first?.dimensions
  const isUniform = read.every((one) => one.dimensions === dimensions)
  const texts = read.map(({ text }) => text)
  const mixed = {
    path: 'requests.outputDimensionality',
    refusal: 'Only Gemini takes vectors of different sizes in one request: ask for one size.',
  }
  return {
    model,
    messages: [{ role: 'user', index: 0, parts: texts.map((text) => ({ type: 'text', text })) }],
    stream: false,
    includeUsage: false,
    tools: [],
    maxOutputTokens: 0,
    rest: Object.assign({}, ...read.map(({ rest }) => rest)) as Record<string, JsonValue>,
    ...(!isUniform && { native: [mixed] }),
    embedding: {
      inputs: texts,
      base64: false,
      ...(dimensions !== undefined && { dimensions }),
    },
  }
}

/** The path of a call. Throws as `target`. */
export function embeddingPath(
  model: string,
  action: 'embedContent' | 'batchEmbedContents',
): string {
  return target(model, false).path.replace(/:generateContent$/, `:${action}`)
}

/**
 * The body of `batchEmbedContents`, for a client of another format. Throws `untranslatable` for token ids, which mean
 * nothing to a model with another vocabulary.
 */
export function encodeBatch(request: ChatRequest, losses: Losses): JsonObject {
  const { inputs = [], dimensions } = request.embedding ?? {}
  for (const key of Object.keys(request.rest)) losses.drop(key, 'no-equivalent')
  if (request.userId !== undefined) losses.drop('user', 'no-equivalent')
  const requests = inputs.map((input, at) => {
    if (typeof input !== 'string') {
      const path = inputs.length === 1 ? 'input' : `input[${at}]`
      const message = `${path} holds token ids, which Gemini does not take: send the text.`
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

/** The model's name where a client's own body has it: in each request, or at the top. */
export function embeddingEdits(body: JsonObject, model: string): Edit[] {
  const name = `models/${model}`
  const edits: Edit[] = []
  if (given(body['model']) && body['model'] !== name) {
    edits.push({ key: 'model', json: JSON.stringify(name) })
  }
  const { requests } = body
  if (!Array.isArray(requests)) return edits
  const isNamed = (each: JsonValue): boolean => (objectOf(each)['model'] ?? name) === name
  if (requests.every(isNamed)) return edits
  const renamed = requests.map((each) =>
    isNamed(each) ? each : { ...objectOf(each), model: name },
  )
  edits.push({ key: 'requests', json: JSON.stringify(renamed) })
  return edits
}

/** Reads a reply of either call. */
export const readVectors: VectorReader = ({ body, arrays }: Outline) => {
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
export function encodeBatchReply({ vectors, usage }: Vectors): string | null {
  const values = vectors.map((vector) => vectorText(vector, 'json'))
  if (values.includes(null)) return null
  const embeddings = values.map((text) => `{"values":${text ?? '[]'}}`).join(',')
  return `{"embeddings":[${embeddings}],${countOf(usage)}}`
}

/** The reply to `embedContent`; null if the vector is damaged or missing. */
export function encodeSingleReply({ vectors, usage }: Vectors): string | null {
  const [vector] = vectors
  const values = vector === undefined ? null : vectorText(vector, 'json')
  return values === null ? null : `{"embedding":{"values":${values}},${countOf(usage)}}`
}

function countOf({ input = 0 }: Vectors['usage']): string {
  return `"usageMetadata":{"promptTokenCount":${input}}`
}
