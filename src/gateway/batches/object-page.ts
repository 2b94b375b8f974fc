/** Pages of OpenAI's lists of objects, newest first. */
import type { JsonObject } from '../../base/json.js'
import { malformed } from '../../errors.js'
import type { Exchange } from '../client-exchange.js'

/** The query of a request. */
export function queryOf({ req, path }: Exchange): URLSearchParams {
  return new URLSearchParams((req.url ?? '').slice(path.length + 1))
}

/** How a list is shown. */
interface PageOptions<Item> {
  readonly maxLimit: number
  readonly usualLimit: number
  readonly shown: (item: Item) => JsonObject
}

/** The page that `after` and `limit` select. Throws `malformed_request`. */
export function pageOf<Item extends { readonly id: string }>(
  items: readonly Item[],
  query: URLSearchParams,
  { maxLimit, usualLimit, shown }: PageOptions<Item>,
): JsonObject {
  const limit = Number(query.get('limit') ?? usualLimit)
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw malformed(`limit must be a whole number from 1 to ${maxLimit}`, 'limit')
  }
  const after = query.get('after')
  const begin = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1
  if (after !== null && begin === 0) throw malformed('after must be the id of an object of the list', 'after')
  const page = items.slice(begin, begin + limit)
  return {
    object: 'list',
    data: page.map(shown),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: begin + limit < items.length,
  }
}
