/** For administrators: upstreams compared, canaries and shadows. Owners get 403. */
import { z } from 'zod'
import { count, nanoUsd, numberText, timeMs } from './basics.js'

/** What one side of a comparison has done. Null is not known. */
export const providerSide = z.strictObject({
  upstream: z.string(),
  requests: count,
  /** Of these the copies that `shadow` made. */
  shadowRequests: count,
  /** Requests whose last attempt on it failed, as circuit breakers count failures. */
  errors: count,
  /** 0 to 1. */
  errorRate: z.number().nullable(),
  /** Requests that it refused as the client's mistake. */
  rejected: count,
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
  inputTokens: count,
  outputTokens: count,
  spendNanoUsd: nanoUsd,
  /** The mean over requests of known price that used tokens. */
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
  /** Of the requests of its route while it is in use, 0 to 100. */
  percent: z.number(),
  attempts: count,
  failures: count,
  errorRate: z.number(),
  minRequests: count,
  windowSeconds: z.number(),
  /** Null: it is in use. */
  abortedAtMs: timeMs.nullable(),
})

/** `GET /providers` */
export const providersQuery = z.strictObject({
  /** How far back; 1 by default, at most 168. */
  hours: numberText(1, 168).optional(),
})

/** Requests since `fromMs`, or the newest ones if there are very many. */
export const providersReply = z.strictObject({
  nowMs: timeMs,
  fromMs: timeMs,
  /** Null: not known. */
  canaries: z.array(canaryState).nullable(),
  /** By upstream of the configuration. */
  upstreams: z.array(providerSide),
  /** The requests that were copied: what clients got, and the copies. */
  shadows: z.array(z.strictObject({ primary: providerSide, shadow: providerSide })),
})

/** One side of a comparison. */
export type ProviderSide = z.output<typeof providerSide>
/** A target with `abort`. */
export type CanaryView = z.output<typeof canaryState>
/** Upstreams compared. */
export type ProvidersReply = z.output<typeof providersReply>
