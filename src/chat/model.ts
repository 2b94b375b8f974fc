/**
 * What the catalogue knows of a model: the facts that an encoder or a price needs.
 * `undefined` is "not known"; an encoder then does what is right for the newest model of the family.
 */

/** Makers whose own formats and rules the gateway knows. A model of any other maker has none of its own. */
export type ModelFamily = 'openai' | 'anthropic' | 'google'

/** USD per million tokens. */
export interface ModelPrice {
  input?: number
  output?: number
  cacheRead?: number
  cacheWrite?: number
  cacheWrite1h?: number
  /** Output tokens spent on reasoning, where they cost other than the rest. */
  reasoning?: number
  /** What a tier of the vendor's takes, as a multiple of these rates, by the name that replies give it. */
  serviceTiers?: Readonly<Record<string, number>>
  /** Other rates for a request with more input tokens than this. */
  longContext?: {
    aboveInputTokens: number
    input: number
    output: number
    /** Where they are absent, the cache keeps its share of the input rate. */
    cacheRead?: number
    cacheWrite?: number
  }
}

/** One line of the catalogue. Counts are tokens; prices are US dollars per million of them. */
export interface ModelFacts {
  id: string
  /** Who makes the model: a `ModelFamily` or any other name; `owned_by` in the model list. */
  family: string
  /** Seconds since 1970 for the model list. */
  createdAtSeconds: number
  /** Dated ids of the same model. */
  variants?: string[]
  /** The day the vendor ends it, `2027-04-01`. */
  shutdownDate?: string
  contextWindow?: number
  maxOutputTokens?: number
  /** Google: of a reply that is not streamed. */
  maxOutputTokensWhole?: number
  /** It makes vectors, not replies. */
  embedding?: boolean
  vision?: boolean
  audioInput?: boolean
  tools?: boolean
  reasoning?: boolean
  structuredOutput?: boolean
  structuredOutputWithTools?: boolean
  /** OpenAI: which endpoints serve it. */
  endpoints?: ('chat' | 'responses')[]
  /** OpenAI: whether chat takes function tools while reasoning is on. */
  chatToolsWithReasoning?: boolean
  systemRole?: 'system' | 'developer'
  reasoningEfforts?: string[]
  /** OpenAI: whether it takes stop sequences. */
  stop?: boolean
  /** OpenAI: whether it takes `prompt_cache_retention`. */
  promptCacheRetention?: boolean
  /** OpenAI: whether it knows `prompt_cache_options` and breakpoints. */
  promptCacheBreakpoints?: boolean
  samplingParams?: 'always' | 'never' | 'when-thinking-off' | 'effort-none-only'
  /** Anthropic. */
  thinkingTypes?: string[]
  thinkingDefault?: 'adaptive' | 'off'
  /** Whether a request can turn thinking off; where not, it is always on. */
  thinkingCanDisable?: boolean
  /** Values of `output_config.effort`. */
  efforts?: string[]
  defaultEffort?: string
  /** The vendor checks that the thinking of earlier turns comes back unchanged. */
  preservedThinkingPrefixCheck?: boolean
  forcedToolChoice?: boolean
  midConversationSystem?: boolean
  assistantPrefill?: boolean
  /** Google: whether it takes a system instruction. */
  systemInstruction?: boolean
  /** Google: whether it checks thought signatures and knows the ids of calls, as from generation 3. */
  callSignatures?: boolean
  thinkingLevels?: string[]
  thinkingBudget?: { min: number; max: number; canDisable: boolean }
  penalties?: boolean
  /** Google: the most answers to one request, `n`; left out: one. */
  maxCandidates?: number
  /** Google: whether it tells how likely each word was. */
  logprobs?: boolean
  price?: ModelPrice
}

/** Whether the model takes `temperature` and `top_p` at this reasoning effort. */
export function takesSampling(model: ModelFacts, effort: unknown): boolean {
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
