/** For administrators: upstreams compared, canaries and shadows. Owners get 403. */
import { z } from 'zod'
import { count, nanoUsd, numberText, timeMs } from './shared-types.js'

/** The figures of one side of a comparison. Null is unknown. */
export const providerSide = z.strictObject({
  upstream: z.string(),
  requests: count,
  /** Copies that `shadow` made, included in `requests`. */
  shadowRequests: count,
  /** Requests whose last attempt on it failed, counted as circuit breakers do. */
  errors: count,
  /** 0 to 1. */
  errorRate: z.number().nullable(),
  /** Requests that the upstream rejected as invalid. */
  rejected: count,
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
  inputTokens: count,
  outputTokens: count,
  spendNanoUsd: nanoUsd,
  /** Mean cost of requests with known price and usage. */
  requestNanoUsd: nanoUsd.nullable(),
  unpricedRequests: count,
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
  /** Period in hours; default 1, at most 168. */
  hours: numberText(1, 168).optional(),
})

/** Requests since `fromMs`; the newest ones only if there are very many. */
export const providersReply = z.strictObject({
  nowMs: timeMs,
  fromMs: timeMs,
  /** Null: unknown. */
  canaries: z.array(canaryState).nullable(),
  /** By upstream of the configuration. */
  upstreams: z.array(providerSide),
  /** Copied requests: the clients' and the copies. */
  shadows: z.array(z.strictObject({ primary: providerSide, shadow: providerSide })),
})

/** One side of a comparison. */
export type ProviderSide = z.output<typeof providerSide>
/** A target with `abort`. */
export type CanaryView = z.output<typeof canaryState>
/** Upstreams compared. */
export type ProvidersReply = z.output<typeof providersReply>
