/**
 * The prices and limits of vendors with a preset that serve models of other makers, from LiteLLM's own JSON
 * and genai-prices' JSON: a model has others with each of them, so that they are in no catalogue. Pure.
 */
import {
  arrayOf,
  isObject,
  numberOf,
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

/** Tokens, by the names of `models.yaml`. */
interface ModelLimits extends JsonObject {
  readonly context_window?: number
  readonly max_output_tokens?: number
}

/** Limits by preset and by model. */
type PresetLimits = Record<string, Record<string, ModelLimits>>

/** The lists of limits. */
interface LimitLists {
  readonly litellm: JsonObject
  readonly genai: readonly JsonValue[]
  /** The entries of the shipped catalogue, with what the makers state. */
  readonly catalogue: readonly JsonObject[]
}

/**
 * The limits of the models that have a price. Of several the highest counts, because budgets reserve it. What
 * the lists do not have for a vendor is that of the model by the same name elsewhere, then that of its maker,
 * then a window in the name (`-8192`, `-32k`): no vendor exceeds what the model can do. A model whose longest
 * reply is in no list has its context window for it, which no reply exceeds.
 */
export function presetLimitsOf(
  prices: PresetPrices,
  { litellm, genai, catalogue }: LimitLists,
): PresetLimits {
  const own = new Map<string, ModelLimits>()
  const anywhere = new Map<string, ModelLimits>()
  const ofMaker = new Map<string, ModelLimits>()
  for (const { id, context_window: window, max_output_tokens: output } of catalogue) {
    ofMaker.set(dashed(stringOf(id) ?? ''), limitsIn(window, output))
  }
  const note = (known: Map<string, ModelLimits>, name: string, limits: ModelLimits): void => {
    known.set(name, highest(known.get(name) ?? {}, limits))
  }
  for (const [key, value] of Object.entries(litellm)) {
    const entry = objectOf(value)
    const limits = limitsIn(entry['max_input_tokens'], entry['max_output_tokens'])
    if (!CONVERSING.has(stringOf(entry['mode']) ?? 'chat')) continue
    const vendor = stringOf(entry['litellm_provider']) ?? ''
    const preset = Object.hasOwn(LITELLM_VENDORS, vendor) ? LITELLM_VENDORS[vendor] : undefined
    if (preset !== undefined) note(own, `${preset} ${key.slice(vendor.length + 1)}`, limits)
    note(anywhere, plainName(key), limits)
  }
  for (const provider of genai.filter(isObject)) {
    const vendor = stringOf(provider['id']) ?? ''
    const preset = Object.hasOwn(GENAI_VENDORS, vendor) ? GENAI_VENDORS[vendor] : undefined
    for (const model of arrayOf(provider['models']).filter(isObject)) {
      const id = stringOf(model['id']) ?? ''
      const limits = limitsIn(model['context_window'], null)
      if (preset !== undefined) note(own, `${preset} ${id}`, limits)
      note(anywhere, plainName(id), limits)
    }
  }
  const ofPreset = ([preset, models]: [string, Record<string, JsonValue>]) => {
    const found = Object.keys(models).flatMap((model) => {
      const name = plainName(model)
      const limits = {
        ...namedWindow(name),
        ...ofMaker.get(dashed(name)),
        ...anywhere.get(name),
        ...own.get(`${preset} ${model}`),
      }
      const isOfText =
        numberOf(objectOf(models[model])['input']) !== undefined || Array.isArray(models[model])
      return isOfText && Object.keys(limits).length > 0 ? [[model, withinContext(limits)] as const] : []
    })
    return found.length === 0 ? [] : [[preset, Object.fromEntries(found)] as const]
  }
  return Object.fromEntries(Object.entries(prices).flatMap(ofPreset))
}

/** LiteLLM's modes of models whose replies are text. */
const CONVERSING: ReadonlySet<string> = new Set(['chat', 'responses', 'completion'])

/** The last part of a name, without a vendor's mark such as `:free`. */
function plainName(name: string): string {
  return (name.split('/').at(-1) ?? name).replace(/:.*$/, '').toLowerCase()
}

/** The spelling of makers: hosts write `claude-opus-4.8-fast` for `claude-opus-4-8` at another speed. */
function dashed(name: string): string {
  return name.replace(/-fast$/, '').replaceAll(/(\d)\.(?=\d)/g, '$1-')
}

/** The context window that a name has, as in `llama3-70b-8192` and `gpt-4-32k`. */
function namedWindow(name: string): ModelLimits {
  const [, tokens, thousands] = /-(?:(4096|8192|16384|32768|65536|131072)|(\d{1,3})k)(?:-|$)/.exec(name) ?? []
  if (tokens !== undefined) return { context_window: Number(tokens) }
  return thousands === undefined ? {} : { context_window: Number(thousands) * 1024 }
}

function limitsIn(context: JsonValue | undefined, output: JsonValue | undefined): ModelLimits {
  const count = (value: JsonValue | undefined): number | undefined => {
    const tokens = numberOf(value)
    return tokens !== undefined && Number.isInteger(tokens) && tokens > 0 ? tokens : undefined
  }
  const [window, longest] = [count(context), count(output)]
  return {
    ...(window !== undefined && { context_window: window }),
    ...(longest !== undefined && { max_output_tokens: longest }),
  }
}

function highest(one: ModelLimits, other: ModelLimits): ModelLimits {
  return limitsIn(
    Math.max(one.context_window ?? 0, other.context_window ?? 0),
    Math.max(one.max_output_tokens ?? 0, other.max_output_tokens ?? 0),
  )
}

/** A reply is no longer than the context window. */
function withinContext({ context_window: window, max_output_tokens: output }: ModelLimits): ModelLimits {
  return limitsIn(window, Math.min(output ?? Infinity, window ?? Infinity))
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
