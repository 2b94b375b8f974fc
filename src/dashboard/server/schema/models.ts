/** Models, where they lead, and a place to try them. */
import { z } from 'zod'
import { count, modelId, timeMs } from './basics.js'

/** US dollars per million tokens; left out: not known. */
export const price = z.strictObject({
  input: z.number().optional(),
  output: z.number().optional(),
  cacheRead: z.number().optional(),
  cacheWrite: z.number().optional(),
  /** Prompts longer than `aboveInputTokens` cost this. */
  longContext: z
    .strictObject({ aboveInputTokens: count, input: z.number(), output: z.number() })
    .optional(),
})

/** An upstream that a route may use, and the model that it is asked for. */
export const routeTarget = z.strictObject({
  upstream: z.string(),
  model: z.string(),
  /** Its share of the requests of the route, 0 to 1; 0 for a fallback. */
  share: z.number().min(0).max(1),
  /** Used, in order, when the others have failed. */
  isFallback: z.boolean(),
  /** Whether the upstream has a key. */
  configured: z.boolean(),
  /** Null: not known. */
  price: price.nullable(),
})

/** Where an id is sent now. */
export const route = z.strictObject({
  /** The route's own text: `gpt-` (a prefix) or `o1` (an id). */
  label: z.string(),
  upstream: z.string(),
  /** Whether the upstream has a key; where not it answers 503. */
  configured: z.boolean(),
  /** What the upstream is asked for. */
  model: z.string(),
  /** The format that is spoken to it, without tools and with them. */
  dialect: z.string(),
  dialectWithTools: z.string(),
  /** Conditions on the request, `labels.team=research, tools`; empty: none. */
  conditions: z.string(),
  /** All upstreams of the route, in the order of the file, fallbacks last. */
  targets: z.array(routeTarget),
})

/**
 * An id that the configuration makes: an alias of one model, or a virtual model with several targets. Clients ask for
 * it as for any model.
 */
export const alias = z.strictObject({ id: z.string(), route })

/** A model of the catalogue. Null is "not known". */
export const model = z.strictObject({
  id: z.string(),
  family: z.string(),
  releasedAtMs: timeMs,
  /** Dated ids of the same model. */
  variants: z.array(z.string()),
  /** The day its maker ends it, `2027-04-01`. */
  endsOn: z.string().nullable(),
  contextWindow: count.nullable(),
  maxOutputTokens: count.nullable(),
  vision: z.boolean().nullable(),
  audioInput: z.boolean().nullable(),
  tools: z.boolean().nullable(),
  reasoning: z.boolean().nullable(),
  structuredOutput: z.boolean().nullable(),
  price: price.nullable(),
  /** Null: no route takes it. */
  route: route.nullable(),
})

/** `GET /models`: the catalogue, in its own order. */
export const modelsReply = z.strictObject({
  models: z.array(model),
  /** Ids of routes that are not in the catalogue. */
  aliases: z.array(alias),
  /** The names of all upstreams. */
  upstreams: z.array(z.string()),
  generation: count,
})

/** `GET /models/explain`: where an id would go, in the catalogue or not. */
export const explainQuery = z.strictObject({ model: modelId })
/** The same as `sluice explain MODEL --json` says, in the page's spelling. */
export const explainReply = z.strictObject({
  model: z.string(),
  /** Null: clients get 404. */
  route: route.nullable(),
  /** One sentence. */
  why: z.string(),
  /** Why this dialect; null without a route. */
  dialectWhy: z.string().nullable(),
  /** Routes that fit, too, and lose. */
  others: z.array(z.string()),
  /** The entry of the catalogue that is used for it; null: only its family is known. */
  catalogueId: z.string().nullable(),
})

/** `POST /playground/gemini`: the model, which is in the path of that format. */
export const playgroundQuery = z.strictObject({ model: modelId })

/**
 * `POST /playground/chat`: the body of `POST /v1/chat/completions`, and its reply, whole or streamed, with its
 * errors; it runs as the account, under the key id `playground`. `/playground/responses`, `/playground/messages` and
 * `/playground/gemini` are the same for the other client formats. The header `x-request-id` of the reply is
 * the row's id: `GET /requests/{id}` has cost and hops as soon as the stream has ended. `server-timing` and
 * `x-sluice-lost` are there as on the data plane.
 */
export const playgroundBody = z.looseObject({ model: modelId, messages: z.array(z.unknown()) })

/** US dollars per million tokens. */
export type Price = z.output<typeof price>
/** Where an id is sent now. */
export type Route = z.output<typeof route>
/** An upstream of a route. */
export type RouteTarget = z.output<typeof routeTarget>
/** An alias or a virtual model. */
export type Alias = z.output<typeof alias>
/** A model of the catalogue. */
export type Model = z.output<typeof model>
/** The catalogue. */
export type ModelsReply = z.output<typeof modelsReply>
/** Which model. */
export type ExplainQuery = z.input<typeof explainQuery>
/** Where an id would go. */
export type ExplainReply = z.output<typeof explainReply>
