/**
 * Encrypted records of requests: replies of the exact cache, orders to clear it, recordings, files and
 * batches. The store has their owners and times, and no text of a conversation.
 */
import type { AuditEntry } from './audit-trail.js'

/** All kinds of records. */
export const RECORD_KINDS = [
  'reply',
  'clear',
  'recording',
  'file',
  'chunk',
  'batch',
  'open-batch',
  'lease',
] as const

/**
 * What a record is: a cached reply, an order to drop cached replies, a recording, a file without its bytes, a
 * chunk of a file, a batch, the mark of a batch that has not ended, and which process works on a batch.
 */
export type RecordKind = (typeof RECORD_KINDS)[number]

/** A record without its value. */
export interface RecordHead {
  readonly kind: RecordKind
  /** 1 to 200 characters without spaces; unique in its kind. */
  readonly id: string
  /** Empty if it is of no account, key or model. */
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly atMs: number
  readonly expiresAtMs: number
  /** JSON without any text of a conversation; '' for nothing. */
  readonly info: string
  /** Size of the value. */
  readonly bytes: number
}

/** A record with its encrypted value. */
export interface SealedRecord extends Omit<RecordHead, 'bytes'> {
  readonly value: Uint8Array
}

/** Maximum number of heads in a list. */
export const MAX_LISTED_RECORDS = 10_000

/** Which records; an absent member matches all. */
export interface RecordFilter {
  readonly id?: string
  readonly accountId?: string
  readonly keyId?: string
  readonly model?: string
  /** Not before this time, in ms since 1970. */
  readonly sinceMs?: number
  /** Not after this time. */
  readonly untilMs?: number
}

/** Methods fail as those of `Store` do. */
export interface SealedRecords {
  /**
   * Stores a record in one step; it replaces one of the same kind and id. If the records of the kind then
   * have more than `maxBytes`, those that expire first are removed.
   */
  put(record: SealedRecord, maxBytes: number, nowMs: number): Promise<void>
  /**
   * Replaces the record of the same kind and id in one step if its `info` is `before`, or (null) adds it if
   * there is none; false if that does not hold. The audit entries are stored with it.
   */
  replace(record: SealedRecord, before: string | null, auditEntries?: readonly AuditEntry[]): Promise<boolean>
  /** Null if there is none, or it has expired. */
  find(kind: RecordKind, id: string, nowMs: number): Promise<SealedRecord | null>
  /** The heads of records that have not expired, newest first; at most `MAX_LISTED_RECORDS`. */
  list(kind: RecordKind, filter: RecordFilter, nowMs: number): Promise<RecordHead[]>
  /**
   * Removes one record in one step with the audit entries; false, and nothing is stored, if there is none.
   */
  take(kind: RecordKind, id: string, auditEntries: readonly AuditEntry[]): Promise<boolean>
  /** Removes records; returns their number. */
  remove(kind: RecordKind, filter: RecordFilter): Promise<number>
  /** Removes expired records; returns their number. */
  sweep(nowMs: number): Promise<number>
}

export function isSelected(head: RecordHead, filter: RecordFilter): boolean {
  const { id, accountId, keyId, model, sinceMs, untilMs } = filter
  return (
    (id === undefined || id === head.id) &&
    (accountId === undefined || accountId === head.accountId) &&
    (keyId === undefined || keyId === head.keyId) &&
    (model === undefined || model === head.model) &&
    (sinceMs === undefined || head.atMs >= sinceMs) &&
    (untilMs === undefined || head.atMs <= untilMs)
  )
}
