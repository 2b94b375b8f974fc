/**
 * The model list of Anthropic's API. A page starts after a model (`after_id`) or ends before one
 * (`before_id`).
 *
 * Source: Anthropic API reference, "List models", and @anthropic-ai/sdk 1.12.0, read 2026-11-20.
 */
import type { ModelFacts } from '../../../chat/model.js'
import { GatewayError } from '../../../errors.js'
import type { ModelPages } from '../../dialect.js'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1000

/** `GET /v1/models` and `GET /v1/models/{id}` in Anthropic's format. */
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
      data: page.map(entryOf),
      has_more: isBackwards ? begin > from : end < to,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    })
  },
  one: (model) => JSON.stringify(entryOf(model)),
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw refusal('limit', `must be a whole number from 1 to ${MAX_LIMIT}`)
}

function indexOf(models: readonly ModelFacts[], id: string, name: string): number {
  const index = models.findIndex((model) => model.id === id)
  if (index === -1) throw refusal(name, 'must be the id of a listed model')
  return index
}

function refusal(param: string, rule: string): GatewayError {
  return new GatewayError('malformed_request', `${param} ${rule}`, { param })
}

function entryOf(model: ModelFacts): object {
  const { id, createdAtSeconds, contextWindow, maxOutputTokens, shutdownDate } = model
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
  }
}
