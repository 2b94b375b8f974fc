/** Prices of deployments: dollars per token become dollars per million tokens. */
import type { Path } from '../../../config/config-problem.js'
import type { JsonObject } from '../../../base/json.js'
import type { ImportReport } from '../report.js'
import { numberIn } from './context.js'

const KINDS: readonly (readonly [key: string, to: string])[] = [
  ['input_cost_per_token', 'input'],
  ['output_cost_per_token', 'output'],
  ['cache_read_input_token_cost', 'cache_read'],
  ['input_cost_per_token_cache_hit', 'cache_read'],
  ['cache_creation_input_token_cost', 'cache_write'],
  ['cache_creation_input_token_cost_above_1hr', 'cache_write_1h'],
  ['output_cost_per_reasoning_token', 'reasoning'],
  ['input_cost_per_audio_token', 'input_audio'],
  ['output_cost_per_audio_token', 'output_audio'],
  ['cache_read_input_audio_token_cost', 'cached_audio'],
  ['input_cost_per_image_token', 'input_image'],
  ['output_cost_per_image_token', 'output_image'],
]

const IS_COST = /_cost(?:_|$)|^(?:input|output)_cost/

interface Places {
  readonly report: ImportReport
  readonly params: Path
  readonly info: Path
}

/** The price; null if the deployment has none. The one of `litellm_params` wins. */
export function readPrice(params: JsonObject, info: JsonObject, places: Places): JsonObject | null {
  const price: JsonObject = {}
  const { report } = places
  for (const [map, at] of [
    [info, places.info],
    [params, places.params],
  ] as const) {
    for (const [key, value] of Object.entries(map)) {
      if (!IS_COST.test(key) || value === undefined) continue
      const to = KINDS.find(([name]) => name === key)?.[1]
      const dollars = numberIn(value)
      if (value === null) report.ignored([...at, key])
      else if (to === undefined || dollars === null) {
        report.notCarried([...at, key], 'prices are for tokens: set them in upstreams.prices')
      } else {
        price[to] = perMillion(dollars)
        report.carried([...at, key], `upstreams.prices.${to}`)
      }
    }
  }
  return Object.keys(price).length === 0 ? null : price
}

/** To nine digits: binary fractions of a price per token are not exact. */
function perMillion(dollars: number): number {
  return Number((dollars * 1e6).toPrecision(12))
}
