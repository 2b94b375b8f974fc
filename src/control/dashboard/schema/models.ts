/** Models, their routes, and the playground. */
import * as z from 'zod'
import { count, modelId, nanoUsdSum, scope, timeMs } from './shared-types.js'

/** US dollars per million tokens; an omitted member is unknown. */
export const price = z.strictObject({
  input: z.number().optional(),
  output: z.number().optional(),
  cacheRead: z.number().optional(),
  cacheWrite: z.number().optional(),
  /** The price of prompts with more than `aboveInputTokens` tokens. */
  longContext: z
    .strictObject({
      aboveInputTokens: count,
      input: z.number(),
      output: z.number(),
      cacheRead: z.number().optional(),
      cacheWrite: z.number().optional(),
    })
    .optional(),
})

/** A target of a route: an upstream and the model requested from it. */
export const routeTarget = z.strictObject({
  upstream: z.string(),
  model: z.string(),
  /** Share of the route's requests, 0 to 1; 0 for a fallback. */
  share: z.number().min(0).max(1),
  /** Used in order after the other targets have failed. */
  isFallback: z.boolean(),
  /** Whether the upstream has an API key. */
  configured: z.boolean(),
  /** Null: not known. */
  price: price.nullable(),
})

/** The current route of a model id. */
export const route = z.strictObject({
  /** The route's own text: `gpt-` (a prefix) or `o1` (an id). */
  label: z.string(),
  upstream: z.string(),
  /** Whether the upstream has an API key; without one, requests get 503. */
  configured: z.boolean(),
  /** The model requested from the upstream. */
  model: z.string(),
  /** The dialect of the upstream, without tools and with tools. */
  dialect: z.string(),
  dialectWithTools: z.string(),
  /** Conditions on the request, `labels.team=research, tools`; empty: none. */
  conditions: z.string(),
  /** All targets in the order of the file, fallbacks last. */
  targets: z.array(routeTarget),
})

/**
 * An id that the configuration adds: an alias of one model, or a virtual model with several targets. Clients
 * use it like any model id.
 */
export const alias = z.strictObject({ id: z.string(), route })

/** A model of the catalogue. Null is unknown. */
export const model = z.strictObject({
  id: z.string(),
  family: z.string(),
  releasedAtMs: timeMs.nullable(),
  /** Dated ids of the same model. */
  variants: z.array(z.string()),
  /** The day on which its provider shuts it down, `2027-04-01`. */
  endsOn: z.string().nullable(),
  contextWindow: count.nullable(),
  maxOutputTokens: count.nullable(),
  vision: z.boolean().nullable(),
  audioInput: z.boolean().nullable(),
  tools: z.boolean().nullable(),
  reasoning: z.boolean().nullable(),
  structuredOutput: z.boolean().nullable(),
  /** That of the catalogue, or of the upstream of its route. */
  price: price.nullable(),
  /** Null: no route serves it. */
  route: route.nullable(),
})

/** `GET /models`: the catalogue, in its order. */
export const modelsReply = z.strictObject({
  models: z.array(model),
  /** Ids of routes that are not in the catalogue. */
  aliases: z.array(alias),
  /** The names of all upstreams. */
  upstreams: z.array(z.string()),
  generation: count,
})

/** `GET /models/deprecated`: models with an announced end, and who still uses them. */
export const deprecatedQuery = z.strictObject({ account: scope.optional() })
const use = { requests: count, costNanoUsd: nanoUsdSum }
/** A model with an announced end; its use is that of the last 30 days (UTC), the largest first. */
export const deprecatedModel = z.strictObject({
  id: z.string(),
  family: z.string(),
  endsOn: z.string(),
  /** The newest model of the same maker with its abilities that has no announced end; null: none. */
  successor: z.string().nullable(),
  ...use,
  /** The mean of the days since its first request in this time. */
  requestsPerDay: z.number(),
  /** Only days with requests, in order. */
  days: z.array(z.strictObject({ startMs: timeMs, requests: count })),
  /** At most 50; `keyCount` is the number of all. */
  keys: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      accountId: z.string(),
      accountName: z.string().nullable(),
      ...use,
    }),
  ),
  keyCount: count,
  /** At most 50. */
  accounts: z.array(z.strictObject({ name: z.string(), ...use })),
  /** As `name=value`, at most 50. */
  labels: z.array(z.strictObject({ label: z.string(), ...use })),
})
/** In the order of their ends. */
export const deprecatedReply = z.strictObject({
  fromMs: timeMs,
  toMs: timeMs,
  models: z.array(deprecatedModel),
})

/** `GET /models/explain`: the route of an id, in the catalogue or not. */
export const explainQuery = z.strictObject({ model: modelId })
/** The content of `sluice explain MODEL --json`, in camelCase. */
export const explainReply = z.strictObject({
  model: z.string(),
  /** Null: clients get 404. */
  route: route.nullable(),
  /** One sentence. */
  why: z.string(),
  /** Why this dialect is used; null without a route. */
  dialectWhy: z.string().nullable(),
  /** Routes that also match but have lower precedence. */
  others: z.array(z.string()),
  /** The catalogue entry used for the id; null: only its family is known. */
  catalogueId: z.string().nullable(),
  /** The endpoints beside chat and embeddings that the route serves, and the form in which it does. */
  operations: z.array(z.strictObject({ operation: z.string(), upstream: z.string(), form: z.string() })),
  /** The other endpoints, each with the message of its refusal; absent or empty without a route. */
  notServed: z.array(z.strictObject({ operation: z.string(), reason: z.string() })).optional(),
})

/** `POST /playground/gemini`: the model, since the path of that format contains it. */
export const playgroundQuery = z.strictObject({ model: modelId })

/**
 * `POST /playground/chat`: the body of `POST /v1/chat/completions`, and its reply, whole or streamed, with
 * its errors. It runs as the account, under the key id `playground`. `/playground/responses`,
 * `/playground/messages` and `/playground/gemini` do the same for the other client formats. The reply's
 * header `x-request-id` is the id of the ledger entry: `GET /requests/{id}` has cost and timing once the
 * stream has ended. `server-timing` and `x-sluice-lost` are set as on the data plane.
 */
export const playgroundBody = z.looseObject({ model: modelId, messages: z.array(z.unknown()) })

/** US dollars per million tokens. */
export type Price = z.output<typeof price>
/** The current route of a model id. */
export type Route = z.output<typeof route>
/** An upstream of a route. */
export type RouteTarget = z.output<typeof routeTarget>
/** An alias or a virtual model. */
export type Alias = z.output<typeof alias>
/** A model of the catalogue. */
export type Model = z.output<typeof model>
/** The catalogue. */
export type ModelsReply = z.output<typeof modelsReply>
/** A model with an announced end. */
export type DeprecatedModel = z.output<typeof deprecatedModel>
/** Models with an announced end. */
export type DeprecatedReply = z.output<typeof deprecatedReply>
/** The query for a route. */
export type ExplainQuery = z.input<typeof explainQuery>
/** The route of an id, with the reason. */
export type ExplainReply = z.output<typeof explainReply>
