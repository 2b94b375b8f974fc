/**
 * Writes ledger entries for the gateway: each entry is settled before its reply ends, and goes to the spool
 * on disk while the ledger is unavailable. A client waits at most 500 ms for its entry.
 */
import { DAY_MS } from '../base/time-units.js'
import type { LedgerConfig } from '../config/config.js'
import type { Logger } from '../observe/log.js'
import type { Reservation, Ledger, LedgerMemory, Retention } from '../store/ledger.js'
import type { LedgerEntry } from './entry.js'
import { readSpoolLine, writeSpoolLine, type Segment, type Spool, type SpooledEntry } from './spool.js'

/** The parts that a writer uses. */
interface LedgerWriterOptions {
  readonly ledger: Pick<Ledger, 'settle' | 'append' | 'expire' | 'prune' | 'fitMemory'>
  readonly spool: Spool
  readonly settings: () => LedgerConfig
  /** Whether there is an archive: entries that wait for it are not removed. */
  readonly isArchived?: () => boolean
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /**
   * The owner of the key with this digest; null if there is no such key. Rejects while the store is
   * unavailable.
   */
  readonly ownerOf: (digest: string) => Promise<EntryOwner | null>
  /** Counts entries for the metric `sluice_usage_rows_total`. */
  readonly onRow: (kind: RowKind, rows: number) => void
  /** Called now and then with the memory of the entries, of a store that holds them in memory. */
  readonly onMemory: (memory: LedgerMemory) => void
}

/** The members of an entry that the key determines. */
type EntryOwner = Pick<LedgerEntry, 'accountId' | 'keyId' | 'labels' | 'accountPath'>

/**
 * The label values of `sluice_usage_rows_total`. Each entry counts under the source of its token counts, and
 * under the events until the ledger has accepted it. `lost`: reservations of a process that exited, settled
 * by another process. `damaged`: lines of the spool that cannot be read.
 */
export const ROW_KINDS = [
  'reported',
  'estimated',
  'assumed',
  'none',
  'lost',
  'spooled',
  'replayed',
  'dropped',
  'damaged',
] as const
/** One of `ROW_KINDS`. */
export type RowKind = (typeof ROW_KINDS)[number]

/** Interval between attempts to reach an unavailable ledger. */
const RETRY_MS = 1_000
/** Interval of the maintenance of other processes' spools and reservations. */
const MAINTENANCE_MS = 10_000
/** Time after an outage to settle the requests that ended during it, before they count as lost. */
const GRACE_MS = 30_000
/** Interval of deleting entries and sums that are older than configured; the first time is at the start. */
const PRUNE_MS = 600_000
/** Number of spooled entries that are settled at the same time. */
const BATCH = 64
/** Time limit of one call of the maintenance. */
const MAINTENANCE_CALL_MS = 5_000
/** Minimum interval between two log lines about dropped entries. */
const ALARM_MS = 10_000
/** Maximum number of entries in memory while the disk is full, about 1 KB each. */
const MAX_UNWRITTEN = 20_000
/** Entries of refused requests among them, so that these never displace an entry with a cost. */
const MAX_UNWRITTEN_REFUSALS = 10_000
/** Maximum number of spooled entries without an owner: anyone can send keys that do not exist. */
const MAX_UNOWNED = 10_000

/** The account of a spooled entry whose owner is not known yet; its `keyId` is the digest of the key. */
const NO_OWNER = ''

/** The ledger writer of one process. Holds timers until `close`. */
export class LedgerWriter {
  private readonly options: LedgerWriterOptions
  private readonly pending: PendingSettlements
  private maintenanceTimer: NodeJS.Timeout | null = null
  private runningMaintenance: Promise<void> | null = null
  private prunedMs = Number.NEGATIVE_INFINITY
  private alarmedMs = -ALARM_MS
  private isUnavailable = false
  /** When the last outage was noticed, and when it ended. */
  private unavailableMs = Number.NEGATIVE_INFINITY
  private availableMs = Number.NEGATIVE_INFINITY
  /** Number of settled entries of each segment, so that a slow ledger does not get them twice. */
  private readonly settledEntries = new Map<string, number>()
  private isFull = false
  /** With `when_full: refuse`: entries that neither the ledger nor the spool has accepted. */
  private readonly unwritten: SpooledEntry[] = []
  private isClosed = false
  private spooledRows = 0
  /** Spooled entries without an owner since the last replay. */
  private unownedRows = 0
  private droppedRows = 0

  constructor(options: LedgerWriterOptions) {
    this.options = options
    this.pending = new PendingSettlements((entry) => {
      this.markUnavailable()
      this.spool(entry)
    })
    this.scheduleMaintenance(RETRY_MS)
  }

  /**
   * True while requests that cost money must be refused, because their entries could be neither settled nor
   * spooled.
   */
  get isRefusing(): boolean {
    if (this.options.settings().whenFull !== 'refuse') return false
    return this.unwritten.length > 0 || (this.isFull && this.isUnavailable)
  }

  /** `ok`, or the problem, for `/readyz`. */
  get state(): string {
    if (!this.isUnavailable) return 'ok'
    const parts = [`unavailable, ${this.spooledRows} rows spooled`]
    if (this.unwritten.length > 0) parts.push(`${this.unwritten.length} in memory, requests are refused`)
    if (this.droppedRows > 0) parts.push(`${this.droppedRows} dropped`)
    return parts.join(', ')
  }

  /**
   * Writes one entry. Resolves when the ledger or the spool has it; returns null if the spool has it already.
   * Never rejects. Pass no `reservation` if the request has reserved nothing.
   */
  settle(row: LedgerEntry, reservation?: Reservation): Promise<void> | null {
    this.options.onRow(row.source, 1)
    if (this.isUnavailable) {
      this.spool({ row, reservation })
      return null
    }
    const { ledger } = this.options
    return this.pending.add({ row, reservation }, () =>
      reservation === undefined ? ledger.append(row) : ledger.settle(row, reservation),
    )
  }

  /**
   * Spools the entry of a request whose key could not be looked up; the key's owner is found when the store
   * is back. An entry of a key that does not exist is dropped then.
   */
  spoolUnowned(row: LedgerEntry, digest: string): void {
    if (this.unownedRows >= MAX_UNOWNED) return
    this.unownedRows += 1
    this.spool({ row: { ...row, accountId: NO_OWNER, keyId: digest }, reservation: undefined })
  }

  /** Waits for pending entries, tries once to settle the spooled ones, and leaves the rest in the spool. */
  async close(): Promise<void> {
    this.isClosed = true
    if (this.maintenanceTimer !== null) clearTimeout(this.maintenanceTimer)
    await this.pending.close()
    await this.runningMaintenance
    if (this.spooledRows + this.unwritten.length > 0) await this.replay().catch(() => undefined)
    for (const entry of this.unwritten.splice(0)) this.spool(entry)
    this.options.spool.close()
  }

  private markUnavailable(): void {
    if (this.isUnavailable) return
    this.isUnavailable = true
    this.unavailableMs = performance.now()
    this.options.log.warn('ledger unavailable, rows are spooled')
    this.scheduleMaintenance(RETRY_MS)
  }

  private spool({ row, reservation }: SpooledEntry): void {
    const { spool, onRow, log } = this.options
    this.isFull = spool.append(writeSpoolLine({ row, reservation })) === 'full'
    if (!this.isFull) {
      this.spooledRows += 1
      onRow('spooled', 1)
      return
    }
    const isKept = this.hasRoomFor(row)
    if (isKept) this.unwritten.push({ row, reservation })
    else this.droppedRows += 1
    onRow(isKept ? 'spooled' : 'dropped', 1)
    if (performance.now() - this.alarmedMs < ALARM_MS) return
    this.alarmedMs = performance.now()
    const event = isKept
      ? 'usage row held in memory, ledger unavailable and spool full'
      : 'usage row dropped, ledger unavailable and spool full'
    log.error(event, spool.fault, {
      request_id: row.requestId,
      rows: isKept ? this.unwritten.length : this.droppedRows,
    })
  }

  private hasRoomFor({ source }: LedgerEntry): boolean {
    if (this.options.settings().whenFull !== 'refuse' || this.isClosed) return false
    return this.unwritten.length < (source === 'none' ? MAX_UNWRITTEN_REFUSALS : MAX_UNWRITTEN)
  }

  /** Settles the entries held in memory, oldest first. Rejects if the ledger is unavailable. */
  private async settleUnwritten(): Promise<void> {
    while (this.unwritten.length > 0) {
      const batch = this.unwritten.slice(0, BATCH)
      await this.settleBatch(batch)
      this.unwritten.splice(0, batch.length)
    }
  }

  /** Settles entries at the same time. Rejects if the ledger is unavailable. */
  private async settleBatch(batch: readonly SpooledEntry[]): Promise<void> {
    const settling = Promise.all(batch.map((entry) => this.settleSpooled(entry)))
    const settled = await within(MAINTENANCE_CALL_MS, settling)
    const replayed = settled.filter(Boolean).length
    this.options.onRow('replayed', replayed)
    if (replayed < batch.length) this.options.onRow('dropped', batch.length - replayed)
  }

  /** False for an entry of a key that does not exist. */
  private async settleSpooled({ row, reservation }: SpooledEntry): Promise<boolean> {
    const { ledger, ownerOf } = this.options
    const owner = row.accountId === NO_OWNER ? await ownerOf(row.keyId) : row
    if (owner === null) return false
    const { accountId, keyId, labels, accountPath } = owner
    await ledger.settle({ ...row, accountId, keyId, labels, accountPath }, reservation)
    return true
  }

  private scheduleMaintenance(ms: number): void {
    if (this.isClosed) return
    if (this.maintenanceTimer !== null) clearTimeout(this.maintenanceTimer)
    // Workers start at the same time and must not reach the ledger at the same time.
    const jitteredMs = ms * (0.75 + Math.random() / 2)
    this.maintenanceTimer = setTimeout(() => {
      this.runningMaintenance ??= this.maintain().finally(() => {
        this.runningMaintenance = null
        this.scheduleMaintenance(this.isUnavailable ? RETRY_MS : MAINTENANCE_MS)
      })
    }, jitteredMs).unref()
  }

  /**
   * Settles spooled entries and lost reservations, deletes old data, and detects whether the ledger works.
   */
  private async maintain(): Promise<void> {
    await this.fitMemory()
    try {
      // The spool comes first: its entries belong to reservations that would count as lost. `expire` writes,
      // so a ledger that only reads stays unavailable.
      const rows = this.spooledRows
      await this.replay()
      await this.expire()
      this.markAvailable(rows)
      // Entries that were spooled meanwhile.
      await this.replay()
      await this.prune()
    } catch {
      this.markUnavailable()
    }
  }

  private async expire(): Promise<void> {
    const nowMs = performance.now()
    const isOver = !this.isUnavailable && nowMs - this.availableMs >= GRACE_MS
    const overdueMs = isOver ? 0 : Math.ceil(nowMs - this.unavailableMs + GRACE_MS)
    const lost = await within(MAINTENANCE_CALL_MS, this.options.ledger.expire(overdueMs))
    if (lost > 0) this.options.onRow('lost', lost)
  }

  private markAvailable(rows: number): void {
    if (!this.isUnavailable) return
    this.isUnavailable = false
    this.isFull = false
    this.availableMs = performance.now()
    this.options.log.info('ledger is back', { rows })
  }

  /** Settles the entries of the spool. The ledger accepts each entry once, however often it is sent. */
  private async replay(): Promise<void> {
    const { spool } = this.options
    this.unownedRows = 0
    await this.settleUnwritten()
    for (const segment of spool.segments()) {
      const { rows, damaged } = this.rowsOf(segment)
      const settled = this.settledEntries.get(segment.path) ?? 0
      for (let start = settled; start < rows.length; start += BATCH) {
        const batch = rows.slice(start, start + BATCH)
        await this.settleBatch(batch)
        this.settledEntries.set(segment.path, start + batch.length)
      }
      // An operator, or another version of the program, may be able to read the damaged lines.
      if (damaged > 0) spool.setAside(segment)
      else spool.remove(segment)
      this.settledEntries.delete(segment.path)
      if (spool.owns(segment)) this.spooledRows = Math.max(0, this.spooledRows - rows.length)
    }
  }

  private rowsOf(segment: Segment): { rows: SpooledEntry[]; damaged: number } {
    const rows: SpooledEntry[] = []
    const lines = segment.lines()
    let { damaged } = segment
    for (const line of lines) {
      try {
        rows.push(readSpoolLine(line))
      } catch {
        // Written by another version, or damaged; counted below.
        damaged += 1
      }
    }
    if (damaged > 0) {
      this.options.onRow('damaged', damaged)
      this.options.log.warn('spool has lines that cannot be read', {
        file: segment.path,
        rows: damaged,
      })
    }
    return { rows, damaged }
  }

  /** Before everything else: a store whose memory is full takes no entries until others leave. */
  private async fitMemory(): Promise<void> {
    const { ledger, settings, onMemory } = this.options
    const { maxMemory: max, keepDays } = settings()
    try {
      const memory = await within(MAINTENANCE_CALL_MS, ledger.fitMemory({ max, keepDays }))
      if (memory !== null) onMemory(memory)
    } catch {
      // What follows finds out whether the ledger works.
    }
  }

  private async prune(): Promise<void> {
    if (performance.now() - this.prunedMs < PRUNE_MS) return
    this.prunedMs = performance.now()
    const { ledger, settings, isArchived } = this.options
    await ledger.prune({ ...retentionAt(Date.now(), settings()), isArchived: isArchived?.() ?? false })
  }
}

/** Rejects if the promise takes longer than `ms`; its later result is ignored. */
function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the ledger did not answer in time')), ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

const SWEEP_MS = 100
/**
 * The longest time that a client waits for its entry, in sweeps: 500 ms. A late sweep counts once, however
 * late: this process may not have run, which is no failure of the ledger.
 */
const SETTLE_SWEEPS = 5

/** One entry on its way to the ledger. */
interface PendingSettlement {
  readonly entry: SpooledEntry
  sweeps: number
  readonly resolve: () => void
  /** Its position in the list; `NOT_LISTED` once it is removed. */
  listIndex: number
}

const NOT_LISTED = -1

/**
 * Ledger entries that have been sent to the ledger and are not confirmed yet. An entry that the ledger does
 * not confirm within 500 ms is abandoned, so that its client does not wait longer. Holds a timer until
 * `close`.
 */
class PendingSettlements {
  /**
   * Unordered. Settled entries are removed at once, because keeping them would cost garbage collection time.
   */
  private readonly pending: PendingSettlement[] = []
  private readonly timer: NodeJS.Timeout
  private readonly onAbandoned: (entry: SpooledEntry) => void

  /** `onAbandoned` is called for an entry that the ledger refused or did not confirm in time. */
  constructor(onAbandoned: (entry: SpooledEntry) => void) {
    this.onAbandoned = onAbandoned
    this.timer = setInterval(() => this.abandonOld(), SWEEP_MS).unref()
  }

  /** Resolves when `settle` has resolved, or the entry is abandoned. */
  add(entry: SpooledEntry, settle: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const settlement = { entry, sweeps: 0, resolve, listIndex: this.pending.length }
      this.pending.push(settlement)
      settle().then(
        () => {
          if (this.remove(settlement)) resolve()
        },
        () => this.abandon(settlement),
      )
    })
  }

  /** Waits until all entries are settled or abandoned, and stops the timer. */
  async close(): Promise<void> {
    while (this.pending.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS / 4))
    }
    clearInterval(this.timer)
  }

  private abandon(settlement: PendingSettlement): void {
    if (!this.remove(settlement)) return
    this.onAbandoned(settlement.entry)
    settlement.resolve()
  }

  private remove(settlement: PendingSettlement): boolean {
    const { listIndex } = settlement
    if (listIndex === NOT_LISTED) return false
    const last = this.pending.pop()
    if (last !== undefined && last !== settlement) {
      this.pending[listIndex] = last
      last.listIndex = listIndex
    }
    settlement.listIndex = NOT_LISTED
    return true
  }

  private abandonOld(): void {
    for (const settlement of this.pending) {
      settlement.sweeps += 1
      // The ledger may have confirmed it, too: this turn reads that.
      if (settlement.sweeps > SETTLE_SWEEPS) setImmediate(() => this.abandon(settlement))
    }
  }
}

/** The times before which entries and sums are removed. */
function retentionAt(
  nowMs: number,
  { keepDays, hoursDays, daysDays }: Pick<LedgerConfig, 'keepDays' | 'hoursDays' | 'daysDays'>,
): Retention {
  return {
    entriesBeforeMs: nowMs - keepDays * DAY_MS,
    hoursBeforeMs: nowMs - hoursDays * DAY_MS,
    daysBeforeMs: nowMs - daysDays * DAY_MS,
  }
}
