/**
 * Estimates the maximum prompt tokens, output tokens and cost of a request before it is sent. Pure. The
 * estimate is based on bytes, without a tokenizer.
 */
import type { CallCounts } from '../../formats/chat/hosted-tools.js'
import { objectOf } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { isChat, isMedia, type ChatRequest } from '../../formats/chat/request.js'
import { drawsPictures, transcribes } from '../../formats/chat/task.js'
import { UNITS, type UnitCounts, type Usage } from '../../formats/chat/usage.js'
import {
  promptSizeOf,
  inputTokens,
  maxInputTokens,
  maxTokensPerSecond,
} from '../../ledger/estimate-tokens.js'
import {
  callNanoUsd,
  costNanoUsd,
  dearestUsage,
  isFree,
  isOutputFree,
  kindWithoutRate,
  maxCostNanoUsd,
  priceUpTo,
  TEXT_ONLY,
  type MaxTokens,
  type MediaKind,
  type Price,
} from '../../ledger/price.js'
import { unitsOf } from '../../ledger/task-units.js'
import { dollars, inUnits } from '../../limits/limit-refusal.js'
import type { Call } from '../phases/call.js'
import type { BudgetPrice } from './budget-price.js'
import { possibleAt, type RequestKinds } from './token-kinds.js'
import { ALL_SEEN, type ToolModel, type UnknownUse } from './unknown-use.js'

/** The maximum usage of one request. */
export interface CostEstimate {
  /** Prompt tokens: an upper bound of the vendor's count, unless `isUnbounded`. */
  readonly input: number
  /** Prompt tokens: the expected count of the vendor. */
  readonly likelyInput: number
  /** Output tokens of all choices: the client's maximum, else the model's; null if neither is known. */
  readonly output: number | null
  /** The same with `limiting.unknown_length` for an unknown maximum; null if that is `refuse`. */
  readonly longestOutput: number | null
  /** The client sets no maximum of output tokens. */
  readonly isOpen: boolean
  /** Choices that are generated. */
  readonly choices: number
  /** The price that budgets use; null if there is none for the request. */
  readonly price: Price | null
  /** The price is the model's own, not `limiting.assumed_price`. */
  readonly isPriced: boolean
  /** The path of input that the gateway cannot see; null if it sees all of it. */
  readonly unseen: string | null
  /** The tool that adds input, or the path of other unseen input; null for neither. */
  readonly source: string | null
  /** The part of `input` that the gateway cannot see or that tools may add. */
  readonly added: number
  /** The gateway cannot see all input, and the model's context window is unknown. */
  readonly isUnbounded: boolean
  /** Maximum calls of tools that the provider runs. */
  readonly calls: CallCounts
  /** Maximum cost of the calls of tools that the provider runs, in nano-dollars, other models included. */
  readonly callsNanoUsd: number
  /** The part of `callsNanoUsd` for other models that tools call, which are not in `calls`. */
  readonly modelsNanoUsd: number
  /** A tool whose calls have no known and no assumed price; null if there is none. */
  readonly unknownCall: string | null
  /** Kinds of tokens beside text that the request and its reply may have. */
  readonly media: readonly MediaKind[]
  /** Units of tasks, and the pictures that they make; absent for chats and embeddings. */
  readonly units?: UnitCounts
  readonly pictures?: string
  /** A kind of the request that has no price; null if there is none. */
  readonly unknownKind: MediaKind | null
  /**
   * Maximum cost in nano-dollars; null if the price is unknown, or the length of a reply that is not free.
   */
  readonly nanoUsd: number | null
}

/** OpenAI's Responses API accepts no smaller maximum. */
const MIN_OUTPUT_TOKENS = 16

/** The facts and the prices of other models of the upstream. */
export interface OtherModels {
  readonly factsOf: (model: string) => ModelFacts
  readonly priceOf: (model: string) => BudgetPrice
}

/**
 * Estimates a request; `facts` and `budgetPrice` are those of the model that is requested from the upstream.
 */
export function estimateCost(
  request: ChatRequest,
  facts: ModelFacts,
  budgetPrice: BudgetPrice,
  { use = ALL_SEEN, others }: { readonly use?: UnknownUse; readonly others?: OtherModels } = {},
): CostEstimate {
  return estimateUse(useOf(request, facts, use), { facts, others }, budgetPrice)
}

/**
 * Adds the calls of a tool that calls another model, which gets the whole conversation (Anthropic, "Advisor
 * tool", read 2026-11-29): the prompt and the reply so far, in the smaller of both context windows. Numbers
 * of several requests are sums; each request has the same tool and as many choices.
 */
function withModelOfTool(
  estimate: CostEstimate,
  { tool, model, count, maxTokens, caches }: ToolModel,
  { facts, others, requests }: KnownModels & { readonly others: OtherModels; readonly requests: number },
): CostEstimate {
  const { contextWindow: own = Number.POSITIVE_INFINITY } = facts
  const { contextWindow = Number.POSITIVE_INFINITY, maxOutputTokens } = others.factsOf(model)
  const { price, isPriced, unknownLength } = others.priceOf(model)
  const length = maxTokens ?? maxOutputTokens ?? unknownLength
  const window = Math.min(own, contextWindow)
  const input = Math.min(estimate.input + (estimate.longestOutput ?? 0), requests * window)
  const upTo = price === null || requests === 1 ? price : priceUpTo(price, window)
  const most = length === null ? null : { input, output: requests * length, caches }
  const each = most === null || upTo === null ? null : costOfModel(upTo, most)
  const { callsNanoUsd, modelsNanoUsd, nanoUsd, unknownCall } = estimate
  if (each === null) return { ...estimate, isPriced: false, unknownCall: unknownCall ?? tool }
  const added = each * count * (estimate.choices / requests)
  return {
    ...estimate,
    isPriced: estimate.isPriced && isPriced,
    callsNanoUsd: callsNanoUsd + added,
    modelsNanoUsd: modelsNanoUsd + added,
    nanoUsd: nanoUsd === null ? null : nanoUsd + added,
  }
}

function costOfModel(
  price: Price,
  { input, output, caches }: { readonly input: number; readonly output: number; readonly caches: boolean },
): number | null {
  const usage = dearestUsage(price, { input, output })
  if (!caches) {
    delete usage.cacheWrite
    delete usage.cacheWrite1h
  }
  return costNanoUsd(price, usage)
}

/** What one request, or several requests for one model, may use at most. Numbers are sums. */
export interface RequestUse {
  readonly requests: number
  /** Prompt tokens that the gateway sees, or that tools may add. */
  readonly seen: number
  /** The part of `seen` that tools may add. */
  readonly added: number
  /** The same as `seen` for the longest prompt. */
  readonly longest: number
  /** Prompt tokens: the expected count of the vendor. */
  readonly likely: number
  /** Requests with input that the gateway cannot see, the path of the first such input, and what adds it. */
  readonly unseen: number
  readonly unseenAt: string | null
  /** The part of `seen` in these requests. */
  readonly partlySeen: number
  readonly source: string | null
  readonly choices: number
  /** Output tokens of the choices for which the request sets a maximum. */
  readonly output: number
  /** Choices without one. */
  readonly open: number
  /** Maximum calls of tools that the provider runs, for all choices. */
  readonly calls: CallCounts
  readonly kinds: RequestKinds
  /** Other models that tools of each request call; absent: none. */
  readonly models?: readonly ToolModel[]
  /** Units of tasks, and the pictures that they make; absent for chats and embeddings. */
  readonly units?: UnitCounts
  readonly pictures?: string
  /** Sounds of unknown length; absent: none. */
  readonly unmeasuredSounds?: number
}

/** The use of a request for a model with these facts. */
export function useOf(
  request: ChatRequest,
  {
    family,
    contextWindow = Number.POSITIVE_INFINITY,
    maxImageTokens,
    maxInputImageTokens: tokensOfPicture,
  }: ModelFacts,
  { unseen, source, added, calls, models, kinds }: UnknownUse,
): RequestUse {
  const bulk = promptSizeOf(request)
  // A task reads each document, or each input, in a context of its own.
  const isOne = request.task === undefined || isMedia(request)
  const window = isOne ? contextWindow : Number.POSITIVE_INFINITY
  const visible = Math.min(maxInputTokens(bulk, family, tokensOfPicture), window)
  const seen = Math.min(visible + added, window)
  const choices = Math.max(1, request.billedChoices ?? picturesOf(request) ?? request.candidates ?? 1)
  const perChoice = maxOutputPerChoice(request, maxImageTokens)
  return {
    requests: 1,
    seen,
    added: seen - visible,
    longest: seen,
    likely: Math.min(inputTokens(bulk, family), visible),
    unseen: unseen === null ? 0 : 1,
    unseenAt: unseen,
    partlySeen: unseen === null ? 0 : seen,
    source,
    choices,
    output: perChoice === undefined ? 0 : perChoice * choices,
    open: perChoice === undefined ? choices : 0,
    calls: countsOf(calls, choices),
    kinds,
    ...(models.length > 0 && { models }),
    ...(request.task !== undefined && unitsOf(request.task)),
    ...(transcribes(request.task) && request.task.length.most === null && { unmeasuredSounds: 1 }),
  }
}

/** The facts of the model that is requested, and those of others that tools call. */
interface KnownModels {
  readonly facts: ModelFacts
  readonly others?: OtherModels | undefined
}

/** Estimates what is used at most, for requests of one model. */
export function estimateUse(use: RequestUse, known: KnownModels, budgetPrice: BudgetPrice): CostEstimate {
  const { facts, others } = known
  const estimate = estimateOwnUse(use, facts, budgetPrice)
  const { models = [], requests } = use
  if (others === undefined) return estimate
  return models.reduce((sum, asked) => withModelOfTool(sum, asked, { facts, others, requests }), estimate)
}

/** Without the other models. */
function estimateOwnUse(use: RequestUse, facts: ModelFacts, budgetPrice: BudgetPrice): CostEstimate {
  const { requests, unseen, unseenAt, partlySeen, source, seen, added, calls, kinds, open, choices } = use
  const { unknownLength, unknownSeconds } = budgetPrice
  const { family, contextWindow = Number.POSITIVE_INFINITY, maxOutputTokens } = facts
  const unheard = (use.unmeasuredSounds ?? 0) * (facts.maxAudioSeconds ?? unknownSeconds)
  // The model of a line of a batch may have been unknown when the line was read.
  const possible = possibleAt(kinds.possible, facts)
  const window = use.units === undefined ? contextWindow : Number.POSITIVE_INFINITY
  const isUnbounded = unseen > 0 && contextWindow === Number.POSITIVE_INFINITY
  const most = unseen === 0 || isUnbounded ? seen : seen - partlySeen + unseen * contextWindow
  const input = Math.min(
    most + unheard * maxTokensPerSecond(family),
    requests * (unheard > 0 ? contextWindow : window),
  )
  const longest = unseen === 0 || isUnbounded ? Math.min(use.longest, window) : contextWindow
  const price =
    budgetPrice.price === null || requests === 1 ? budgetPrice.price : priceUpTo(budgetPrice.price, longest)
  const output =
    open === 0 || maxOutputTokens !== undefined ? use.output + open * (maxOutputTokens ?? 0) : null
  const longestOutput = output ?? (unknownLength === null ? null : use.output + open * unknownLength)
  const callCosts = maxCallCosts(calls, budgetPrice)
  const media = kinds.certain.length + possible.length === 0 ? TEXT_ONLY : [...kinds.certain, ...possible]
  const unknownKind = price === null ? null : kindWithoutRate(price, kinds.certain)
  const hasCost = !isUnbounded || (price !== null && isFree(price))
  const units = unitsAtMost(use, unheard)
  const tokensNanoUsd = hasCost ? maxNanoUsd(price, { input, output: longestOutput, media, ...units }) : null
  return {
    input,
    likelyInput: use.likely,
    output,
    longestOutput,
    // The output of a task cannot be shortened.
    isOpen: open > 0 && use.units === undefined,
    choices,
    price,
    isPriced: budgetPrice.isPriced && callCosts.arePriced && unknownKind === null,
    unseen: unseenAt,
    source,
    added: input - (seen - added),
    isUnbounded,
    calls,
    callsNanoUsd: callCosts.nanoUsd,
    modelsNanoUsd: 0,
    unknownCall: callCosts.unknown,
    media,
    ...units,
    unknownKind,
    nanoUsd: tokensNanoUsd === null ? null : tokensNanoUsd + callCosts.nanoUsd,
  }
}

/** The units of a use; `unheard`: seconds of the sounds of unknown length. */
function unitsAtMost(
  { units, pictures }: RequestUse,
  unheard: number,
): Pick<RequestUse, 'units' | 'pictures'> {
  if (units === undefined) return {}
  const all = unheard === 0 ? units : { ...units, audio_second: (units.audio_second ?? 0) + unheard }
  return { units: all, ...(pictures !== undefined && { pictures }) }
}

/** The maximum use of a request with this estimate; its cost is the estimated one. */
export function maxUsage(estimate: CostEstimate): Usage {
  const { price, input, longestOutput, calls, media, units, pictures } = estimate
  const most = {
    ...{ input, output: longestOutput ?? 0, media },
    ...(units !== undefined && { units }),
    ...(pictures !== undefined && { pictures }),
  }
  const usage: Usage = longestOutput === null ? { input } : dearestUsage(price, most)
  return calls === NO_COUNTS ? usage : { ...usage, calls }
}

const NO_COUNTS: CallCounts = {}

function countsOf(calls: UnknownUse['calls'], choices: number): CallCounts {
  if (calls.length === 0) return NO_COUNTS
  const counts: Record<string, number> = {}
  for (const [name, count] of calls) counts[name] = (counts[name] ?? 0) + count * choices
  return counts
}

/** The maximum cost of calls. */
interface CallCosts {
  readonly nanoUsd: number
  /** Whether the price has the cost of each. */
  readonly arePriced: boolean
  readonly unknown: string | null
}

const NO_CALLS: CallCosts = { nanoUsd: 0, arePriced: true, unknown: null }

function maxCallCosts(calls: CallCounts, { price, unknownCall }: BudgetPrice): CallCosts {
  if (calls === NO_COUNTS) return NO_CALLS
  let nanoUsd = 0
  let arePriced = true
  let unknown: string | null = null
  for (const [name, count] of Object.entries(calls)) {
    const known = price === null ? null : callNanoUsd(price, name)
    const each = known ?? unknownCall
    arePriced &&= known !== null
    if (each === null) unknown ??= name
    else nanoUsd += each * count
  }
  return { nanoUsd, arePriced, unknown }
}

/** `output`: null if it is unknown. */
type LongestUse = Omit<MaxTokens, 'output'> & { readonly output: number | null }

function maxNanoUsd(price: Price | null, { output, ...others }: LongestUse): number | null {
  if (price === null || (output === null && !isOutputFree(price))) return null
  return maxCostNanoUsd(price, { ...others, output: output ?? 0 })
}

/**
 * The maximum tokens of one choice that an upstream may bill under the client's limit: OpenAI's Responses API
 * raises a smaller limit to 16, and some upstreams bill a thinking budget in addition to it (Alibaba Model
 * Studio, "Deep thinking").
 */
function maxOutputPerChoice(request: ChatRequest, maxImageTokens: number | undefined): number | undefined {
  const { task } = request
  if (drawsPictures(task)) {
    return maxImageTokens === undefined ? undefined : maxImageTokens + task.partial * PARTIAL_TOKENS
  }
  // Of tasks, only those that a chat model serves have text in their replies.
  if (!isChat(request)) return isMedia(request) ? undefined : (request.maxOutputTokens ?? 0)
  const { maxOutputTokens, rest } = request
  if (maxOutputTokens === undefined) return undefined
  return Math.max(maxOutputTokens, MIN_OUTPUT_TOKENS) + thinkingTokens(rest)
}

/** Tokens of each incomplete picture of a stream (OpenAI, "Image generation", "Partial images cost"). */
const PARTIAL_TOKENS = 100

/** The number of pictures that the request demands; undefined for other requests. */
function picturesOf({ task }: ChatRequest): number | undefined {
  return drawsPictures(task) ? task.count : undefined
}

/** The largest thinking budget in the request, by the field names of any vendor; 0 if there is none. */
function thinkingTokens(rest: ChatRequest['rest']): number {
  const extra = objectOf(rest['extra_body'])
  const google = [rest['extra_content'], extra].map(
    (container) => objectOf(objectOf(container)['google'])['thinking_config'],
  )
  const budgets = [rest, extra, ...google.map(objectOf)].flatMap((container) => [
    objectOf(container['thinking'])['budget_tokens'],
    objectOf(container['reasoning'])['max_tokens'],
    container['thinking_budget'],
    container['thinkingBudget'],
  ])
  return budgets.reduce<number>(
    (largest, budget) =>
      typeof budget === 'number' && Number.isFinite(budget) ? Math.max(largest, budget) : largest,
    0,
  )
}

/** What is left of the limits of a request; infinite if none counts it. */
interface Remaining {
  readonly nanoUsd: number
  readonly tokens: number
}

/**
 * The longest output, in tokens of all choices, for which the remaining amounts are enough; null if it is
 * below the minimum per choice.
 */
export function outputFor(estimate: CostEstimate, left: Remaining): number | null {
  const { input, choices, isUnbounded } = estimate
  if (isUnbounded) return null
  const payable =
    left.nanoUsd === Number.POSITIVE_INFINITY ? left.nanoUsd : outputPaidBy(estimate, left.nanoUsd)
  if (payable === null) return null
  const perChoice = Math.floor(Math.min(payable, left.tokens - input) / choices)
  return perChoice < MIN_OUTPUT_TOKENS ? null : perChoice * choices
}

/** The output tokens that the remaining amount pays for; null if the rest of the request costs more. */
function outputPaidBy(estimate: CostEstimate, leftNanoUsd: number): number | null {
  const { price, input, callsNanoUsd, media } = estimate
  if (price === null) return null
  const base = maxCostNanoUsd(price, { input, output: 0, media })
  const million = maxCostNanoUsd(price, { input, output: 1_000_000, media })
  if (base === null || million === null || base + callsNanoUsd > leftNanoUsd) return null
  const perToken = (million - base) / 1_000_000
  // One token less, so that rounding cannot exceed the remaining amount.
  if (perToken <= 0) return Number.POSITIVE_INFINITY
  return Math.floor((leftNanoUsd - callsNanoUsd - base) / perToken) - 1
}

/** The estimate for a smaller maximum output. */
export function shortened(estimate: CostEstimate, output: number): CostEstimate {
  const { price, input, callsNanoUsd, media } = estimate
  const tokensNanoUsd = maxNanoUsd(price, { input, output, media })
  return {
    ...estimate,
    output,
    longestOutput: output,
    nanoUsd: tokensNanoUsd === null ? null : tokensNanoUsd + callsNanoUsd,
  }
}

/** The call with a maximum of output tokens set by the gateway. */
export function withOutput(call: Call, output: number, { choices }: CostEstimate): Call {
  const perChoice = Math.floor(output / choices)
  return {
    ...call,
    request: { ...call.request, maxOutputTokens: perChoice },
    added: ({ family }) => {
      const key = family === 'openai' ? 'max_completion_tokens' : 'max_tokens'
      return call.clientCodec.outputEdit?.(call.body, perChoice) ?? { key, json: String(perChoice) }
    },
  }
}

/** The part of a request that may cost most, for the message of a refusal: `$5.25 for input that …`. */
export function largestPartOf(estimate: CostEstimate): string | null {
  const { price, input, added, source, longestOutput, calls, callsNanoUsd, modelsNanoUsd, media } = estimate
  const { units = {}, pictures = '' } = estimate
  if (price === null) return null
  const cost = (tokens: { readonly input: number; readonly output: number }): number =>
    maxCostNanoUsd(price, { ...tokens, media }) ?? 0
  const prompt = input - added
  const output = longestOutput ?? 0
  const names = Object.keys(calls).join(', ')
  const parts: readonly (readonly [nanoUsd: number, what: string])[] = [
    [cost({ input: prompt, output: 0 }), `for a prompt of up to ${prompt} tokens`],
    [cost({ input: added, output: 0 }), `for input that \`${source ?? ''}\` may add`],
    [cost({ input: 0, output }), `for a reply of up to ${output} tokens`],
    [callsNanoUsd - modelsNanoUsd, `for calls of \`${names}\``],
    [modelsNanoUsd, 'for the model that a tool calls (`max_uses` and `max_tokens` of the tool bound it)'],
    ...UNITS.map((unit) => {
      const count = units[unit] ?? 0
      const most = { input: 0, output: 0, units: { [unit]: count }, pictures }
      return [
        maxCostNanoUsd(price, most) ?? 0,
        unit === 'audio_second' ? `for up to ${Math.ceil(count)} s of sound` : `for ${inUnits(count, unit)}`,
      ] as const
    }),
  ]
  const [nanoUsd, what] = parts.reduce((most, part) => (part[0] > most[0] ? part : most))
  return `$${dollars(nanoUsd)} ${what}`
}
