/**
 * The keys of a route: its models, its conditions, and the upstreams that may serve them.
 * Part of `config-file-schema.ts`; `check-routes.ts` checks the values.
 */
import { DAY_MS } from '../../base/time-units.js'
import * as z from 'zod'
import { EFFORTS, type RequestDefaults } from '../../formats/chat/request.js'
import { cacheControlOf, cacheControlSchema, routeCacheOf, routeCacheSchema } from './cache-schema.js'
import { guardrailNames, pluginHook } from './guardrails-schema.js'
import { section, type Section } from './section.js'
import { modelText, name, share, text, whole } from './value-types.js'

const upstreamName = name.describe('A name under `upstreams`.')
const upstreamModel = modelText
  .optional()
  .describe('The model to request from it. Default: the model that the client requested.')

const penalty = z.number().min(-2).max(2)

const defaults = z
  .strictObject({
    temperature: z.number().min(0).max(2).optional().describe('Randomness of the reply.'),
    top_p: share.optional().describe('Share of the probability from which tokens are drawn.'),
    max_tokens: whole(1, 100_000_000)
      .optional()
      .describe('Maximum tokens of the reply, under the name that the format has for it.'),
    reasoning_effort: z.enum(EFFORTS).optional().describe('Effort of reasoning models.'),
    verbosity: z.enum(['low', 'medium', 'high']).optional().describe('Length of the answer.'),
    seed: z.int().optional().describe('For repeatable replies, if the upstream supports them.'),
    stop: z
      .union([text(256), z.array(text(256)).min(1).max(16)], {
        error: 'must be a text, or a list of 1 to 16 texts',
      })
      .optional()
      .describe('Texts that end the reply.'),
    presence_penalty: penalty.optional().describe('Penalty for tokens that occurred before.'),
    frequency_penalty: penalty.optional().describe('Penalty for tokens by their number so far.'),
    parallel_tool_calls: z.boolean().optional().describe('Whether a reply may call several tools.'),
    service_tier: text(64).optional().describe('Tier of the provider.'),
  })
  .describe(
    'Members that a request to this target gets if the client left them out. Use `quirks.set` of an upstream for members that it always gets.',
  )

const abort = z
  .strictObject({
    error_rate: z
      .number()
      .gt(0)
      .max(1)
      .default(0.05)
      .describe('Share of failed requests from which the target is aborted, above 0 to 1.'),
    min_requests: whole(1, 1_000_000)
      .default(50)
      .describe('Minimum requests in the window before the target can be aborted.'),
    window_seconds: whole(1, 604_800).default(3_600).describe('Time over which failures are counted.'),
  })
  .describe(
    'Takes the target out of use when it fails too often, for a canary: its weight becomes 0 until the next generation of the configuration. Failures of the provider count, as circuit breakers count them, and all workers count together. The route must have another target without `abort`.',
  )

/** The most of a target's weight. */
export const MAX_WEIGHT = 1_000_000

const target = z.strictObject({
  upstream: upstreamName,
  weight: z
    .number()
    .min(0)
    .max(MAX_WEIGHT)
    .default(1)
    .describe(
      'Its share of the requests, relative to the weights of the other targets. A target with weight 0 receives no request. At least one weight must be above 0.',
    ),
  model: upstreamModel,
  defaults: defaults.optional(),
  abort: abort.optional(),
})

const namedTarget = z.strictObject({ upstream: upstreamName, model: upstreamModel })
const fallbackTarget = namedTarget.extend({ defaults: defaults.optional() })

const when = z
  .strictObject({
    labels: z
      .record(text(64), text(256))
      .optional()
      .describe('Labels that the API key must have, all of them: `{ team: research }`.'),
    images: z
      .boolean()
      .optional()
      .describe('true: the request must contain an image. false: it must contain none.'),
    tools: z
      .boolean()
      .optional()
      .describe('true: the request must define tools. false: it must define none.'),
    min_prompt_tokens: whole(1, 1_000_000_000)
      .optional()
      .describe('Minimum size of the prompt, in tokens as the gateway estimates them.'),
    plugin: pluginHook.optional().describe('`PLUGIN.NAME`: a condition of a plugin that `plugins` loads.'),
  })
  .describe(
    'Conditions. The route takes a request only if all of them hold. Of several routes with the same `model` or `prefix`, those with `when` are tried first, in file order, then the one without. If none fits, the next shorter prefix is tried.',
  )

/** `retry` of a route. */
const retrySchema = z
  .strictObject({
    attempts: whole(1, 10)
      .default(3)
      .describe('Maximum attempts on one target before the next target is tried.'),
    budget: share
      .default(0.2)
      .describe(
        'Retries on the same target, as a share of the requests that its upstream received in the last 10 seconds. At least 3 retries are always allowed.',
      ),
    max_wait_ms: whole(0, DAY_MS)
      .default(5_000)
      .describe(
        'Maximum wait before a retry. If the upstream requires more in `Retry-After`, the request is sent to the next target instead.',
      ),
    non_idempotent: z
      .boolean()
      .default(false)
      .describe(
        'Whether a request that the upstream may have executed already (a timeout or a lost connection after the whole request was sent) is sent to the next target. A request with an `idempotency-key` header always is.',
      ),
  })
  .describe(
    'Retries of a request before the first content of its reply. Default: one attempt on each target, then the next target and `fallback`.',
  )

/** `hedge` of a route. */
const hedgeSchema = z
  .strictObject({
    after_ms: whole(1, DAY_MS)
      .default(1_500)
      .describe(
        'Time without any content after which a second request is sent: to another target, else to the same one.',
      ),
    extra_spend: share
      .default(0.02)
      .describe(
        'Maximum estimated cost of second requests, as a share of the cost of all requests of the route in the last 10 minutes. One second request a minute is always allowed.',
      ),
  })
  .describe(
    'A second request when the first content is late. The reply that has content first is used and the other is cancelled. Default: no second request.',
  )

const shadow = z
  .strictObject({
    upstream: upstreamName,
    model: upstreamModel,
    percent: z
      .number()
      .min(0)
      .max(100)
      .default(1)
      .describe('Share of the requests of the route that are copied, 0 to 100.'),
    usd_per_day: z
      .number()
      .min(0)
      .max(1_000_000)
      .default(10)
      .describe(
        'Maximum cost of the copies per calendar day (UTC), over all gateways on the store. A copy whose highest possible cost does not fit is not sent.',
      ),
    concurrent: whole(1, 10_000)
      .default(16)
      .describe('Maximum number of concurrent copies, over all gateways.'),
  })
  .describe(
    'Sends a copy of some requests to another target, to compare it. The reply of the copy is dropped, and nothing about it changes what the client gets. Each copy is a ledger entry of its own (`shadow_of`), charged to no key. Requests whose replies are stored, and native access, are never copied.',
  )

/** `routes[]` */
export const routeSchema = z.strictObject({
  // The schema accepts an empty prefix; `check-routes.ts` refuses it with a better message.
  prefix: z
    .string()
    .regex(/^[!-~]{0,256}$/, {
      error: 'must be 1 to 256 printable ASCII characters without spaces',
    })
    .optional()
    .describe('Matches every model id that starts with this text. The longest matching prefix wins.'),
  model: modelText
    .optional()
    .describe(
      'Matches exactly this model id, before any prefix. With `targets` that name a `model`, it is an alias. `*` matches every model that no other route takes.',
    ),
  strip: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'With `prefix`, which must start with it: this start is cut off before the model goes to a target without `model`. Price and facts are those of the rest: with `{ prefix: mistral/, strip: mistral/ }`, `mistral/mistral-small` is `mistral-small` at the upstream.',
    ),
  when: when.optional(),
  upstream: name
    .optional()
    .describe(
      'A name under `upstreams`: the only target. Shorthand for `targets` with one entry without `model`.',
    ),
  targets: z
    .array(target)
    .min(1)
    .max(64)
    .optional()
    .describe(
      'The upstreams that share the requests by weight. If one fails, the others are tried, in the order of their weights.',
    ),
  sticky: z
    .enum(['none', 'conversation', 'key'])
    .default('none')
    .describe(
      'What keeps the choice of the target stable. `conversation`: the system prompt and the first user message, so that the later turns of a conversation reach the upstream that has them in its prompt cache. `key`: the API key. `none`: each request is chosen for by itself.',
    ),
  balance: z
    .enum(['weighted', 'least_latency'])
    .default('weighted')
    .describe(
      'How the target is chosen. `weighted`: at random, by weight. `least_latency`: two targets are drawn by weight, and the one with the lower time to first content takes the request.',
    ),
  fallback: z
    .array(fallbackTarget)
    .max(64)
    .default([])
    .describe(
      'Further targets, tried in order when all `targets` failed or their circuit breakers are open.',
    ),
  retry: retrySchema.optional(),
  hedge: hedgeSchema.optional(),
  shadow: shadow.optional(),
  cache: routeCacheSchema.optional(),
  cache_control: cacheControlSchema.optional(),
  guardrails: guardrailNames
    .default([])
    .describe(
      'Names under `guardrails` that judge the requests and replies of this route, in this order. A masked text is what the next one and the upstream get.',
    ),
})

/** The checked values of a route in the file's spelling. */
export type RouteValues = z.output<typeof routeSchema>

/** The resolved form; only for values without findings of `checkRoutes`. */
export function routeOf(route: RouteValues) {
  const { upstream, targets = [], retry, hedge } = route
  return {
    match: matchOf(route),
    /** The start of the requested model that targets without a model do not get; often empty. */
    strip: route.strip ?? '',
    /** Null: the route takes every request for its models. */
    when: whenOf(route.when),
    /** At least one, with at least one weight above 0. */
    targets: (upstream === undefined ? targets : [{ upstream, weight: 1 }]).map(targetOf),
    sticky: route.sticky,
    balance: route.balance,
    /** Tried in order after the targets. */
    fallback: route.fallback.map(fallbackOf),
    retry: retry === undefined ? NO_RETRY : section(retrySchema, retry),
    /** Null: no hedging. */
    hedge: hedge === undefined ? null : section(hedgeSchema, hedge),
    /** Null: no copies. */
    shadow: route.shadow === undefined ? null : shadowOf(route.shadow),
    cache: routeCacheOf(route.cache),
    cacheControl: cacheControlOf(route.cache_control),
    /** Names of guardrails, in order. */
    guardrails: route.guardrails,
  }
}

const NO_RETRY: Section<z.output<typeof retrySchema>> = {
  attempts: 1,
  budget: 0,
  maxWaitMs: 0,
  nonIdempotent: false,
}

/** The model of a route that matches every model. */
const EVERY_MODEL = '*'

/** What a route matches: a model, or the models that start with a text; empty: all of them. */
type Match = { model: string } | { prefix: string }

function matchOf({ model, prefix = '' }: RouteValues): Match {
  return model === undefined || model === EVERY_MODEL ? { prefix } : { model }
}

function fallbackOf({ defaults: given, ...values }: z.output<typeof fallbackTarget>) {
  return { ...section(namedTarget, values), ...(given === undefined ? {} : { defaults: defaultsOf(given) }) }
}

function defaultsOf({ stop, max_tokens: maxTokens, ...others }: z.output<typeof defaults>): RequestDefaults {
  const given = Object.entries(section(defaults, others)).filter(([, value]) => value !== null)
  return {
    ...Object.fromEntries(given),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(stop === undefined ? {} : { stop: typeof stop === 'string' ? [stop] : stop }),
  }
}

function targetOf(values: z.output<typeof target>) {
  const { upstream, model, defaults: given } = values
  return {
    ...fallbackOf({ upstream, model, defaults: given }),
    weight: values.weight,
    /** Null: it stays in use regardless of failures. */
    abort: values.abort === undefined ? null : abortOf(values.abort),
  }
}

function abortOf(values: z.output<typeof abort>) {
  const { windowSeconds, ...thresholds } = section(abort, values)
  return { ...thresholds, windowMs: windowSeconds * 1_000 }
}

function shadowOf(values: z.output<typeof shadow>) {
  const { usdPerDay, ...settings } = section(shadow, values)
  return { ...settings, nanoUsdPerDay: Math.round(usdPerDay * 1e9) }
}

/** Null without conditions. */
export function whenOf(values: z.output<typeof when> = {}) {
  const { labels, ...others } = section(when, values)
  const sorted = Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  if (sorted.length === 0 && Object.values(others).every((other) => other === null)) return null
  return {
    /** Labels that the key must have; empty: no condition. */
    labels: Object.fromEntries(sorted),
    ...others,
  }
}
