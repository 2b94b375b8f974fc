/** Upstreams and the configuration, for administrators (403 for owners). */
import * as z from 'zod'
import { count, timeMs } from './shared-types.js'

/** The state of an upstream over the last five minutes. */
export const upstreamState = z.strictObject({
  name: z.string(),
  dialect: z.string(),
  preset: z.string().nullable(),
  /** The cloud that serves it; null for the own API of a vendor. */
  platform: z.string().nullable(),
  /**
   * The credentials of the gateway's identity at the cloud; `failing`: valid, but they cannot be refreshed.
   * Null without an identity, or unknown.
   */
  credentials: z.enum(['valid', 'failing', 'invalid']).nullable(),
  /** Without a path: `https://api.openai.com`. */
  origin: z.string(),
  configured: z.boolean(),
  /** The variable or file of its API key. */
  apiKeySource: z.string().nullable(),
  /** Requests in flight, over all processes of this machine; null: unknown. */
  inFlight: count.nullable(),
  /** Attempts per minute, retries included. */
  attemptsPerMinute: z.number(),
  /**
   * Failures by cause. Only failures of the provider affect the state of the upstream. Attempts count for
   * their upstream; requests refused before an attempt count for the upstream of their first candidate.
   */
  failures: z.strictObject({ provider: count, gateway: count, limits: count, client: count }),
  /** Failures of the provider as a share of the attempts, 0 to 1. */
  failureShare: z.number().min(0).max(1),
  /**
   * From the failures of the provider and the attempts: `failing` from 25 % and five failures on, `degraded`
   * from 5 % and three on, `idle` without attempts, else `healthy`.
   */
  health: z.enum(['healthy', 'degraded', 'failing', 'idle']),
  /** The five most frequent kinds of failures of the provider. */
  kinds: z.array(z.strictObject({ kind: z.string(), count, lastAtMs: timeMs })),
  /** Retries at this upstream, and fallbacks to another one after a failure here. */
  retries: z.strictObject({ count, lastAtMs: timeMs.nullable() }),
  fallbacks: z.strictObject({ count, lastAtMs: timeMs.nullable() }),
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
  /** Of several processes the state furthest from closed; null: unknown. */
  breaker: z.enum(['closed', 'open', 'half_open']).nullable(),
  /** When the breaker last opened or closed; null: closed since the start, or unknown. */
  breakerChangedAtMs: timeMs.nullable(),
})

/** The configuration in force. Secrets are masked. */
export const configState = z.strictObject({
  generation: count,
  loadedAtMs: timeMs,
  /** Of the file's text, hex. */
  fileHash: z.string(),
  /** Differences from the previous generation, by path; empty for the first. */
  changes: z.array(
    z.strictObject({
      path: z.string(),
      /** JSON; null: absent. */
      before: z.string().nullable(),
      /** JSON; null: removed. */
      after: z.string().nullable(),
    }),
  ),
  /** The last file that was refused, if that was after the generation in force was loaded. */
  refused: z.strictObject({ atMs: timeMs, problems: z.array(z.string()) }).nullable(),
})

/** `GET /operations`. */
export const operationsReply = z.strictObject({
  nowMs: timeMs,
  upstreams: z.array(upstreamState),
  config: configState,
  /** The memory of the store that ledger entries use; null for a store on disk, and while it is unknown. */
  ledgerMemory: z
    .strictObject({
      usedBytes: count,
      /** Null without a limit. */
      maxBytes: count.nullable(),
      /** Until the memory is used up, at the rate of the last day; null: entries leave by age. */
      fullInMs: count.nullable(),
      /** Of the oldest entry. */
      oldestAtMs: timeMs.nullable(),
    })
    .nullable(),
  /** How far the archive is behind; null without one, and while that is unknown. */
  archive: z
    .strictObject({
      rowsWaiting: count,
      /** The age of the oldest entry that waits for it. */
      lagMs: count,
      /** Older entries are only in the archive; null: none. */
      hotFromMs: timeMs.nullable(),
    })
    .nullable(),
})

export type UpstreamState = z.output<typeof upstreamState>
/** The configuration in force. */
export type ConfigState = z.output<typeof configState>
/** The state of the gateway. */
export type OperationsReply = z.output<typeof operationsReply>
