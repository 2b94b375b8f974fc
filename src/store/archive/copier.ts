/**
 * Moves entries and sums from the store to the archive. One process of all gateways of the store is the
 * leader, by a lease. Each step is declared in the store, written, read back and confirmed, so that a step
 * that is repeated after a crash changes nothing. A statement ends on the server before the lease that it was
 * started with, so no statement of a former leader can take effect.
 */
import { HOUR_MS } from '../../base/time-units.js'
import type { ArchiveConfig } from '../../config/config.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import {
  batchOf,
  entriesOf,
  NO_PROGRESS,
  oldestOnDisk,
  withBatchOnDisk,
  withoutBatch,
  type ArchiveLeader,
  type ArchiveProgress,
  type DeclaredBatch,
  type SealedHours,
} from '../archive-feed.js'
import type { MemoryLimit } from '../ledger.js'
import type { EntryPage, EntryQuery } from '../usage-queries.js'
import { beganAtMs } from '../records/correct-entry.js'
import type { Store } from '../store.js'
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { numberIn, rowsOfCells } from './columns.js'
import { progressAfterRestore } from './find-restored.js'
import { inspectArchive, ownValues, valuesIn } from './inspect-archive.js'
import { ArchivedEntries, MOST_IDS } from './read-entries.js'
import {
  cellsOfEntries,
  differenceOf,
  figureIn,
  sealedInArchive,
  totalsOf,
  withoutReplaced,
  type CellRow,
} from './seal-hours.js'
import { repairEntries } from './verify.js'
import type { WaitingFiles } from './waiting-files.js'
import { BatchWriter, type WrittenBatch } from './write-batch.js'

/** How long the leader leads without renewing. */
export const LEASE_MS = 60_000
const RENEW_MS = 15_000
/** A batch of this number of entries is sent at once. */
const BATCH_ENTRIES = 5_000
/** Entries that are kept in one file before they leave the store while the archive is away. */
const MOST_KEPT = 1_000
/** After an outage: each batch is confirmed once, and its parts are read and written at the same time. */
const MOST_ENTRIES = 20_000
/** A smaller batch is sent after this time. */
const BATCH_MS = 5_000
/** Hours that one transfer of sums has. */
const MOST_HOURS = 24
/** Entries leave the store in slices of time. */
const LEAST_SLICE_MS = 10_000
/** Names in Redis have the time of an entry about exactly. */
const NEAR_MS = 1_000
/** Sums that differ from the entries are read again, because a request may have ended in between. */
const MOST_READS = 10
/** Late entries that are looked up in the archive at once. */
const MOST_LATE = 500
const SEAL_MS = 5_000
const BOUND_MS = 3_600_000
/** A restored archive is looked for at least this often, and before entries leave the store. */
const RESTORED_MS = 60_000
/** Files that no gateway has sent for so long after the archive replies are taken for lost. */
const LOST_MS = 24 * 3_600_000
/** The share of the ledger's memory from which on entries wait on disk: above it, the oldest leave. */
const FULL = 0.85

/** What a copier has done since its start. */
export interface CopyCounts {
  readonly written: number
  readonly late: number
  readonly dropped: number
  readonly repeated: number
}

interface CopierParts {
  readonly store: Pick<Store, 'id' | 'ledger'>
  readonly engine: ArchiveEngine
  readonly config: Pick<ArchiveConfig, 'hotHours' | 'keepDays' | 'waitingMaxBytes'>
  readonly leader: ArchiveLeader
  readonly nowMs?: () => number
  /** An entry that the archive refuses. */
  readonly refused: (entry: LedgerEntry, reason: string) => void
  readonly warn: (message: string) => void
  /** Files of this machine with entries that wait. */
  readonly files?: WaitingFiles
  /** The memory that the store's entries may use. */
  readonly memory?: MemoryLimit
}

/** Moves the entries of one store. */
export class ArchiveCopier {
  private readonly parts: CopierParts
  private readonly nowMs: () => number
  private readonly writer: BatchWriter
  private leasedAtMs = Number.NEGATIVE_INFINITY
  private boundAtMs = Number.NEGATIVE_INFINITY
  private comparedAtMs = Number.NEGATIVE_INFINITY
  /** The restored archive that has every entry of the store again. */
  private repaired: string | null = null
  private copiedAtMs = Number.NEGATIVE_INFINITY
  private sealedAtMs = Number.NEGATIVE_INFINITY
  /** Since when every step succeeded; null after a failure. */
  private healthyFromMs: number | null = null
  /** When the first step in sequence failed; null: batches arrive. */
  private awayFromMs: number | null = null
  private reads = 0
  private written = 0
  private late = 0
  private dropped = 0
  private repeated = 0

  constructor(parts: CopierParts) {
    this.parts = parts
    this.nowMs = parts.nowMs ?? Date.now
    this.writer = new BatchWriter({ ...parts, storeId: parts.store.id, nowMs: this.nowMs })
  }

  get counts(): CopyCounts {
    const { written, late, dropped, repeated } = this
    return { written, late, dropped, repeated }
  }

  /**
   * Does what is due, and returns whether there may be more to do at once; null: another process leads.
   * Rejects with `ArchiveFailure` or as the store.
   */
  async step(): Promise<boolean | null> {
    if (!(await this.leads())) {
      await this.sendAsOther()
      return null
    }
    const progress = await this.bound()
    if (progress === null) return null
    if (progress.late !== null) return this.sealLate(progress, progress.late)
    if (progress.sealing !== null) return this.finishSeal(progress, progress.sealing)
    const sent = await this.sendFile(progress, this.parts.leader.id)
    if (sent !== false) return sent
    const settled = await this.settleLate(progress)
    if (settled !== false) return settled
    if (await this.forgetLost(progress)) return true
    const copied = await this.copyBatch(progress)
    if (copied !== false) return copied
    await this.repair(progress)
    if ((await this.sealHours(progress)) === true) return true
    return this.removeCopied(progress)
  }

  /**
   * After a failed step: batches that the store has no room for move to files, and entries leave the store
   * that are in them.
   */
  async spill(): Promise<void> {
    this.healthyFromMs = null
    // It may have been restored meanwhile.
    this.comparedAtMs = Number.NEGATIVE_INFINITY
    const { store, files, leader, warn } = this.parts
    if (files === undefined) return
    this.awayFromMs ??= await store.ledger.archive.nowMs()
    while (await this.leads()) {
      const progress = await store.ledger.archive.progress()
      if (progress === null) return
      const batch = progress.confirmed + 1
      const declared = (await this.isFull()) ? await store.ledger.archive.declare(batch, BATCH_ENTRIES) : null
      if (declared === null) {
        if (progress.onDisk.length > 0) await this.removeCopied(progress, false)
        return
      }
      const fed = await entriesOf(declared)
      if (!files.write(batch, fed)) {
        warn(`files with entries that wait for the archive have their maximum size: ${files.bytes} bytes`)
        return
      }
      if (!(await this.saveNext(withBatchOnDisk(progress, leader.gateway, fed.entries)))) return
    }
  }

  /** Whether what waits has more than its part of the store's memory. */
  private async isFull(): Promise<boolean> {
    const { store, config, memory } = this.parts
    const { bytes } = await store.ledger.archive.waiting()
    if (bytes === null) return false
    if (bytes > config.waitingMaxBytes) return true
    const all = memory === undefined ? null : await store.ledger.memory(memory)
    return all !== null && all.maxBytes !== null && all.usedBytes > FULL * all.maxBytes
  }

  /** Ends the lead. */
  async close(): Promise<void> {
    this.leasedAtMs = Number.NEGATIVE_INFINITY
    await this.parts.store.ledger.archive.resign(this.parts.leader.id)
  }

  /** Whether this process leads; renews its lease. */
  private async leads(): Promise<boolean> {
    const { store, leader } = this.parts
    const atMs = performance.now()
    if (atMs - this.leasedAtMs < RENEW_MS) return true
    const holder = await store.ledger.archive.lead(leader, LEASE_MS)
    if (holder.id !== leader.id) {
      this.leasedAtMs = Number.NEGATIVE_INFINITY
      this.boundAtMs = Number.NEGATIVE_INFINITY
      return false
    }
    this.leasedAtMs = atMs
    return true
  }

  /** The progress of the store, after the tables were found to be its own. */
  private async bound(): Promise<ArchiveProgress | null> {
    const { store, engine } = this.parts
    const feed = store.ledger.archive
    const known = await feed.progress()
    if (known !== null && performance.now() - this.boundAtMs < BOUND_MS) {
      if (performance.now() - this.comparedAtMs < RESTORED_MS) return known
      const restored = await this.restored(known)
      return restored === null ? known : restored ? feed.progress() : null
    }
    const { findings } = await inspectArchive(engine, store.id)
    const finding = findings.find(({ kind }) => kind !== 'columns')
    if (finding !== undefined) {
      throw new ArchiveFailure(finding.kind === 'away' ? 'away' : 'missing', finding.message)
    }
    await engine.prepare([])
    const values = await valuesIn(engine)
    const restored = known === null ? null : await progressAfterRestore(engine, values, known, this.nowMs())
    if (restored !== null) return (await this.endRound(restored)) === true ? feed.progress() : null
    if (values.get('store') !== store.id) await engine.put({ store: store.id }, this.nowMs())
    await feed.begin()
    const progress = known ?? progressOf(values)
    if (known === null && !(await this.save(progress))) return null
    // A leader may have ended between a change in the store and its copy in the archive.
    await engine.put({ confirmed: String(progress.confirmed) }, progress.confirmed)
    await engine.put(valuesOf(progress), progress.version)
    this.boundAtMs = this.comparedAtMs = performance.now()
    return progress
  }

  /**
   * Compares the archive's own table with the store: null if the archive has what it confirmed. True: it was
   * restored, and the progress has that now; false: so it was, and another process leads.
   */
  private async restored(progress: ArchiveProgress): Promise<boolean | null> {
    const { engine, store } = this.parts
    const values = await ownValues(engine, store.id)
    const restored = await progressAfterRestore(engine, values, progress, this.nowMs())
    if (restored === null) this.comparedAtMs = performance.now()
    return restored === null ? null : (await this.endRound(restored)) === true
  }

  /** Copies the next batch; false if there is none yet. */
  private async copyBatch(progress: ArchiveProgress): Promise<boolean | null> {
    const { engine } = this.parts
    const batch = progress.confirmed + 1
    const declared = await this.nextEntries(batch)
    if (declared === null) return false
    const restored = await this.restored(progress)
    if (restored !== null) return restored ? true : null
    const known = await this.withReplaced(batch, declared, progress, this.parts.leader.id)
    if (known === null) return null
    const leads = () => this.mustLead()
    const written = await this.writer.write({ number: batch, batch: declared, progress: known, leads })
    const next = { ...known, ...sumsOf(written, batch, known), confirmed: batch }
    if (!(await this.saveNext(next))) return null
    this.count(written)
    await engine.put({ confirmed: String(batch) }, batch)
    this.copiedAtMs = this.nowMs()
    this.awayFromMs = null
    return true
  }

  /** Sends the oldest batch of this machine's files; false if there is none. */
  private async sendFile(progress: ArchiveProgress, leaderId: string): Promise<boolean | null> {
    const { files, engine, warn } = this.parts
    const file = files?.oldest(progress.confirmed) ?? null
    if (file === null) return false
    const { batch, damaged } = file
    if (damaged > 0) warn(`${damaged} entries that waited for the archive are damaged`)
    const own = batchOf(file)
    const known = await this.withReplaced(batch, own, progress, leaderId)
    if (known === null) return null
    const leads = () => Promise.resolve()
    // A file may have entries that the archive confirmed before it was away.
    const all = { ...known, hotFromMs: Infinity }
    const written = await this.writer.write({ number: batch, batch: own, progress: all, leads })
    const isExpected = progress.onDisk.some(({ from, to }) => from <= batch && batch <= to)
    // The sums of files that were taken for lost have moved without them.
    const sums = isExpected ? sumsOf(written, batch, known) : {}
    const onDisk = withoutBatch(known.onDisk, batch, file.entries.length + damaged)
    const next = { ...known, ...sums, onDisk, version: known.version + 1 }
    if (!(await this.parts.store.ledger.archive.save(leaderId, next))) return null
    files?.remove(batch)
    this.count(written)
    this.dropped += damaged
    await engine.put({ confirmed: String(progress.confirmed) }, progress.confirmed)
    return true
  }

  /**
   * The progress with what earlier versions of entries have in sums that moved: once the entries are written,
   * the archive does not tell any more. Null if this process does not lead any more.
   */
  private async withReplaced(
    batch: number,
    declared: DeclaredBatch,
    progress: ArchiveProgress,
    leaderId: string,
  ): Promise<ArchiveProgress | null> {
    const { corrected } = declared
    if (progress.replaced?.batch === batch || corrected.size === 0) return progress
    const { entries } = await entriesOf(declared)
    const { sumsFromMs: fromMs, sumsToMs: toMs } = progress
    const ids = entries.flatMap(({ requestId, atMs }) => {
      return corrected.has(requestId) && atMs >= fromMs && atMs < toMs ? [requestId] : []
    })
    if (ids.length === 0) return progress
    const cells: CellRow[] = []
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const range = { fromMs, toMs, batch: { ofRequests: ids.slice(at, at + MOST_IDS) } }
      cells.push(...(await cellsOfEntries(this.parts.engine, range)))
    }
    const next = { ...progress, replaced: { batch, cells }, version: progress.version + 1 }
    return (await this.parts.store.ledger.archive.save(leaderId, next)) ? next : null
  }

  /** Settles entries of requests that may have left the store; false if there are none. */
  private async settleLate(progress: ArchiveProgress): Promise<boolean | null> {
    const { store, engine } = this.parts
    const feed = store.ledger.archive
    const late = await feed.late(MOST_LATE)
    // What is on a disk may be what is looked up.
    const isAway = (atMs: number) =>
      progress.onDisk.some(({ fromMs, toMs }) => atMs >= fromMs - HOUR_MS && atMs <= toMs + HOUR_MS)
    const ready = late.filter((entry) => !isAway(beganAtMs(entry)))
    if (ready.length === 0) return false
    const known = await new ArchivedEntries(engine).ofRequests(ready)
    let repeated = 0
    for (const entry of ready) {
      const isSettled = await feed.settleLate(entry, known.get(entry.requestId) ?? null)
      if (!isSettled) repeated += 1
    }
    this.repeated += repeated
    if (repeated === 0) return true
    return this.saveNext({ ...progress, repeatedRows: progress.repeatedRows + repeated })
  }

  /** Sends a file of this machine while another process leads. */
  private async sendAsOther(): Promise<void> {
    const { store, files } = this.parts
    const feed = store.ledger.archive
    if (files === undefined || files.bytes === 0) return
    const progress = await feed.progress()
    if (progress === null || progress.late !== null) return
    const leader = await feed.leader()
    if (leader !== null) await this.sendFile(progress, leader.id)
  }

  /** Files of a gateway that does not come back: their entries are lost, and the sums stay. */
  private async forgetLost(progress: ArchiveProgress): Promise<boolean> {
    const nowMs = this.nowMs()
    this.healthyFromMs ??= nowMs
    if (progress.onDisk.length === 0 || nowMs - this.healthyFromMs < LOST_MS) return false
    const rows = progress.onDisk.reduce((sum, each) => sum + each.rows, 0)
    const gateways = progress.onDisk.map(({ gateway }) => gateway).join(', ')
    this.parts.warn(`${rows} entries on the disk of ${gateways} did not reach the archive; sums have them`)
    this.dropped += rows
    return (await this.saveNext({ ...progress, onDisk: [] })) === true
  }

  private count({ rows, repeated, dropped }: WrittenBatch): void {
    this.written += rows
    this.repeated += repeated
    this.dropped += dropped
  }

  /** The entries of a batch that is full, or was declared or not sent for long; null if there are none. */
  private async nextEntries(batch: number): Promise<DeclaredBatch | null> {
    const feed = this.parts.store.ledger.archive
    if (this.nowMs() - this.copiedAtMs < BATCH_MS && (await feed.waiting()).rows < BATCH_ENTRIES) return null
    const declared = await feed.declare(batch, MOST_ENTRIES)
    if (declared === null) this.copiedAtMs = this.nowMs()
    return declared
  }

  /** Begins a transfer of the sums of hours that are due; false if there are none. */
  private async sealHours(progress: ArchiveProgress): Promise<boolean | null> {
    const nowMs = this.nowMs()
    if (nowMs - this.sealedAtMs < SEAL_MS) return false
    const { engine, store } = this.parts
    const hotFromMs = (await store.ledger.archive.nowMs()) - this.hotMs
    const dueMs = Math.floor(hotFromMs / HOUR_MS) * HOUR_MS
    if (progress.sumsToMs >= dueMs) return false
    const waiting = await store.ledger.archive.waiting()
    const oldestAtMs = earlier(waiting.oldestAtMs, oldestOnDisk(progress))
    const known = progress.sumsToMs > 0 ? progress.sumsToMs : await firstHour(engine)
    const isLost = known !== null && known < progress.lostToMs
    const fromMs = isLost ? known : await this.nextHour(known)
    if (fromMs === null || fromMs >= dueMs) {
      this.sealedAtMs = nowMs
      // Without entries in between, these hours have no sums.
      const isEmpty = fromMs !== null || progress.sumsToMs > 0
      if (!isEmpty || (oldestAtMs ?? dueMs) < dueMs) return false
      return this.saveNext({ ...progress, sumsToMs: dueMs })
    }
    const toMs = Math.min(dueMs, fromMs + MOST_HOURS * HOUR_MS, nextMonth(fromMs))
    if (oldestAtMs !== null && oldestAtMs < toMs) {
      this.sealedAtMs = nowMs
      return false
    }
    const sealing = { seal: progress.round + 1, fromMs, toMs, confirmed: progress.confirmed }
    const sumsFromMs = progress.sumsFromMs === 0 ? fromMs : progress.sumsFromMs
    return this.saveNext({ ...progress, sumsFromMs, sumsToMs: Math.max(progress.sumsToMs, fromMs), sealing })
  }

  /** The first hour from a time on that has entries in the archive. */
  private async nextHour(fromMs: number | null): Promise<number | null> {
    return fromMs === null ? null : firstHour(this.parts.engine, fromMs)
  }

  private async finishSeal(progress: ArchiveProgress, sealing: SealedHours): Promise<boolean | null> {
    const { store, engine } = this.parts
    const { fromMs, toMs, confirmed } = sealing
    // Batches of these hours went to files meanwhile.
    if ((oldestOnDisk(progress) ?? toMs) < toMs) return this.endSealing(progress)
    const restored = await this.restored(progress)
    if (restored !== null) return restored ? true : null
    const cells = await cellsOfEntries(engine, { fromMs, toMs, batch: { upTo: confirmed } })
    const sums = await store.ledger.sums({ accountId: null, by: 'hour', fromMs, toMs: toMs - 1 })
    const rest = differenceOf(sums, cells)
    if (rest.length > 0 && this.reads < MOST_READS) {
      this.reads += 1
      // A request of these hours may have ended since; it is in a later batch, and then late.
      const { rows } = await store.ledger.archive.waiting()
      if (rows > 0) return this.endSealing(progress)
    }
    this.reads = 0
    const missing = rest.filter((cell) => figureIn(cell, 'requests') >= 0n)
    if (missing.length > 0) {
      this.parts.warn(
        `sums of ${missing.length} keys and models in the archive are of the store: entries are missing`,
      )
    }
    const written = await this.writeCells(progress, [...cells, ...missing])
    if (written !== true) return written
    const after = await store.ledger.archive.progress()
    if (after?.sealing?.seal !== sealing.seal) return true
    return this.endRound({ ...after, sumsToMs: toMs, sealing: null, round: sealing.seal })
  }

  /** Unconfirmed entries of the hours in transfer are copied first; then it begins again. */
  private async endSealing(progress: ArchiveProgress): Promise<boolean | null> {
    return this.saveNext({ ...progress, sealing: null })
  }

  private async sealLate(progress: ArchiveProgress, batch: number): Promise<boolean | null> {
    const { sumsFromMs, sumsToMs, round, replaced } = progress
    const found = await cellsOfEntries(this.parts.engine, {
      ...{ fromMs: sumsFromMs, toMs: sumsToMs },
      batch: { only: batch },
    })
    const cells = replaced?.batch === batch ? withoutReplaced(found, replaced.cells) : found
    for (const months of byMonth(cells)) {
      const seal = round + 1 + months.at
      const written = await this.writeSeal(seal, months.cells)
      if (!written) return this.abandon(progress, seal)
    }
    const rows = found.reduce((sum, cell) => sum + Number(cell['requests']), 0)
    this.late += rows
    return this.endRound({
      ...progress,
      ...{ late: null, replaced: null },
      lateRows: progress.lateRows + rows,
      round: round + byMonth(cells).length,
    })
  }

  private async writeCells(progress: ArchiveProgress, cells: readonly CellRow[]): Promise<boolean | null> {
    const seal = progress.round + 1
    return (await this.writeSeal(seal, cells)) ? true : this.abandon(progress, seal)
  }

  /** Writes a transfer that is not in the archive yet; false if the archive has another content of it. */
  private async writeSeal(seal: number, cells: readonly CellRow[]): Promise<boolean> {
    const { engine, store } = this.parts
    const wanted = totalsOf(cells)
    const isSame = (found: typeof wanted) =>
      found.cells === wanted.cells && found.requests === wanted.requests && found.cost === wanted.cost
    const before = await sealedInArchive(engine, seal)
    if (isSame(before)) return true
    if (before.cells > 0) return false
    const rows = rowsOfCells(cells, seal)
    await engine.insert('hours', rows, `${store.id}/s/${seal}`)
    if (isSame(await sealedInArchive(engine, seal))) return true
    await engine.insert('hours', rows, `${store.id}/s/${seal}/${this.nowMs()}`)
    return isSame(await sealedInArchive(engine, seal))
  }

  /** A number whose content is wrong does not count; the next one is used. */
  private async abandon(progress: ArchiveProgress, seal: number): Promise<boolean | null> {
    const { sealing } = progress
    const next = sealing === null ? null : { ...sealing, seal: seal + 1 }
    return this.endRound({
      ...progress,
      abandoned: [...progress.abandoned, seal],
      round: seal,
      sealing: next,
    })
  }

  private async endRound(next: ArchiveProgress): Promise<boolean | null> {
    const saved = await this.saveNext(next)
    if (saved !== true) return saved
    const { engine } = this.parts
    await engine.put({ confirmed: String(next.confirmed) }, next.confirmed)
    await engine.put(valuesOf(next), next.version + 1)
    return true
  }

  /**
   * Removes entries that the archive or a file has and that are older than `hot_hours`. What the archive
   * confirmed, it has to have now: one that was restored from an older backup may lack it.
   */
  private async removeCopied(progress: ArchiveProgress, tells = true): Promise<boolean | null> {
    const feed = this.parts.store.ledger.archive
    const sliceMs = Math.max(LEAST_SLICE_MS, Math.min(HOUR_MS, this.hotMs / 4))
    const { oldestAtMs } = await feed.waiting()
    const untilMs = Math.min((await feed.nowMs()) - this.hotMs, oldestAtMs ?? Infinity)
    const hotFromMs = Math.floor(untilMs / sliceMs) * sliceMs
    if (hotFromMs <= progress.hotFromMs) return false
    let known = progress
    if (tells) {
      const restored = await this.restored(progress)
      if (restored !== null) return restored ? true : null
    } else {
      const kept = await this.keepInFiles(progress, hotFromMs)
      if (kept === null) return null
      known = kept
    }
    if (!(await this.save({ ...known, hotFromMs, version: known.version + 1 }))) return null
    if (tells) await this.parts.engine.put(valuesOf({ ...known, hotFromMs }), known.version + 1)
    await feed.remove(hotFromMs - NEAR_MS)
    return false
  }

  /**
   * What leaves the store while the archive is away is in files first: the archive had confirmed it, but may
   * come back from an older backup. Sums do not wait for these files. Null if there is no room for them, or
   * if another process leads.
   */
  private async keepInFiles(progress: ArchiveProgress, untilMs: number): Promise<ArchiveProgress | null> {
    const { store, files, leader, warn } = this.parts
    const toMs = Math.min(untilMs, this.awayFromMs ?? untilMs)
    const order = { column: 'atMs', isDescending: false } as const
    let known = progress
    for (let after: string | null = null; ;) {
      const query: EntryQuery = { accountId: null, toMs, order, after, limit: MOST_KEPT }
      const page: EntryPage = await store.ledger.entries(query)
      after = page.next
      if (page.entries.length > 0) {
        const batch = known.confirmed + 1
        const declared = await store.ledger.archive.declare(batch, BATCH_ENTRIES)
        const waiting = declared === null ? null : await entriesOf(declared)
        const entries = [...(waiting?.entries ?? []), ...page.entries]
        const corrected = waiting?.corrected ?? new Set<string>()
        if (files?.write(batch, { entries, corrected }) !== true) {
          warn(
            `entries stay in the store: files with entries that wait for the archive have their maximum size`,
          )
          return null
        }
        const next = withBatchOnDisk(known, leader.gateway, waiting?.entries ?? [])
        if (!(await this.saveNext(next))) return null
        known = { ...next, version: next.version + 1 }
      }
      if (after === null) return known
    }
  }

  /** A restored archive gets again what it has lost, before sums are made of it and entries leave. */
  private async repair({ restored }: ArchiveProgress): Promise<void> {
    const own = restored === null ? null : JSON.stringify(restored)
    if (own === null || own === this.repaired) return
    const { store, engine, warn } = this.parts
    const leads = () => this.mustLead()
    const count = await repairEntries(store, engine, 0, Infinity, { writer: this.writer, leads })
    if (count > 0) warn(`${count} entries that the restored archive lacked were written again`)
    this.repaired = own
  }

  private async mustLead(): Promise<void> {
    if (!(await this.leads())) throw new ArchiveFailure('away', 'another process moves entries')
  }

  private get hotMs(): number {
    return this.parts.config.hotHours * HOUR_MS
  }

  private async saveNext(next: ArchiveProgress): Promise<true | null> {
    return (await this.save({ ...next, version: next.version + 1 })) ? true : null
  }

  /** False if this process does not lead any more. */
  private async save(next: ArchiveProgress): Promise<boolean> {
    const isSaved = await this.parts.store.ledger.archive.save(this.parts.leader.id, next)
    if (!isSaved) this.leasedAtMs = Number.NEGATIVE_INFINITY
    return isSaved
  }
}

/** What the table `archive` has of the progress, besides `confirmed`. */
function valuesOf({ round, abandoned, hotFromMs, sumsFromMs, sumsToMs }: ArchiveProgress) {
  return {
    ...{ round: String(round), abandoned: abandoned.join(',') },
    ...{ sums_from: String(sumsFromMs), sums_to: String(sumsToMs), hot_from: String(hotFromMs) },
  }
}

/** The progress of a store that takes over the tables: what has moved before counts. */
function progressOf(values: ReadonlyMap<string, string>): ArchiveProgress {
  const number = (name: string) => Number(values.get(name) ?? '0')
  const abandoned = (values.get('abandoned') ?? '').split(',').filter(Boolean).map(Number)
  return {
    ...NO_PROGRESS,
    ...{ version: 1, confirmed: number('confirmed'), round: number('round'), abandoned },
    ...{ hotFromMs: number('hot_from'), sumsFromMs: number('sums_from'), sumsToMs: number('sums_to') },
  }
}

/** The hour of the oldest entry in the archive from a time on; null if there is none. */
async function firstHour(engine: ArchiveEngine, fromMs = 0): Promise<number | null> {
  const { is } = engine
  const sql = new Sql(is)
  const [row] = await engine.query(
    `SELECT ${is.millis('min(at)')} AS first FROM ${is.entries.split(' ')[0] ?? ''} WHERE
       batch > 0 AND at >= ${sql.time(fromMs)}`,
    sql.parameters,
  )
  // Without rows it is NULL, or in ClickHouse 1970.
  const first = numberIn(row, 'first')
  return first === 0 ? null : Math.floor(first / HOUR_MS) * HOUR_MS
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

/** What a batch changes in the progress of sums: entries of hours whose sums have moved are late. */
function sumsOf({ isLate, repeated }: WrittenBatch, batch: number, { repeatedRows }: ArchiveProgress) {
  return { late: isLate ? batch : null, repeatedRows: repeatedRows + repeated }
}

function nextMonth(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/** Cells by the month of their hours: an insert of one month is added whole or not at all. */
function byMonth(cells: readonly CellRow[]): { readonly at: number; readonly cells: readonly CellRow[] }[] {
  const months = new Map<string, CellRow[]>()
  for (const cell of cells) {
    const month = cell.start.slice(0, 7)
    const known = months.get(month)
    if (known === undefined) months.set(month, [cell])
    else known.push(cell)
  }
  return Array.from(months.values(), (own, at) => ({ at, cells: own }))
}
