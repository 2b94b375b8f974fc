/** Usage: sums over time, single requests, the latest requests. Prompts and replies are never part of it. */
import * as z from 'zod'
import { entrySchema } from '../../../ledger/entry.js'
import {
  count,
  cursor,
  id,
  modelId,
  nanoUsdSum,
  numberText,
  rangeFields,
  scope,
  timeMs,
  search,
  several,
  sort,
  unit,
  zone,
} from './shared-types.js'

const ms = z.number().min(0)

/** Who has to act on a failure; `limits`: a rate limit or budget of the gateway. */
export const cause = z.enum(['client', 'limits', 'gateway', 'provider'])

/** Sums of some requests. */
export const figures = z.strictObject({
  requests: count,
  /** Requests that failed or were refused, for any cause. */
  failed: count,
  /** `failed` by cause; requests counted by earlier versions of the gateway have none. */
  byCause: z.strictObject({ client: count, limits: count, gateway: count, provider: count }),
  /** Cached ones included. */
  inputTokens: count,
  /** Reasoning included. */
  outputTokens: count,
  /** Prompt tokens read from a provider's cache. */
  cachedTokens: count,
  reasoningTokens: count,
  costNanoUsd: nanoUsdSum,
  /** Requests of unknown price; `costNanoUsd` excludes them. */
  unpricedRequests: count,
  /** Requests whose tokens the provider did not report; they are estimated. */
  estimatedRequests: count,
  /** Requests whose end was not received; their tokens are the maximum that they may have used. */
  assumedRequests: count,
  /** Requests that the gateway's own cache answered, and what they would have cost. */
  cacheHits: count,
  cacheSavedNanoUsd: count,
  /**
   * From the arrival of a request to its first content; null if no request had content. Accurate to a
   * few percent.
   */
  firstTokenP50Ms: ms.nullable(),
  firstTokenP95Ms: ms.nullable(),
})

/** The figures of one hour or day (UTC). */
export const usagePoint = figures.extend({ startMs: timeMs })

/** The figures of one model or key. */
export const usageGroup = z.strictObject({
  /**
   * A name; for keys the id or `playground`; `other` for all beyond the largest, which `isRest` tells from a
   * group of this name; `(unknown)` for models without a route.
   */
  id: z.string(),
  isRest: z.literal(true).optional(),
  /** The display name: a key's name. */
  label: z.string(),
  total: figures,
  /** Only periods with requests, in order. */
  points: z.array(usagePoint),
})

/** Sums of one group, in the spelling of the admin API. */
const reportRow = z.strictObject({
  /** A name; for keys the id; `(none)` for requests without the property. */
  group: z.string(),
  requests: count,
  failed: count,
  input_tokens: count,
  output_tokens: count,
  cost_nano_usd: nanoUsdSum,
  cost_usd: z.string(),
  unpriced_requests: count,
  units: z.record(z.string(), z.number()),
})

/**
 * How usage is grouped: a name, or `label:NAME` or `dimension:NAME` for the values of one. `below`: by the
 * accounts directly below the one of the query, each with all below it, and `(itself)`.
 */
const GROUPINGS = [
  'key',
  'model',
  'account',
  'parent',
  'root',
  'below',
  'member',
  'month',
  'upstream',
  'client_format',
  'program',
  'user',
] as const
const grouping = z.union([
  z.enum(GROUPINGS),
  z
    .string()
    .regex(/^(?:label:[^\s=]{1,100}|dimension:[a-z][a-z0-9_]{0,31})$/, { error: 'is not a grouping' }),
])

/** What every query for usage selects. */
const usageSelection = {
  account: scope.optional(),
  ...rangeFields,
  /**
   * The zone of days, as an IANA name; default UTC. Its days are made of hours, so that with a difference of
   * half an hour they begin half an hour later.
   */
  zone: zone.optional(),
  keyId: id.optional(),
  /** `(unknown)`: requests for models without a route. */
  model: modelId.optional(),
  /** With `account`: with all accounts below it. */
  tree: z.literal('true').optional(),
  /** The e-mail address of a person: requests with the keys that this person made. */
  member: z.string().min(1).max(256).optional(),
}

/** `GET /usage`. Minutes cover at most 8 hours, hours 31 days, days 400 days. */
export const usageQuery = z.strictObject({
  ...usageSelection,
  /** Default: the usual unit of `range`, else hours. */
  by: unit.optional(),
  group: z.union([z.literal('none'), grouping]).optional(),
  /** All groups as a file instead of JSON, as `GET /usage.csv`. */
  format: z.literal('csv').optional(),
})

/** `GET /usage/groups`: all groups of a range, as pages. */
export const usageGroupsQuery = z.strictObject({
  ...usageSelection,
  by: unit.optional(),
  group: grouping,
  /** A part of the name. */
  search: search.optional(),
  /** `name`, `requests`, `failed`, `inputTokens`, `outputTokens`, `cost`; `-` before it: descending. */
  sort: z.string().max(40).optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
/** The totals of a group in the range. */
export const groupRow = z.strictObject({
  /** A name; for keys the id; `(none)` for requests without the property, `(unknown)` for unknown models. */
  id: z.string(),
  /** The display name: a key's name. */
  label: z.string(),
  /** The account of a key, if it is of one only. */
  accountId: z.string().nullable(),
  accountName: z.string().nullable(),
  requests: count,
  failed: count,
  inputTokens: count,
  outputTokens: count,
  costNanoUsd: nanoUsdSum,
  unpricedRequests: count,
  /** Units other than tokens: `audio_second=61.5 image=2`; empty for none. */
  units: z.string(),
  /** The cost in the period before; null if that is not kept. */
  previousCostNanoUsd: nanoUsdSum.nullable(),
})
/** A page of groups. */
export const usageGroupsReply = z.strictObject({
  fromMs: timeMs,
  toMs: timeMs,
  zone: z.string(),
  rows: z.array(groupRow),
  next: z.string().nullable(),
  /** The number of groups that match. */
  total: count,
})

/** `GET /usage.csv`: all groups as a file; the last line is the total. */
export const usageCsvQuery = z.strictObject({
  ...usageSelection,
  by: unit.optional(),
  group: grouping.optional(),
  /** One line for each group of the whole range, or of each hour or day; default `range`. */
  per: z.enum(['range', 'hour', 'day']).optional(),
})

/** Sums over time, whole and by group. */
export const usageReply = z.strictObject({
  by: unit,
  /** What the figures cover: the requested range, unless `extendedTo` is set. */
  fromMs: timeMs,
  /** Exclusive. */
  toMs: timeMs,
  /** What the ends were moved to, because single requests or hours of this time are no longer kept. */
  extendedTo: z.enum(['hour', 'day']).nullable(),
  /** The zone of the days: the requested one, or UTC if its hours are no longer kept. */
  zone: z.string(),
  /** The start of each minute, hour or day; the first may be before `fromMs`, and is incomplete then. */
  starts: z.array(timeMs),
  /** The length of a minute (one or five), hour or day. */
  stepMs: count,
  /** The server's clock: the minute, hour or day that contains it is incomplete. */
  nowMs: timeMs,
  total: figures,
  /** Units of the total other than tokens: `audio_second=61.5 image=2`; empty for none. */
  units: z.string(),
  /**
   * The period of the same length before, of the running month the same days of the month before; null if it
   * is not kept.
   */
  previous: z.strictObject({ fromMs: timeMs, toMs: timeMs, total: figures }).nullable(),
  /** What the caches of providers saved, by the list prices of today; negative if writing cost more. */
  providerCacheSavedNanoUsd: z.number(),
  /** Only periods with requests, in order; all others are 0. */
  points: z.array(usagePoint),
  /**
   * The largest first, by cost and then by requests: at most eight, and one with all others: `other`, or
   * `(none)` for requests without the property. Empty for `none` and `month`. `GET /usage/groups` has all.
   */
  groups: z.array(usageGroup),
  /** The names of the labels of requests in the range, with a `group`. */
  labels: z.array(z.string()),
  /** The dimensions of the configuration. */
  dimensions: z.array(z.string()),
  /** All groups by `account`, `parent`, `root`, `member`, `month` or a label; omitted for others. */
  report: z.array(reportRow).readonly().optional(),
})

/** One request: its entry in the ledger, and what the page shows with it. */
export const requestRow = z.strictObject({
  ...entrySchema.omit({ ingress: true }).shape,
  /** The client's format, such as `messages`; the ledger's `ingress`. */
  clientFormat: entrySchema.shape.ingress,
  /** The key's current name; null if unknown. */
  keyName: z.string().nullable(),
  /** The account's current name; null if unknown. */
  accountName: z.string().nullable(),
  /** Who has to act on the failure; null if the request succeeded. */
  cause: cause.nullable(),
})

/**
 * `GET /requests`: newest first without `sort`. `GET /requests.csv` takes the same query without `sort`,
 * `after` and `limit`.
 */
export const requestsQuery = z.strictObject({
  account: scope.optional(),
  /** Only this account, by id: for lists of all accounts. */
  accountId: id.optional(),
  /** With `account`: with requests of accounts that were below it at the time. */
  tree: z.literal('true').optional(),
  /** Of all accounts, those of this one by name or id, and of accounts that were below it at the time. */
  parent: z.string().min(1).max(256).optional(),
  /** The e-mail address of a person: requests with the keys that this person made. */
  member: z.string().min(1).max(256).optional(),
  keyId: several(id),
  model: several(modelId),
  /** Requests for models with an announced end (`GET /models/deprecated`). */
  deprecated: z.literal('true').optional(),
  /** The model that the client requested; an exact match. */
  modelAsked: several(z.string().min(1).max(256)),
  upstream: several(z.string().min(1).max(100)),
  /** The HTTP status. */
  status: several(numberText(100, 599)),
  /** Only this request, if it matches the other filters. */
  requestId: id.optional(),
  /** The client's own request id. */
  clientRequestId: z.string().min(1).max(256).optional(),
  /** The id of a batch: its own entry, and its lines that were sent as requests. */
  batch: z.string().min(1).max(100).optional(),
  /** Either id. */
  anyId: z.string().min(1).max(256).optional(),
  /** `ok`, `failed` (any failure) or an error kind; default: all. */
  outcome: several(z.string().regex(/^[a-z_]{2,40}$/, { error: 'must be ok, failed or a kind of error' })),
  /** Failures with this cause. */
  cause: several(cause),
  /** The client's format, such as `messages`, or its endpoint, such as `images`. */
  clientFormat: several(z.string().regex(/^[a-z_]{1,20}$/, { error: 'is not a client format' })),
  /** One label, as `name=value`. */
  label: several(z.string().min(3).max(330)),
  /** One value of a dimension, as `NAME=VALUE`. */
  dimension: several(z.string().regex(/^[a-z][a-z0-9_]{0,31}=.{1,128}$/u, { error: 'is not NAME=VALUE' })),
  /** The program of the client, such as `codex`. */
  program: several(z.string().regex(/^[a-z0-9_-]{1,40}$/, { error: 'is not a program' })),
  /** The e-mail address of the person who signed in. */
  user: several(z.string().min(1).max(256)),
  ...rangeFields,
  /** A column, or `-` and a column: descending. */
  sort: sort.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
  /** The reply has the number of all requests that match, too. */
  count: z.literal('true').optional(),
})
/** The query of the file, which has all rows. */
export const requestsCsvQuery = requestsQuery.omit({ sort: true, after: true, limit: true, count: true })
/** The number of requests that match, and of failures among them. */
export const requestCount = z.strictObject({
  requests: count,
  failed: count,
  /** Only the newest are counted: there are more. */
  isPart: z.boolean(),
})
/** A page of requests; it may be short or empty without being the last. */
export const requestsReply = z.strictObject({
  rows: z.array(requestRow),
  next: z.string().nullable(),
  /** With `count`. */
  count: requestCount.optional(),
})

/**
 * `GET /failures`: the failed requests among those of a list, by upstream, kind and model. With `fromMs`
 * alone the range ends now.
 */
export const failuresQuery = requestsCsvQuery
export const failuresReply = z.strictObject({
  /** The largest first; at most 100. */
  groups: z.array(
    z.strictObject({
      upstream: z.string().nullable(),
      outcome: z.string(),
      upstreamStatus: z.number().nullable(),
      cause: cause.nullable(),
      model: z.string(),
      requests: count,
      accounts: count,
      firstMs: timeMs,
      lastMs: timeMs,
      /** The newest of them. */
      requestId: id,
    }),
  ),
  requests: count,
  /** Only the newest failures are counted. */
  isPart: z.boolean(),
  fromMs: timeMs,
  toMs: timeMs,
  nowMs: timeMs,
})

/** The query of `GET /requests/{id}`. */
export const requestQuery = z.strictObject({ account: scope.optional() })

const costPart = z.strictObject({
  kind: z.enum(['input', 'cached', 'written to cache', 'output']),
  tokens: count,
  usdPerMillion: z.number(),
  costNanoUsd: nanoUsdSum,
})
/** One request. */
export const requestReply = z.strictObject({
  row: requestRow,
  /** Why it cost what it did, at the prices in force; absent or empty if they do not add up to its cost. */
  costParts: z.array(costPart).optional(),
})

/**
 * `GET /live`: the latest requests. The page polls it each second while visible. The reply has an `etag`, so
 * that the browser's cache answers if nothing has changed (fetch with `cache: 'no-cache'`). Any process of
 * the gateway can answer.
 */
export const liveQuery = z.strictObject({ account: scope.optional(), tree: z.literal('true').optional() })
/** The newest 25, newest first; with `tree`, those of the accounts below, too. */
export const liveReply = z.strictObject({ rows: z.array(requestRow) })

/** Who has to act on a failure. */
export type Cause = z.output<typeof cause>
/** Sums of some requests. */
export type Figures = z.output<typeof figures>
/** The same for one hour or day. */
export type UsagePoint = z.output<typeof usagePoint>
/** The same for one model or key. */
export type UsageGroup = z.output<typeof usageGroup>
/** The query for sums. */
export type UsageQuery = z.input<typeof usageQuery>
export type UsageGroupsQuery = z.input<typeof usageGroupsQuery>
/** The totals of a group. */
export type GroupRow = z.output<typeof groupRow>
/** A page of groups. */
export type UsageGroupsReply = z.output<typeof usageGroupsReply>
/** The query for a file of groups. */
export type UsageCsvQuery = z.input<typeof usageCsvQuery>
/** Sums over time. */
export type UsageReply = z.output<typeof usageReply>
export type RequestRow = z.output<typeof requestRow>
/** Times of one request. */
export type Hops = RequestRow['hops']
export type RequestsQuery = z.input<typeof requestsQuery>
/** The number of requests that match. */
export type RequestCount = z.output<typeof requestCount>
/** Failures by what they have in common. */
export type FailuresReply = z.output<typeof failuresReply>
/** A page of requests. */
export type RequestsReply = z.output<typeof requestsReply>
export type RequestReply = z.output<typeof requestReply>
/** The tokens of one kind of a request, and what they cost. */
export type CostPart = z.output<typeof costPart>
/** The latest requests. */
export type LiveReply = z.output<typeof liveReply>
