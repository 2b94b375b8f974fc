/** What was used: sums over time, single requests, what happens now. Never a word that was said. */
import { z } from 'zod'
import {
  count,
  cursor,
  id,
  modelId,
  nanoUsd,
  numberText,
  scope,
  timeMs,
  timeText,
} from './basics.js'

const ms = z.number().min(0)

/** Who has to act on a failure; `limits`: a rate limit or budget of the gateway. */
export const cause = z.enum(['client', 'limits', 'gateway', 'provider'])

/** Sums of some requests. */
export const figures = z.strictObject({
  requests: count,
  /** Requests that failed or were refused, for any cause. */
  errors: count,
  /** `errors` by who has to act on them; fewer in all for requests that an earlier version of the gateway counted. */
  byCause: z.strictObject({ client: count, limits: count, gateway: count, provider: count }),
  /** Cached ones included. */
  inputTokens: count,
  /** Reasoning included. */
  outputTokens: count,
  /** Prompt tokens read from a provider's cache. */
  cachedTokens: count,
  reasoningTokens: count,
  spendNanoUsd: nanoUsd,
  /** Requests whose price is not known: where there are any, spend is at least what is said. */
  unpricedRequests: count,
  /** Requests whose tokens the provider did not report; they are estimated. */
  estimatedRequests: count,
  /** From the arrival of a request to its first content; null where none had any. Within a tenth or so. */
  firstTokenP50Ms: ms.nullable(),
  firstTokenP95Ms: ms.nullable(),
})

/** The same for one hour or day (UTC). */
export const usagePoint = figures.extend({ startMs: timeMs })

/** The same for one model or key. */
export const usageGroup = z.strictObject({
  /** A model's id or a key's, `playground`, or `other` for all beyond the largest. */
  id: z.string(),
  /** What to call it: a key's name. */
  label: z.string(),
  total: figures,
  /** Only times with requests, in order. */
  points: z.array(usagePoint),
})

/** `GET /usage`. Hours reach over 31 days, days over 400. */
export const usageQuery = z.strictObject({
  account: scope.optional(),
  by: z.enum(['hour', 'day']),
  fromMs: timeText,
  /** Exclusive. */
  toMs: timeText,
  group: z.enum(['none', 'model', 'key']).optional(),
  keyId: id.optional(),
  model: modelId.optional(),
})
/** Sums over time, whole and by group. */
export const usageReply = z.strictObject({
  by: z.enum(['hour', 'day']),
  /** As asked, moved out to whole hours or days. */
  fromMs: timeMs,
  toMs: timeMs,
  /** The server's clock: the hour or day that holds it is not over. */
  nowMs: timeMs,
  total: figures,
  /** Only times with requests, in order: what is missing is zero. */
  points: z.array(usagePoint),
  /** The largest first, by spend and then by requests: at most eight, and `other`. Empty for `none`. */
  groups: z.array(usageGroup),
})

/** Times of one request, in ms; absent: it did not get that far. In the order in which they happen. */
export const hops = z.strictObject({
  authenticate: ms.optional(),
  receive: ms.optional(),
  route: ms.optional(),
  admit: ms.optional(),
  connect: ms.optional(),
  /** From the request sent to the upstream's first byte. */
  firstByte: ms.optional(),
  translate: ms.optional(),
  /** From the first content to the end. */
  relay: ms.optional(),
  /** From the arrival of the request to its first content: not a stage but a mark. */
  firstContent: ms.optional(),
  /** What of the whole was ours: not a stage but a sum. */
  overhead: ms.optional(),
})

/** One request. */
export const requestRow = z.strictObject({
  /** As in the response header `x-request-id`. */
  requestId: id,
  atMs: timeMs,
  durationMs: ms,
  accountId: id,
  /** A key's id, or `playground`. */
  keyId: z.string(),
  /** The key's name as it is now; null where it is not known. */
  keyName: z.string().nullable(),
  /** As the client wrote it; null where its body could not be read. */
  modelAsked: z.string().nullable(),
  modelAnswered: z.string().nullable(),
  /** What sums count it under; the `model` of the queries. */
  model: z.string(),
  upstream: z.string().nullable(),
  dialect: z.string().nullable(),
  /** Requests that were sent to upstreams for it. */
  attempts: count,
  stream: z.boolean(),
  /** 499: the client had left. */
  status: z.int(),
  /** `ok`, `lost` (the process died), or the kind of error. */
  outcome: z.string(),
  finish: z.string().nullable(),
  /** A count that is left out was not told. */
  usage: z.strictObject({
    input: count.optional(),
    output: count.optional(),
    cacheRead: count.optional(),
    cacheWrite: count.optional(),
    reasoning: count.optional(),
  }),
  source: z.enum(['reported', 'estimated', 'none']),
  costNanoUsd: nanoUsd.nullable(),
  /** Output tokens that the upstream went on to make after the client had left. */
  tokensAfterDisconnect: count,
  /** What translation could not carry, as paths. */
  losses: z.array(z.string()),
  /** Of the configuration. */
  generation: count,
  hops,
  /** The format that the client spoke; null where it is not known. */
  ingress: z.string().nullable(),
  /** Why it failed or was refused, as the client saw it. */
  errorMessage: z.string().nullable(),
  /** The rule that refused it, with its scope and window. */
  limit: z.string().nullable(),
  upstreamStatus: z.int().nullable(),
  upstreamRequestId: z.string().nullable(),
  /** Each attempt in order, `upstream:outcome`. */
  attempted: z.string().nullable(),
  /** The request that this one repeats for comparison. */
  shadowOf: z.string().nullable(),
  /** `k=v`, with spaces between. */
  labels: z.string().nullable(),
  clientRequestId: z.string().nullable(),
  /** Who has to act on the failure; null if the request succeeded. */
  cause: cause.nullable(),
  /** How long each attempt took up to its first content or its failure, in the order of `attempted`. */
  attemptMs: z.array(ms).nullable(),
  /** The `retry-after` that the client was sent. */
  retryAfterSeconds: z.number().nullable(),
  /** The prices that the cost was computed with; null if none were. */
  priceVersion: z.string().nullable(),
})

/** `GET /requests`: newest first. The same query makes a file: `GET /requests.csv` (no `after`, no `limit`). */
export const requestsQuery = z.strictObject({
  account: scope.optional(),
  keyId: id.optional(),
  model: modelId.optional(),
  /** The model that the client asked for; compared as a whole. */
  modelAsked: z.string().min(1).max(256).optional(),
  upstream: z.string().min(1).max(100).optional(),
  /** The HTTP status. */
  status: numberText(100, 599).optional(),
  /** This request alone, if it meets the other conditions. */
  requestId: id.optional(),
  /** The id that the client gave the request. */
  clientRequestId: z.string().min(1).max(256).optional(),
  /** Either of both ids. */
  anyId: z.string().min(1).max(256).optional(),
  /** `ok`, `failed` (any failure) or a kind of error; left out: all. */
  outcome: z
    .string()
    .regex(/^[a-z_]{2,40}$/, { error: 'must be ok, failed or a kind of error' })
    .optional(),
  /** Failures that this side has to act on. */
  cause: cause.optional(),
  /** The format that the client spoke, such as `messages`. */
  ingress: z
    .string()
    .regex(/^[a-z]{1,20}$/, { error: 'is not a client format' })
    .optional(),
  /** One label, as `name=value`. */
  label: z.string().min(3).max(330).optional(),
  fromMs: timeText.optional(),
  /** Exclusive. */
  toMs: timeText.optional(),
  after: cursor.optional(),
  /** 1 to 200; 50 where left out. */
  limit: numberText(1, 200).optional(),
})
/** Which requests go into the file: at most 100,000 rows. */
export const requestsCsvQuery = requestsQuery.omit({ after: true, limit: true })
/** A page of requests; it may be short or even empty and not the last. */
export const requestsReply = z.strictObject({
  rows: z.array(requestRow),
  next: z.string().nullable(),
})

/** `GET /requests/{id}`, which takes this query. */
export const requestQuery = z.strictObject({ account: scope.optional() })
/** One request. */
export const requestReply = z.strictObject({ row: requestRow })

/**
 * `GET /live`: what happens now. To be asked each second while the page is seen; it comes with an `etag`,
 * and a browser's own cache then answers where nothing has changed (fetch with `cache: 'no-cache'`).
 * The state is not in the connection: any process of the gateway answers, none has to remember.
 */
export const liveQuery = z.strictObject({ account: scope.optional() })
/** Replace the point of the same hour by `hour`; put the rows that are new on top. */
export const liveReply = z.strictObject({
  /** The newest 25, newest first. */
  rows: z.array(requestRow),
  /** Sums of the hour that runs, in all and by model. */
  hour: usagePoint,
  models: z.array(z.strictObject({ id: z.string(), hour: usagePoint })),
  /** Of the configuration in force. */
  generation: count,
})

/** Who has to act on a failure. */
export type Cause = z.output<typeof cause>
/** Sums of some requests. */
export type Figures = z.output<typeof figures>
/** The same for one hour or day. */
export type UsagePoint = z.output<typeof usagePoint>
/** The same for one model or key. */
export type UsageGroup = z.output<typeof usageGroup>
/** Which sums. */
export type UsageQuery = z.input<typeof usageQuery>
/** Sums over time. */
export type UsageReply = z.output<typeof usageReply>
/** One request. */
export type RequestRow = z.output<typeof requestRow>
/** Times of one request. */
export type Hops = z.output<typeof hops>
/** Which requests. */
export type RequestsQuery = z.input<typeof requestsQuery>
/** A page of requests. */
export type RequestsReply = z.output<typeof requestsReply>
/** One request. */
export type RequestReply = z.output<typeof requestReply>
/** What happens now. */
export type LiveReply = z.output<typeof liveReply>
