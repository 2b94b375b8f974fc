/**
 * Prices of deployments: dollars per token become dollars per million tokens, and prices of seconds,
 * characters, pictures, pages and queries those of the units that the gateway counts.
 */
import type { Path } from '../../../config/config-problem.js'
import { LITELLM_RATES, litellmPrice, litellmRates } from '../../../config/price-sources.js'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ImportReport } from '../report.js'
import { numberIn } from './context.js'
import type { Served } from './modes.js'

/** Whether a member of a deployment is a price. */
export function isCost(name: string): boolean {
  return /_cost(?:_|$)/.test(name)
}

interface Places {
  readonly report: ImportReport
  readonly served: Served
  /** The model at the upstream. */
  readonly model: string
  readonly params: Path
  readonly info: Path
}

/** A price by number: its key here, or why there is none. */
type UnitOutcome = { readonly to: string } | { readonly why: string; readonly isIgnored?: true }

/** The price; null if the deployment has none. The one of `litellm_params` wins. */
export function readPrice(params: JsonObject, info: JsonObject, places: Places): JsonObject | null {
  const { report } = places
  const given: { readonly path: Path; readonly key: string; readonly value: JsonValue }[] = []
  for (const [map, at] of [
    [info, places.info],
    [params, places.params],
  ] as const) {
    for (const [key, value] of Object.entries(map)) {
      if (!isCost(key) || value === undefined) continue
      if (value === null) report.ignored([...at, key])
      else given.push({ path: [...at, key], key, value })
    }
  }
  if (given.length === 0) return null
  const entry: JsonObject = Object.fromEntries(given.map(({ key, value }) => [key, numberIn(value) ?? value]))
  const mode = places.served === 'embeddings' ? 'embedding' : 'chat'
  const tokens = litellmPrice({ ...entry, mode }) ?? litellmRates(entry, '')
  const units = unitsOf(entry, places)
  const price: JsonObject = { ...tokens, ...callsOf(entry, tokens) }
  for (const { path, key, value } of given) {
    const unit = units.get(key)
    const rate = numberIn(value)
    const to = rate === null && !isObject(value) ? null : placeOf(key, price)
    if (unit !== undefined && 'to' in unit) {
      // Both sides of a sound or text may have a price; the vendor charges one of them.
      if (rate !== null) price[unit.to] = Math.max(rate, numberIn(price[unit.to]) ?? 0)
      report.carried(path, `upstreams.prices.${places.model}.${unit.to}`)
    } else if (unit?.isIgnored === true) report.ignored(path, unit.why)
    else if (to !== null) report.carried(path, `upstreams.prices.${places.model}.${to}`)
    else report.notCarried(path, unit?.why ?? 'has no kind here: set it in upstreams.prices')
  }
  return Object.keys(price).length === 0 ? null : price
}

/** The member of the price that comes of a key of LiteLLM about tokens or calls; null if there is none. */
function placeOf(key: string, price: JsonObject): string | null {
  if (key === 'search_context_cost_per_query') return 'calls' in price ? 'calls.web_search' : null
  if (key === 'code_interpreter_cost_per_session') return 'calls' in price ? 'calls.code_interpreter' : null
  const [, base = key, above, tier] =
    /^(.*?)(_above_\d+k_tokens)?(_flex|_priority|_batches)?$/.exec(key) ?? []
  const kind =
    base === 'input_cost_per_token_cache_hit'
      ? 'cache_read'
      : base === 'cache_creation_input_token_cost_above_1hr'
        ? 'cache_write_1h'
        : Object.entries(LITELLM_RATES).find(([, name]) => name === base)?.[0]
  if (kind === undefined) return null
  if (tier !== undefined) {
    const name = tier === '_batches' ? 'batch' : tier.slice(1)
    return name in objectOf(price['service_tiers']) ? `service_tiers.${name}` : null
  }
  if (above === undefined) return kind in price ? kind : null
  return objectOf(price['long_context'])['above_input_tokens'] === Number(/\d+/.exec(above)?.[0]) * 1000
    ? `long_context.${kind}`
    : null
}

/** Dollars per call of a tool that the provider runs, beside those that the price has. */
function callsOf(entry: JsonObject, { calls }: JsonObject): JsonObject {
  const session = numberIn(entry['code_interpreter_cost_per_session'])
  const search = numberIn(objectOf(entry['search_context_cost_per_query'])['search_context_size_medium'])
  const all = {
    ...objectOf(calls),
    ...(search === null ? {} : { web_search: search }),
    ...(session === null ? {} : { code_interpreter: session }),
  }
  return Object.keys(all).length === 0 ? {} : { calls: all }
}

const CHARGED_BY_TOKEN = 'the vendor counts tokens, which have a price'

/** What becomes of the prices by number. */
function unitsOf(entry: JsonObject, { served, model }: Places): ReadonlyMap<string, UnitOutcome> {
  const has = (...keys: readonly string[]): boolean => keys.some((key) => (numberIn(entry[key]) ?? 0) > 0)
  const hasTokens = has('input_cost_per_token', 'output_cost_per_token', 'output_cost_per_image_token')
  const unit = (to: string, isServed: boolean): UnitOutcome => {
    if (!isServed) return { why: `has no meaning for ${served}: set it in upstreams.prices` }
    return hasTokens ? { why: CHARGED_BY_TOKEN, isIgnored: true } : { to }
  }
  const isTranscript = served === 'transcriptions'
  const seconds = unit('per_second_audio', isTranscript)
  const characters = unit('per_character', served === 'speech')
  const made = unit('per_image', served === 'images')
  return new Map<string, UnitOutcome>([
    ['input_cost_per_second', seconds],
    ['output_cost_per_second', seconds],
    ['input_cost_per_character', characters],
    ['output_cost_per_character', characters],
    ['output_cost_per_image', made],
    ['input_cost_per_image', promptPictures(entry, { made, model, hasTokens })],
    ['input_cost_per_pixel', { why: 'set per_image, by size' }],
    ['output_cost_per_pixel', { why: 'set per_image, by size' }],
    ['input_cost_per_query', served === 'rerank' ? { to: 'per_search' } : unit('per_search', false)],
    ['ocr_cost_per_page', { to: 'per_page' }],
  ])
}

/**
 * `input_cost_per_image` is the price of a picture of the prompt; LiteLLM takes it for each picture that is
 * made, if the model has no other price.
 */
function promptPictures(
  entry: JsonObject,
  of: { readonly made: UnitOutcome; readonly model: string; readonly hasTokens: boolean },
): UnitOutcome {
  if (/^gpt-image/.test(of.model))
    return { why: 'OpenAI charges this model by token: the catalogue has its price' }
  const isOnly = numberIn(entry['output_cost_per_image']) === null && !of.hasTokens
  if ('to' in of.made && isOnly) return of.made
  return { why: 'pictures of a prompt are charged as its tokens: set input_image in upstreams.prices' }
}
