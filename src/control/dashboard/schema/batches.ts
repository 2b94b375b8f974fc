/** Batches: their state, the lines that have run, and what they have cost. Lines are never part of it. */
import * as z from 'zod'
import { count, cursor, id, nanoUsdSum, numberText, scope, timeMs, wanted } from './shared-types.js'

/** The states of batches, as clients see them. */
const batchState = z.enum([
  ...(['validating', 'in_progress', 'finalizing', 'completed'] as const),
  ...(['failed', 'cancelling', 'cancelled', 'expired'] as const),
])

/** A batch. */
const batch = z.strictObject({
  id,
  accountId: id,
  /** The name of its account; the id of a purged one. */
  account: z.string(),
  keyId: id,
  state: batchState,
  endpoint: z.string(),
  model: z.string(),
  /** Null until one has it. */
  upstream: z.string().nullable(),
  /** How it runs: `queue`, or the format of the vendor's batches. */
  form: z.string(),
  upstreamBatchId: z.string().nullable(),
  /** Why it failed; null if it did not. */
  failure: z.string().nullable(),
  lines: z.strictObject({
    total: count,
    completed: count,
    /** All that did not succeed; once it has ended, also how many of these expired or were cancelled. */
    failed: count,
    expired: count.optional(),
    cancelled: count.optional(),
  }),
  createdAtMs: timeMs,
  /** The end of its window. */
  expiresAtMs: timeMs,
  /** Null while it runs. */
  endedAtMs: timeMs.nullable(),
})

/** The entries of the ledger so far: one of a vendor's batch, one for each line of a queue. */
const used = z.strictObject({
  requests: count,
  costNanoUsd: nanoUsdSum,
  /** Entries without a known price. */
  unpriced: count,
  /** There are more entries: the sums are of the newest 10,000. */
  isPart: z.boolean(),
})

/** `GET /batches`, newest first. */
export const batchesQuery = z.strictObject({
  account: scope.optional(),
  state: batchState.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
export const batchesReply = z.strictObject({
  /** `used` is of the last half minute; null: not counted yet, as counting all of a page takes too long. */
  batches: z.array(batch.extend({ used: used.nullable() })),
  next: z.string().nullable(),
  /** The configuration has no `files`: the gateway runs no batches. */
  isOff: z.boolean(),
})

/** `GET /batches/{id}`, and the query of `POST /batches/{id}/cancel`. */
export const batchQuery = z.strictObject({ account: scope.optional() })
/** The body of a cancellation. */
export const cancelBatchBody = z.strictObject({ reason: wanted.optional() })
export const batchReply = z.strictObject({
  batch,
  used,
  /** Whether the user may cancel it. */
  mayCancel: z.boolean(),
})

export type BatchesReply = z.output<typeof batchesReply>
export type BatchReply = z.output<typeof batchReply>
export type CancelBatchBody = z.input<typeof cancelBatchBody>
