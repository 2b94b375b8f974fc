/** Computes the version of a list of prices: a digest that depends only on the prices. */
import { createHash } from 'node:crypto'
import { priceAt, type ModelFacts } from '../formats/chat/model-facts.js'
import type { Priced } from './find-price.js'

const DIGITS = 12

/**
 * The version of the prices that hold at a time, in ms since 1970: 12 hexadecimal digits. Any change of a
 * price changes the version.
 */
export function priceVersionOf(
  models: readonly Pick<ModelFacts, 'id' | 'variants' | 'price'>[],
  upstreams: readonly Priced[],
  atMs = Date.now(),
): string {
  const catalogue = models.flatMap(({ id, variants = [], price: listed }) => {
    const price = priceAt(listed, atMs)
    return price === undefined ? [] : [[id, variants, ordered(price)]]
  })
  const upstreamPrices = upstreams.flatMap(({ name, prices, vendorPrices }) => {
    const own = Object.entries({ ...vendorPrices, ...prices }).flatMap(([model, price]) => {
      const held = priceAt(price, atMs)
      return held === undefined ? [] : [[model, held] as const]
    })
    return own.length === 0 ? [] : [[name, ordered(Object.fromEntries(own))]]
  })
  const text = JSON.stringify([sorted(catalogue), sorted(upstreamPrices)])
  return createHash('sha256').update(text).digest('hex').slice(0, DIGITS)
}

function sorted(entries: readonly unknown[][]): unknown[][] {
  return [...entries].sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))
}

/**
 * Sorts the members of each object by name, so that their order in a file does not change the version.
 */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, ordered(inner)]))
}
