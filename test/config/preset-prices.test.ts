/**
 * Goal: vendors that serve models of other makers have prices of their own, which the package ships.
 * Method: the shipped file, an upstream with a preset through the loader, and small lists of both forms.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { presetLimitsOf, presetPricesOf } from '../../docs/generate/preset-prices.js'
import { objectOf } from '../../src/base/json.js'
import { shippedLimits, shippedPrices } from '../../src/config/preset-prices.js'
import { priceAt } from '../../src/formats/chat/model-facts.js'
import { PRESET_NAMES, type PresetName } from '../../src/config/presets.js'
import { loadText } from './sample.js'

const HOSTS: readonly PresetName[] = [
  ...([
    'openrouter',
    'groq',
    'together',
    'fireworks',
    'cerebras',
    'sambanova',
    'deepinfra',
    'nebius',
  ] as const),
  ...(['novita', 'hyperbolic', 'perplexity', 'cloudflare', 'databricks', 'snowflake', 'watsonx'] as const),
  ...(['ovhcloud', 'scaleway', 'friendli', 'nscale', 'lambda', 'baseten', 'volcengine', 'vercel'] as const),
]

void t.test('every vendor that serves models of others has prices', (t) => {
  const { presets } = objectOf(JSON.parse(readFileSync('config/prices-by-preset.json', 'utf8')))
  t.strictSame(Object.keys(objectOf(presets)).sort(), [...HOSTS].sort())
  for (const name of PRESET_NAMES) {
    const prices = Object.entries(shippedPrices(name))
    t.equal(prices.length > 0, HOSTS.includes(name), name)
    for (const [model, price] of prices) {
      const { input = 0, output = 0, perSecondAudio = 0, perCharacter = 0 } = priceAt(price, Date.now()) ?? {}
      t.ok(input + output + perSecondAudio + perCharacter > 0 || model.endsWith(':free'), `${name} ${model}`)
    }
  }
  t.end()
})

void t.test('an upstream with a preset gets the prices of its vendor', (t) => {
  const loaded = loadText(
    'upstreams: { it: { preset: groq }, own: { dialect: openai-chat, base_url: "https://a.example/v1" } }\n' +
      'routes: [{ prefix: a, upstream: it }]\n',
    {},
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const { it, own } = loaded.config.upstreams
  t.ok(Object.keys(it?.vendorPrices ?? {}).length > 10)
  t.match(it?.vendorLimits, { 'llama-3.1-8b-instant': { contextWindow: 131_072 } })
  t.strictSame(own?.vendorLimits, {})
  t.strictSame([it?.prices, own?.vendorPrices], [{}, {}])
  t.end()
})

void t.test('of two lists the higher rate counts, and unknown prices are left out', (t) => {
  const litellm = {
    'groq/a': { litellm_provider: 'groq', input_cost_per_token: 1e-6, output_cost_per_token: 4e-6 },
    'groq/zero': { litellm_provider: 'groq', input_cost_per_token: 0, output_cost_per_token: 0 },
    'groq/sound': { litellm_provider: 'groq', mode: 'audio_transcription', input_cost_per_second: 1 },
    'together-ai-4.1b-8b': {
      litellm_provider: 'together_ai',
      input_cost_per_token: 1e-7,
      output_cost_per_token: 1e-7,
    },
    'openrouter/x/b:free': {
      litellm_provider: 'openrouter',
      input_cost_per_token: 0,
      output_cost_per_token: 0,
    },
    'other/c': { litellm_provider: 'other', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 },
  }
  const genai = [
    {
      id: 'groq',
      models: [
        { id: 'a', prices: { input_mtok: 2, output_mtok: 3, cache_read_mtok: 0.5 } },
        { id: 'b', prices: { input_mtok: 5 } },
      ],
    },
    { id: 'unknown', models: [{ id: 'd', prices: { input_mtok: 2 } }] },
  ]
  t.strictSame(presetPricesOf(litellm, genai), {
    groq: {
      a: { input: 2, output: 4, cache_read: 0.5 },
      b: { input: 5, output: 0 },
      sound: { per_second_audio: 1, min_audio_seconds: 10 },
    },
    openrouter: { 'x/b:free': { input: 0, output: 0 } },
  })
  t.end()
})

void t.test('most models with a price have limits, so that budgets know the longest reply', (t) => {
  let [all, known] = [0, 0]
  for (const name of HOSTS) {
    const limits = shippedLimits(name)
    for (const [model, { contextWindow, maxOutputTokens }] of Object.entries(limits)) {
      t.ok(Object.hasOwn(shippedPrices(name), model), `${name} ${model}`)
      known += 1
      t.ok(maxOutputTokens !== undefined, `${name} ${model}: a window is the longest reply at most`)
      t.ok(maxOutputTokens === undefined || maxOutputTokens <= (contextWindow ?? Infinity), model)
    }
    all += Object.keys(shippedPrices(name)).length
  }
  t.ok(known / all > 0.85, `${known} of ${all}`)
  t.end()
})

void t.test('limits are those of the vendor, else the highest of the same model elsewhere', (t) => {
  const of = (input: number, output: number, more = {}) => ({
    ...{ max_input_tokens: input, max_output_tokens: output, input_cost_per_token: 1e-6 },
    ...more,
  })
  const litellm = {
    'groq/llama-4': of(8_000, 4_000, { litellm_provider: 'groq' }),
    'nebius/meta/Llama-4': of(100_000, 50_000, { litellm_provider: 'nebius' }),
    'deepinfra/sound': of(1_000, 1_000, { litellm_provider: 'deepinfra', mode: 'audio_transcription' }),
    'gpt-5': of(400_000, 128_000, { litellm_provider: 'openai' }),
  }
  const windows = [
    { id: 'openai/gpt-5', context_window: 200_000 },
    { id: 'openai/window-alone', context_window: 70_000 },
  ]
  const genai = [{ id: 'openrouter', models: windows }]
  const catalogue = [{ id: 'claude-opus-9-1', context_window: 900_000, max_output_tokens: 90_000 }]
  const price = { input: 1, output: 1 }
  const prices = {
    groq: { 'llama-4': price },
    openrouter: {
      ...{ 'openai/gpt-5': price, 'meta/llama-4:free': price, other: price },
      ...{ 'anthropic/claude-opus-9.1-fast': price, 'openai/window-alone': price, 'old-70b-32k': price },
    },
    deepinfra: { sound: { per_second_audio: 1 } },
  }
  t.strictSame(presetLimitsOf(prices, { litellm, genai, catalogue }), {
    groq: { 'llama-4': { context_window: 8_000, max_output_tokens: 4_000 } },
    openrouter: {
      'openai/gpt-5': { context_window: 200_000, max_output_tokens: 128_000 },
      'meta/llama-4:free': { context_window: 100_000, max_output_tokens: 50_000 },
      'anthropic/claude-opus-9.1-fast': { context_window: 900_000, max_output_tokens: 90_000 },
      'openai/window-alone': { context_window: 70_000, max_output_tokens: 70_000 },
      'old-70b-32k': { context_window: 32_768, max_output_tokens: 32_768 },
    },
  })
  t.end()
})
