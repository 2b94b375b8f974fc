/** Outages of upstreams. */
import * as z from 'zod'
import { count, timeMs } from './shared-types.js'
import { cause } from './usage.js'

/** An outage that goes on. */
const openIncident = z.strictObject({
  /** Null for users without a role in the gateway, who see the models only. */
  upstream: z.string().nullable(),
  sinceMs: timeMs,
  /** The share of the attempts of the last minute that failed; null without an attempt. */
  share: z.number().min(0).max(1).nullable(),
  attemptsPerMinute: count,
  /** The most frequent status of the upstream, or the kind of failure; null: unknown. */
  what: z.string().nullable(),
  cause,
  breaker: z.enum(['closed', 'open', 'half_open']).nullable(),
  /** Failed requests of the user's accounts since then, and the number of their accounts. */
  requests: count,
  /** There are more than that. */
  isPart: z.boolean(),
  accounts: count,
  models: z.array(z.string()),
})
const recovered = z.strictObject({ upstream: z.string(), atMs: timeMs, lengthMs: count, requests: count })
const healthCell = z.strictObject({
  fromMs: timeMs,
  requests: count,
  /** By the provider or the gateway. */
  failed: count,
  state: z.enum(['healthy', 'degraded', 'failing', 'idle']),
})
const pastIncident = z.strictObject({ upstream: z.string(), fromMs: timeMs, toMs: timeMs, requests: count })

/** `GET /incidents`: what is out now. Users without a role in the gateway see what fails for them. */
export const incidentsQuery = z.strictObject({
  /** Also the last 24 hours; for administrators and auditors. */
  history: z.literal('true').optional(),
})
export const incidentsReply = z.strictObject({
  nowMs: timeMs,
  /** The one with the most failed requests first. */
  open: z.array(openIncident),
  /** Those of the last ten minutes. */
  recovered: z.array(recovered),
  /** The time of a refused configuration file, after which the last good generation goes on. */
  configurationRefusedMs: timeMs.nullable(),
  history: z
    .strictObject({
      /** The last 24 hours of each upstream, the oldest first. */
      rows: z.array(z.strictObject({ upstream: z.string(), cells: z.array(healthCell) })),
      past: z.array(pastIncident),
    })
    .nullable(),
})

export type Recovered = z.output<typeof recovered>
export type HealthCell = z.output<typeof healthCell>
/** An outage that is over. */
export type PastIncident = z.output<typeof pastIncident>
/** Outages now and before. */
export type IncidentsReply = z.output<typeof incidentsReply>
