/**
 * The model list of Google's API, paged by tokens.
 *
 * Source: Gemini API reference, "models.list", and @google/genai 2.32.0, read 2026-11-20.
 */
import type { ModelFacts } from '../../../chat/model.js'
import { GatewayError } from '../../../errors.js'
import type { ModelPages } from '../../dialect.js'

const DEFAULT_SIZE = 50
/** Larger page sizes are reduced to this, like Google's API does. */
const MAX_SIZE = 1000

/** `GET /v1beta/models` and `GET /v1beta/models/{id}` in Google's format. */
export const geminiModels: ModelPages = {
  list(models, query) {
    const params = new URLSearchParams(query)
    const size = sizeOf(params.get('pageSize') ?? params.get('page_size'))
    const from = indexAfter(models, params.get('pageToken') ?? params.get('page_token'))
    const page = models.slice(from, from + size)
    const last = page.at(-1)
    const hasMore = from + size < models.length && last !== undefined
    return JSON.stringify({
      models: page.map(entryOf),
      ...(hasMore && { nextPageToken: Buffer.from(last.id).toString('base64url') }),
    })
  },
  one: (model) => JSON.stringify(entryOf(model)),
}

function sizeOf(text: string | null): number {
  if (text === null || text === '' || text === '0') return DEFAULT_SIZE
  if (/^\d{1,9}$/.test(text)) return Math.min(Number(text), MAX_SIZE)
  const message = 'pageSize must be a non-negative whole number'
  throw new GatewayError('malformed_request', message, { param: 'pageSize' })
}

/** The index after the model that the token names, which is the last one of the previous page. */
function indexAfter(models: readonly ModelFacts[], token: string | null): number {
  if (token === null || token === '') return 0
  const id = Buffer.from(token, 'base64url').toString('utf8')
  const at = models.findIndex((model) => model.id === id)
  if (at !== -1) return at + 1
  const message = 'pageToken must be the nextPageToken of an earlier page'
  throw new GatewayError('malformed_request', message, { param: 'pageToken' })
}

const EMBEDDING = ['embedContent', 'batchEmbedContents']
const METHODS = ['generateContent', 'streamGenerateContent', 'countTokens']

function entryOf(model: ModelFacts): object {
  const { id, contextWindow, maxOutputTokens, reasoning } = model
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: id,
    displayName: id,
    inputTokenLimit: contextWindow,
    outputTokenLimit: maxOutputTokens,
    supportedGenerationMethods: model.embedding === true ? EMBEDDING : METHODS,
    thinking: reasoning,
  }
}
