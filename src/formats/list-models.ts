/** The list of models in each client format. */
import { GatewayError } from '../errors.js'
import type { ListedModel, ModelPages } from './dialect.js'

/** Replies to `GET /v1/models` and `GET /v1/models/{id}`. */
export const openaiModels: ModelPages = {
  list: (models) => JSON.stringify({ object: 'list', data: models.map(openaiEntry) }),
  one: (model) => JSON.stringify(openaiEntry(model)),
}

function openaiEntry({ id, facts: { createdAtSeconds, family }, more }: ListedModel): object {
  return { id, object: 'model', created: createdAtSeconds, owned_by: family, ...more }
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1000

/**
 * `GET /v1/models` and `GET /v1/models/{id}` in Anthropic's format.
 *
 * The model list of Anthropic's API. A page starts after a model (`after_id`) or ends before one
 * (`before_id`).
 *
 * Source: Anthropic API reference, "List models", and @anthropic-ai/sdk 1.12.0, read 2026-11-20.
 */
export const anthropicModels: ModelPages = {
  list(models, query) {
    const params = new URLSearchParams(query)
    const limit = limitOf(params.get('limit'))
    const after = params.get('after_id')
    const before = params.get('before_id')
    const from = after === null ? 0 : indexOf(models, after, 'after_id') + 1
    const to = before === null ? models.length : indexOf(models, before, 'before_id')
    const isBackwards = before !== null && after === null
    const begin = isBackwards ? Math.max(from, to - limit) : from
    const end = isBackwards ? to : Math.min(to, from + limit)
    const page = models.slice(begin, end)
    return JSON.stringify({
      data: page.map(anthropicEntry),
      has_more: isBackwards ? begin > from : end < to,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    })
  },
  one: (model) => JSON.stringify(anthropicEntry(model)),
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw refusal('limit', `must be a whole number from 1 to ${MAX_LIMIT}`)
}

function indexOf(models: readonly ListedModel[], id: string, name: string): number {
  const index = models.findIndex((model) => model.id === id)
  if (index === -1) throw refusal(name, 'must be the id of a listed model')
  return index
}

function refusal(param: string, rule: string): GatewayError {
  return new GatewayError('malformed_request', `${param} ${rule}`, { param })
}

function anthropicEntry({ id, facts, more }: ListedModel): object {
  const { createdAtSeconds, contextWindow, maxOutputTokens, shutdownDate, family } = facts
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: new Date(createdAtSeconds * 1000).toISOString(),
    lifecycle: shutdownDate === undefined ? 'active' : 'deprecated',
    deprecated_at: null,
    retires_at: shutdownDate === undefined ? null : `${shutdownDate}T00:00:00Z`,
    line: null,
    max_input_tokens: contextWindow ?? null,
    max_tokens: maxOutputTokens ?? null,
    capabilities: null,
    owned_by: family,
    ...more,
  }
}

const DEFAULT_SIZE = 50
/** Larger page sizes are reduced to this, like Google's API does. */
const MAX_SIZE = 1000

/**
 * `GET /v1beta/models` and `GET /v1beta/models/{id}` in Google's format.
 *
 * Source: Gemini API reference, "models.list", and @google/genai 2.32.0, read 2026-11-20.
 */
export const geminiModels: ModelPages = {
  list(models, query) {
    const params = new URLSearchParams(query)
    const size = sizeOf(params.get('pageSize') ?? params.get('page_size'))
    const from = indexAfter(models, params.get('pageToken') ?? params.get('page_token'))
    const page = models.slice(from, from + size)
    const last = page.at(-1)
    const hasMore = from + size < models.length && last !== undefined
    return JSON.stringify({
      models: page.map(geminiEntry),
      ...(hasMore && { nextPageToken: Buffer.from(last.id).toString('base64url') }),
    })
  },
  one: (model) => JSON.stringify(geminiEntry(model)),
}

function sizeOf(text: string | null): number {
  if (text === null || text === '' || text === '0') return DEFAULT_SIZE
  if (/^\d{1,9}$/.test(text)) return Math.min(Number(text), MAX_SIZE)
  const message = 'pageSize must be a non-negative whole number'
  throw new GatewayError('malformed_request', message, { param: 'pageSize' })
}

/** The index after the model that the token names, which is the last one of the previous page. */
function indexAfter(models: readonly ListedModel[], token: string | null): number {
  if (token === null || token === '') return 0
  const id = Buffer.from(token, 'base64url').toString('utf8')
  const at = models.findIndex((model) => model.id === id)
  if (at !== -1) return at + 1
  const message = 'pageToken must be the nextPageToken of an earlier page'
  throw new GatewayError('malformed_request', message, { param: 'pageToken' })
}

const EMBEDDING = ['embedContent', 'batchEmbedContents']
const METHODS = ['generateContent', 'streamGenerateContent', 'countTokens']

function geminiEntry({ id, facts, more }: ListedModel): object {
  const { contextWindow, maxOutputTokens, reasoning, embedding, family } = facts
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: id,
    displayName: id,
    inputTokenLimit: contextWindow,
    outputTokenLimit: maxOutputTokens,
    supportedGenerationMethods: embedding === true ? EMBEDDING : METHODS,
    thinking: reasoning,
    owned_by: family,
    ...more,
  }
}
