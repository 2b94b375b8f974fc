/**
 * Tokens of the admin API (`sat_…`). The store has the digest of a token, never its secret.
 */
import type { AuditEntriesOf, AuditEntry } from './audit-trail.js'

/** A stored token. */
export interface AdminToken {
  readonly id: string
  /** Names the token in the audit trail (`token:NAME (ID)`). */
  readonly name: string
  /** SHA-256 of the whole secret, lower-case hex. */
  readonly digest: string
  readonly lastFour: string
  /** As in `accounts/admin-tokens.ts`. */
  readonly scopes: readonly string[]
  /** The id of the account that it sees, with all below it; null: all accounts. */
  readonly accountId: string | null
  readonly expiresAtMs: number
  /** Who made it, as in `AuditEntry.actor`. */
  readonly createdBy: string
  readonly createdAtMs: number
  readonly revokedAtMs?: number
  /** To the minute. */
  readonly lastUsedAtMs?: number
}

/**
 * The change of a token; null: no change. Pure; an engine may call it several times.
 */
export type AdminTokenEdit = (token: AdminToken) => AdminToken | null

/** Maximum number of tokens, revoked and expired ones included. */
export const MAX_ADMIN_TOKENS = 10_000

/** A page of tokens, newest first. */
export interface AdminTokenPage {
  readonly items: readonly AdminToken[]
  /** As `Page.next`. */
  readonly next: string | null
}

/**
 * The tokens of a store. Methods fail as those of `Store` do. A change is durable, and visible to every
 * process, before it resolves.
 */
export interface AdminTokens {
  /** False if the id or digest is in use, or there are `MAX_ADMIN_TOKENS`. */
  add(token: AdminToken, auditEntries?: readonly AuditEntry[]): Promise<boolean>
  /** Null if there is none; of any state. */
  byDigest(digest: string): Promise<AdminToken | null>
  byId(id: string): Promise<AdminToken | null>
  /** The page after the cursor; null: the first. `limit`: 1 to 1,000. */
  page(after: string | null, limit: number): Promise<AdminTokenPage>
  /** The token after the change, or unchanged; null if there is none. */
  change(
    id: string,
    edit: AdminTokenEdit,
    auditEntries?: AuditEntriesOf<AdminToken>,
  ): Promise<AdminToken | null>
  /** Removes tokens; ignores unknown ids. */
  remove(ids: readonly string[]): Promise<void>
}
