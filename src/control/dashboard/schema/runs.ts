/** Runs: values of the dimension `run`, such as the work of an agent on one task. */
import * as z from 'zod'
import { count, nanoUsdSum, scope, timeMs, wanted } from './shared-types.js'

/** The value of the dimension: any printable text. */
const run = z.string().min(1).max(512)
/** `GET /run`. */
export const runQuery = z.strictObject({ account: scope.optional(), run })
export const endRunQuery = z.strictObject({ account: scope.optional() })
/** The body of `POST /run/end`, which ends a run. */
export const endRunBody = z.strictObject({ run, reason: wanted.optional() })

/** A limit, and what is left of it. Amounts of money are dollars. */
export const limitLeft = z.strictObject({
  /** The rule and the name of the limit: `dimension:run usd_total`. */
  limit: z.string(),
  amount: z.number(),
  used: z.number(),
  remaining: z.number(),
  /** It counts what was used from this time on; null: in its whole period. */
  sinceMs: timeMs.nullable(),
})

/** A tool, and how often the model called it. */
export const toolCalls = z.strictObject({ name: z.string(), calls: count })

/** A run, what it has used, and what is left of its limits. */
export const runReply = z.strictObject({
  /** The name of its account. */
  account: z.string(),
  run: z.string(),
  state: z.enum(['live', 'ended']),
  /** Admitted requests. */
  requests: count,
  inputTokens: count,
  outputTokens: count,
  costNanoUsd: nanoUsdSum,
  /** Those that the model called most first; the first 32 that it called have names. */
  tools: z.array(toolCalls),
  limits: z.array(limitLeft),
  firstAtMs: timeMs.nullable(),
  lastAtMs: timeMs.nullable(),
  endedAtMs: timeMs.nullable(),
  /** Whether the user may end it. */
  mayEnd: z.boolean(),
})

export type RunReply = z.output<typeof runReply>
export type EndRunBody = z.input<typeof endRunBody>
