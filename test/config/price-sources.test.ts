/**
 * Goal: the shipped catalogue, LiteLLM's data and genai-prices' data agree, except in the cases of this
 * table, which has the reason for the one that holds; and their formats are read exactly.
 * Method: compares the prices of every model of the catalogue on one day; small texts of each form.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { joinLists, sourceIn, type SourceModel } from '../../src/config/price-sources.js'
import { isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'

/** The day of the comparison. */
const DAY = '2026-11-29'
const KINDS = [
  'input',
  'output',
  'cache_read',
  'cache_write',
  'cache_write_1h',
  'input_audio',
  'output_audio',
]
const CALLS = ['web_search', 'file_search']

/** What differs, and why the catalogue has the value that it has. */
const DECIDED: Readonly<Record<string, string>> = {
  'gpt-4.1 web_search: own 0.025, genai-prices 0.01':
    'OpenAI and LiteLLM: the search of these models costs more',
  'gpt-4.1-mini web_search: own 0.025, genai-prices 0.01': 'as gpt-4.1',
  'gpt-4o web_search: own 0.025, genai-prices 0.01': 'as gpt-4.1',
  'gpt-4o-mini web_search: own 0.025, genai-prices 0.01': 'as gpt-4.1',
  'gemini-4-argon web_search: own none, litellm 0.014': 'the page has no price of a search for it yet',
  'gemini-flash-latest web_search: own none, litellm 0.014':
    'an alias, whose model may change with its price',
  'gemini-pro-latest web_search: own none, litellm 0.014': 'as gemini-flash-latest',
  'gpt-4o-transcribe input_audio: own 2.5, genai-prices 6': 'LiteLLM: the rate of text since 2026',
  'gpt-4o-transcribe-diarize input_audio: own 2.5, genai-prices 6': 'as gpt-4o-transcribe',
  'gpt-4o-mini-transcribe input_audio: own 1.25, genai-prices 3': 'as gpt-4o-transcribe',
}

function listOf(name: string): Map<string, SourceModel> {
  const source = sourceIn(JSON.parse(readFileSync(`config/prices-${name}.json`, 'utf8')))
  if (source === null) throw new Error(`config/prices-${name}.json has no list`)
  t.equal(source.name, name)
  return new Map(source.models.map((model) => [model.id, model]))
}

/** The price of that day in the file's spelling. */
function heldOf(price: unknown): JsonObject {
  if (!Array.isArray(price)) return isObject(price) ? price : {}
  const begun = price.filter(isObject).filter(({ from = '' }) => JSON.stringify(from) <= `"${DAY}"`)
  return begun.at(-1) ?? {}
}

void t.test('own prices and the two lists differ only where it is decided', (t) => {
  const parsed: unknown = parse(readFileSync('config/models.yaml', 'utf8'))
  const { models } = objectOf(isObject(parsed) ? parsed : {})
  const entries = Array.isArray(models) ? models.filter(isObject) : []
  const lists = ['litellm', 'genai-prices'].map((name) => [name, listOf(name)] as const)
  const found: string[] = []
  let [compared, tiered] = [0, 0]
  for (const { id: name, price, source } of entries) {
    const id = stringOf(name) ?? ''
    const own = heldOf(price)
    if (Object.keys(objectOf(own['service_tiers'] ?? {})).includes('batch')) tiered += 1
    for (const [name, list] of lists) {
      const other = heldOf(list.get(id)?.['price'])
      if (Object.keys(other).length > 0) compared += 1
      const pairs = [
        ...KINDS.map((kind) => [kind, own[kind], other[kind]] as const),
        ...CALLS.map((call) => {
          return [call, objectOf(own['calls'] ?? {})[call], objectOf(other['calls'] ?? {})[call]] as const
        }),
      ]
      for (const [kind, ours, theirs] of pairs) {
        if (theirs === undefined || theirs === ours) continue
        // Of lists that differ, the entry has the higher rate; names that end in `-latest` move.
        const isHigher = typeof ours === 'number' && typeof theirs === 'number' && ours > theirs
        if (source !== undefined && (isHigher || id.endsWith('-latest'))) continue
        found.push(
          `${id} ${kind}: own ${ours === undefined ? 'none' : JSON.stringify(ours)}, ${name} ${JSON.stringify(theirs)}`,
        )
      }
    }
  }
  t.strictSame(found.sort(), Object.keys(DECIDED).sort())
  t.ok(compared > 100, `${String(compared)} prices are compared`)
  t.ok(tiered > 50, `${String(tiered)} models have the price of a batch`)
  t.end()
})

void t.test('LiteLLM: dollars per token, tiers as one multiple or as rates, lengths, other vendors', (t) => {
  const source = sourceIn({
    sample_spec: { mode: 'chat' },
    'gpt-x': {
      litellm_provider: 'openai',
      mode: 'chat',
      max_input_tokens: 1000,
      supports_vision: true,
      input_cost_per_token: 1.5e-7,
      output_cost_per_token: 6e-7,
      cache_read_input_token_cost: 7.5e-8,
      input_cost_per_token_priority: 2.5e-7,
      output_cost_per_token_priority: 0.000001,
      input_cost_per_token_batches: 7.5e-8,
      output_cost_per_token_batches: 3e-7,
      input_cost_per_token_above_272k_tokens: 3e-7,
      output_cost_per_token_above_272k_tokens: 9e-7,
      search_context_cost_per_query: { search_context_size_medium: 0.01 },
    },
    'groq/house': { litellm_provider: 'groq', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
    'bedrock/x': {
      litellm_provider: 'bedrock',
      mode: 'chat',
      input_cost_per_token: 1,
      output_cost_per_token: 1,
    },
    'dall-e': { litellm_provider: 'openai', mode: 'image_generation', input_cost_per_pixel: 1 },
  })
  t.strictSame(source, {
    name: 'litellm',
    models: [
      {
        id: 'gpt-x',
        family: 'openai',
        context_window: 1000,
        vision: true,
        price: {
          input: 0.15,
          output: 0.6,
          cache_read: 0.075,
          service_tiers: { priority: { input: 0.25, output: 1 }, batch: 0.5 },
          calls: { web_search: 0.01 },
          long_context: { above_input_tokens: 272000, input: 0.3, output: 0.9 },
        },
      },
      { id: 'house', family: 'groq', price: { input: 1, output: 2 } },
    ],
  })
  t.end()
})

void t.test('genai-prices: exact names only, dates without hours, steps of the length', (t) => {
  const prices = { input_mtok: { base: 2, tiers: [{ start: 199999, price: 4 }] }, output_mtok: 8 }
  const source = sourceIn([
    {
      id: 'google',
      models: [
        { id: 'gemini-x', match: { starts_with: 'gemini-x' }, prices },
        {
          id: 'gemini-y',
          match: { or: [{ equals: 'gemini-y' }, { equals: 'gemini-y-001' }, { starts_with: 'gemini-y-0' }] },
          context_window: 5,
          prices: [
            { prices: { input_mtok: 1, output_mtok: 2, web_searches_kcount: 14 } },
            { constraint: { start_date: '2027-01-01' }, prices: { input_mtok: 2, output_mtok: 4 } },
            { constraint: { start_time: '00:30:00Z', end_time: '16:30:00Z' }, prices: { input_mtok: 9 } },
          ],
        },
      ],
    },
    { id: 'aws', models: [{ id: 'nova', match: { equals: 'nova' }, prices }] },
  ])
  const dated = [
    { input: 1, output: 2, calls: { web_search: 0.014 } },
    { from: '2027-01-01', input: 2, output: 4 },
  ]
  t.strictSame(source, {
    name: 'genai-prices',
    models: [
      {
        price: {
          input: 2,
          output: 8,
          long_context: { above_input_tokens: 200000, input: 4, output: 8 },
        },
        id: 'gemini-x',
        family: 'google',
      },
      { context_window: 5, price: dated, id: 'gemini-y', family: 'google' },
      { context_window: 5, price: dated, id: 'gemini-y-001', family: 'google' },
    ],
  })
  for (const other of [null, 1, [], {}, { models: 1 }, [{ id: 'x' }]]) t.equal(sourceIn(other), null)
  t.end()
})

void t.test(
  'joined lists have the dates and lengths of genai-prices, and of other rates the higher one',
  (t) => {
    const listOf = (name: string, models: readonly SourceModel[]) => ({ name, models })
    const litellm = listOf('litellm', [
      { id: 'a', family: 'xai', price: { input: 1, output: 5, service_tiers: { batch: 0.5 } } },
      { id: 'b', family: 'xai', price: { input: 1, output: 2, service_tiers: { batch: 0.5 } } },
      { id: 'c-latest', family: 'xai', price: { input: 1, output: 2 } },
    ])
    const long = { above_input_tokens: 200_000, input: 4, output: 8 }
    const genai = listOf('genai-prices', [
      { id: 'a', family: 'xai', price: { input: 2, output: 4, long_context: long } },
      {
        id: 'b',
        family: 'xai',
        price: [
          { input: 1, output: 2 },
          { from: '2027-01-01', input: 3, output: 6 },
        ],
      },
      { id: 'c-latest', family: 'xai', price: { input: 9, output: 9 } },
      { id: 'alias', family: 'xai', price: { input: 9, output: 9 } },
    ])
    const source = 'litellm, genai-prices'
    const service_tiers = { batch: 0.5 }
    t.strictSame(joinLists(litellm, genai), [
      { id: 'a', family: 'xai', price: { input: 2, output: 5, long_context: long, service_tiers }, source },
      {
        id: 'b',
        family: 'xai',
        price: [
          { input: 1, output: 2, service_tiers },
          { from: '2027-01-01', input: 3, output: 6 },
        ],
        source,
      },
      { id: 'c-latest', family: 'xai', price: { input: 1, output: 2 }, source: 'litellm' },
    ])
    t.end()
  },
)
