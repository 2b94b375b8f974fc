/** The audit log, for every account: its own entries, or all for administrators. */
import { z } from 'zod'
import { cursor, id, numberText, scope, timeMs } from './shared-types.js'

/** An entry of the audit log. */
export const auditEntry = z.strictObject({
  id: z.string(),
  atMs: timeMs,
  /** The account that was changed. */
  accountId: id,
  /** The e-mail address of the account that acted, or `command line (USER)`. */
  actor: z.string(),
  /** `key.create`, `account.disable`, `session.sign-in` and others. */
  action: z.string(),
  /** The id of the key or account. */
  target: z.string(),
  /** Its name at that time, and the change: `name: laptop → ci`. */
  detail: z.string(),
  /** The client address of the request; null for the command line. */
  address: z.string().nullable(),
})

/** `GET /audit`: newest first. */
export const auditQuery = z.strictObject({
  account: scope.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
/** A page of the audit log. */
export const auditReply = z.strictObject({
  entries: z.array(auditEntry),
  next: z.string().nullable(),
})

/** An entry of the audit log. */
export type AuditEntry = z.output<typeof auditEntry>
/** A page of the audit log. */
export type AuditReply = z.output<typeof auditReply>
