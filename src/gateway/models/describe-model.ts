/**
 * Describes a model for `GET /v1/models`: what its first usable target takes, returns and costs. Names are
 * those of OpenRouter's model list, which clients read, and of the vendors' lists.
 *
 * Source: OpenRouter API reference, "List available models", read 2026-11-29.
 */
import { modelAt } from '../routing/router.js'
import { factsAt } from '../../config/catalogue.js'
import { isConfigured, type Snapshot } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import { converses, priceAt, type ModelFacts } from '../../formats/chat/model-facts.js'
import type { TaskName } from '../../formats/chat/operations.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { ListedModel } from '../../formats/dialect.js'
import { upstreamCodecOf } from '../../formats/index.js'
import type { Prices } from '../../ledger/find-price.js'
import type { Price } from '../../ledger/price.js'
import type { ModelRoute, RouteTarget } from '../routing/router.js'
import { openAiEndpoint } from '../upstreams/choose-openai-endpoint.js'

/** What a description is made from. */
interface Sources {
  /** The routes that match the model under any condition, in the order in which they are tried. */
  readonly routes: readonly ModelRoute[]
  readonly snapshot: Snapshot
  readonly prices: Prices
}

/** The model; null if no route matches it. */
export function describeModel(id: string, { routes, snapshot, prices }: Sources): ListedModel | null {
  const targets = reachable(routes).flatMap(({ targets: first, fallback }) => [...first, ...fallback])
  const [first] = targets
  if (first === undefined) return null
  const usable = targets.find(({ upstream }) => isConfigured(upstream))
  const target = usable ?? first
  const { catalogue } = snapshot
  const requested = modelAt(target, id)
  const known = catalogue.find(requested) ?? catalogue.find(id)
  const found = known ?? factsAt(catalogue, target.upstream, requested)
  // Clients require a date: a model of unknown age counts from the load of the configuration.
  const createdAtSeconds = found.createdAtSeconds || Math.floor(snapshot.loadedAtMs / 1000)
  const facts = { ...found, id, createdAtSeconds }
  const price = prices.find(target.upstream.name, requested, null)
  const isOwned = known !== null || facts.family !== 'openai'
  return {
    facts: isOwned ? facts : { ...facts, family: target.upstream.name },
    id,
    isAvailable: usable !== undefined,
    more: {
      ...sizes(facts),
      ...modalities(facts),
      ...(converses(facts) && {
        supported_parameters: parameters(target, { ...facts, id: requested }),
      }),
      ...(price !== null && { pricing: pricing(price) }),
      ...(usable === undefined && { unavailable_reason: reasonOf(first) }),
    },
  }
}

/** The routes up to the first without conditions, which takes all other requests. */
function reachable(routes: readonly ModelRoute[]): readonly ModelRoute[] {
  const last = routes.findIndex(({ config }) => config.when === null)
  return last === -1 ? routes : routes.slice(0, last + 1)
}

function reasonOf({ upstream: { name, apiKeySource } }: RouteTarget): string {
  return `The upstream '${name}' has no API key: set ${apiKeySource ?? 'api_key'}.`
}

function sizes({ contextWindow, maxOutputTokens }: ModelFacts): JsonObject {
  const top: JsonObject = {}
  if (contextWindow !== undefined) top.context_length = contextWindow
  if (maxOutputTokens !== undefined) top.max_completion_tokens = maxOutputTokens
  return {
    ...(contextWindow !== undefined && { context_length: contextWindow }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(Object.keys(top).length > 0 && { top_provider: top }),
  }
}

/** Nothing for a model of which nothing is known. */
function modalities(facts: ModelFacts): JsonObject {
  const { embedding, operations, vision, audioInput } = facts
  const isKnown = [embedding, operations, vision, audioInput].some((fact) => fact !== undefined)
  if (!isKnown) return {}
  const { input, output } = operations === undefined ? ofChat(facts) : ofTask(operations)
  return {
    input_modalities: input,
    output_modalities: output,
    architecture: { input_modalities: input, output_modalities: output },
  }
}

interface Modalities {
  readonly input: string[]
  readonly output: string[]
}

function ofChat({ embedding, vision, audioInput, price }: ModelFacts): Modalities {
  const input = ['text']
  if (vision === true) input.push('image')
  if (audioInput === true) input.push('audio')
  const output = [embedding === true ? 'embeddings' : 'text']
  const rates = priceAt(price, Date.now())
  if (rates?.outputImage !== undefined) output.push('image')
  if (rates?.outputAudio !== undefined) output.push('audio')
  return { input, output }
}

function ofTask(operations: readonly TaskName[]): Modalities {
  return {
    input: distinct(operations.flatMap((name) => TASK_MODALITIES[name].input)),
    output: distinct(operations.flatMap((name) => TASK_MODALITIES[name].output)),
  }
}

const TASK_MODALITIES: Readonly<Record<TaskName, Modalities>> = {
  rerank: { input: ['text'], output: ['rerank'] },
  moderations: { input: ['text'], output: ['moderation'] },
  images: { input: ['text'], output: ['image'] },
  image_edits: { input: ['text', 'image'], output: ['image'] },
  transcriptions: { input: ['audio'], output: ['text'] },
  translations: { input: ['audio'], output: ['text'] },
  speech: { input: ['text'], output: ['audio'] },
}

function distinct(names: readonly string[]): string[] {
  return [...new Set(names)]
}

const TOOL = { name: 'f', parameters: { type: 'object', properties: {} } }
const REPLY_SCHEMA = { type: 'object', properties: {}, additionalProperties: false }

/** Fields of chat completions, and the request in which a trial translation must keep each. */
const PARAMETERS: readonly (readonly [name: string, request: Partial<ChatRequest>])[] = [
  ['max_tokens', { maxOutputTokens: 1_000 }],
  ['max_completion_tokens', { maxOutputTokens: 1_000 }],
  ['temperature', { temperature: 0.5 }],
  ['top_p', { topP: 0.5 }],
  ['top_k', { topK: 5 }],
  ['frequency_penalty', { frequencyPenalty: 0.5 }],
  ['presence_penalty', { presencePenalty: 0.5 }],
  ['logit_bias', { rest: { logit_bias: { '5': 1 } } }],
  ['logprobs', { logprobs: true }],
  ['top_logprobs', { logprobs: true, topLogprobs: 1 }],
  ['seed', { seed: 1 }],
  ['stop', { stop: ['END'] }],
  ['response_format', { responseFormat: { type: 'json-object' } }],
  [
    'structured_outputs',
    { responseFormat: { type: 'json-schema', name: 'reply', schema: REPLY_SCHEMA, strict: true } },
  ],
  ['tools', { tools: [TOOL] }],
  ['tool_choice', { tools: [TOOL], toolChoice: { mode: 'required' } }],
  ['parallel_tool_calls', { tools: [TOOL], parallelToolCalls: false }],
  ['reasoning', { reasoningEffort: 'high' }],
  ['reasoning_effort', { reasoningEffort: 'high' }],
  ['verbosity', { verbosity: 'low' }],
]

/** The names of the fields that arrive at the target. */
function parameters(target: RouteTarget, facts: ModelFacts): string[] {
  const { drop } = target.upstream.quirks
  return PARAMETERS.flatMap(([name, request]) => {
    if (drop.includes(name) || !isAble(name, facts)) return []
    return isKept(request, target, facts) ? [name] : []
  })
}

/** False for an ability that the model does not have, by its facts. */
function isAble(name: string, { tools, structuredOutput, reasoning }: ModelFacts): boolean {
  switch (name) {
    case 'tools':
    case 'tool_choice':
    case 'parallel_tool_calls':
      return tools !== false
    case 'structured_outputs':
      return structuredOutput !== false
    case 'reasoning':
    case 'reasoning_effort':
      return reasoning === true
    default:
      return true
  }
}

function isKept(members: Partial<ChatRequest>, { upstream }: RouteTarget, facts: ModelFacts): boolean {
  const request: ChatRequest = {
    model: facts.id,
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: 'Hi' }] }],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...members,
  }
  const dialect = upstream.dialect === 'openai' ? openAiEndpoint(request, facts) : upstream.dialect
  let isLost = false
  const losses = { drop: (): void => void (isLost = true) }
  try {
    upstreamCodecOf(dialect, upstream)?.encodeRequest(request, facts, losses)
    return !isLost
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

/** US dollars per token, and per call of a web search, as decimal text; unknown ones are left out. */
function pricing({ usual, calls }: Price): JsonObject {
  const rates: readonly [name: string, femto: number | null][] = [
    ['prompt', usual.input],
    ['completion', usual.output],
    ['internal_reasoning', usual.reasoning],
    ['input_cache_read', usual.cacheRead],
    ['input_cache_write', usual.cacheWrite],
    ['input_cache_write_1h', usual.cacheWrite1h],
    ['audio', usual.inputAudio],
    ['audio_output', usual.outputAudio],
    ['image', usual.inputImage],
    ['image_output', usual.outputImage],
  ]
  const known: JsonObject = {}
  for (const [name, femto] of rates) if (femto !== null) known[name] = decimal(femto, 15)
  if (calls.web_search !== undefined) known.web_search = decimal(calls.web_search, 9)
  return known
}

/** A whole number of the unit `10^-digits` as decimal text without an exponent. */
function decimal(count: number, digits: number): string {
  const text = String(BigInt(count)).padStart(digits + 1, '0')
  const whole = text.slice(0, -digits)
  let fraction = text.slice(-digits)
  while (fraction.endsWith('0')) fraction = fraction.slice(0, -1)
  return fraction === '' ? whole : `${whole}.${fraction}`
}
