/**
 * Gemini's embedding formats on Vertex: `:predict` for all models, but `:embedContent` for those since
 * `gemini-embedding-2`, one text in each call.
 *
 * Source: Vertex AI reference, "Text embeddings", read 2026-11-23.
 */
import { GatewayError } from '../../errors.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { tokenCount } from '../chat/usage.js'
import type { UpstreamCodec, VectorReader } from '../dialect.js'
import { vectorAt } from '../wire/embedding-vectors.js'
import type { Edit } from '../wire/json/splice.js'
import { target } from './upstream/request-path.js'

/** Models without `:predict`. */
const EMBED_CONTENT = /^gemini-embedding-(?:[2-9]|\d{2,}(?!\d))(?:\b|-)/

/** The codec, made from that of the Gemini API. `isSingle`: the client sends `embedContent`. */
export function vertexEmbeddings(base: UpstreamCodec, isSingle: boolean): UpstreamCodec {
  const { readVectors = () => null } = base
  const read: VectorReader = (reply) => predictions(reply) ?? readVectors(reply)
  return {
    ...base,
    target: (model) => ({
      path: target(model, false).path.replace(
        /:generateContent$/,
        isEmbedContent(model) ? ':embedContent' : ':predict',
      ),
      accept: 'application/json',
    }),
    encodeRequest: (request, _facts, losses) => {
      for (const key of Object.keys(request.rest)) losses.drop(key, 'no-equivalent')
      return isEmbedContent(request.model) ? single(request) : predict(textsOf(request), request)
    },
    edits: (body, modelName, context) => {
      if (!isEmbedContent(modelName)) return predictEdits(body, isSingle)
      if (isSingle) return base.edits(body, modelName, context)
      const [first, ...more] = arrayOf(body.requests)
      if (more.length > 0) throw oneText()
      return replaced(body, without(objectOf(first), 'model'))
    },
    readVectors: read,
  }
}

function isEmbedContent(model: string): boolean {
  return EMBED_CONTENT.test(model)
}

function textsOf({ embedding }: ChatRequest): string[] {
  return (embedding?.inputs ?? []).map((input) => {
    if (typeof input === 'string') return input
    const message = 'input has token ids, which Gemini does not accept. Send the text.'
    throw new GatewayError('untranslatable', message, { param: 'input' })
  })
}

function predict(texts: readonly string[], { embedding }: Pick<ChatRequest, 'embedding'>): JsonObject {
  const { dimensions } = embedding ?? {}
  return {
    instances: texts.map((content) => ({ content })),
    ...(dimensions !== undefined && { parameters: { outputDimensionality: dimensions } }),
  }
}

function single(request: ChatRequest): JsonObject {
  const [text = '', ...more] = textsOf(request)
  if (more.length > 0) throw oneText()
  const { dimensions } = request.embedding ?? {}
  return {
    content: { parts: [{ text }] },
    ...(dimensions !== undefined && { outputDimensionality: dimensions }),
  }
}

function oneText(): GatewayError {
  const message = 'The model embeds one text in a request on Vertex. Send one request for each text.'
  return new GatewayError('untranslatable', message, { param: 'input' })
}

/** A client's `embedContent` or `batchEmbedContents` as `:predict`. */
function predictEdits(body: JsonObject, isSingle: boolean): Edit[] {
  const requests = isSingle ? [body] : arrayOf(body.requests).map(objectOf)
  const instances = requests.map((each) => {
    const parts = arrayOf(objectOf(each.content).parts).map(objectOf)
    const content = parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n')
    const task = each.taskType ?? each.task_type
    const title = each.title
    return {
      ...(task !== undefined && { task_type: task }),
      ...(title !== undefined && { title }),
      content,
    }
  })
  const size = requests[0]?.outputDimensionality ?? requests[0]?.output_dimensionality
  return replaced(body, {
    instances,
    ...(size !== undefined && { parameters: { outputDimensionality: size } }),
  })
}

function replaced(body: JsonObject, by: JsonObject): Edit[] {
  return [
    ...Object.keys(body)
      .filter((key) => !(key in by))
      .map((key) => ({ key, json: null })),
    ...Object.entries(by).map(([key, value]) => ({ key, json: JSON.stringify(value) })),
  ]
}

function without(body: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== key))
}

/** The vectors of a reply of `:predict`; null if it is none. */
const predictions: VectorReader = ({ body, arrays }) => {
  if (!Array.isArray(body.predictions)) return null
  const all = body.predictions.map((each) => objectOf(objectOf(each).embeddings))
  const vectors = all.map((each) => vectorAt(each.values, { arrays })).filter((each) => each !== null)
  if (vectors.length !== all.length) return null
  let input = 0
  for (const { statistics } of all) {
    if (isObject(statistics)) input += tokenCount(statistics.token_count) ?? 0
  }
  return { vectors, usage: { input, output: 0 }, model: null }
}
