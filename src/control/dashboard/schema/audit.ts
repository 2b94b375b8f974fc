/** The audit log. */
import * as z from 'zod'
import { cursor, numberText, scope, search, sort, timeMs, timeText } from './shared-types.js'

/** An entry of the audit log. */
export const auditEntry = z.strictObject({
  id: z.string(),
  atMs: timeMs,
  /** The account that was changed; empty for the gateway. */
  accountId: z.string(),
  /** Its name; null if it is not known. */
  accountName: z.string().nullable(),
  /** The e-mail address of the user who acted, `command line (USER)` or `token:NAME`. */
  actor: z.string(),
  /** `key.create`, `account.disable`, `session.sign-in` and others. */
  action: z.string(),
  /** The id of the key or account. */
  target: z.string(),
  /** Its name at that time, and the change: `name: laptop → ci`. */
  detail: z.string(),
  /** Why, as the actor entered it; null: not given. */
  reason: z.string().nullable(),
  /** The client address of the request; null for the command line. */
  address: z.string().nullable(),
  /** The id of the request that made the change; null for the command line. */
  requestId: z.string().nullable(),
  /** The changed values by path, such as `limits.usd_per_month`; null: not set. */
  changes: z.array(
    z.strictObject({ path: z.string(), before: z.string().nullable(), after: z.string().nullable() }),
  ),
})

const filters = {
  account: scope.optional(),
  actor: z.string().max(400).optional(),
  /** `key.revoke`, or the part before the dot for all of its kind: `key.`; after `!`: all others. */
  action: z.string().max(64).optional(),
  target: z.string().max(400).optional(),
  /** Inclusive. */
  fromMs: timeText.optional(),
  /** Exclusive. */
  toMs: timeText.optional(),
  /** Part of any text of the entry. */
  search: search.optional(),
}

/** `GET /audit`, by default the newest first; `sort`: atMs. */
export const auditQuery = z.strictObject({
  ...filters,
  sort: sort.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
/**
 * A page of the audit log. With a filter it may have fewer entries than `limit`, or none, without being the
 * last; the last has `next: null`. The number of all entries is not known.
 */
export const auditReply = z.strictObject({
  entries: z.array(auditEntry),
  next: z.string().nullable(),
  total: z.null(),
})

/** `GET /audit.csv`: all entries that match, streamed; `before` and `after` are JSON. */
export const auditCsvQuery = z.strictObject({ ...filters, sort: sort.optional() })

/** An entry of the audit log. */
export type AuditEntry = z.output<typeof auditEntry>
/** The query for the audit log. */
export type AuditQuery = z.input<typeof auditQuery>
/** A page of the audit log. */
export type AuditReply = z.output<typeof auditReply>
