/**
 * Embeddings of OpenAI, Gemini and Bedrock: one vector per text, the same for the same text and size.
 */
import { arrayOf, numberOf, objectOf, stringOf } from '../base/json.js'
import type { JsonObject, JsonValue } from '../base/json.js'
import { refuseBedrock, WHOLE as BEDROCK } from './bedrock-requests.js'
import { tokensOf, wholeReply, type ParsedRequest, type Reply } from './emulated-exchange.js'
import { checkGeminiKey, refuseGemini, WHOLE as GEMINI } from './gemini-requests.js'
import { checkOpenAiKey, refuseOpenAi, WHOLE as OPENAI } from './openai-requests.js'
import { seededRandom, hashOf } from './seeded-random.js'

const MAX_OPENAI_INPUTS = 2048
const MAX_GEMINI_INPUTS = 100

/** The reply to `POST /embeddings`. */
export function openAiEmbeddings(request: ParsedRequest): Reply {
  checkOpenAiKey(request)
  const body = request.body ?? {}
  const model = stringOf(body.model) ?? ''
  if (!request.anyModel && !/^text-embedding-/.test(model)) {
    refuseOpenAi(403, `You are not allowed to generate embeddings from this model`)
  }
  const inputs = inputsOf(body.input)
  if (inputs.length === 0 || inputs.length > MAX_OPENAI_INPUTS || inputs.some(isEmpty)) {
    refuseOpenAi(400, "'$.input' is invalid. Please check the API reference.", { param: 'input' })
  }
  const size = numberOf(body.dimensions) ?? (model.includes('large') ? 3072 : 1536)
  if (model.endsWith('ada-002') && body.dimensions !== undefined) {
    refuseOpenAi(400, 'This model does not support specifying dimensions.', { param: 'dimensions' })
  }
  const data = inputs.map((input, index) => {
    const vector = vectorOf(typeof input === 'string' ? input : JSON.stringify(input), size)
    const embedding = body.encoding_format === 'base64' ? base64Of(vector) : vector
    return { object: 'embedding', index, embedding }
  })
  const input = inputs.reduce<number>((sum, each) => sum + countOf(each), 0)
  const usage = { prompt_tokens: input, total_tokens: input }
  const list = { object: 'list', data, model, usage }
  return wholeReply(OPENAI, JSON.stringify(list), { input, output: 0 })
}

/** The reply to `embedContent` and `batchEmbedContents`. */
export function geminiEmbeddings(request: ParsedRequest): Reply {
  checkGeminiKey(request)
  const [, model = '', method = ''] = /^\/models\/([^:]+):(\w+)$/.exec(request.path) ?? []
  if (!request.anyModel && !/embedding/.test(model)) {
    refuseGemini(
      404,
      `models/${model} is not found for API version v1beta, or is not supported for ${method}.`,
    )
  }
  const body = request.body ?? {}
  const isBatch = method === 'batchEmbedContents'
  const requests = isBatch ? arrayOf(body.requests).map(objectOf) : [body]
  if (requests.length === 0 || requests.length > MAX_GEMINI_INPUTS) {
    refuseGemini(
      400,
      `* BatchEmbedContentsRequest.requests: at most ${MAX_GEMINI_INPUTS} requests can be in one batch\n`,
    )
  }
  if (isBatch && requests.some((each) => each.model !== `models/${model}`)) {
    refuseGemini(400, `* BatchEmbedContentsRequest.requests[0].model: unexpected model name format\n`)
  }
  const embeddings = requests.map((each) => {
    const size = numberOf(each.outputDimensionality ?? each.output_dimensionality) ?? 3072
    return { values: vectorOf(wordsIn(each), size) }
  })
  const input = requests.reduce((sum, each) => sum + countOf(wordsIn(each)), 0)
  // Only the second generation reports tokens.
  const counts = model.includes('embedding-2') ? { usageMetadata: { promptTokenCount: input } } : {}
  const [embedding = { values: [] }] = embeddings
  const reply = { ...(isBatch ? { embeddings } : { embedding }), ...counts }
  return wholeReply(GEMINI, JSON.stringify(reply), { input, output: 0 })
}

/** The reply of an embedding model to InvokeModel, in the format of its vendor. */
export function bedrockEmbeddings(body: JsonObject, model: string): Reply {
  const isCohere = model.includes('cohere.')
  const nova = objectOf(body.singleEmbeddingParams)
  const texts = isCohere
    ? arrayOf(body.texts).map((text) => stringOf(text) ?? '')
    : [stringOf(body.inputText) ?? stringOf(objectOf(nova.text).value) ?? '']
  if (texts.length === 0 || texts.includes('') || (isCohere && body.input_type === undefined)) {
    refuseBedrock(400, 'Malformed input request, please reformat your input and try again.')
  }
  const size = numberOf(body.dimensions ?? body.output_dimension ?? nova.embeddingDimension)
  const vectors = texts.map((text) => vectorOf(text, size ?? 1024))
  const input = texts.reduce((sum, text) => sum + countOf(text), 0)
  const [embedding = []] = vectors
  const reply = isCohere
    ? { embeddings: { float: vectors }, response_type: 'embeddings_by_type', texts }
    : model.includes('nova')
      ? { embeddings: [{ embedding, embeddingType: 'TEXT' }] }
      : { embedding, inputTextTokenCount: input }
  const headers = { ...BEDROCK, 'x-amzn-bedrock-input-token-count': String(input) }
  return wholeReply(headers, JSON.stringify(reply), { input, output: 0 })
}

function inputsOf(input: JsonValue | undefined): (string | JsonValue[])[] {
  if (typeof input === 'string') {
    return [input]
  }
  const list = arrayOf(input)
  if (typeof list[0] === 'number') {
    return [list]
  }
  return list.map((each) => (typeof each === 'string' ? each : arrayOf(each)))
}

function isEmpty(input: string | JsonValue[]): boolean {
  return input.length === 0
}

function countOf(input: string | JsonValue[]): number {
  return typeof input === 'string' ? Math.max(1, tokensOf(input.length)) : input.length
}

function wordsIn(request: JsonObject): string {
  return arrayOf(objectOf(request.content).parts)
    .map((part) => stringOf(objectOf(part).text) ?? '')
    .join('\n')
}

/** A vector of length 1 whose numbers are 32-bit floats. */
function vectorOf(text: string, size: number): number[] {
  const random = seededRandom(hashOf(text, size))
  const raw = Array.from({ length: size }, () => random() / 2 ** 31 - 1)
  const length = Math.hypot(...raw)
  // Nine digits distinguish any two 32-bit floats.
  return raw.map((each) => Number(Math.fround(each / length).toPrecision(9)))
}

function base64Of(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64')
}
