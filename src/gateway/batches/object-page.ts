/** Pages of lists of objects, newest first, as OpenAI's and Google's clients select them. */
import type { JsonObject } from '../../base/json.js'
import { malformed } from '../../errors.js'
import type { Exchange } from '../client-exchange.js'

/** The query of a request. */
export function queryOf({ req, path }: Exchange): URLSearchParams {
  return new URLSearchParams((req.url ?? '').slice(path.length + 1))
}

/** The lengths that pages may have. */
interface PageOptions {
  readonly maxLimit: number
  readonly usualLimit: number
  /** The parameter with the length. */
  readonly name?: string
}

/** The length of a page. Throws `malformed_request`. */
export function limitIn(
  query: URLSearchParams,
  { maxLimit, usualLimit, name = 'limit' }: PageOptions,
): number {
  const limit = Number(query.get(name) ?? usualLimit)
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit
  throw malformed(`${name} must be a whole number from 1 to ${maxLimit}`, name)
}

/** The page that Google's `pageSize` and `pageToken` select. Throws `malformed_request`. */
export function googlePageOf<Item extends { readonly id: string }>(
  all: readonly Item[],
  query: URLSearchParams,
  limits: Omit<PageOptions, 'name'>,
): { readonly items: readonly Item[]; readonly next: { readonly nextPageToken?: string } } {
  const limit = limitIn(query, { ...limits, name: 'pageSize' })
  const token = query.get('pageToken') ?? ''
  const begin = token === '' ? 0 : all.findIndex(({ id }) => id === token)
  if (begin === -1) throw malformed('pageToken must be one of the list', 'pageToken')
  const next = all[begin + limit]
  return {
    items: all.slice(begin, begin + limit),
    next: next === undefined ? {} : { nextPageToken: next.id },
  }
}

/** A page, and the reply with its items in the form of the list. */
interface Page<Item> {
  readonly items: readonly Item[]
  readonly around: (shown: readonly JsonObject[]) => JsonObject
}

/** The page that `after` and `limit` select. Throws `malformed_request`. */
export function pageOf<Item extends { readonly id: string }>(
  all: readonly Item[],
  query: URLSearchParams,
  options: PageOptions,
): Page<Item> {
  const limit = limitIn(query, options)
  const after = query.get('after')
  const begin = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
  if (after !== null && begin === 0) throw malformed('after must be the id of an object of the list', 'after')
  const items = all.slice(begin, begin + limit)
  const ends = { first_id: items[0]?.id ?? null, last_id: items.at(-1)?.id ?? null }
  const hasMore = begin + limit < all.length
  return { items, around: (shown) => ({ object: 'list', data: [...shown], ...ends, has_more: hasMore }) }
}
