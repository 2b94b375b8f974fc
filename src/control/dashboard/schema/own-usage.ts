/** What the programs of the user used, and what is left: `GET /own-usage`. */
import * as z from 'zod'
import { limitLeft } from './runs.js'
import { count, nanoUsdSum, timeMs } from './shared-types.js'

const sum = z.strictObject({
  requests: count,
  failed: count,
  inputTokens: count,
  outputTokens: count,
  costNanoUsd: nanoUsdSum,
  /** Requests whose price is unknown, which the cost excludes. */
  unpriced: count,
  /** What was used of each unit, sound in milliseconds. */
  images: count,
  audioMs: count,
  characters: count,
  pages: count,
  searches: count,
  documents: count,
  lines: count,
})

/** Days and months are those of UTC. */
export const ownUsageReply = z.strictObject({
  /** Null: programs do not sign in here, or may not act for the user in this account. */
  usage: z
    .strictObject({
      email: z.string(),
      /** The name of the account. */
      account: z.string(),
      today: sum,
      month: sum,
      /** Of the month, the dearest first. */
      models: z.array(sum.extend({ model: z.string() })),
      limits: z.array(limitLeft.extend({ resetsAtMs: timeMs.nullable() })),
    })
    .nullable(),
})

export type OwnUsageReply = z.output<typeof ownUsageReply>
