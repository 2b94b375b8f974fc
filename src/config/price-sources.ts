/**
 * Reads lists of models and prices: LiteLLM's JSON, genai-prices' JSON, and the form of `models.yaml`. The
 * result has the spelling of `models.yaml`. Ids are exact: what a list matches by the start of a name is left
 * out, because another model of the family may have another price. Pure.
 */
import { isObject, numberOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'

/** Models of a list, as entries of `models.yaml` without `source` and `as_of`. */
export interface PriceSource {
  /** The name in `source` of the entries. */
  readonly name: string
  readonly models: readonly SourceModel[]
}

/** An entry of `models.yaml`. */
export interface SourceModel extends JsonObject {
  readonly id: string
  readonly family: string
}

/** The list in a parsed file; null if it has none of the known forms. */
export function sourceIn(value: unknown): PriceSource | null {
  if (Array.isArray(value)) return genaiSource(value)
  if (!isObject(value)) return null
  const { models } = value
  if (Array.isArray(models)) {
    const own = models.filter(isObject).flatMap(catalogueModel)
    return { name: stringOf(value['source']) ?? 'file', models: own }
  }
  const entries = Object.entries(value).filter(([, entry]) => 'litellm_provider' in objectOf(entry))
  return entries.length === 0 ? null : { name: 'litellm', models: distinct(entries.flatMap(litellmModel)) }
}

/**
 * LiteLLM's models with what genai-prices adds: it decides what depends on the length of the prompt and on
 * the date. Of other rates that differ, the higher one counts. For ids that end in `-latest` LiteLLM decides
 * alone, because such names move. Models of genai-prices alone are left out: most are aliases, or retired.
 */
export function joinLists(litellm: PriceSource, genai: PriceSource): readonly SourceModel[] {
  const byId = new Map(genai.models.map((model) => [model.id, model]))
  return litellm.models.map((model): SourceModel => {
    const other = byId.get(model.id)
    const own = { ...model, source: litellm.name }
    if (other === undefined || model.id.endsWith('-latest')) return own
    const price = joinedPrice(objectOf(model['price']), other['price'] ?? null)
    return { ...own, price, source: `${litellm.name}, ${genai.name}` }
  })
}

/** LiteLLM's price of a model with what genai-prices adds to it, as `joinLists` does. */
export function joinedPrice(price: JsonObject, other: JsonValue): JsonValue {
  if (!Array.isArray(other)) return higherRates(price, objectOf(other))
  const dated = other.filter(isObject)
  const first = dated.findIndex(({ input, output }) => input === price['input'] && output === price['output'])
  return dated.map((each, index) => (first === -1 || index === first ? higherRates(price, each) : each))
}

/** The members of both; of rates and prices of calls in both, the higher one. */
function higherRates(price: JsonObject, other: JsonObject): JsonObject {
  const joined: JsonObject = { ...other, ...price }
  for (const [kind, rate] of Object.entries(price)) {
    const theirs = other[kind]
    if (typeof rate === 'number' && typeof theirs === 'number') joined[kind] = Math.max(rate, theirs)
    if (kind === 'calls') joined[kind] = higherRates(objectOf(rate), objectOf(theirs))
  }
  return joined
}

/** Vendors that serve models of other makers, whose price with another vendor differs. */
const HOSTS = ['cerebras', 'groq']
const MAKERS = { openai: 'gpt', anthropic: 'claude', google: 'gemini' }

/** Whether the list has the model at its maker's price, which a catalogue may have for every vendor. */
export function isOfItsMaker({ id, family }: SourceModel): boolean {
  if (HOSTS.includes(family) || (family === 'perplexity' && !id.startsWith('sonar'))) return false
  return Object.entries(MAKERS).every(([maker, start]) => family === maker || !id.startsWith(`${start}-`))
}

function catalogueModel(entry: JsonObject): SourceModel[] {
  const [id, family] = [stringOf(entry['id']), stringOf(entry['family'])]
  return id === undefined || family === undefined ? [] : [{ ...entry, id, family }]
}

/** The first entry of an id counts: vendors come before those that resell. */
function distinct(models: readonly SourceModel[]): SourceModel[] {
  const known = new Map<string, SourceModel>()
  for (const model of models) if (!known.has(model.id)) known.set(model.id, model)
  return [...known.values()]
}

/** The maker in the catalogue of the vendors whose ids name a model without a doubt. */
const FAMILIES: Readonly<Record<string, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  google: 'google',
  mistral: 'mistral',
  deepseek: 'deepseek',
  xai: 'xai',
  'x-ai': 'xai',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  perplexity: 'perplexity',
  moonshot: 'moonshot',
  moonshotai: 'moonshot',
  zai: 'zai',
  minimax: 'minimax',
  dashscope: 'dashscope',
  groq: 'groq',
  cerebras: 'cerebras',
  voyage: 'voyage',
  jina_ai: 'jina',
}

/** LiteLLM's modes of models that converse or embed. */
const MODES: ReadonlySet<string> = new Set(['chat', 'responses', 'completion', 'embedding'])

/** What the models of other modes of LiteLLM's are for, and their prices by number. */
const OTHER_MODES: Readonly<Record<string, OtherMode>> = {
  image_generation: {
    operations: ['images', 'image_edits'],
    unit: 'per_image',
    keys: ['output_cost_per_image', 'input_cost_per_image'],
  },
  audio_speech: {
    operations: ['speech'],
    unit: 'per_character',
    keys: ['input_cost_per_character', 'output_cost_per_character'],
  },
  audio_transcription: {
    operations: ['transcriptions'],
    unit: 'per_second_audio',
    keys: ['input_cost_per_second', 'output_cost_per_second'],
  },
  rerank: { operations: ['rerank'], unit: 'per_search', keys: ['input_cost_per_query'] },
  moderation: { operations: ['moderations'], unit: null, keys: [] },
}

interface OtherMode {
  readonly operations: readonly string[]
  readonly unit: string | null
  /** The vendor charges one of these. */
  readonly keys: readonly string[]
}

/** Vendors that charge each sound as one of at least this many seconds. */
const MIN_AUDIO_SECONDS: Readonly<Record<string, number>> = { groq: 10 }
/** Dollars per token to dollars per million tokens, without the noise of binary fractions. */
function perMillion(value: JsonValue | undefined): number | undefined {
  const perToken = numberOf(value)
  return perToken === undefined || perToken < 0 ? undefined : Number((perToken * 1e6).toPrecision(10))
}

/** Our kinds of tokens, by LiteLLM's name of the price. */
export const LITELLM_RATES = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cache_read: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
  reasoning: 'output_cost_per_reasoning_token',
  input_audio: 'input_cost_per_audio_token',
  output_audio: 'output_cost_per_audio_token',
  cached_audio: 'cache_read_input_audio_token_cost',
  input_image: 'input_cost_per_image_token',
  cached_image: 'cache_read_input_image_token_cost',
  input_video: 'input_cost_per_video_token',
  output_image: 'output_cost_per_image_token',
} as const
const LITELLM_TIERS = { flex: '_flex', priority: '_priority', batch: '_batches' } as const

function litellmModel([key, value]: readonly [string, JsonValue | undefined]): SourceModel[] {
  const entry = objectOf(value)
  const provider = stringOf(entry['litellm_provider']) ?? ''
  const family = Object.hasOwn(FAMILIES, provider) ? FAMILIES[provider] : undefined
  const mode = stringOf(entry['mode']) ?? 'chat'
  if (family === undefined) return []
  const id = key.startsWith(`${provider}/`) ? key.slice(provider.length + 1) : key
  // Google's models that make pictures converse, too.
  const operations = family === 'google' && mode === 'image_generation' ? undefined : operationsOf(mode)
  const price = litellmPrice(entry)
  // Fine-tuned models, and the same model by size or quality, are not ids of requests.
  if (price === null || /[/: ]/.test(id)) return []
  const facts = {
    id,
    family,
    shutdown: stringOf(entry['deprecation_date']),
    operations,
    context_window: tokens(entry['max_input_tokens']),
    max_output_tokens: repliesOf(mode, entry),
    embedding: entry['mode'] === 'embedding' ? true : undefined,
    vision: flag(entry['supports_vision']),
    audio_input: flag(entry['supports_audio_input']),
    tools: flag(entry['supports_function_calling']),
    reasoning: flag(entry['supports_reasoning']),
    structured_output: flag(entry['supports_response_schema']),
    price,
  }
  return [{ ...present(facts), id, family }]
}

function operationsOf(mode: string): string[] | undefined {
  return Object.hasOwn(OTHER_MODES, mode) ? [...(OTHER_MODES[mode]?.operations ?? [])] : undefined
}

/** The longest reply; rankings and moderations have none. */
function repliesOf(mode: string, entry: JsonObject): number | undefined {
  if (mode === 'embedding') return 0
  return mode === 'rerank' || mode === 'moderation' ? undefined : tokens(entry['max_output_tokens'])
}

function tokens(value: JsonValue | undefined): number | undefined {
  const count = numberOf(value)
  return count !== undefined && Number.isInteger(count) && count > 0 ? count : undefined
}

function flag(value: JsonValue | undefined): true | undefined {
  return value === true ? true : undefined
}

function present(values: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** Dollars per million tokens of each kind that the entry has. */
export function litellmRates(entry: JsonObject, suffix: string): Record<string, number> {
  const rates: Record<string, number> = {}
  for (const [kind, name] of Object.entries(LITELLM_RATES)) {
    const rate = perMillion(entry[name + suffix])
    if (rate !== undefined) rates[kind] = rate
  }
  const hit = perMillion(entry[`input_cost_per_token_cache_hit${suffix}`])
  if (hit !== undefined) rates['cache_read'] ??= hit
  const lasting = perMillion(entry[`cache_creation_input_token_cost_above_1hr${suffix}`])
  if (lasting !== undefined) rates['cache_write_1h'] = lasting
  return rates
}

/**
 * The price of an entry of LiteLLM's list; null for one in units that the catalogue does not have, or without
 * any.
 */
export function litellmPrice(entry: JsonObject): JsonObject | null {
  const mode = stringOf(entry['mode']) ?? 'chat'
  if (MODES.has(mode)) return tokenPrice(entry, mode === 'embedding')
  const other = Object.hasOwn(OTHER_MODES, mode) ? OTHER_MODES[mode] : undefined
  return other === undefined ? null : pricePerUnit(entry, mode, other)
}

/** Vendors charge pictures, sound and rankings by token or by number; a list may have both, as an aid. */
function pricePerUnit(entry: JsonObject, mode: string, { unit, keys }: OtherMode): JsonObject | null {
  const usd = Math.max(...keys.map((key) => numberOf(entry[key]) ?? 0))
  const rates = litellmRates(entry, '')
  const isByToken = mode === 'image_generation' ? 'output_image' in rates : (rates['input'] ?? 0) > 0
  if (isByToken || unit === null) return tokenPrice(entry, mode === 'rerank' || mode === 'moderation', true)
  if (usd <= 0) return null
  const least = MIN_AUDIO_SECONDS[stringOf(entry['litellm_provider']) ?? '']
  const isShort = unit === 'per_second_audio' && least !== undefined
  return { [unit]: usd, ...(isShort ? { min_audio_seconds: least } : {}) }
}

/** `isInputOnly`: the model has no reply. `isMedia`: the reply may have no rate of text. */
function tokenPrice(entry: JsonObject, isInputOnly: boolean, isMedia = false): JsonObject | null {
  const rates = litellmRates(entry, '')
  const hasOutput = rates['output'] !== undefined || isInputOnly || isMedia
  if (rates['input'] === undefined || !hasOutput) return null
  const long = litellmLong(entry, '')
  const tiers = Object.entries(LITELLM_TIERS).flatMap(([tier, suffix]): [string, JsonValue][] => {
    const own = litellmRates(entry, suffix)
    const reply = own['output'] ?? own['output_image']
    if (own['input'] === undefined || reply === undefined) return []
    return [[tier, tierOf(rates, { own, long, ownLong: litellmLong(entry, suffix) })]]
  })
  const search = numberOf(objectOf(entry['search_context_cost_per_query'])['search_context_size_medium'])
  const extra = Object.entries(objectOf(entry['provider_specific_entry'])).filter(([name]) => name === 'fast')
  const serviceTiers = Object.fromEntries([...tiers, ...extra])
  return {
    ...rates,
    ...(isInputOnly ? { output: rates['output'] ?? 0 } : {}),
    ...(Object.keys(serviceTiers).length > 0 ? { service_tiers: serviceTiers } : {}),
    ...(search === undefined ? {} : { calls: { web_search: search } }),
    ...(long === null ? {} : { long_context: long }),
  }
}

/** The rates for long prompts, of the shortest length that has any. */
function litellmLong(entry: JsonObject, suffix: string): JsonObject | null {
  for (const thousands of [128, 200, 256, 272, 512]) {
    const above = `_above_${String(thousands)}k_tokens${suffix}`
    const [input, output] = [
      perMillion(entry[`input_cost_per_token${above}`]),
      perMillion(entry[`output_cost_per_token${above}`]),
    ]
    if (input === undefined || output === undefined) continue
    const caches = {
      cache_read: perMillion(entry[`cache_read_input_token_cost${above}`]),
      cache_write: perMillion(entry[`cache_creation_input_token_cost${above}`]),
    }
    return { above_input_tokens: thousands * 1000, input, output, ...present(caches) }
  }
  return null
}

interface TierRates {
  readonly own: Readonly<Record<string, number>>
  readonly long: JsonObject | null
  readonly ownLong: JsonObject | null
}

/** Vendors round the rates of tiers to cents per million tokens. */
const ROUNDING_USD = 0.005 + 1e-9

/** One multiple if all rates have it, else the rates of the tier. */
function tierOf(rates: Readonly<Record<string, number>>, { own, long, ownLong }: TierRates): JsonValue {
  const multiple = Number(((own['input'] ?? 0) / (rates['input'] || 1)).toPrecision(4))
  const isMultiple = (usual: number | undefined, rate: number | undefined, tolerance: number): boolean => {
    return usual === undefined || rate === undefined || Math.abs(usual * multiple - rate) <= tolerance
  }
  const isExact = ['input', 'output'].every((kind) => {
    const [usual, rate] = [numberOf(long?.[kind]), numberOf(ownLong?.[kind])]
    return isMultiple(rates[kind], own[kind], 1e-9) && isMultiple(usual, rate, ROUNDING_USD)
  })
  const isOne = Object.entries(own).every(([kind, rate]) => isMultiple(rates[kind], rate, ROUNDING_USD))
  if (isExact && isOne) return multiple
  return { ...own, ...(ownLong === null ? {} : { long_context: ownLong }) }
}

/** Our kinds, by the names of genai-prices. */
const GENAI_RATES = {
  input: 'input_mtok',
  output: 'output_mtok',
  cache_read: 'cache_read_mtok',
  cache_write: 'cache_write_mtok',
  cache_write_1h: 'cache_write_1h_mtok',
  reasoning: 'output_reasoning_mtok',
  input_audio: 'input_audio_mtok',
  output_audio: 'output_audio_mtok',
  cached_audio: 'cache_audio_read_mtok',
  input_image: 'input_image_mtok',
  output_image: 'output_image_mtok',
} as const
const GENAI_CALLS = { web_search: 'web_searches_kcount', file_search: 'storage_searches_kcount' } as const

function genaiSource(providers: readonly JsonValue[]): PriceSource | null {
  const known = providers.filter(isObject).filter((provider) => Array.isArray(provider['models']))
  if (known.length === 0) return null
  return { name: 'genai-prices', models: distinct(known.flatMap(genaiModels)) }
}

function genaiModels(provider: JsonObject): SourceModel[] {
  const vendor = stringOf(provider['id']) ?? ''
  const family = Object.hasOwn(FAMILIES, vendor) ? FAMILIES[vendor] : undefined
  const models = Array.isArray(provider['models']) ? provider['models'].filter(isObject) : []
  if (family === undefined) return []
  return models.flatMap((model) => {
    const price = genaiPrices(model['prices'])
    const id = stringOf(model['id']) ?? ''
    if (price === null || !/^[!-~]{1,256}$/.test(id) || /[/: ]/.test(id)) return []
    const variants = equalNames(model['match']).filter((name) => name !== id)
    const facts = { context_window: tokens(model['context_window']), price }
    return [id, ...variants].map((name) => ({ ...present(facts), id: name, family }))
  })
}

/** The names that a rule equals, alone or as one of several. */
function equalNames(match: JsonValue | undefined): string[] {
  const rule = objectOf(match)
  const own = stringOf(rule['equals'])
  const several = Array.isArray(rule['or']) ? rule['or'].flatMap(equalNames) : []
  return [...(own === undefined ? [] : [own]), ...several].filter((name) => /^[!-~]{1,256}$/.test(name))
}

/** A price of genai-prices, or prices with dates; hours of the day are left out. */
export function genaiPrices(prices: JsonValue | undefined): JsonValue | null {
  if (!Array.isArray(prices)) return genaiPrice(objectOf(prices))
  const dated = prices.filter(isObject).flatMap((each): JsonObject[] => {
    const { start_date: from, start_time: hour } = objectOf(each['constraint'])
    const price = genaiPrice(objectOf(each['prices']))
    if (price === null || hour !== undefined) return []
    return [{ ...(typeof from === 'string' ? { from } : {}), ...price }]
  })
  if (dated.length === 0) return null
  const [only] = dated
  return dated.length === 1 && only !== undefined && only['from'] === undefined ? only : dated
}

function genaiPrice(price: JsonObject): JsonObject | null {
  const rates: Record<string, number> = {}
  const long: Record<string, number> = {}
  let above: number | undefined
  for (const [kind, name] of Object.entries(GENAI_RATES)) {
    const value = price[name]
    const rate = numberOf(isObject(value) ? value['base'] : value)
    if (rate === undefined) continue
    rates[kind] = rate
    const tiers = isObject(value) && Array.isArray(value['tiers']) ? value['tiers'] : []
    const tier = objectOf(tiers[0])
    const [start, longRate] = [numberOf(tier['start']), numberOf(tier['price'])]
    if (start === undefined || longRate === undefined) continue
    // A start of 271,999 and one of 272,000 are the same limit.
    above ??= Math.round(start / 1000) * 1000
    long[kind] = longRate
  }
  if (rates['input'] === undefined) return null
  const calls = Object.entries(GENAI_CALLS).flatMap(([tool, name]): [string, number][] => {
    const each = numberOf(price[name])
    return each === undefined ? [] : [[tool, each / 1000]]
  })
  const { input = rates['input'], output = rates['output'] ?? 0, cache_read, cache_write } = long
  const longContext = {
    above_input_tokens: above ?? 0,
    input,
    output,
    ...present({ cache_read, cache_write }),
  }
  return {
    ...rates,
    output: rates['output'] ?? 0,
    ...(calls.length > 0 ? { calls: Object.fromEntries(calls) } : {}),
    ...(above === undefined ? {} : { long_context: longContext }),
  }
}
