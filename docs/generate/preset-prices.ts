/**
 * The prices of vendors with a preset that serve models of other makers, from LiteLLM's own JSON and
 * genai-prices' JSON: a model has another price with each of them, so that they are in no catalogue. Pure.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json.js'
import { genaiPrices, joinedPrice, litellmPrice } from '../../src/config/price-sources.js'

/** Our presets by the vendor's name in LiteLLM's list, which also starts the names of its models. */
const LITELLM_VENDORS: Readonly<Record<string, string>> = {
  baseten: 'baseten',
  cerebras: 'cerebras',
  cloudflare: 'cloudflare',
  databricks: 'databricks',
  deepinfra: 'deepinfra',
  featherless_ai: 'featherless',
  fireworks_ai: 'fireworks',
  friendliai: 'friendli',
  groq: 'groq',
  hyperbolic: 'hyperbolic',
  lambda_ai: 'lambda',
  nebius: 'nebius',
  novita: 'novita',
  nscale: 'nscale',
  nvidia_nim: 'nvidia',
  openrouter: 'openrouter',
  ovhcloud: 'ovhcloud',
  perplexity: 'perplexity',
  sambanova: 'sambanova',
  scaleway: 'scaleway',
  snowflake: 'snowflake',
  together_ai: 'together',
  vercel_ai_gateway: 'vercel',
  volcengine: 'volcengine',
  watsonx: 'watsonx',
}

/** The same by the names of genai-prices. */
const GENAI_VENDORS: Readonly<Record<string, string>> = {
  baseten: 'baseten',
  cerebras: 'cerebras',
  cloudflare: 'cloudflare',
  fireworks: 'fireworks',
  groq: 'groq',
  novita: 'novita',
  openrouter: 'openrouter',
  ovhcloud: 'ovhcloud',
  perplexity: 'perplexity',
  together: 'together',
}

/** Prices in the spelling of `models.yaml`, by preset and by model. */
type PresetPrices = Record<string, Record<string, JsonValue>>

/**
 * The prices in both lists; of rates that differ, the higher one. A price of nothing is one only for a model
 * whose name ends in `:free`: lists also have it for prices that they do not know.
 */
export function presetPricesOf(litellm: JsonObject, genai: readonly JsonValue[]): PresetPrices {
  const byPreset: PresetPrices = {}
  for (const { preset, model, price } of [...litellmPrices(litellm), ...genaiVendorPrices(genai)]) {
    if (isFree(price) && !model.endsWith(':free')) continue
    // Its own models have no maker in their name; the catalogue has them.
    if (preset === 'perplexity' && !model.includes('/')) continue
    const own = (byPreset[preset] ??= {})
    const known = own[model]
    own[model] = isObject(known) ? joinedPrice(known, price) : price
  }
  const names = Object.keys(byPreset).sort()
  return Object.fromEntries(names.map((name) => [name, byName(byPreset[name] ?? {})]))
}

interface Listed {
  readonly preset: string
  readonly model: string
  readonly price: JsonValue
}

function litellmPrices(list: JsonObject): Listed[] {
  return Object.entries(list).flatMap(([key, value]): Listed[] => {
    const entry = objectOf(value)
    const vendor = stringOf(entry['litellm_provider']) ?? ''
    const preset = Object.hasOwn(LITELLM_VENDORS, vendor) ? LITELLM_VENDORS[vendor] : undefined
    const price = litellmPrice(entry)
    // Names without the vendor's are classes of models by size.
    if (preset === undefined || price === null || !key.startsWith(`${vendor}/`)) return []
    const model = key.slice(vendor.length + 1)
    return isModelId(model) ? [{ preset, model, price }] : []
  })
}

function genaiVendorPrices(providers: readonly JsonValue[]): Listed[] {
  return providers.filter(isObject).flatMap((provider) => {
    const vendor = stringOf(provider['id']) ?? ''
    const preset = Object.hasOwn(GENAI_VENDORS, vendor) ? GENAI_VENDORS[vendor] : undefined
    if (preset === undefined) return []
    return arrayOf(provider['models'])
      .filter(isObject)
      .flatMap((model): Listed[] => {
        const price = genaiPrices(model['prices'])
        const id = stringOf(model['id']) ?? ''
        return price === null || !isModelId(id) ? [] : [{ preset, model: id, price }]
      })
  })
}

function isModelId(text: string): boolean {
  return /^[!-~]{1,256}$/.test(text)
}

function isFree(price: JsonValue): boolean {
  const { input, output } = objectOf(price)
  return input === 0 && output === 0
}

function byName(values: Readonly<Record<string, JsonValue>>): Record<string, JsonValue> {
  return Object.fromEntries(Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1)))
}
