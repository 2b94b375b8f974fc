/** Statements: what an account and all below it used and cost in a month. */
import * as z from 'zod'
import { count, id, nanoUsd } from './shared-types.js'

const figures = {
  requests: count,
  input_tokens: count,
  output_tokens: count,
  cost_nano_usd: nanoUsd,
  /** The same in dollars, with nine digits. */
  cost_usd: z.string(),
}

/** `GET /statements/{id}`, with the month (UTC) as its id, such as `2026-11`. */
export const statementQuery = z.strictObject({
  account: id.optional(),
  /** A file instead of JSON. */
  format: z.literal('csv').optional(),
})
/** In the spelling of the admin API and of `sluice usage statement --json`. */
export const statementReply = z.strictObject({
  account: z.string(),
  month: z.string(),
  lines: z
    .array(
      z.strictObject({
        account: z.string(),
        /** The key's name; null if the key was removed from the store. */
        key: z.string().nullable(),
        key_id: z.string(),
        model: z.string(),
        ...figures,
      }),
    )
    .readonly(),
  total: z.strictObject(figures),
})

export type StatementReply = z.output<typeof statementReply>
