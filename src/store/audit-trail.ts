/**
 * The audit trail: changes of accounts and keys, and who made them.
 */
import type { JsonObject } from '../formats/chat/json.js'

/** One change. Never contains a secret. */
export interface AuditEntry {
  /** A UUID of version 7: ids sort by time. */
  readonly id: string
  readonly atMs: number
  /** The account that changed; empty for a change of the gateway, such as an admin token. */
  readonly accountId: string
  /** The account's name at the time; absent in entries of earlier versions. */
  readonly account?: string
  /**
   * A user's e-mail address, `command line (USER)` with the user of the operating system, or `token:NAME` of
   * the admin API.
   */
  readonly actor: string
  /** Such as `key.revoke`. */
  readonly action: string
  /** The id of the key or account. */
  readonly target: string
  /** The target's name at the time, and what changed; at most 1,000 characters. */
  readonly detail: string
  /** The client's address; null for none. */
  readonly address: string | null
  /** The id of the request that made the change; absent for commands and entries of earlier versions. */
  readonly requestId?: string
  /**
   * The changed fields before and after (`accounts/audit-changes.ts`); null if the record did not exist,
   * absent if no field changed and in entries of earlier versions.
   */
  readonly before?: JsonObject | null
  readonly after?: JsonObject | null
}

/** Selects a page of entries, newest first. */
export interface AuditQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** The id of the last entry of the previous page; null for the first. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** The audit entries of a change. Pure; an engine may call it several times. */
export type AuditEntriesOf<T> = (before: T, after: T) => readonly AuditEntry[]

/** Entries in order of their ids. Methods fail as those of `Store` do. */
export interface AuditTrail {
  /**
   * Adds an entry that belongs to no change of the store. Durable before it resolves. Beyond
   * `StoreCapacity.auditEntriesPerAccount`, the oldest entry of the same account is removed, so that an
   * account cannot displace the entries of others; beyond `StoreCapacity.auditEntries`, the oldest of all.
   * The same holds for the entries of changes.
   */
  add(entry: AuditEntry): Promise<void>
  /** A page that is shorter than `limit` is the last. */
  page(query: AuditQuery): Promise<AuditEntry[]>
}
