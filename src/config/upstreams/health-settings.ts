/**
 * The circuit breaker and the health probe of an upstream. Part of `config-file-schema.ts` and
 * `resolve-upstream.ts`.
 */
import { z } from 'zod'
import type { BreakerConfig, ProbeConfig } from '../config.js'
import { DAY_MS, share, whole } from '../schema-and-defaults/value-types.js'

/** `upstreams.NAME.breaker:` */
export const breakerSchema = z
  .strictObject({
    failures: whole(1, 1_000_000)
      .default(5)
      .describe('Consecutive failures that open the breaker.'),
    error_rate: share
      .default(0.5)
      .describe('Share of failed attempts in `window_seconds` that opens the breaker, 0 to 1.'),
    min_requests: whole(1, 1_000_000)
      .default(20)
      .describe('Attempts in `window_seconds` before `error_rate` applies.'),
    window_seconds: whole(1, 3_600).default(10).describe('Time over which the rate is measured.'),
    open_seconds: whole(1, 3_600)
      .default(30)
      .describe('Time after which an open breaker allows one test request.'),
  })
  .prefault({})
  .describe(
    'The circuit breaker: when a failing upstream stops receiving requests. It never fails a request by itself: if there is no other target, or the breakers of all targets are open, the request is sent nevertheless.',
  )

/** `upstreams.NAME.probe:` */
export const probeSchema = z
  .strictObject({
    path: z
      .string()
      .regex(/^\/[^\s#]{0,1023}$/, { error: 'must start with /' })
      .default('/models')
      .describe('Requested with `GET` and the credential of the upstream, below `base_url`.'),
    interval_ms: whole(100, DAY_MS).default(10_000).describe('Time between two probes.'),
  })
  .describe(
    'An active health check by each worker. Connection failures, timeouts and status 500 and above open the circuit breaker after `breaker.failures` probes in a row; a probe that succeeds lets an open breaker test the upstream at once. Left out: no probes.',
  )

type BreakerValues = z.output<typeof breakerSchema>
type ProbeValues = z.output<typeof probeSchema>

/** The resolved form. */
export function breakerOf(values: BreakerValues): BreakerConfig {
  return {
    failures: values.failures,
    errorRate: values.error_rate,
    minRequests: values.min_requests,
    windowMs: values.window_seconds * 1_000,
    openMs: values.open_seconds * 1_000,
  }
}

/** The resolved form; null without probes. */
export function probeOf(values: ProbeValues | undefined): ProbeConfig | null {
  return values === undefined ? null : { path: values.path, intervalMs: values.interval_ms }
}
