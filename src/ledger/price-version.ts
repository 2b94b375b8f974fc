/** The version of a list of prices: a digest that depends only on the prices. */
import { createHash } from 'node:crypto'
import type { ModelFacts } from '../chat/model.js'
import type { Priced } from './find-price.js'

const DIGITS = 12

/** The version of these prices, 12 hexadecimal digits; any change of a price makes another one. */
export function priceVersionOf(
  models: readonly Pick<ModelFacts, 'id' | 'variants' | 'price'>[],
  upstreams: readonly Priced[],
): string {
  const catalogue = models.flatMap(({ id, variants = [], price }) => {
    return price === undefined ? [] : [[id, variants, ordered(price)]]
  })
  const own = upstreams.flatMap(({ name, prices }) => {
    return Object.keys(prices).length === 0 ? [] : [[name, ordered(prices)]]
  })
  const text = JSON.stringify([sorted(catalogue), sorted(own)])
  return createHash('sha256').update(text).digest('hex').slice(0, DIGITS)
}

function sorted(entries: readonly unknown[][]): unknown[][] {
  return [...entries].sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))
}

/** With the members of each object in the order of their names: the order in a file does not count. */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, ordered(inner)]))
}
