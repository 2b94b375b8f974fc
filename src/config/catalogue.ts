/**
 * What the gateway knows of models: the shape of `models.yaml` and the look-up by id.
 * Reads no file; `load.ts` hands over the parsed values.
 */
import { z } from 'zod'
import type { ModelFacts, ModelFamily, ModelPrice } from '../chat/model.js'
import type { Catalogue } from './config.js'

const id = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})
const day = z.iso.date({ error: 'must be a day, as in 2026-04-23' })
const tokens = z.int().min(1).max(1_000_000_000)
const usd = z.number().min(0).max(1_000_000)
const words = z.array(z.string().min(1).max(64)).max(32)

const price = z.strictObject({
  input: usd.optional(),
  output: usd.optional(),
  cache_read: usd.optional(),
  cache_write: usd.optional(),
  cache_write_1h: usd.optional(),
  long_context: z
    .strictObject({ above_input_tokens: tokens, input: usd, output: usd })
    .optional()
    .describe('Other rates for a request with more input tokens than this.'),
})

const model = z.strictObject({
  id,
  family: z.enum(['openai', 'anthropic', 'google']),
  created: day.optional().describe('The day of its release; left out: the catalogue’s `as_of`.'),
  variants: z.array(id).max(64).optional().describe('Dated ids of the same model.'),
  shutdown: day.optional().describe('The day the vendor ends it.'),
  context_window: tokens.optional(),
  max_output_tokens: tokens.optional(),
  vision: z.boolean().optional(),
  audio_input: z.boolean().optional(),
  tools: z.boolean().optional(),
  reasoning: z.boolean().optional(),
  structured_output: z.boolean().optional(),
  structured_output_with_tools: z.boolean().optional(),
  endpoints: z
    .array(z.enum(['chat', 'responses']))
    .max(2)
    .optional(),
  chat_tools_with_reasoning: z.boolean().optional(),
  system_role: z.enum(['system', 'developer']).optional(),
  reasoning_efforts: words.optional(),
  sampling_params: z.enum(['always', 'never', 'when-thinking-off', 'effort-none-only']).optional(),
  thinking_types: words.optional(),
  thinking_default: z.enum(['adaptive', 'off']).optional(),
  thinking_can_disable: z.boolean().optional(),
  efforts: words.optional(),
  default_effort: z.string().min(1).max(64).optional(),
  preserved_thinking_prefix_check: z.boolean().optional(),
  forced_tool_choice: z.boolean().optional(),
  mid_conversation_system: z.boolean().optional(),
  assistant_prefill: z.boolean().optional(),
  thinking_levels: words.optional(),
  thinking_budget: z
    .strictObject({
      min: z.int().min(0).max(1_000_000_000),
      max: z.int().min(0).max(1_000_000_000),
      can_disable: z.boolean(),
    })
    .optional(),
  penalties: z.boolean().optional(),
  price: price.optional().describe('US dollars per million tokens.'),
})

/** The whole of `models.yaml`. A fact that is left out is "not known". */
export const catalogueSchema = z.strictObject({
  as_of: day.describe('The day the facts were gathered.'),
  models: z.array(model).min(1).max(100_000),
})

/** `models.yaml` after checking, in its own spelling. */
export type CatalogueValues = z.output<typeof catalogueSchema>
type ModelValues = CatalogueValues['models'][number]

/** A name that two entries claim, and where the second stands. */
export interface DuplicateId {
  readonly path: readonly PropertyKey[]
  readonly id: string
}

/** The names that stand twice, ids and variants together; empty is good. */
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

/** The catalogue of checked values. */
export function createCatalogue(values: CatalogueValues): Catalogue {
  const models = values.models.map((entry) => factsOf(entry, values.as_of))
  const byId = new Map<string, ModelFacts>()
  for (const facts of models) {
    byId.set(facts.id, facts)
    for (const variant of facts.variants ?? []) byId.set(variant, facts)
  }
  return { models, find: (asked) => findExtended(byId, asked) }
}

/** Exact, else the longest known id that `asked` extends with `-`: one look-up per dash. */
function findExtended(byId: ReadonlyMap<string, ModelFacts>, asked: string): ModelFacts | null {
  const exact = byId.get(asked)
  if (exact !== undefined) return exact
  for (let end = asked.lastIndexOf('-'); end > 0; end = asked.lastIndexOf('-', end - 1)) {
    const facts = byId.get(asked.slice(0, end))
    if (facts !== undefined) return facts
  }
  return null
}

const FAMILIES: readonly (readonly [RegExp, ModelFamily])[] = [
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
]

/**
 * The facts to work with for any id: the catalogue's, else only the family, told by the id's
 * beginning, with everything else not known. An id of no known family counts as `openai`, since any
 * other upstream is one that speaks its format.
 */
export function factsFor(catalogue: Catalogue, modelId: string): ModelFacts {
  const known = catalogue.find(modelId)
  if (known !== null) return known
  const family = FAMILIES.find(([pattern]) => pattern.test(modelId))?.[1] ?? 'openai'
  return { id: modelId, family, createdAtSeconds: 0 }
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
    thinkingLevels: entry.thinking_levels,
    thinkingBudget: thinkingBudget && {
      min: thinkingBudget.min,
      max: thinkingBudget.max,
      canDisable: thinkingBudget.can_disable,
    },
    penalties: entry.penalties,
    price: entry.price && priceOf(entry.price),
  })
}

function priceOf(values: z.output<typeof price>): ModelPrice {
  const long = values.long_context
  return present<ModelPrice>({
    input: values.input,
    output: values.output,
    cacheRead: values.cache_read,
    cacheWrite: values.cache_write,
    cacheWrite1h: values.cache_write_1h,
    longContext: long && {
      aboveInputTokens: long.above_input_tokens,
      input: long.input,
      output: long.output,
    },
  })
}

/** The same object without the keys whose value is `undefined`: absent is absent. */
function present<T extends object>(value: { [K in keyof T]: T[K] | undefined }): T {
  const entries = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(entries) as T
}
