/**
 * Embeddings on Bedrock, for upstreams: InvokeModel with the body of the model's vendor. Amazon's models
 * embed one text in a request, Cohere's up to 96.
 *
 * Source: Bedrock user guide, "Amazon Titan Text Embeddings" and "Cohere Embed", read 2026-11-23, and
 * recorded traffic.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { tokenCount } from '../chat/usage.js'
import type { UpstreamCodec, Losses, VectorReader } from '../dialect.js'
import { awsErrorIn } from '../wire/aws/decode-error.js'
import { vectorAt, type Outline } from '../wire/embedding-vectors.js'
import { refused } from '../wire/json/check-fields.js'
import { modelPath } from './encode-request.js'
import { upstreamCodec } from './index.js'

const MAX_COHERE_TEXTS = 96

/** Whether the model is one of Cohere's; others take one text. */
function isCohere(model: string): boolean {
  return /\bcohere\./.test(model)
}

/** The body for the model. Throws `untranslatable` for token ids, and for more texts than the model takes. */
function encodeRequest(request: ChatRequest, losses: Losses): JsonObject {
  const { model, rest, embedding } = request
  const texts = (embedding?.inputs ?? []).map((input) => {
    if (typeof input === 'string') return input
    throw refused('input', 'Bedrock does not accept token ids. Send the text.')
  })
  const own = isCohere(model) ? 'input_type' : null
  for (const name of Object.keys(rest)) if (name !== own) losses.drop(name, 'no-equivalent')
  if (own !== null) return cohereBody(texts, rest[own], embedding?.dimensions)
  const [text = '', ...more] = texts
  if (more.length > 0) {
    throw refused('input', `${model} embeds one text in a request. Send one request for each text.`)
  }
  const { dimensions } = embedding ?? {}
  if (/\bamazon\.nova-/.test(model)) {
    const singleEmbeddingParams: JsonObject = {
      embeddingPurpose: 'GENERIC_INDEX',
      text: { truncationMode: 'NONE', value: text },
    }
    if (dimensions !== undefined) singleEmbeddingParams.embeddingDimension = dimensions
    return { taskType: 'SINGLE_EMBEDDING', singleEmbeddingParams }
  }
  return { inputText: text, ...(dimensions !== undefined && { dimensions }) }
}

function cohereBody(
  texts: readonly string[],
  inputType: JsonValue | undefined,
  dimensions: number | undefined,
): JsonObject {
  if (texts.length > MAX_COHERE_TEXTS) {
    throw refused('input', `Cohere's models embed at most ${MAX_COHERE_TEXTS} texts in a request.`)
  }
  return {
    texts: [...texts],
    input_type: stringOf(inputType) ?? 'search_document',
    ...(dimensions !== undefined && { output_dimension: dimensions }),
  }
}

/** Decodes the reply of any of the vendors. Only Titan's has a count of tokens. */
const readVectors: VectorReader = ({ body, arrays }: Outline) => {
  const error = awsErrorIn(body)
  if (error !== null) return error
  const list = listIn(body)
  if (list.length === 0) return null
  const vectors = list.map((each) => vectorAt(isObject(each) ? each.embedding : each, { arrays }))
  const found = vectors.filter((vector) => vector !== null)
  if (found.length !== list.length) return null
  const input = tokenCount(body.inputTextTokenCount)
  return { vectors: found, usage: input === undefined ? {} : { input, output: 0 }, model: null }
}

/** Titan: `embedding`; Nova: `embeddings[].embedding`; Cohere: `embeddings[]` or `embeddings.float[]`. */
function listIn({ embedding, embeddings }: JsonObject): readonly JsonValue[] {
  if (embedding !== undefined) return [embedding]
  return arrayOf(isObject(embeddings) ? objectOf(embeddings).float : embeddings)
}

/** `POST /model/{model}/invoke`. */
export const bedrockEmbeddings: UpstreamCodec = {
  ...upstreamCodec,
  framing: 'sse',
  target: (model) => ({ path: `${modelPath(model)}/invoke`, accept: 'application/json' }),
  encodeRequest: (request, _facts, losses) => encodeRequest(request, losses),
  continuation: null,
  readVectors,
}
