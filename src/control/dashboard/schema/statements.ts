/** Statements: what an account and all below it used and cost in a month. */
import * as z from 'zod'
import { isStatementGrouping } from '../../../usage/is-statement-grouping.js'
import { count, cursor, nanoUsdSum, numberText, scope, search } from './shared-types.js'

const figures = {
  requests: count,
  input_tokens: count,
  output_tokens: count,
  cost_nano_usd: nanoUsdSum,
  /** The same in dollars, with nine digits. */
  cost_usd: z.string(),
  /** Units other than tokens, those that were used. */
  units: z.record(z.string(), z.number()),
}

/**
 * `GET /statements/{id}`, with the month (UTC) as its id, such as `2026-11`. Administrators and auditors may
 * read that of `all` accounts.
 */
export const statementQuery = z.strictObject({
  account: scope.optional(),
  /** A file of all lines instead of JSON. */
  format: z.literal('csv').optional(),
  /** `client_format`, `program`, `user`, `dimension:NAME`: splits each line by the entries that are kept. */
  by: z.string().refine(isStatementGrouping, { error: 'is not a grouping' }).optional(),
  /** Part of an account, a key, a model or a group. */
  search: search.optional(),
  after: cursor.optional(),
  /** 1 to 1,000 lines; default 100. */
  limit: numberText(1, 1_000).optional(),
})
/** In the spelling of the admin API and of `sluice usage statement --json`. */
export const statementReply = z.strictObject({
  /** Null: all accounts. */
  account: z.string().nullable(),
  month: z.string(),
  /** The dimensions of the configuration, which lines can be split by. */
  dimensions: z.array(z.string()).readonly(),
  /** Of this page. */
  lines: z
    .array(
      z.strictObject({
        account: z.string(),
        /** The key's name; null if the key was removed from the store. */
        key: z.string().nullable(),
        key_id: z.string(),
        model: z.string(),
        /** With `by`: the value; `(none)` without one, `(not kept)` without entries. */
        group: z.string().optional(),
        ...figures,
      }),
    )
    .readonly(),
  next: z.string().nullable(),
  /** The number of lines that match. */
  line_count: count,
  /** The sum of each account, the highest cost first, at most 500; with a search, those with such lines. */
  accounts: z.array(z.strictObject({ account: z.string(), ...figures })).readonly(),
  account_count: count,
  /** Of the whole statement, also with a search. */
  total: z.strictObject(figures),
})

export type StatementReply = z.output<typeof statementReply>
