/** Recorded requests. */
import * as z from 'zod'
import { scope } from './shared-types.js'

const headers = z.record(z.string(), z.string())
const chunk = z.union([
  z.strictObject({ at_ms: z.number(), data: z.string() }),
  z.strictObject({ at_ms: z.number(), base64: z.string() }),
])
const wire = z.strictObject({
  request: z.strictObject({
    method: z.string(),
    path: z.string(),
    headers,
    body: z.string(),
  }),
  response: z.strictObject({ status: z.number(), headers, chunks: z.array(chunk) }),
})
const recording = z.strictObject({
  /** The request id. */
  id: z.string(),
  atMs: z.number(),
  accountId: z.string(),
  model: z.string(),
  upstream: z.string().nullable(),
  status: z.number(),
  bytes: z.number(),
})

/** The query of `GET /recordings`. */
export const recordingsQuery = z.strictObject({ account: scope.optional() })
/** The recordings that have not expired, newest first. */
export const recordingsReply = z.strictObject({ recordings: z.array(recording) })
/** One recording. `request` and `reply` are canonical; the others are the bytes of both sides. */
export const recordingReply = z.strictObject({
  ...recording.shape,
  request: z.record(z.string(), z.unknown()),
  /** Null if there is no complete reply. */
  reply: z.record(z.string(), z.unknown()).nullable(),
  client: wire,
  /** Null if no upstream got the request. */
  upstream: wire.nullable(),
  /** Values of dimensions, as in the ledger; absent for none. */
  dimensions: z.string().optional(),
})
/** The reply to a deletion. */
export const recordingDeletedReply = z.strictObject({ deleted: z.literal(true) })

export type RecordingReply = z.output<typeof recordingReply>
/** The reply to a deletion. */
export type RecordingDeletedReply = z.output<typeof recordingDeletedReply>
