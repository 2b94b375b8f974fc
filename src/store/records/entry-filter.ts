/** Which ledger entries are meant. Pure. */
import type { UsageRow } from '../../ledger/row.js'

/** Conditions that an entry has to meet; what is left out is not looked at. */
export interface EntryFilter {
  readonly accountId?: string
  readonly keyId?: string
  /** What sums count the request under. */
  readonly model?: string
  /** The model that the client asked for; compared as a whole. */
  readonly modelAsked?: string
  readonly upstream?: string
  /** The HTTP status, such as 429. */
  readonly status?: number
  readonly requestId?: string
  /** Whether the outcome is other than `ok`. */
  readonly failed?: boolean
}

/** Whether the entry meets every condition. */
export function matchesEntry(row: UsageRow, filter: EntryFilter): boolean {
  const { accountId, keyId, model, modelAsked, upstream, status, requestId, failed } = filter
  return (
    (accountId === undefined || row.accountId === accountId) &&
    (keyId === undefined || row.keyId === keyId) &&
    (model === undefined || row.model === model) &&
    (modelAsked === undefined || row.modelAsked === modelAsked) &&
    (upstream === undefined || row.upstream === upstream) &&
    (status === undefined || row.status === status) &&
    (requestId === undefined || row.requestId === requestId) &&
    (failed === undefined || (row.outcome !== 'ok') === failed)
  )
}
