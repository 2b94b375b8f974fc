/**
 * The audit trail: what was done to accounts and keys, by whom. Whatever the engine.
 */

/** One thing that was done. Never holds a secret. */
export interface AuditEntry {
  /** Sorts as the time does: a UUID of version 7. */
  readonly id: string
  readonly atMs: number
  /** Whose account it was done to. */
  readonly accountId: string
  /** Who did it: an account's e-mail, or `command line`. */
  readonly actor: string
  /** Such as `key.revoke`. */
  readonly action: string
  /** The id of the key or account. */
  readonly target: string
  /** Its name at the time, and what changed; at most 1,000 characters. */
  readonly detail: string
  /** Where the request came from; null for none. */
  readonly address: string | null
}

/** Which entries, newest first. */
export interface AuditQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** The id of the last entry of the page before; null for the first. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** The entries that a change makes, given what there was and what there is. Pure; it may be asked again. */
export type AuditEntriesOf<T> = (before: T, after: T) => readonly AuditEntry[]

/** Entries in order of their ids. Fails as the store does. */
export interface AuditTrail {
  /**
   * Adds an entry that belongs to no change of the store. Durable before it resolves. Beyond
   * `StoreCapacity.auditEntriesPerAccount`, the oldest entry of the same account is removed, so that no account pushes
   * out the entries of another; beyond `StoreCapacity.auditEntries`, the oldest of all. The same holds for the
   * entries that a change of the store adds.
   */
  add(entry: AuditEntry): Promise<void>
  /** A page that is shorter than `limit` is the last. */
  page(query: AuditQuery): Promise<AuditEntry[]>
}
