import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { Usage } from '../../../src/formats/chat/usage.js'
import { usageIn, usageOf, UsageMeter } from '../../../src/formats/wire/usage-meter.js'

const COUNTS = { prompt_tokens: 8000, completion_tokens: 900, total_tokens: 8900 }
const READ: Usage = { input: 8000, output: 900 }

/** Places of the counts, by the vendors and proxies that use them. */
const PLACES: readonly (readonly [name: string, frame: JsonObject])[] = [
  ['the chunk', { choices: [], usage: COUNTS }],
  ['the first choice (Moonshot)', { choices: [{ index: 0, delta: {}, usage: COUNTS }] }],
  ['the delta', { choices: [{ index: 0, delta: { usage: COUNTS } }] }],
  ['the message', { choices: [{ index: 0, message: { usage: COUNTS } }] }],
  ['x_groq', { choices: [], x_groq: { usage: COUNTS } }],
  ['usage_info', { usage_info: COUNTS }],
  ['names in camel case', { usage: { promptTokens: 8000, completionTokens: 900, totalTokens: 8900 } }],
  ['the first choice, beside null', { choices: [{ usage: COUNTS }], usage: null }],
  ['message_start', { type: 'message_start', message: { usage: COUNTS } }],
  ['message_stop', { type: 'message_stop', usage: COUNTS }],
  ['a response', { type: 'response.completed', response: { usage: COUNTS } }],
  ['the reply itself (Ollama)', { choices: [], prompt_eval_count: 8000, eval_count: 900 }],
  ['the reply itself (llama.cpp)', { content: '', tokens_evaluated: 8000, tokens_predicted: 900 }],
  ['timings alone', { choices: [], timings: { prompt_n: 8000, predicted_n: 900, prompt_ms: 3.5 } }],
  [
    'what Cohere bills',
    {
      meta: {
        tokens: { input_tokens: 8100, output_tokens: 910 },
        billed_units: { input_tokens: 8000, output_tokens: 900 },
      },
    },
  ],
  ['the tokens of Cohere', { usage: { tokens: { input_tokens: 8000, output_tokens: 900 } } }],
  ['the event of a response', { type: 'response.completed', response: {}, usage: COUNTS }],
]

for (const [name, frame] of PLACES) {
  void t.test(`reads counts in ${name}`, (t) => {
    t.strictSame(usageIn(frame), READ)
    t.end()
  })
}

/** A chunk with the counts of one choice, as Moonshot ends each choice. */
function endOf(index: number, completion_tokens: number, more: JsonObject = {}): JsonObject {
  const usage = { prompt_tokens: 19, completion_tokens, total_tokens: 19 + completion_tokens, ...more }
  return { choices: [{ index, delta: {}, finish_reason: 'stop', usage }] }
}

void t.test('adds the completions of choices that are counted apart', (t) => {
  const meter = new UsageMeter()
  meter.takeFrame(endOf(1, 30, { cached_tokens: 10 }))
  t.strictSame(meter.usage(), { input: 19, output: 30, cacheRead: 10 })
  meter.takeFrame(endOf(0, 12))
  meter.takeFrame(endOf(2, 8))
  t.strictSame(meter.usage(), { input: 19, output: 50, cacheRead: 10 })
  meter.takeFrame(endOf(0, 12))
  t.equal(meter.usage().output, 50, 'a repeated report replaces the former one')
  meter.takeFrame({ choices: [], usage: { prompt_tokens: 19, completion_tokens: 0, total_tokens: 0 } })
  t.equal(meter.usage().output, 50, 'zeros are no counts')
  meter.takeFrame({ choices: [], usage: { prompt_tokens: 19, completion_tokens: 51, total_tokens: 70 } })
  t.strictSame(meter.usage(), { input: 19, output: 51, cacheRead: 10 }, 'counts of the whole')
  t.end()
})

void t.test('prefers the counts of the whole to those of a choice in one chunk', (t) => {
  const whole = { prompt_tokens: 19, completion_tokens: 42, total_tokens: 61 }
  t.strictSame(usageIn({ ...endOf(0, 12), usage: whole }), { input: 19, output: 42 })
  t.end()
})

void t.test('reads the metrics with which Bedrock ends a stream', (t) => {
  const metrics = { inputTokenCount: 10, outputTokenCount: 20, cacheReadInputTokenCount: 300 }
  const frame = { type: 'message_stop', 'amazon-bedrock-invocationMetrics': metrics }
  t.strictSame(usageIn(frame), { input: 310, output: 20, cacheRead: 300 })
  t.end()
})

/** Counts by their names, and what they mean. */
const NAMES: readonly (readonly [name: string, counts: JsonObject, usage: Usage])[] = [
  ['Responses', { input_tokens: 5, output_tokens: 7, total_tokens: 12 }, { input: 5, output: 7 }],
  [
    'both names, one of them zero (new-api)',
    { prompt_tokens: 5, completion_tokens: 7, input_tokens: 0, output_tokens: 0, total_tokens: 12 },
    { input: 5, output: 7 },
  ],
  [
    'Gemini',
    { promptTokenCount: 5, candidatesTokenCount: 7, thoughtsTokenCount: 4 },
    { input: 5, output: 11, reasoning: 4 },
  ],
  ['Gemini in snake case', { prompt_token_count: 5, candidates_token_count: 7 }, { input: 5, output: 7 }],
  ['text', { prompt_tokens: '5', completion_tokens: '7', total_tokens: '12' }, { input: 5, output: 7 }],
  ['decimals as text', { prompt_tokens: '5.0', completion_tokens: '7.00' }, { input: 5, output: 7 }],
  ['other text', { prompt_tokens: 'five', completion_tokens: '-7' }, {}],
  [
    'Moonshot, Together',
    { prompt_tokens: 9, completion_tokens: 1, cached_tokens: 4 },
    { input: 9, output: 1, cacheRead: 4 },
  ],
  [
    'DeepSeek',
    { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 },
    { input: 9, output: 1, cacheRead: 4 },
  ],
  [
    'an SDK in camel case',
    { inputTokens: 9, outputTokens: 3, cachedInputTokens: 4, outputTokensDetails: { reasoningTokens: 2 } },
    { input: 9, output: 3, cacheRead: 4, reasoning: 2 },
  ],
  [
    'llama.cpp, whose prompt leaves out the cache',
    { prompt_n: 9, predicted_n: 1, cache_n: 4 },
    { input: 13, output: 1, cacheRead: 4 },
  ],
  [
    'Mistral',
    { prompt_tokens: 9, completion_tokens: 1, num_cached_tokens: 4 },
    { input: 9, output: 1, cacheRead: 4 },
  ],
  [
    'Mistral, in its other details',
    {
      prompt_tokens: 9,
      completion_tokens: 3,
      prompt_token_details: { cached_tokens: 4 },
      completion_token_details: { reasoning_tokens: 2 },
    },
    { input: 9, output: 3, cacheRead: 4, reasoning: 2 },
  ],
  [
    'a zero in the details',
    { prompt_tokens: 9, completion_tokens: 1, cached_tokens: 4, prompt_tokens_details: { cached_tokens: 0 } },
    { input: 9, output: 1, cacheRead: 4 },
  ],
  [
    'DashScope',
    {
      prompt_tokens: 90,
      completion_tokens: 1,
      prompt_tokens_details: {
        cached_tokens: 40,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 30 },
      },
    },
    { input: 90, output: 1, cacheRead: 40, cacheWrite: 30 },
  ],
  [
    'LiteLLM',
    {
      prompt_tokens: 90,
      completion_tokens: 1,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 40,
      prompt_tokens_details: {
        cached_tokens: 40,
        cache_creation_tokens: 30,
        cache_creation_token_details: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
      },
    },
    { input: 90, output: 1, cacheRead: 40, cacheWrite: 30, cacheWrite1h: 10 },
  ],
  [
    'Anthropic',
    { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 40, cache_creation_input_tokens: 30 },
    { input: 75, output: 7, cacheRead: 40, cacheWrite: 30 },
  ],
  [
    'cache_creation alone',
    {
      input_tokens: 5,
      output_tokens: 7,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
    },
    { input: 35, output: 7, cacheWrite: 30, cacheWrite1h: 10 },
  ],
  [
    'Converse',
    { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 40, cacheWriteInputTokens: 0, totalTokens: 52 },
    { input: 45, output: 7, cacheRead: 40, cacheWrite: 0 },
  ],
]

for (const [name, counts, usage] of NAMES) {
  void t.test(`reads the counts of ${name}`, (t) => {
    t.strictSame(usageOf(counts), usage)
    t.end()
  })
}

/** Counts with a total, and the prompt and completion tokens that they mean. */
const TOTALS: readonly (readonly [name: string, counts: JsonObject, expected: readonly [number, number]])[] =
  [
    [
      'reasoning beside the completion',
      {
        prompt_tokens: 100,
        completion_tokens: 10,
        total_tokens: 140,
        completion_tokens_details: { reasoning_tokens: 30 },
      },
      [100, 40],
    ],
    [
      'reasoning inside the completion',
      {
        prompt_tokens: 100,
        completion_tokens: 40,
        total_tokens: 140,
        completion_tokens_details: { reasoning_tokens: 30 },
      },
      [100, 40],
    ],
    [
      'more reasoning than completion, without a total',
      { prompt_tokens: 100, completion_tokens: 10, completion_tokens_details: { reasoning_tokens: 30 } },
      [100, 40],
    ],
    [
      'reasoning in the total only',
      { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 },
      [35, 74],
    ],
    [
      'thoughts in the total only',
      { promptTokenCount: 35, candidatesTokenCount: 12, totalTokenCount: 109 },
      [35, 74],
    ],
    [
      'the results of tools',
      { promptTokenCount: 35, toolUsePromptTokenCount: 62, candidatesTokenCount: 12, totalTokenCount: 109 },
      [97, 12],
    ],
    [
      'thoughts in the candidates',
      { promptTokenCount: 35, candidatesTokenCount: 74, thoughtsTokenCount: 62, totalTokenCount: 109 },
      [35, 74],
    ],
    ['a total in Responses', { input_tokens: 35, output_tokens: 12, total_tokens: 109 }, [35, 74]],
    [
      'a cache beside the prompt',
      { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 90, total_tokens: 105 },
      [100, 5],
    ],
    [
      'more cached than prompt tokens',
      { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 90 },
      [100, 5],
    ],
    [
      'more tokens read from the cache than prompt tokens',
      { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 90, total_tokens: 15 },
      [100, 5],
    ],
    ['a smaller total', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 5 }, [10, 5]],
    ['an impossible total', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 1e15 }, [10, 5]],
    ['no completion', { prompt_tokens: 10, total_tokens: 15 }, [10, 5]],
    ['a prompt of zero', { prompt_tokens: 0, completion_tokens: 5, total_tokens: 15 }, [10, 5]],
    ['no prompt', { completion_tokens: 5, total_tokens: 15 }, [10, 5]],
  ]

for (const [name, counts, [input, output]] of TOTALS) {
  void t.test(`uses the total: ${name}`, (t) => {
    const usage = usageOf(counts)
    t.strictSame([usage.input, usage.output], [input, output])
    t.end()
  })
}

void t.test('a total alone is neither prompt nor completion', (t) => {
  t.strictSame(usageOf({ total_tokens: 70 }), { total: 70 })
  t.strictSame(usageOf({ total_tokens: 0 }), {})
  t.end()
})

void t.test('a zero after a count is no count, each member by itself', (t) => {
  const meter = new UsageMeter()
  meter.takeFrame({
    usage: { prompt_tokens: 100, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 60 } },
  })
  meter.takeFrame({ usage: { prompt_tokens: 0, completion_tokens: 40, total_tokens: 0, cached_tokens: 0 } })
  meter.takeFrame({ usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } })
  t.strictSame(meter.usage(), { input: 100, output: 40, cacheRead: 60 })
  t.end()
})

void t.test('counts under other names do not replace those of usage', (t) => {
  const timings = { prompt_n: 2, cache_n: 98, predicted_n: 7 }
  const usage = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 }
  t.strictSame(usageIn({ usage, timings, prompt_eval_count: 3 }), { input: 100, output: 7 })
  t.end()
})

void t.test('a later count replaces an earlier one', (t) => {
  const meter = new UsageMeter()
  meter.takeFrame({ message: { usage: { input_tokens: 43, output_tokens: 1, cache_read_input_tokens: 0 } } })
  t.equal(meter.takeFrame({ type: 'ping' }), false)
  meter.takeFrame({ usage: { input_tokens: 61, output_tokens: 20, cache_read_input_tokens: 100 } })
  t.strictSame(meter.usage(), { input: 161, output: 20, cacheRead: 100 })
  t.end()
})
