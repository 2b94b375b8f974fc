/**
 * The model list in OpenAI's format, which has no pages.
 *
 * Source: OpenAI API reference, "Models", read 2026-11-20.
 */
import type { ModelFacts } from '../../../chat/model.js'
import type { ModelPages } from '../../dialect.js'

/** Replies to `GET /v1/models` and `GET /v1/models/{id}`. */
export const openaiModels: ModelPages = {
  list: (models) => JSON.stringify({ object: 'list', data: models.map(entryOf) }),
  one: (model) => JSON.stringify(entryOf(model)),
}

function entryOf({ id, createdAtSeconds, family }: ModelFacts): object {
  return { id, object: 'model', created: createdAtSeconds, owned_by: family }
}
