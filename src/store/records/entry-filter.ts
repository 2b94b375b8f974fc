/** Conditions on ledger entries. Pure. */
import { causeOf, type Cause } from '../../error-cause.js'
import type { LedgerEntry } from '../../ledger/entry.js'

/** Conditions that an entry must meet; absent members are not checked. */
export interface EntryFilter {
  readonly accountId?: string
  readonly keyId?: string
  /** The model of the sums. */
  readonly model?: string
  /** The model that the client asked for; compared as a whole. */
  readonly modelAsked?: string
  readonly upstream?: string
  /** The HTTP status, such as 429. */
  readonly status?: number
  readonly requestId?: string
  /** Whether the outcome is other than `ok`. */
  readonly failed?: boolean
  /** `ok`, `lost`, or a kind of error. */
  readonly outcome?: string
  /** Who has to act on the failure. */
  readonly cause?: Cause
  /** The client's format, such as `messages`. */
  readonly ingress?: string
  /** One label, as `name=value`. */
  readonly label?: string
  /** The id that the client gave the request. */
  readonly clientRequestId?: string
}

/** Whether the entry meets every condition. */
export function matchesEntry(entry: LedgerEntry, filter: EntryFilter): boolean {
  const { requestId, failed, cause, label, ...same } = filter
  return (
    (requestId === undefined || entry.requestId === requestId) &&
    (failed === undefined || (entry.outcome !== 'ok') === failed) &&
    (cause === undefined || causeOf(entry.outcome) === cause) &&
    (label === undefined || (entry.labels ?? '').split(' ').includes(label)) &&
    COMPARED.every((name) => same[name] === undefined || entry[name] === same[name])
  )
}

/** Members that are compared for equality. */
const COMPARED = [
  'accountId',
  'keyId',
  'model',
  'modelAsked',
  'upstream',
  'status',
  'outcome',
  'ingress',
  'clientRequestId',
] as const satisfies readonly (keyof EntryFilter & keyof LedgerEntry)[]
