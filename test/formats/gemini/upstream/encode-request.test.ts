/**
 * Goal: every field of a request is encoded, reported, ignored or refused as specified.
 * Method: one request per rule, compared with the body, the losses or the error.
 */
import t from 'tap'
import type { JsonValue } from '../../../../src/base/json.js'
import type {
  ChatRequest,
  ReasoningEffort,
  Tool,
  ToolChoice,
  UserPart,
} from '../../../../src/formats/chat/request.js'
import { encode, encodeFailure, facts, oldFacts } from '../driver.js'

const F: Tool = { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } }
const SCHEMA = { type: 'object', properties: { a: { const: 1 } } }
const JSON_SCHEMA = { type: 'json-schema', name: 'n', schema: SCHEMA } as const

function config(more: Partial<ChatRequest>, model = facts()): JsonValue | undefined {
  return encode(more, model).body.generationConfig
}

void t.test('a minimal request has only contents', (t) => {
  t.strictSame(encode(), {
    body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    losses: [],
  })
  t.end()
})

void t.test('sampling, limits, stop and seed', (t) => {
  const { body, losses } = encode({
    temperature: 2,
    topP: 0.5,
    maxOutputTokens: 10,
    stop: ['a', '', 'b'],
    seed: -2147483648,
    frequencyPenalty: 1,
    presencePenalty: -1,
  })
  t.strictSame(body.generationConfig, {
    temperature: 2,
    topP: 0.5,
    maxOutputTokens: 10,
    stopSequences: ['a', 'b'],
    seed: -2147483648,
    frequencyPenalty: 1,
    presencePenalty: -1,
  })
  t.strictSame(losses, [])
  t.equal(config({ stop: [''] }), undefined, 'empty stop strings are omitted')
  t.end()
})

void t.test("a token limit above the model's maximum is clamped and reported", (t) => {
  const { body, losses } = encode({ maxOutputTokens: 65_537 })
  t.match(body.generationConfig, { maxOutputTokens: 65_536 })
  t.strictSame(losses, ['max_completion_tokens:approximated'])
  t.strictSame(encode({ maxOutputTokens: 65_536 }).losses, [], 'at the limit')
  const unknown = { id: 'gemini-new', family: 'google', createdAtSeconds: 0 } as const
  t.strictSame(encode({ maxOutputTokens: 1e6 }, unknown).losses, [], 'without a known limit')
  t.end()
})

void t.test('penalties that the model rejects are reported unless they are zero', (t) => {
  const { body, losses } = encode({ frequencyPenalty: 1, presencePenalty: 0 }, oldFacts())
  t.equal(body.generationConfig, undefined)
  t.strictSame(losses, ['frequency_penalty:no-equivalent'])
  t.end()
})

void t.test('n is limited to the number of candidates of the model', (t) => {
  const several = oldFacts({ maxCandidates: 8 })
  const { body, losses } = encode({ candidates: 8 }, several)
  t.match(body.generationConfig, { candidateCount: 8 })
  t.strictSame(losses, [])
  t.equal(encode({ candidates: 1 }, several).body.generationConfig, undefined)
  const four = { candidates: 4 }
  t.match(encodeFailure(four, oldFacts({ maxCandidates: 3 })), { param: 'n', message: /most 3/ })
  t.match(encodeFailure(four, oldFacts()), { param: 'n', message: /one reply/ })
  t.end()
})

void t.test('log probabilities are requested from models that report them', (t) => {
  const telling = oldFacts({ logprobs: true })
  t.strictSame(encode({ logprobs: true }, telling).body.generationConfig, {
    responseLogprobs: true,
  })
  t.strictSame(encode({ logprobs: true, topLogprobs: 20 }, telling).body.generationConfig, {
    responseLogprobs: true,
    logprobs: 20,
  })
  t.strictSame(encode({ topLogprobs: 2 }, telling).losses, ['top_logprobs:no-equivalent'])
  t.end()
})

void t.test('fields that must not be dropped are refused by name', (t) => {
  const table: [Partial<ChatRequest>, string][] = [
    [{ candidates: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
    [{ seed: 2 ** 31 }, 'seed'],
    [{ seed: 0.5 }, 'seed'],
    [{ stop: ['1', '2', '3', '4', '5', '6'] }, 'stop'],
    [{ rest: { audio: { voice: 'x' } } }, 'audio'],
    [{ rest: { moderation: {} } }, 'moderation'],
    [{ rest: { web_search_options: {} } }, 'web_search_options'],
    [{ rest: { modalities: ['text', 'audio'] } }, 'modalities'],
    [{ tools: [{ name: 'g', custom: { format: { type: 'grammar' } } }] }, 'tools[0].custom.format'],
  ]
  for (const [more, param] of table) {
    const error = encodeFailure(more)
    t.match(error, { kind: 'untranslatable', param })
    t.ok(error.message.startsWith(param.replace('.custom.format', '')), `names ${param}`)
  }
  t.match(encodeFailure({ responseFormat: JSON_SCHEMA }, facts({ structuredOutput: false })), {
    kind: 'untranslatable',
    param: 'response_format',
  })
  t.doesNotThrow(() => encode({ candidates: 1, logprobs: false }), 'n = 1 and no logprobs pass')
  t.end()
})

void t.test('dropped fields are reported unless they do not affect the reply', (t) => {
  const harmless = {
    metadata: { a: 'b' },
    store: true,
    prediction: {},
    prompt_cache_key: 'k',
    prompt_cache_retention: '24h',
    prompt_cache_options: {},
    modalities: ['text'],
    logit_bias: {},
    reasoning: null,
  }
  t.strictSame(encode({ rest: harmless, userId: 'u' }).losses, [])
  const lost = { logit_bias: { 5: 1 }, reasoning: {}, thinking: {}, made_up: 1 }
  const { body, losses } = encode({ rest: lost, verbosity: 'low', topLogprobs: 2 })
  t.strictSame(losses, [
    'top_logprobs:no-equivalent',
    'verbosity:no-equivalent',
    'logit_bias:no-equivalent',
    'reasoning:no-equivalent',
    'thinking:no-equivalent',
    'made_up:no-equivalent',
  ])
  t.strictSame(Object.keys(body), ['contents'], 'unknown fields are not copied into the body')
  t.end()
})

void t.test('service tiers', (t) => {
  const tiers = ['auto', 'default', 'flex', 'priority', 'fast', 'scale', 'toString'].map((tier) => {
    const { body, losses } = encode({ serviceTier: tier })
    return [tier, body.serviceTier, losses.length]
  })
  t.strictSame(tiers, [
    ['auto', undefined, 0],
    ['default', 'standard', 0],
    ['flex', 'flex', 0],
    ['priority', 'priority', 0],
    ['fast', 'priority', 0],
    ['scale', undefined, 1],
    ['toString', undefined, 1],
  ])
  t.end()
})

void t.test('reasoning effort as a level, a budget or a loss', (t) => {
  const efforts: ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
  const shown = (model = facts()): unknown[] =>
    efforts.map((effort) => {
      const { body, losses } = encode({ reasoningEffort: effort }, model)
      const thinking = (body.generationConfig as { thinkingConfig?: object } | undefined)?.thinkingConfig as
        Record<string, unknown> | undefined
      const value = thinking?.['thinkingLevel'] ?? thinking?.['thinkingBudget']
      t.notOk(thinking !== undefined && 'thinkingLevel' in thinking && 'thinkingBudget' in thinking)
      t.equal(thinking?.['includeThoughts'] === true, thinking !== undefined && effort !== 'none')
      return losses.length === 0 ? value : `${String(value)} lossy`
    })
  t.strictSame(shown(), ['minimal lossy', 'minimal', 'low', 'medium', 'high', 'high lossy', 'high lossy'])
  t.strictSame(
    shown(facts({ thinkingLevels: ['low', 'high'] })),
    ['low lossy', 'low lossy', 'low', 'high lossy', 'high', 'high lossy', 'high lossy'],
    '3-pro',
  )
  t.strictSame(
    shown(facts({ thinkingLevels: ['low', 'medium', 'high', 'xhigh'] })).slice(5),
    ['xhigh', 'xhigh lossy'],
    'hydrogen',
  )
  t.strictSame(shown(oldFacts()), [0, 512, 1024, 8192, 24_576, 24_576, 24_576], '2.5-flash')
  const pro = { thinkingBudget: { min: 128, max: 32_768, canDisable: false } }
  t.strictSame(shown(oldFacts(pro)), ['128 lossy', 512, 1024, 8192, 24_576, 32_768, 32_768], '2.5-pro')
  const two = {
    id: 'gemini-2.0-flash',
    family: 'google',
    createdAtSeconds: 0,
    reasoning: false,
    callSignatures: false,
  } as const
  t.strictSame(shown(two)[0], undefined, 'none for a model without thinking')
  t.strictSame(encode({ reasoningEffort: 'low' }, two).losses, ['reasoning_effort:no-equivalent'])
  const newest = { id: 'gemini-9-neon', family: 'google', createdAtSeconds: 0 } as const
  t.match(config({ reasoningEffort: 'medium' }, newest), {
    thinkingConfig: { thinkingLevel: 'medium' },
  })
  t.end()
})

void t.test("Google's thinking_config is used if no effort is set", (t) => {
  const rest = {
    extra_content: { google: { thinking_config: { thinking_budget: 5, include_thoughts: true } } },
  }
  t.strictSame(config({ rest }), { thinkingConfig: { thinkingBudget: 5, includeThoughts: true } })
  t.strictSame(encode({ rest }).losses, [])
  t.strictSame(encode({ rest, reasoningEffort: 'low' }).losses, ['extra_content:no-equivalent'])
  t.strictSame(encode({ rest: { extra_content: { other: 1 } } }).losses, ['extra_content:no-equivalent'])
  const both = { thinking_level: 'low', thinking_budget: 5 }
  t.match(encodeFailure({ rest: { extra_content: { google: { thinking_config: both } } } }), {
    kind: 'untranslatable',
    param: 'extra_content.google.thinking_config',
  })
  t.end()
})

void t.test('tools keep their order, including custom and strict ones', (t) => {
  const tools: Tool[] = [
    { name: 'z', description: 'last first', parameters: { $schema: 'x', ...F.parameters } },
    { name: 'none', parameters: { type: 'object', properties: {} } },
    { name: '2nd', parameters: { properties: { a: {} } } },
    { name: 'free', custom: { format: { type: 'text' } } },
  ]
  const { body } = encode({ tools })
  t.strictSame(body.tools, [
    {
      functionDeclarations: [
        { name: 'z', description: 'last first', parametersJsonSchema: F.parameters },
        { name: 'none', description: '' },
        {
          name: '_2nd',
          description: '',
          parametersJsonSchema: { type: 'object', properties: { a: {} } },
        },
        {
          name: 'free',
          description: '',
          parametersJsonSchema: {
            type: 'object',
            properties: { input: { type: 'string' } },
            required: ['input'],
          },
        },
      ],
    },
  ])
  t.equal(body.toolConfig, undefined)
  t.end()
})

void t.test('tool choice', (t) => {
  const tools = [F, { name: '1' }]
  const mode = (choice: ToolChoice | undefined, strict = false): unknown => {
    const toolConfig = encode({
      tools: strict ? [{ ...F, strict: true }] : tools,
      ...(choice === undefined ? {} : { toolChoice: choice }),
    }).body.toolConfig
    return (toolConfig as { functionCallingConfig?: unknown } | undefined)?.functionCallingConfig
  }
  t.strictSame(mode(undefined), undefined)
  t.strictSame(mode(undefined, true), { mode: 'VALIDATED' })
  t.strictSame(mode({ mode: 'auto' }), { mode: 'AUTO' })
  t.strictSame(mode({ mode: 'auto' }, true), { mode: 'VALIDATED' })
  t.strictSame(mode({ mode: 'none' }), { mode: 'NONE' })
  t.strictSame(mode({ mode: 'required' }), { mode: 'ANY' })
  t.strictSame(mode({ mode: 'named', name: '1' }), { mode: 'ANY', allowedFunctionNames: ['_1'] })
  t.strictSame(mode({ mode: 'allowed', required: false, names: ['f', '1'] }), {
    mode: 'VALIDATED',
    allowedFunctionNames: ['f', '_1'],
  })
  t.strictSame(mode({ mode: 'allowed', required: true, names: ['f'] }), {
    mode: 'ANY',
    allowedFunctionNames: ['f'],
  })
  t.equal(encode({ toolChoice: { mode: 'none' } }).body.toolConfig, undefined, 'no tools, no choice')
  t.strictSame(encode({ tools, parallelToolCalls: false }).losses, ['parallel_tool_calls:no-equivalent'])
  t.strictSame(encode({ tools, parallelToolCalls: true }).losses, [])
  t.strictSame(encode({ parallelToolCalls: false }).losses, [], 'ignored without tools')
  const none = { tools, toolChoice: { mode: 'none' }, parallelToolCalls: false } as const
  t.strictSame(encode(none).losses, [], 'ignored if no tool may be called')
  t.end()
})

void t.test('response formats', (t) => {
  const json = { responseMimeType: 'application/json' }
  const relaxed = { type: 'object', properties: { a: { enum: [1] } } }
  t.equal(config({ responseFormat: { type: 'text' } }), undefined)
  t.strictSame(config({ responseFormat: { type: 'json-object' } }), json)
  t.strictSame(config({ responseFormat: JSON_SCHEMA }), { ...json, responseJsonSchema: relaxed })
  t.strictSame(config({ responseFormat: JSON_SCHEMA, tools: [F] }), {
    ...json,
    responseJsonSchema: relaxed,
  })
  const forced = encode({
    responseFormat: JSON_SCHEMA,
    tools: [F],
    toolChoice: { mode: 'required' },
  })
  t.equal(forced.body.generationConfig, undefined, 'no schema with a forced call')
  t.strictSame(forced.losses, ['response_format:approximated'])
  t.end()
})

void t.test('a schema with tools is a synthetic tool on 2.x', (t) => {
  const tools = [F, { name: 'json_response' }]
  const more = { responseFormat: JSON_SCHEMA, tools }
  const { body, losses } = encode(more, oldFacts())
  t.match(body.tools, [
    {
      functionDeclarations: [{ name: 'f' }, { name: 'json_response' }, { name: 'json_response_' }],
    },
  ])
  t.strictSame(body.toolConfig, { functionCallingConfig: { mode: 'ANY' } })
  t.equal(body.generationConfig, undefined)
  t.strictSame(losses, [])
  const only = (toolChoice: ToolChoice): unknown =>
    encode({ ...more, toolChoice }, oldFacts()).body.toolConfig
  t.match(only({ mode: 'none' }), {
    functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['json_response_'] },
  })
  t.match(only({ mode: 'allowed', required: false, names: ['f'] }), {
    functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f', 'json_response_'] },
  })
  const object = encode({ responseFormat: { type: 'json-object' }, tools }, oldFacts())
  t.match(object.body.systemInstruction, { parts: [{ text: /JSON object/ }] })
  t.strictSame(object.losses, ['response_format:approximated'])
  t.end()
})

void t.test('image detail is one setting on 3+ models', (t) => {
  const image = (detail?: 'low' | 'high' | 'original'): ChatRequest['messages'][number] => ({
    role: 'user',
    index: 0,
    parts: [
      {
        type: 'image',
        source: { kind: 'base64', mediaType: 'image/png', data: 'AA==' },
        ...(detail === undefined ? {} : { detail }),
      },
    ],
  })
  t.equal(config({ messages: [image()] }), undefined)
  t.strictSame(config({ messages: [image('low')] }), { mediaResolution: 'MEDIA_RESOLUTION_LOW' })
  t.equal(config({ messages: [image('low'), image()] }), undefined)
  t.strictSame(config({ messages: [image('low'), image('original')] }), {
    mediaResolution: 'MEDIA_RESOLUTION_HIGH',
  })
  t.equal(config({ messages: [image('high')] }, oldFacts()), undefined, 'dropped on 2.x')
  t.end()
})

void t.test('inline media above the limit of a request is refused', (t) => {
  const limit = 20 * 1024 * 1024
  const image = (chars: number): UserPart => {
    const source = { kind: 'base64', mediaType: 'image/png', data: 'A'.repeat(chars) } as const
    return { type: 'image', source }
  }
  const half = limit / 2
  const messages = (last: UserPart): ChatRequest['messages'] => [
    { role: 'user', index: 0, parts: [image(half)] },
    {
      role: 'assistant',
      index: 1,
      parts: [],
      toolCalls: [{ id: 'a', name: 'look', arguments: '{}' }],
    },
    { role: 'tool', index: 2, callId: 'a', parts: [last] },
  ]
  t.ok(encode({ messages: messages(image(half)) }).body)
  t.match(encodeFailure({ messages: messages(image(half + 1)) }), {
    kind: 'body_too_large',
    param: 'messages',
  })
  t.end()
})
