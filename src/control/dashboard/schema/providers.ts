/** For administrators: upstreams compared, canaries and shadows. Owners get 403. */
import * as z from 'zod'
import { count, nanoUsd, nanoUsdSum, numberText, rangeFields, timeMs, unit, zone } from './shared-types.js'

/** The figures of one side of a comparison. Null is unknown. */
export const providerSide = z.strictObject({
  upstream: z.string(),
  requests: count,
  /** Copies that `shadow` made, included in `requests`. */
  shadowRequests: count,
  /** Requests that failed because of the provider. */
  failures: count,
  /** 0 to 1. */
  failureShare: z.number().nullable(),
  /** Requests that failed because of the client, such as those that the upstream rejected as invalid. */
  rejected: count,
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
  inputTokens: count,
  outputTokens: count,
  costNanoUsd: nanoUsdSum,
  /** Mean cost of the requests that succeeded and have a known price. */
  requestNanoUsd: nanoUsd.nullable(),
  unpricedRequests: count,
})

/** An upstream with its models and its time to first token. */
export const comparedUpstream = providerSide.extend({
  /** The largest first. */
  models: z.array(providerSide.extend({ model: z.string() })),
  /** Only minutes, hours or days with requests, in order. */
  points: z.array(
    z.strictObject({
      startMs: timeMs,
      requests: count,
      firstTokenP50Ms: z.number().nullable(),
      firstTokenP95Ms: z.number().nullable(),
    }),
  ),
})

/** A model of an upstream over time, beside others. */
export const comparedModel = z.strictObject({
  upstream: z.string(),
  model: z.string(),
  /** Only minutes, hours or days with requests, in order. */
  points: z.array(
    z.strictObject({
      startMs: timeMs,
      firstTokenP95Ms: z.number().nullable(),
      /** Mean cost of the requests that succeeded and have a known price. */
      requestNanoUsd: nanoUsd.nullable(),
    }),
  ),
})

/** A target with `abort`. */
export const canaryState = z.strictObject({
  /** The index of its route and its index in `targets`: `2.1`. */
  id: z.string(),
  /** The model or prefix of its route. */
  route: z.string(),
  upstream: z.string(),
  /** Null: the model that clients request. */
  model: z.string().nullable(),
  weight: z.number(),
  /** Share of the route's requests while in use, 0 to 100. */
  percent: z.number(),
  attempts: count,
  failures: count,
  errorRate: z.number(),
  minRequests: count,
  windowSeconds: z.number(),
  /** Null: in use. */
  abortedAtMs: timeMs.nullable(),
})

/** `GET /providers` */
export const providersQuery = z.strictObject({
  /** Default: the last hour. */
  ...rangeFields,
  /** The zone of days, as an IANA name; default UTC. */
  zone: zone.optional(),
  /** Default: the usual unit of `range`, else hours. */
  by: unit.optional(),
  /** Models to read over time: `MODEL UPSTREAM`, with commas between them. */
  compare: z.string().max(2_000).optional(),
  /** The former name of a range: hours up to now, at most 744. */
  hours: numberText(1, 744).optional(),
})

/**
 * All requests of the range: from the entries up to 2,000 requests, beyond from stored sums, whose
 * percentiles are interpolated within intervals.
 */
export const providersReply = z.strictObject({
  nowMs: timeMs,
  fromMs: timeMs,
  /** Exclusive. */
  toMs: timeMs,
  /** The start of each minute, hour or day of `points`. */
  starts: z.array(timeMs),
  /** Its length. */
  stepMs: count,
  /** Null: unknown. */
  canaries: z.array(canaryState).nullable(),
  /** By upstream of the configuration. */
  upstreams: z.array(comparedUpstream),
  /** The models of `compare`. */
  compared: z.array(comparedModel),
  /** Copied requests among the newest 10,000: the clients' and the copies. */
  shadows: z.array(z.strictObject({ primary: providerSide, shadow: providerSide })),
})

/** One side of a comparison. */
export type ProviderSide = z.output<typeof providerSide>
/** An upstream with its models. */
export type ComparedUpstream = z.output<typeof comparedUpstream>
/** A target with `abort`. */
export type CanaryView = z.output<typeof canaryState>
/** Upstreams compared. */
export type ProvidersReply = z.output<typeof providersReply>
