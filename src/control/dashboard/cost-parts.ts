/** Why a request cost what it did: its tokens by kind, at the prices of the configuration in force. */
import type { LedgerEntry } from '../../ledger/entry.js'
import { shownPrice, type Price } from '../../ledger/price.js'
import type * as schema from './schema/schema.js'

/** A price in US dollars per million tokens is this many nano-dollars a token. */
const NANO_PER_USD_PER_MILLION = 1_000
/** Each part is rounded by itself. */
const ROUNDING_NANO_USD = 2

/**
 * The parts, which add up to the recorded cost; empty if they do not: the price has changed since, the
 * request had another price (a tier, media, calls of tools, the cache of the gateway), or none is known.
 */
export function costPartsOf(
  { usage, costNanoUsd }: Pick<LedgerEntry, 'usage' | 'costNanoUsd'>,
  price: Price | null,
): schema.CostPart[] {
  if (price === null || costNanoUsd === null) return []
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage
  const { longContext, ...usual } = shownPrice(price)
  const rates = longContext !== undefined && input > longContext.aboveInputTokens ? longContext : usual
  const counts = [
    ['input', input - cacheRead - cacheWrite, rates.input],
    ['cached', cacheRead, rates.cacheRead ?? rates.input],
    ['written to cache', cacheWrite, rates.cacheWrite ?? rates.input],
    ['output', output, rates.output],
  ] as const
  const parts = counts.flatMap(([kind, tokens, usdPerMillion]) =>
    tokens <= 0 || usdPerMillion === undefined
      ? []
      : [
          {
            ...{ kind, tokens, usdPerMillion },
            costNanoUsd: Math.round(tokens * usdPerMillion * NANO_PER_USD_PER_MILLION),
          },
        ],
  )
  const sum = parts.reduce((total, part) => total + part.costNanoUsd, 0)
  return Math.abs(sum - costNanoUsd) <= ROUNDING_NANO_USD ? parts : []
}
