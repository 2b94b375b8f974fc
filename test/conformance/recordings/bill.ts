/**
 * What vendors bill for recorded replies, by the rules of their price pages: OpenAI, "Pricing"; Anthropic,
 * "Pricing", "Prompt caching" and "Advisor tool"; Google, "Gemini API pricing"; read 2026-11-29. Shares no
 * code of the product that counts; the rates are the rows of `config/models.yaml`.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { objectsOf, type Case, type Format } from './recorded.js'

/** Dollars for a million tokens of models that the catalogue does not have. */
export const OTHER_PRICES: Price = {
  input: 1,
  output: 10,
  cache_read: 0.1,
  cache_write: 1.25,
  cache_write_1h: 2,
  calls: { web_search: 0.01 },
}

interface Price {
  readonly input: number
  readonly output: number
  readonly cache_read?: number
  readonly cache_write?: number
  readonly cache_write_1h?: number
  readonly input_audio?: number
  readonly output_audio?: number
  readonly cached_audio?: number
  readonly output_image?: number
  readonly long_context?: {
    readonly above_input_tokens: number
    readonly input: number
    readonly output: number
  }
  readonly calls?: Readonly<Record<string, number>>
}

const CATALOGUE = (
  parse(readFileSync('config/models.yaml', 'utf8')) as {
    models: { id: string; variants?: string[]; price?: Price }[]
  }
).models

const DATED = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest|preview(?:-\d{2}-\d{2})?)$/

export function priceOf(model: string): Price {
  const known = (name: string): Price | undefined =>
    CATALOGUE.find(({ id, variants = [] }) => id === name || variants.includes(name))?.price
  return known(model) ?? known(model.replace(DATED, '')) ?? OTHER_PRICES
}

/** Tokens by how they are billed. */
interface Billed {
  readonly input: number
  readonly read?: number
  readonly written?: number
  readonly written1h?: number
  readonly output: number
  /** Sound that was not in the cache. */
  readonly inputAudio?: number
  readonly cachedAudio?: number
  readonly outputAudio?: number
  readonly outputImage?: number
}

/** In nano-dollars: a dollar for a million tokens is 1000 for each. */
function nanoOf(price: Price, billed: Billed): number {
  const { input, read = 0, written = 0, written1h = 0, output } = billed
  const { inputAudio = 0, cachedAudio = 0, outputAudio = 0, outputImage = 0 } = billed
  const long = price.long_context
  const isLong = long !== undefined && input + read + written + written1h > long.above_input_tokens
  const usual = isLong ? long.input : price.input
  const written5m = price.cache_write ?? usual
  const usd =
    (input - inputAudio) * usual +
    inputAudio * (price.input_audio ?? usual) +
    (read - cachedAudio) * (price.cache_read ?? usual) +
    cachedAudio * (price.cached_audio ?? price.cache_read ?? usual) +
    written * written5m +
    written1h * (price.cache_write_1h ?? written5m) +
    (output - outputAudio - outputImage) * (isLong ? long.output : price.output) +
    outputAudio * (price.output_audio ?? price.output) +
    outputImage * (price.output_image ?? price.output)
  return Math.round(usd * 1000)
}

const n = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** The last counts of a reply, member by member: later events repeat and correct earlier ones. */
function countsOf(objects: readonly JsonObject[]): JsonObject {
  const counts: JsonObject = {}
  for (const object of objects) {
    // Moonshot has the counts in a choice, Groq in a member of its own.
    const inner = [object['response'], object['message'], object['x_groq'], arrayOf(object['choices'])[0]]
    const holders = [object, ...inner].map(objectOf)
    for (const holder of holders) {
      const found = objectOf(holder['usage'] ?? holder['usageMetadata'])
      for (const [name, value] of Object.entries(found)) if (value !== null) counts[name] = value
    }
  }
  return counts
}

function ofAnthropic(usage: JsonObject): Billed {
  const cache = objectOf(usage['cache_creation'])
  const written1h = n(cache['ephemeral_1h_input_tokens'])
  return {
    input: n(usage['input_tokens']),
    read: n(usage['cache_read_input_tokens']),
    written: n(usage['cache_creation_input_tokens']) - written1h,
    written1h,
    output: n(usage['output_tokens']),
  }
}

function ofOpenAi(usage: JsonObject): Billed {
  const input = n(usage['prompt_tokens'] ?? usage['input_tokens'])
  const inner = objectOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details'])
  const outer = objectOf(usage['completion_tokens_details'] ?? usage['output_tokens_details'])
  const read = n(
    inner['cached_tokens'] ??
      usage['cached_tokens'] ??
      usage['prompt_cache_hit_tokens'] ??
      usage['num_cached_tokens'],
  )
  const written = n(inner['cache_write_tokens'])
  return {
    input: input - read - written,
    read,
    written,
    // xAI bills reasoning beside the completion; only its total has both.
    output: Math.max(
      n(usage['completion_tokens'] ?? usage['output_tokens']),
      n(usage['total_tokens']) - input,
    ),
    inputAudio: n(inner['audio_tokens']),
    outputAudio: n(outer['audio_tokens']),
    outputImage: n(outer['image_tokens']),
  }
}

function modality(list: unknown, name: string): number {
  return arrayOf(list)
    .map(objectOf)
    .filter((each) => each['modality'] === name)
    .reduce((sum, each) => sum + n(each['tokenCount']), 0)
}

function ofGemini(usage: JsonObject): Billed {
  const read = n(usage['cachedContentTokenCount'])
  const cachedAudio = modality(usage['cacheTokensDetails'], 'AUDIO')
  return {
    input: n(usage['promptTokenCount']) + n(usage['toolUsePromptTokenCount']) - read,
    read,
    output: n(usage['candidatesTokenCount']) + n(usage['thoughtsTokenCount']),
    inputAudio: modality(usage['promptTokensDetails'], 'AUDIO') - cachedAudio,
    cachedAudio,
    outputAudio: modality(usage['candidatesTokensDetails'], 'AUDIO'),
    outputImage: modality(usage['candidatesTokensDetails'], 'IMAGE'),
  }
}

const READ: Readonly<Record<Format, (usage: JsonObject) => Billed>> = {
  openai: ofOpenAi,
  responses: ofOpenAi,
  anthropic: ofAnthropic,
  gemini: ofGemini,
}

/** In nano-dollars; null if the reply has no counts. */
export function billOf(it: Case): number | null {
  const { recording, format } = it
  const objects = objectsOf(recording.response_body)
  const usage = countsOf(objects)
  if (Object.keys(usage).length === 0) return null
  const price = priceOf(modelOf(it))
  const tokens = format === 'anthropic' ? ofIterations(usage, price) : nanoOf(price, READ[format](usage))
  let usd = 0
  for (const [name, count] of callsOf(format, objects, usage)) usd += count * (price.calls?.[name] ?? 0)
  return Math.ceil(tokens * tierFactor(objects)) + Math.round(usd * 1e9)
}

/** The tier that served the reply: OpenAI bills flex processing at half of the rates (its page of prices). */
function tierFactor(objects: readonly JsonObject[]): number {
  const last = objects.at(-1)
  const tier = objectOf(last?.['response'] ?? last)['service_tier']
  return tier === 'flex' ? 0.5 : 1
}

/** Calls of tools that are billed by number. A search of Google's counts once, which is its least. */
function callsOf(
  format: Format,
  objects: readonly JsonObject[],
  usage: JsonObject,
): readonly (readonly [name: string, count: number])[] {
  const text = JSON.stringify(objects)
  if (format === 'gemini') return [['web_search', /"webSearchQueries":\["/.test(text) ? 1 : 0]]
  if (format !== 'responses') {
    const calls = objectOf(usage['server_tool_use'] ?? usage['server_tool_use_details'])
    return [['web_search', n(calls['web_search_requests'])]]
  }
  const whole = objectOf(objects.at(-1)?.['response'] ?? objects.at(-1))
  const items = arrayOf(whole['output']).map(objectOf)
  const count = (type: string): number => items.filter((item) => item['type'] === type).length
  const searches = items.filter((item) => objectOf(item['action'])['type'] === 'search')
  return [
    ['web_search', searches.length],
    ['file_search', count('file_search_call')],
    // A container is billed once, with any number of calls in it.
    ['code_interpreter', Math.min(1, count('code_interpreter_call'))],
  ]
}

/**
 * Every iteration is billed, those of an advisor at the price of its model. The counts leave out these, and
 * those of a compaction.
 */
function ofIterations(usage: JsonObject, price: Price): number {
  const iterations = arrayOf(usage['iterations']).map(objectOf)
  if (iterations.length === 0) return nanoOf(price, ofAnthropic(usage))
  return iterations.reduce(
    (sum, each) =>
      sum +
      nanoOf(
        stringOf(each['model']) === undefined ? price : priceOf(stringOf(each['model']) ?? ''),
        ofAnthropic(each),
      ),
    0,
  )
}

/** The model that replied, else the one that was requested. */
export function modelOf({ recording }: Case): string {
  const objects = objectsOf(recording.response_body)
  const names = objects.flatMap((object) => [
    object['model'] ?? object['modelVersion'],
    objectOf(object['message'])['model'],
    objectOf(object['response'])['model'],
  ])
  return names.map(stringOf).find((name) => name !== undefined && name !== '') ?? recording.model ?? 'none'
}
