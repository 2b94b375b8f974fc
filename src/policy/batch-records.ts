/**
 * The records of batches in the store. Each change is made in one step on the record that it was decided on,
 * so that clients and the process that works on the batch do not undo each other's changes.
 */
import type { AuditEntry } from '../store/audit-trail.js'
import type { Identity } from '../accounts/account.js'
import type { JsonObject } from '../base/json.js'
import { Pacer } from '../base/pacer.js'
import type { BatchForm } from '../formats/chat/operations.js'
import {
  MAX_LISTED_RECORDS,
  type RecordFilter,
  type RecordHead,
  type SealedRecord,
  type SealedRecords,
} from '../store/sealed-records.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { Demand } from '../store/ledger.js'
import type { FileStore } from './file-store.js'

/** The states that clients see, and those of the gateway: clients see `validating` for `submitting`. */
const STATES = [
  ...(['creating', 'validating', 'submitting', 'in_progress', 'finalizing'] as const),
  ...(['completed', 'failed', 'cancelling', 'cancelled', 'expired'] as const),
]
type BatchState = (typeof STATES)[number]

/** States without a successor. */
const ENDED: ReadonlySet<BatchState> = new Set(['completed', 'failed', 'cancelled', 'expired'])

/** What the record of a batch has in readable form. */
export interface BatchInfo {
  readonly state: BatchState
  /** The path of each line's request, which tells the form of the client. */
  readonly endpoint: string
  readonly model: string
  /** '' if the lines were in the request that made it. */
  readonly inputFileId: string
  readonly window: string
  readonly form: Exclude<BatchForm, 'none'>
  /** The upstreams that may run it, in order; the first one does once it has the batch. */
  readonly upstreams: readonly string[]
  /** The file with the checked lines. */
  readonly planId: string
  /** The file with the results so far. */
  readonly journalId: string
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  /** The files with results that a process has begun to write. */
  readonly begunFileIds?: readonly string[]
  readonly counts: {
    readonly total: number
    readonly completed: number
    /** All that did not succeed; once it has ended also how many of these expired, or were cancelled. */
    readonly failed: number
    readonly expired?: number
    readonly cancelled?: number
  }
  /** When it entered each state, in ms. */
  readonly at: Readonly<Partial<Record<BatchState, number>>>
  /** The end of its window. */
  readonly dueAtMs: number
  /** The upstream's id, and of its file; null if it has none yet. */
  readonly vendorId: string | null
  /** It was looked for after a failure, and may be that of another batch: its results tell. */
  readonly isVendorIdGuessed?: boolean
  /** The upstream's batches that are others, as their results show. */
  readonly foreignIds?: readonly string[]
  /** A client has asked for its end. */
  readonly isCancelled: boolean
  /** Why it failed; null if it did not. */
  readonly failure: string | null
  /** How the vendor gets the lines; null for a queue. */
  readonly vendor: {
    readonly model: string
    readonly endpoint: string
    /** Of its protocol; absent: the usual ones. */
    readonly headers?: Readonly<Record<string, string>>
    /** The size of all requests together. */
    readonly bytes: number
    /** The lines that are sent. */
    readonly lines: number
  } | null
  /** The upstream has received its cancellation. */
  readonly isVendorCancelled: boolean
  /** What was reserved for each of its parts. */
  readonly reserved: readonly {
    readonly demands: readonly Demand[]
    readonly isHeld: boolean
  }[]
}

/** What only the account can read. */
interface BatchSecrets {
  /** The creator, as at creation. */
  readonly identity: Identity
  readonly metadata: JsonObject | null
  /** The headers of the request that made it which its lines have too. */
  readonly headers: Readonly<Record<string, string>>
  /** At least one. */
  readonly parts: readonly BatchPart[]
}

/** The lines of a batch that have the same values of dimensions, which are charged together. */
export interface BatchPart {
  /** Its ledger entry if it uses what is reserved for it. */
  readonly entry: LedgerEntry
  /** The number of its lines. */
  readonly lines: number
  readonly dimensions?: NonNullable<Identity['dimensions']>
}

/** A batch. */
export interface Batch {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly info: BatchInfo
  readonly secrets: BatchSecrets
}

/** A batch without what only its account can read. */
export type BatchHead = Omit<Batch, 'secrets'>

/** The states that clients see. */
export const SHOWN_STATES = [
  ...(['validating', 'in_progress', 'finalizing', 'completed'] as const),
  ...(['failed', 'cancelling', 'cancelled', 'expired'] as const),
]

/** The state as clients see it. */
export function shownState({ state }: Pick<BatchInfo, 'state'>): (typeof SHOWN_STATES)[number] {
  return state === 'creating' || state === 'submitting' ? 'validating' : state
}

/** Whether the batch has ended. */
export function hasEnded({ info }: Pick<Batch, 'info'>): boolean {
  return ENDED.has(info.state)
}

/** The change of a batch that is to end before its lines have run; null if it ends by itself. */
export function cancellation(batch: Pick<Batch, 'info'>): Partial<BatchInfo> | null {
  const { isCancelled, state } = batch.info
  // In `finalizing` its results are being read.
  if (hasEnded(batch) || isCancelled || state === 'finalizing') return null
  return { isCancelled: true, state: 'cancelling' }
}

/** A batch that has not ended. */
interface OpenBatch {
  readonly id: string
  readonly accountId: string
  /** As last noted beside it: enough for counts. */
  readonly state: BatchState
}

/** How long a process has the right to work on something without renewing it. */
export const LEASE_MS = 30_000
/** Leases and marks of open batches are kept longer than any batch runs. */
const KEPT_MS = 40 * 86_400_000
const NO_VALUE = Buffer.alloc(0)
/** The holder of a lease that no process has. */
const RESTING = 'resting'

/** The batches of a store. */
export class BatchRecords {
  private readonly records: SealedRecords
  private readonly files: FileStore

  constructor(records: SealedRecords, files: FileStore) {
    this.records = records
    this.files = files
  }

  /** Stores a new batch, and the mark that it has not ended. */
  async create(batch: Batch): Promise<void> {
    const nowMs = Date.now()
    await this.records.put(markRecord(batch), Number.MAX_SAFE_INTEGER, nowMs)
    await this.records.put(this.recordOf(batch), Number.MAX_SAFE_INTEGER, nowMs)
  }

  /** The batch; null if the account (null: any) has none with this id. */
  async find(accountId: string | null, id: string): Promise<Batch | null> {
    const record = await this.records.find('batch', id, Date.now())
    if (record === null || (accountId !== null && record.accountId !== accountId)) return null
    return this.batchIn(record)
  }

  /** The batches of the account without what is encrypted, newest first. */
  async list(accountId: string): Promise<BatchHead[]> {
    const { batches } = await this.page(accountId, null)
    return batches
  }

  /**
   * Batches of an account (null: of all), newest first, from a time on back (null: from the newest).
   * `isLast`: there are no older ones.
   */
  async page(
    accountId: string | null,
    untilMs: number | null,
  ): Promise<{ readonly batches: BatchHead[]; readonly isLast: boolean }> {
    const filter = { ...(accountId !== null && { accountId }), ...(untilMs !== null && { untilMs }) }
    const heads = await this.heads(filter)
    const batches = heads.filter(({ info }) => info.state !== 'creating')
    return { batches, isLast: heads.length < MAX_LISTED_RECORDS }
  }

  /** The upstreams' ids of all batches that they reported. */
  async vendorIds(): Promise<ReadonlySet<string>> {
    const heads = await this.heads({})
    const ids = heads.map(({ info }) => (info.isVendorIdGuessed === true ? null : info.vendorId))
    return new Set(ids.filter((id) => id !== null))
  }

  /** Read in turns. */
  private async heads(filter: RecordFilter): Promise<BatchHead[]> {
    const pacer = new Pacer()
    const heads: BatchHead[] = []
    for (const head of await this.records.list('batch', filter, Date.now())) {
      heads.push(headIn(head))
      if (heads.length % 64 === 0) await pacer.pace()
    }
    return heads
  }

  /** The batches that have not ended. */
  async open(accountId?: string): Promise<OpenBatch[]> {
    const filter = accountId === undefined ? {} : { accountId }
    const heads = await this.records.list('open-batch', filter, Date.now())
    // A record of an earlier version names no state.
    return heads.map(({ id, accountId, info }) => ({ id, accountId, state: stateIn(info) ?? 'in_progress' }))
  }

  /**
   * Changes the batch; `edit` returns null to leave it, and may be called several times. The batch after the
   * change; null if there is none. The audit entries of a change are stored with it.
   */
  async change(
    id: string,
    edit: (batch: Batch) => Partial<BatchInfo> | null,
    auditEntries: (before: Batch, after: Batch) => readonly AuditEntry[] = () => [],
  ): Promise<Batch | null> {
    for (;;) {
      const record = await this.records.find('batch', id, Date.now())
      const batch = record === null ? null : this.batchIn(record)
      if (record === null || batch === null) return null
      const edited = edit(batch)
      if (edited === null) return batch
      const { state = batch.info.state } = edited
      const isNew = state !== batch.info.state
      const at = isNew ? { ...batch.info.at, [state]: Date.now() } : batch.info.at
      const changed = { ...batch, info: { ...batch.info, ...edited, at } }
      const next = { ...record, info: JSON.stringify(changed.info) }
      if (next.info === record.info) return changed
      if (!(await this.records.replace(next, record.info, auditEntries(batch, changed)))) continue
      if (isNew && !hasEnded(changed)) await this.note(changed)
      return changed
    }
  }

  /** Notes the state beside the mark, unless it was removed or changed meanwhile. */
  private async note(batch: Batch): Promise<void> {
    const [head] = await this.records.list('open-batch', { id: batch.id }, Date.now())
    if (head !== undefined) await this.records.replace(markRecord(batch), head.info)
  }

  /** Removes the mark of a batch that has ended, and its lease. */
  async close(id: string): Promise<void> {
    await this.records.remove('open-batch', { id })
    await this.records.remove('lease', { id })
  }

  async remove(id: string): Promise<void> {
    await this.records.remove('batch', { id })
  }

  /**
   * Takes or renews the right to work on something for `LEASE_MS`; false if another process has it. `by`
   * names this process.
   */
  async lease(id: string, by: string): Promise<boolean> {
    const nowMs = Date.now()
    const [head] = await this.records.list('lease', { id }, nowMs)
    const [holder = '', until = '0'] = head?.info.split(' ') ?? []
    if (head !== undefined && holder !== by && Number(until) > nowMs) return false
    return this.records.replace(leaseRecord(id, `${by} ${nowMs + LEASE_MS}`), head?.info ?? null)
  }

  /** Gives up a lease of this process; no process gets it for `restMs`, or until `stir`. */
  async release(id: string, by: string, restMs = 0): Promise<void> {
    const [head] = await this.records.list('lease', { id }, Date.now())
    if (head?.info.startsWith(`${by} `) !== true) return
    await this.records.replace(leaseRecord(id, `${RESTING} ${Date.now() + restMs}`), head.info)
  }

  /** Ends the rest of a lease. */
  async stir(id: string): Promise<void> {
    const [head] = await this.records.list('lease', { id }, Date.now())
    if (head?.info.startsWith(`${RESTING} `) !== true) return
    await this.records.replace(leaseRecord(id, `${RESTING} 0`), head.info)
  }

  private recordOf({ id, accountId, keyId, createdAtMs, expiresAtMs, info, secrets }: Batch): SealedRecord {
    const value = this.files.seal(accountId, id, JSON.stringify(secrets))
    const head = { kind: 'batch' as const, id, accountId, keyId, model: '', atMs: createdAtMs, expiresAtMs }
    return { ...head, info: JSON.stringify(info), value }
  }

  private batchIn(record: SealedRecord): Batch | null {
    const { id, accountId, value } = record
    const text = this.files.open(accountId, id, value)
    if (text === null) return null
    // This class wrote the text, which is authenticated.
    return { ...headIn(record), secrets: JSON.parse(text) as BatchSecrets }
  }
}

function headIn(record: Omit<RecordHead, 'bytes'>): BatchHead {
  const { id, accountId, keyId, atMs, expiresAtMs, info } = record
  // `BatchRecords` alone writes records of this kind.
  return { id, accountId, keyId, createdAtMs: atMs, expiresAtMs, info: JSON.parse(info) as BatchInfo }
}

/** The mark of a batch that has not ended. */
function markRecord({ id, accountId, keyId, createdAtMs: atMs, info: { state } }: Batch): SealedRecord {
  const expiresAtMs = Date.now() + KEPT_MS
  return {
    kind: 'open-batch',
    id,
    accountId,
    keyId,
    model: '',
    atMs,
    expiresAtMs,
    info: state,
    value: NO_VALUE,
  }
}

function stateIn(text: string): BatchState | undefined {
  return STATES.find((state) => state === text)
}

function leaseRecord(id: string, info: string): SealedRecord {
  const nowMs = Date.now()
  const owner = { accountId: '', keyId: '', model: '' }
  return { kind: 'lease', id, ...owner, atMs: nowMs, expiresAtMs: nowMs + KEPT_MS, info, value: NO_VALUE }
}
