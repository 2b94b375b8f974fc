/**
 * The audit trail: changes of accounts and keys, and who made them.
 */
import type { JsonObject } from '../base/json.js'

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
   * A user's e-mail address, `command line (USER)` with the user of the operating system, or
   * `token:NAME (ID)` of the admin API; `token:NAME` in entries of earlier versions.
   */
  readonly actor: string
  /** Such as `key.revoke`. */
  readonly action: string
  /** The id of the key or account. */
  readonly target: string
  /** The target's name at the time, and what changed; at most 1,000 characters. */
  readonly detail: string
  /** Why, as the actor entered it; absent: not given. */
  readonly reason?: string
  /** The client's address; null for none. */
  readonly address: string | null
  /** The id of the request that made the change; absent for commands and entries of earlier versions. */
  readonly requestId?: string
  /**
   * The changed fields before and after (`accounts/changes/audit-text.ts`); null if the record did not exist,
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

/** The changed fields afterwards, with the reason beside them, for exports without a column of it. */
export function withReason({ after = null, reason }: AuditEntry): JsonObject | null {
  return reason === undefined ? after : { ...after, reason }
}

/** Conditions that an entry must meet; absent members are not checked. */
interface AuditFilter {
  /** As a whole; `command line` is every user of it, and `token:NAME` every token of the name. */
  readonly actor?: string
  /** As a whole, or the part before a dot: `key` or `key.` for `key.revoke`; after `!`: all others. */
  readonly action?: string
  readonly target?: string
  /** Inclusive. */
  readonly fromMs?: number
  /** Exclusive. */
  readonly toMs?: number
  /** Part of any text of the entry; upper and lower case are equal. */
  readonly search?: string
}

/** Selects entries that match a filter. */
export interface AuditSearch extends AuditQuery {
  readonly order: 'newest_first' | 'oldest_first'
  readonly filter: AuditFilter
}

/** A part of the entries that match. */
export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  /** `after` of the next page; null on the last. A page may be short, or empty, and not the last. */
  readonly next: string | null
}

function isActionOf(entry: Pick<AuditEntry, 'action'>, action: string): boolean {
  return entry.action === action || entry.action.startsWith(action.endsWith('.') ? action : `${action}.`)
}

/** Whether the entry meets every condition. */
export function matchesAudit(entry: AuditEntry, filter: AuditFilter): boolean {
  const { actor, action, target, fromMs = 0, toMs = Number.POSITIVE_INFINITY, search } = filter
  if (entry.atMs < fromMs || entry.atMs >= toMs) return false
  if (target !== undefined && entry.target !== target) return false
  if (actor !== undefined && !isActorOf(entry, actor)) {
    return false
  }
  if (action !== undefined) {
    const isWanted = !action.startsWith('!')
    if (isActionOf(entry, isWanted ? action : action.slice(1)) !== isWanted) return false
  }
  if (search === undefined) return true
  const { account = '', detail, reason = '' } = entry
  const words = [entry.actor, entry.action, entry.target, account, detail, reason].join('\n')
  return words.toLowerCase().includes(search.toLowerCase())
}

/**
 * Whether all further entries in this order are outside of the filter's time. Ids sort by time, but entries
 * of processes with different clocks may be a little out of order.
 */
export function isPastFilter(
  { atMs }: AuditEntry,
  { order, filter }: Pick<AuditSearch, 'order' | 'filter'>,
): boolean {
  const { fromMs = 0, toMs = Number.POSITIVE_INFINITY } = filter
  return order === 'newest_first' ? atMs < fromMs - CLOCKS_MS : atMs >= toMs + CLOCKS_MS
}

/** Whether the entry is one of this actor; a name without what is in parentheses is every one of the name. */
export function isActorOf(entry: Pick<AuditEntry, 'actor'>, actor: string): boolean {
  return entry.actor === actor || entry.actor.startsWith(`${actor} (`)
}

const CLOCKS_MS = 60_000

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
  /** The entries that match; one call looks at a limited number, so that a rare filter takes several. */
  find(query: AuditSearch): Promise<AuditPage>
}
