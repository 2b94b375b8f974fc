/**
 * Facts of the catalogue about a model, for encoders and prices. `undefined` means unknown; encoders then
 * treat the model like the newest of its family.
 */

import type { TaskName } from './operations.js'

/**
 * The name of a model: printable ASCII words with single spaces between them, at most 256 characters. Names
 * of vendors have no space; names that operators choose for routes may have.
 */
export const MODEL_NAME = /^(?=[ -~]{1,256}$)[!-~]+(?: [!-~]+)*$/

/** Vendors with formats and rules of their own. Models of other vendors have none. */
export type ModelFamily = 'openai' | 'anthropic' | 'google'

/** USD per million tokens. */
export interface ModelPrice {
  input?: number
  output?: number
  cacheRead?: number
  cacheWrite?: number
  cacheWrite1h?: number
  /** Reasoning tokens, if they cost other than the rest of the output. */
  reasoning?: number
  /** Tokens of sound in the prompt, those of them read from the cache, and tokens of sound in the output. */
  inputAudio?: number
  cachedAudio?: number
  outputAudio?: number
  /**
   * Tokens of pictures and videos in the prompt, if they cost other than text, those of pictures read from
   * the cache, and tokens of generated pictures.
   */
  inputImage?: number
  cachedImage?: number
  inputVideo?: number
  outputImage?: number
  /** USD per search unit of a ranking. */
  perSearch?: number
  /** USD per character of the text that becomes speech. */
  perCharacter?: number
  /** USD per second of sound that is received as input, and the seconds that are charged at least. */
  perSecondAudio?: number
  minAudioSeconds?: number
  /** USD per page of a document that is read. */
  perPage?: number
  /** USD per picture that is made: of any, or by `QUALITY/SIZE`, `QUALITY/*`, `SIZE` and `*`. */
  perImage?: number | Readonly<Record<string, number>>
  /** Rates of service tiers, or multiples of these rates, by the tier's name in replies. */
  serviceTiers?: Readonly<Record<string, number | TierPrice>>
  /** USD per call of a tool that the provider runs, by the name in `allow_tools`. */
  calls?: Readonly<Record<string, number>>
  /** Other rates for a request with more input tokens than this. */
  longContext?: LongContextPrice
}

/** Rates for long prompts. */
export interface LongContextPrice {
  aboveInputTokens: number
  input: number
  output: number
  /** Absent: the same share of the input rate as above. */
  cacheRead?: number
  cacheWrite?: number
}

/** The rates of a service tier. An absent rate keeps its share of the usual input or output rate. */
export type TierPrice = Omit<ModelPrice, 'serviceTiers' | 'calls'>

/** A price of a list; it holds from the start of that day (UTC), or always without one. */
interface DatedPrice extends ModelPrice {
  from?: string
}

/** The price of a model, or prices of which the one that began last holds. */
export type ModelPrices = ModelPrice | readonly DatedPrice[]

/** The price that holds at a time, in ms since 1970; undefined if none has begun. */
export function priceAt(prices: ModelPrices | undefined, atMs: number): ModelPrice | undefined {
  if (!isPriceList(prices)) return prices
  let found: DatedPrice | undefined
  for (const price of prices) {
    const fromMs = beginOf(price)
    if (fromMs <= atMs && (found === undefined || fromMs >= beginOf(found))) found = price
  }
  return found
}

/** The times at which prices of a list begin, in ms since 1970. */
export function beginningsOf(prices: ModelPrices | undefined): number[] {
  return isPriceList(prices) ? prices.map(beginOf).filter((ms) => ms > -Infinity) : []
}

function beginOf({ from }: DatedPrice): number {
  return from === undefined ? -Infinity : Date.parse(`${from}T00:00:00Z`)
}

function isPriceList(prices: ModelPrices | undefined): prices is readonly DatedPrice[] {
  return Array.isArray(prices)
}

/** Whether a model answers in a conversation, by what is known of it. */
export function converses({ embedding, operations }: ModelFacts): boolean {
  return embedding !== true && operations === undefined
}

/** One entry of the catalogue. Counts are tokens; prices are US dollars per million tokens. */
export interface ModelFacts {
  id: string
  /** The vendor: a `ModelFamily` or any other name; `owned_by` in the model list. */
  family: string
  /** Seconds since 1970 for the model list. */
  createdAtSeconds: number
  /** Dated ids of the same model. */
  variants?: readonly string[]
  /** The day on which the vendor shuts the model down, `2027-04-01`. */
  shutdownDate?: string
  contextWindow?: number
  maxOutputTokens?: number
  /** Google: limit for a reply that is not streamed. */
  maxOutputTokensWhole?: number
  /** Tokens of one picture that it makes at most, in the dearest quality and size. */
  maxImageTokens?: number
  /** Tokens of one picture that it reads at most. */
  maxInputImageTokens?: number
  /** Seconds of sound of one request at most. */
  maxAudioSeconds?: number
  /** An embedding model. */
  embedding?: boolean
  /** What the model is for, if it neither converses nor embeds. */
  operations?: readonly TaskName[]
  vision?: boolean
  audioInput?: boolean
  tools?: boolean
  reasoning?: boolean
  structuredOutput?: boolean
  structuredOutputWithTools?: boolean
  /** OpenAI: the endpoints that serve the model. */
  endpoints?: readonly ('chat' | 'responses')[]
  /** OpenAI: whether chat completions accepts function tools while reasoning is on. */
  chatToolsWithReasoning?: boolean
  systemRole?: 'system' | 'developer'
  reasoningEfforts?: readonly string[]
  /** OpenAI: accepts stop sequences. */
  stop?: boolean
  /** OpenAI: accepts `prompt_cache_retention`. */
  promptCacheRetention?: boolean
  /** OpenAI: accepts `prompt_cache_options` and breakpoints. */
  promptCacheBreakpoints?: boolean
  samplingParams?: 'always' | 'never' | 'when-thinking-off' | 'effort-none-only'
  /** Minimum tokens of a prefix that the provider's prompt cache keeps. */
  cacheMinTokens?: number
  /** Anthropic. */
  thinkingTypes?: readonly string[]
  thinkingDefault?: 'adaptive' | 'off'
  /** Whether a request can turn thinking off. */
  thinkingCanDisable?: boolean
  /** Values of `output_config.effort`. */
  efforts?: readonly string[]
  defaultEffort?: string
  /** The vendor requires the thinking of earlier turns to be sent back unchanged. */
  preservedThinkingPrefixCheck?: boolean
  forcedToolChoice?: boolean
  midConversationSystem?: boolean
  assistantPrefill?: boolean
  /** Google: accepts a system instruction. */
  systemInstruction?: boolean
  /** Google: checks thought signatures and has call ids, since generation 3. */
  callSignatures?: boolean
  thinkingLevels?: readonly string[]
  thinkingBudget?: { min: number; max: number; canDisable: boolean }
  penalties?: boolean
  /** Google: maximum number of candidates per request; absent: 1. */
  maxCandidates?: number
  /** Google: returns token probabilities. */
  logprobs?: boolean
  price?: ModelPrices
}

/** Whether the model accepts `temperature` and `top_p` at this reasoning effort. */
export function acceptsSampling(model: ModelFacts, effort: unknown): boolean {
  switch (model.samplingParams) {
    case 'never':
      return false
    case 'when-thinking-off':
    case 'effort-none-only':
      return effort === 'none'
    case 'always':
    case undefined:
      return true
    default:
      return model.samplingParams satisfies never
  }
}
