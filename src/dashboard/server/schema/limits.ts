/** How limits and budgets stand. */
import { z } from 'zod'
import { count, scope, timeMs } from './basics.js'

/** One limit, with what is used of it. Amounts are requests, tokens, running requests or nano-dollars. */
export const standing = z.strictObject({
  /** `plan`: of all keys of the account together; `account`: a rule of the configuration; `key`: of one key. */
  scope: z.enum(['plan', 'account', 'key']),
  /** Null if it is no key's. */
  keyId: z.string().nullable(),
  keyName: z.string().nullable(),
  /** As in the configuration. */
  kind: z.enum([
    'requests_per_minute',
    'tokens_per_minute',
    'concurrent',
    'usd_per_day',
    'usd_per_month',
  ]),
  limit: count,
  used: count,
  left: count,
  /** When all of it can be used again; null: nothing is used, or it depends on running requests. */
  resetsAtMs: timeMs.nullable(),
})

/** `GET /limits`: of the account and of its newest 100 keys that have limits of their own. Not for `all`. */
export const limitsQuery = z.strictObject({ account: scope.optional() })
/** The limits of the account first. */
export const limitsReply = z.strictObject({ nowMs: timeMs, limits: z.array(standing) })

/** One limit, with what is used of it. */
export type LimitLevel = z.output<typeof standing>
/** All limits of an account. */
export type LimitsReply = z.output<typeof limitsReply>
