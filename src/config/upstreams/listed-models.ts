/**
 * `upstreams.NAME.models`: models of an upstream that are not in the catalogue, such as those of a local
 * server.
 */
import { z } from 'zod'
import type { ModelFacts, ModelPrice } from '../../chat/model.js'
import { factsOfFamily } from '../catalogue.js'
import { familySchema, priceFacts, priceSchema } from '../schema-and-defaults/catalogue-schema.js'
import type { Path, ReportFinding } from '../problem.js'

const id = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})
const tokens = z.int().min(1).max(1_000_000_000)

const entry = z.strictObject({
  id: id.describe('The model id that clients request.'),
  family: familySchema
    .optional()
    .describe(
      "The model's maker; `owned_by` in the model list. Default: the name of the upstream.",
    ),
  context_window: tokens.optional().describe('Maximum tokens of prompt and reply.'),
  max_output_tokens: tokens.optional().describe('Maximum tokens of a reply.'),
  vision: z.boolean().optional().describe('Supports images in prompts.'),
  tools: z.boolean().optional().describe('Supports function tools.'),
  price: priceSchema
    .optional()
    .describe('US dollars per million tokens at this upstream, like an entry of `prices`.'),
})

/** `models` of an upstream. */
export const modelsSchema = z
  .array(z.union([id, entry], { error: 'must be a model id, or a map with an id' }))
  .max(1_000)
  .default([])
  .describe(
    'Models of this upstream that are not in the catalogue: ids, or maps `{ id, family, context_window, max_output_tokens, vision, tools, price }` of which only `id` is required. `family` is the maker of the model (default: the name of the upstream), `price` is like an entry of `prices`. `GET /v1/models` lists those that match a route. An entry of the catalogue with the same id wins, except for the price.',
  )

type Values = z.output<typeof modelsSchema>

/** Reports duplicate ids. */
export function checkListed(values: Values, path: Path, report: ReportFinding): void {
  const seen = new Set<string>()
  values.forEach((value, index) => {
    const listed = idOf(value)
    if (seen.has(listed)) report([...path, index], `Duplicate model id "${listed}"`)
    seen.add(listed)
  })
}

/** The facts of the listed models, without prices, which are specific to the upstream. */
export function listedFacts(values: Values, upstream: string): ModelFacts[] {
  return values.map((value) => {
    const facts = factsOfFamily(idOf(value), upstream)
    if (typeof value === 'string') return facts
    if (value.family !== undefined) facts.family = value.family
    if (value.context_window !== undefined) facts.contextWindow = value.context_window
    if (value.max_output_tokens !== undefined) facts.maxOutputTokens = value.max_output_tokens
    if (value.vision !== undefined) facts.vision = value.vision
    if (value.tools !== undefined) facts.tools = value.tools
    return facts
  })
}

/** The prices of the listed models, by id. */
export function listedPrices(values: Values): Record<string, ModelPrice> {
  const prices: [string, ModelPrice][] = []
  for (const value of values) {
    if (typeof value !== 'string' && value.price !== undefined) {
      prices.push([value.id, priceFacts(value.price)])
    }
  }
  return Object.fromEntries(prices)
}

function idOf(value: Values[number]): string {
  return typeof value === 'string' ? value : value.id
}
