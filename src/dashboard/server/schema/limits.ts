/** The current state of limits and budgets. */
import { z } from 'zod'
import { count, scope, timeMs } from './shared-types.js'

/** One limit and its usage. Amounts are requests, tokens, concurrent requests or nano-dollars. */
export const standing = z.strictObject({
  /** `plan`: all keys of the account together; `account`: a rule of the configuration; `key`: one key. */
  scope: z.enum(['plan', 'account', 'key']),
  /** Null unless `scope` is `key`. */
  keyId: z.string().nullable(),
  keyName: z.string().nullable(),
  /** As in the configuration. */
  kind: z.enum([
    'requests_per_minute',
    'tokens_per_minute',
    'concurrent',
    'usd_per_day',
    'usd_per_week',
    'usd_per_month',
  ]),
  limit: count,
  used: count,
  left: count,
  /** When the limit is fully available again; null: unused, or it depends on running requests. */
  resetsAtMs: timeMs.nullable(),
})

/**
 * `GET /limits`: limits of the account and of its newest 100 keys with own limits. Not available for `all`.
 */
export const limitsQuery = z.strictObject({ account: scope.optional() })
/** The limits of the account first. */
export const limitsReply = z.strictObject({ nowMs: timeMs, limits: z.array(standing) })

/** One limit and its usage. */
export type LimitLevel = z.output<typeof standing>
/** All limits of an account. */
export type LimitsReply = z.output<typeof limitsReply>
