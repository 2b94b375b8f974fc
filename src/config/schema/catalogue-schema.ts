/** The schema of `models.yaml`, and the conversion of its entries to the code's spelling. */
import * as z from 'zod'
import { hostedToolName } from '../../formats/chat/hosted-tools.js'
import { TASK_NAMES } from '../../formats/chat/operations.js'
import type {
  LongContextPrice,
  ModelFacts,
  ModelPrice,
  ModelPrices,
  TierPrice,
} from '../../formats/chat/model-facts.js'

const id = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})
const day = z.iso.date({ error: 'must be a date, as in 2026-04-23' })
const tokens = z.int().min(1).max(1_000_000_000)
const usd = z.number().min(0).max(1_000_000)
const word = z.string().min(1).max(64)

/** The maker of a model. */
export const familySchema = z.string().regex(/^[\w][\w.-]{0,63}$/, {
  error: 'must be 1 to 64 letters, digits, dots, dashes or underscores',
})

const flag = (means: string) => z.boolean().optional().describe(means)
const words = (means: string) => z.array(word).max(32).optional().describe(means)
const count = (means: string) => tokens.optional().describe(means)
const rate = (means: string) => usd.optional().describe(means)

/** A name in `calls`. */
const toolName = z.string().regex(/^[A-Za-z][\w-]{0,63}$/, {
  error: 'must be the type of a tool, such as web_search',
})

const rates = {
  input: rate('Prompt tokens.'),
  output: rate('Reply tokens.'),
  cache_read: rate('Prompt tokens read from the cache.'),
  cache_write: rate('Prompt tokens written to the cache.'),
  cache_write_1h: rate('Prompt tokens written to a cache that lasts one hour.'),
  reasoning: rate('Reply tokens spent on reasoning; default: the rate of `output`.'),
  input_audio: rate('Prompt tokens of sound. Without it their cost is unknown.'),
  cached_audio: rate('Prompt tokens of sound read from the cache; default: the rate of `input_audio`.'),
  output_audio: rate('Reply tokens of sound. Without it their cost is unknown.'),
  input_image: rate('Prompt tokens of pictures; default: the rate of `input`.'),
  cached_image: rate(
    'Prompt tokens of pictures read from the cache; default: the rate of `input_image`, or of `cache_read` without one.',
  ),
  input_video: rate('Prompt tokens of videos; default: the rate of `input`.'),
  output_image: rate('Reply tokens of pictures. Without it their cost is unknown.'),
}

/** A key of `per_image`. */
const pictureKind = z.string().regex(/^(?:[a-z]{1,32}\/)?(?:\d{1,5}x\d{1,5}|\*)$/, {
  error: 'must be QUALITY/SIZE, QUALITY/*, SIZE or *, as in high/1536x1024',
})

const longContext = z
  .strictObject({
    above_input_tokens: tokens.describe('The rates below apply to prompts with more tokens.'),
    input: usd.describe('Prompt tokens.'),
    output: usd.describe('Reply tokens.'),
    cache_read: rate('Default: the same ratio to the input rate as above.'),
    cache_write: rate('Default: the same ratio to the input rate as above.'),
  })
  .optional()
  .describe('Rates for long prompts.')

const tierSchema = z.strictObject({ ...rates, long_context: longContext })

/** Prices of a model, in the catalogue or of one upstream. */
const priceSchema = z.strictObject({
  ...rates,
  per_search: usd
    .optional()
    .describe(
      'US dollars per search of a ranking: one query with up to 100 documents, each of at most 500 tokens with the query. A request whose upstream does not count searches is charged the number that follows from its texts.',
    ),
  per_character: usd
    .optional()
    .describe('US dollars per character (Unicode code point) of a text that becomes speech.'),
  per_second_audio: usd.optional().describe('US dollars per second of sound that is received as input.'),
  min_audio_seconds: z
    .number()
    .min(0)
    .max(3600)
    .optional()
    .describe('Seconds of sound that each request is charged at least; default 0.'),
  per_page: usd.optional().describe('US dollars per page of a document that is read.'),
  per_image: z
    .union([usd, z.record(pictureKind, usd)], {
      error: 'must be a number, or a map such as { "high/1536x1024": 0.25, "high/*": 0.3, "*": 0.3 }',
    })
    .optional()
    .describe(
      'US dollars per picture that is made: a number, or a map by quality and size, `{ "1024x1024": 0.04, "high/1536x1024": 0.25, "high/*": 0.3, "*": 0.3 }`. The most specific entry counts: `QUALITY/SIZE`, `QUALITY/*`, `SIZE`, `*`; quality and size are those of the reply, else of the request.',
    ),
  service_tiers: z
    .record(
      word,
      z.union([z.number().min(0).max(100), tierSchema], {
        error: 'must be a multiple, as in 0.5, or a map of rates',
      }),
    )
    .optional()
    .describe(
      'Prices of service tiers: a multiple of these rates, `{ flex: 0.5 }`, or a map with rates of its own, `{ priority: { input: 5, output: 30 } }`, of the same kinds as here and with `long_context`. A rate that the map lacks keeps its share of `input` or `output`. The price of any other tier except the standard one is unknown.',
    ),
  calls: z
    .record(toolName, usd)
    .optional()
    .describe(
      'US dollars per call of a tool that the provider runs, by its name in `allow_tools`: `{ web_search: 0.01 }`. The price of a call of any other tool is unknown, except for `mcp`, `url_context` and `web_fetch`, whose calls cost nothing by themselves.',
    ),
  long_context: longContext,
})

/** A price, or a list of prices with the days on which they begin. */
export const pricesSchema = z.union(
  [
    priceSchema,
    z
      .array(priceSchema.extend({ from: day.optional() }))
      .min(1)
      .max(32),
  ],
  { error: 'must be a map of rates, or a list of maps with the key from' },
)

const model = z.strictObject({
  id: id.describe('The model id that clients request.'),
  family: familySchema.describe(
    "The model's maker; `owned_by` in the model list. The rules of `openai`, `anthropic` and `google` are built in; other names are allowed and have no rules.",
  ),
  created: day.optional().describe("The date of its release; default: the catalogue's `as_of`."),
  variants: z.array(id).max(64).optional().describe('Dated ids of the same model.'),
  shutdown: day.optional().describe('The date on which the vendor shuts it down.'),
  context_window: count('Maximum tokens of prompt and reply.'),
  max_output_tokens: z
    .int()
    .min(0)
    .max(1_000_000_000)
    .optional()
    .describe('Maximum tokens of a reply; 0 for an embedding model.'),
  max_output_tokens_whole: count('Google: maximum tokens of a reply that is not streamed.'),
  max_image_tokens: count('Maximum tokens of one picture that it makes, in the dearest quality and size.'),
  max_input_image_tokens: count('Maximum tokens of one picture that it reads.'),
  max_audio_seconds: count('Maximum seconds of sound of one request.'),
  embedding: flag('An embedding model: returns vectors.'),
  operations: z
    .array(z.enum(TASK_NAMES))
    .min(1)
    .max(TASK_NAMES.length)
    .optional()
    .describe('What the model is for, if it neither converses nor embeds.'),
  vision: flag('Supports images in prompts.'),
  audio_input: flag('Supports audio in prompts.'),
  tools: flag('Supports function tools.'),
  reasoning: flag('Supports reasoning.'),
  structured_output: flag('Supports a JSON schema for its reply.'),
  structured_output_with_tools: flag('Google: supports a schema and tools in one request.'),
  endpoints: z
    .array(z.enum(['chat', 'responses']))
    .max(2)
    .optional()
    .describe('OpenAI: which endpoints serve it.'),
  chat_tools_with_reasoning: flag('OpenAI: chat completions supports tools with reasoning.'),
  system_role: z.enum(['system', 'developer']).optional().describe('OpenAI: the role of instructions.'),
  reasoning_efforts: words('OpenAI: values of `reasoning_effort`.'),
  stop: flag('OpenAI: supports stop sequences.'),
  prompt_cache_retention: flag('OpenAI: supports `prompt_cache_retention`.'),
  prompt_cache_breakpoints: flag('OpenAI: supports `prompt_cache_options` and breakpoints.'),
  sampling_params: z
    .enum(['always', 'never', 'when-thinking-off', 'effort-none-only'])
    .optional()
    .describe('When it accepts `temperature` and `top_p`.'),
  cache_min_tokens: count('Minimum tokens of a prefix that the prompt cache keeps; default 4096.'),
  thinking_types: words('Anthropic: values of `thinking.type`.'),
  thinking_default: z
    .enum(['adaptive', 'off'])
    .optional()
    .describe('Anthropic: thinking if the request does not set it.'),
  thinking_can_disable: flag('Anthropic: a request can turn thinking off.'),
  efforts: words('Anthropic: values of `output_config.effort`.'),
  default_effort: word.optional().describe('Anthropic: effort if the request does not set it.'),
  preserved_thinking_prefix_check: flag('Anthropic: earlier thinking must be sent back unchanged.'),
  forced_tool_choice: flag('Anthropic: a request can force a tool.'),
  mid_conversation_system: flag('Anthropic: supports instructions between turns.'),
  assistant_prefill: flag('Anthropic: supports a last message that is the start of the reply.'),
  system_instruction: flag('Google: supports a system instruction.'),
  call_signatures: flag('Google: checks thought signatures and supports call ids (from generation 3).'),
  thinking_levels: words('Google: values of `thinkingLevel`.'),
  thinking_budget: z
    .strictObject({
      min: z.int().min(0).max(1_000_000_000).describe('Minimum tokens.'),
      max: z.int().min(0).max(1_000_000_000).describe('Maximum tokens.'),
      can_disable: z.boolean().describe('A budget of 0 turns thinking off.'),
    })
    .optional()
    .describe('Google: range of `thinkingBudget`.'),
  penalties: flag('Google: supports presence and frequency penalties.'),
  max_candidates: z
    .int()
    .min(1)
    .max(8)
    .optional()
    .describe('Google: maximum candidates of one request (`n`); default 1.'),
  logprobs: flag('Google: supports `logprobs`.'),
  source: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'What the facts are from. `sluice models update` replaces entries with another source than `own`.',
    ),
  as_of: day.optional().describe("The date of these facts; default: the catalogue's `as_of`."),
  price: pricesSchema
    .optional()
    .describe(
      'US dollars per million tokens: a map, or a list of maps with `from: DATE`. Of a list, the entry with the latest `from` that has begun when the request arrives holds (UTC); an entry without `from` has always begun.',
    ),
})

/** `models.yaml`. An absent fact is unknown. */
export const catalogueSchema = z.strictObject({
  as_of: day.describe('The date on which the facts were collected.'),
  models: z.array(model).min(1).max(100_000).describe('The models, in the order of the model list.'),
})

/** The checked values of `models.yaml` in the file's spelling. */
type CatalogueValues = z.output<typeof catalogueSchema>
type ModelValues = CatalogueValues['models'][number]

/** An id that two entries use, with the path of the second. */
interface DuplicateId {
  readonly path: readonly PropertyKey[]
  readonly id: string
}

/** Duplicate names, of ids and variants; empty if there are none. */
export function duplicateIds(values: CatalogueValues): DuplicateId[] {
  const seen = new Set<string>()
  const found: DuplicateId[] = []
  const claim = (text: string, path: readonly PropertyKey[]): void => {
    if (seen.has(text)) found.push({ path, id: text })
    seen.add(text)
  }
  values.models.forEach((entry, index) => {
    claim(entry.id, ['models', index, 'id'])
    entry.variants?.forEach((variant, at) => claim(variant, ['models', index, 'variants', at]))
  })
  return found
}

/** The facts of checked values, in file order. */
export function factsOfCatalogue(values: CatalogueValues): ModelFacts[] {
  return values.models.map((entry) => factsOf(entry, values.as_of))
}

function factsOf(entry: ModelValues, asOf: string): ModelFacts {
  const thinkingBudget = entry.thinking_budget
  return present<ModelFacts>({
    id: entry.id,
    family: entry.family,
    createdAtSeconds: Date.parse(`${entry.created ?? asOf}T00:00:00Z`) / 1000,
    variants: entry.variants,
    shutdownDate: entry.shutdown,
    contextWindow: entry.context_window,
    maxOutputTokens: entry.max_output_tokens,
    maxOutputTokensWhole: entry.max_output_tokens_whole,
    maxImageTokens: entry.max_image_tokens,
    maxInputImageTokens: entry.max_input_image_tokens,
    maxAudioSeconds: entry.max_audio_seconds,
    embedding: entry.embedding,
    operations: entry.operations,
    vision: entry.vision,
    audioInput: entry.audio_input,
    tools: entry.tools,
    reasoning: entry.reasoning,
    structuredOutput: entry.structured_output,
    structuredOutputWithTools: entry.structured_output_with_tools,
    endpoints: entry.endpoints,
    chatToolsWithReasoning: entry.chat_tools_with_reasoning,
    systemRole: entry.system_role,
    reasoningEfforts: entry.reasoning_efforts,
    stop: entry.stop,
    promptCacheRetention: entry.prompt_cache_retention,
    promptCacheBreakpoints: entry.prompt_cache_breakpoints,
    samplingParams: entry.sampling_params,
    thinkingTypes: entry.thinking_types,
    thinkingDefault: entry.thinking_default,
    thinkingCanDisable: entry.thinking_can_disable,
    efforts: entry.efforts,
    defaultEffort: entry.default_effort,
    preservedThinkingPrefixCheck: entry.preserved_thinking_prefix_check,
    forcedToolChoice: entry.forced_tool_choice,
    midConversationSystem: entry.mid_conversation_system,
    assistantPrefill: entry.assistant_prefill,
    systemInstruction: entry.system_instruction,
    callSignatures: entry.call_signatures,
    thinkingLevels: entry.thinking_levels,
    cacheMinTokens: entry.cache_min_tokens,
    thinkingBudget: thinkingBudget && {
      min: thinkingBudget.min,
      max: thinkingBudget.max,
      canDisable: thinkingBudget.can_disable,
    },
    penalties: entry.penalties,
    maxCandidates: entry.max_candidates,
    logprobs: entry.logprobs,
    price: entry.price && priceFacts(entry.price),
  })
}

/** A price, or a list of prices, in the code's spelling. */
export function priceFacts(values: z.output<typeof pricesSchema>): ModelPrices {
  if (!Array.isArray(values)) return onePrice(values)
  return values.map(({ from, ...price }) => ({ ...onePrice(price), ...(from !== undefined && { from }) }))
}

function onePrice(values: z.output<typeof priceSchema>): ModelPrice {
  const tiers = Object.entries(values.service_tiers ?? {})
  return present<ModelPrice>({
    ...rateFacts(values),
    serviceTiers:
      values.service_tiers &&
      Object.fromEntries(
        tiers.map(([name, tier]) => [name, typeof tier === 'number' ? tier : rateFacts(tier)]),
      ),
    perSearch: values.per_search,
    perCharacter: values.per_character,
    perSecondAudio: values.per_second_audio,
    minAudioSeconds: values.min_audio_seconds,
    perPage: values.per_page,
    perImage: values.per_image,
    calls: values.calls && callPrices(values.calls),
  })
}

function rateFacts(values: z.output<typeof tierSchema>): TierPrice {
  const long = values.long_context
  return present<TierPrice>({
    input: values.input,
    output: values.output,
    cacheRead: values.cache_read,
    cacheWrite: values.cache_write,
    cacheWrite1h: values.cache_write_1h,
    reasoning: values.reasoning,
    inputAudio: values.input_audio,
    cachedAudio: values.cached_audio,
    outputAudio: values.output_audio,
    inputImage: values.input_image,
    cachedImage: values.cached_image,
    inputVideo: values.input_video,
    outputImage: values.output_image,
    longContext:
      long &&
      present<LongContextPrice>({
        aboveInputTokens: long.above_input_tokens,
        input: long.input,
        output: long.output,
        cacheRead: long.cache_read,
        cacheWrite: long.cache_write,
      }),
  })
}

/** The prices by the names that requests and replies are counted under. */
function callPrices(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, price]) => [hostedToolName(name), price]))
}

/** The object without the keys whose value is `undefined`. */
function present<T extends object>(value: { [K in keyof T]: T[K] | undefined }): T {
  const entries = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(entries) as T
}
