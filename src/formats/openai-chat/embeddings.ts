/**
 * OpenAI's embeddings, for clients and for upstreams.
 *
 * Source: OpenAI API reference, "Create embeddings", and the SDK's types, read 2026-11-20.
 */
import { isObject, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { EmbeddingInput, Vectors, ChatRequest } from '../chat/request.js'
import { array, boolean, given, integer, oneOf, refuse, string, text } from '../wire/json/check-fields.js'
import { modelOf } from '../wire/request-fields.js'
import type { Edit } from '../wire/json/splice.js'
import { vectorAt, vectorText, type Outline } from '../wire/embedding-vectors.js'
import type { Losses, Seed, VectorReader } from '../dialect.js'
import { errorIn } from './upstream/decode-reply.js'
import { withheldEdits } from '../wire/openai/withheld-fields.js'
import { usageIn } from '../wire/usage-meter.js'

/** OpenAI's limit. */
const MAX_INPUTS = 2048
/** Far above the largest vectors of any vendor, which have 4,096 numbers. */
const MAX_DIMENSIONS = 65_536
const TOKEN_IDS = { min: 0, max: 2 ** 31 }

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeEmbeddings(body: JsonObject): ChatRequest {
  const inputs = inputsOf(body['input'])
  const { dimensions, encoding_format: form, user } = body
  const rest: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    if (!KNOWN.has(key) && given(value)) rest[key] = value
  }
  if (given(body['stream']) && boolean(body['stream'], 'stream')) {
    refuse('stream', 'must be false: embeddings are not streamed')
  }
  const texts = inputs.filter((input) => typeof input === 'string')
  const ids = inputs.reduce((sum, each) => sum + (typeof each === 'string' ? 0 : each.length), 0)
  return {
    model: modelOf(body),
    messages: [{ role: 'user', index: 0, parts: texts.map((each) => ({ type: 'text', text: each })) }],
    stream: false,
    includeUsage: false,
    tools: [],
    maxOutputTokens: 0,
    rest,
    ...(ids > 0 && { tokenIds: ids }),
    ...(given(user) && { userId: string(user, 'user') }),
    embedding: {
      inputs,
      base64: given(form) && oneOf(form, 'encoding_format', ['float', 'base64']) === 'base64',
      ...(given(dimensions) && {
        dimensions: integer(dimensions, 'dimensions', { min: 1, max: MAX_DIMENSIONS }),
      }),
    },
  }
}

const KNOWN = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user', 'stream'])

/** One text, several texts, or the token ids of one or several texts. */
function inputsOf(input: JsonValue | undefined): EmbeddingInput[] {
  if (typeof input === 'string') return [text(input, 'input', Number.MAX_SAFE_INTEGER)]
  if (!Array.isArray(input)) refuse('input', 'must be a string, or an array of strings or token ids')
  if (input.length === 0) refuse('input', 'must not be empty')
  if (typeof input[0] === 'number') return [tokenIds(input, 'input')]
  return array(input, 'input', MAX_INPUTS).map((item, at) => {
    const path = `input[${at}]`
    if (typeof item === 'string') return item
    return Array.isArray(item)
      ? tokenIds(item, path)
      : refuse(path, 'must be a string or an array of token ids')
  })
}

function tokenIds(ids: readonly JsonValue[], path: string): number[] {
  if (ids.length === 0) refuse(path, 'must not be empty')
  return ids.map((id, at) => integer(id, `${path}[${at}]`, TOKEN_IDS))
}

/** The body for an upstream of this format from a request of another format. */
export function encodeEmbeddings(request: ChatRequest, losses: Losses): JsonObject {
  for (const key of Object.keys(request.rest)) losses.drop(key, 'no-equivalent')
  const { inputs = [], dimensions } = request.embedding ?? {}
  return {
    model: request.model,
    input: inputs.map((input) => (typeof input === 'string' ? input : [...input])),
    encoding_format: 'float',
    ...(dimensions !== undefined && { dimensions }),
  }
}

/** Edits of a client's own body: the model's name, and fields that choose another model or provider. */
export function embeddingEdits(body: JsonObject, model: string, losses: Losses): Edit[] {
  const edits: Edit[] = []
  for (const key in body) if (body[key] === null) edits.push({ key, json: null })
  edits.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== model) edits.push({ key: 'model', json: JSON.stringify(model) })
  return edits
}

/**
 * Decodes a reply: an error if the upstream sent one with status 200, null if the body is not of this format.
 */
export const readVectors: VectorReader = ({ body, arrays }: Outline) => {
  const error = errorIn(body)
  if (error !== null) return error
  const data = body['data']
  if (!Array.isArray(data)) return null
  const items = data.filter(isObject)
  const ordered = items.every(({ index }, at) => index === undefined || index === at)
    ? items
    : [...items].sort((one, other) => Number(one['index']) - Number(other['index']))
  const vectors = ordered.map((item) => vectorAt(item['embedding'], { arrays }))
  const found = vectors.filter((vector) => vector !== null)
  if (found.length !== data.length) return null
  // Voyage and Jina count the total alone.
  const { total, input = total } = usageIn(body)
  return {
    vectors: found,
    usage: input === undefined ? {} : { input, output: 0 },
    model: stringOf(body['model']) ?? null,
  }
}

/** The reply for a client; null if a vector is damaged. */
export function encodeVectors({ vectors, usage }: Vectors, request: ChatRequest, seed: Seed): string | null {
  const form = request.embedding?.base64 === true ? 'base64' : 'json'
  const items: string[] = []
  for (const vector of vectors) {
    const embedding = vectorText(vector, form)
    if (embedding === null) return null
    items.push(`{"object":"embedding","index":${items.length},"embedding":${embedding}}`)
  }
  const tokens = usage.input ?? 0
  const rest = { model: seed.model, usage: { prompt_tokens: tokens, total_tokens: tokens } }
  return `{"object":"list","data":[${items.join(',')}],${JSON.stringify(rest).slice(1)}`
}
