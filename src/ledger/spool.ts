/**
 * Stores lines on disk until the ledger accepts them: with checksums, in segment files of bounded size, in a
 * folder that all processes of a machine share. Used while the ledger is unavailable, and for engines that
 * write many entries at a time.
 *
 * `append` returns after the kernel has the line, so a crash of the process loses nothing. The name of a
 * segment contains its owner, and the owner holds a lock while it runs; any process reads the segments of
 * owners without a lock. Reading a segment twice is harmless, because the ledger accepts each entry once, by
 * its id.
 */
import {
  closeSync,
  existsSync,
  fsync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
  readFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { createFolder } from '../base/private-files.js'
import type { BudgetDemand, QuotaDemand, Reservation } from '../store/ledger.js'
import { isBudgetKind, isWindowed, isWindowKind, windowAmounts } from '../store/limit-arithmetic.js'
import { readEntry, writeEntry } from '../store/records/entry-text.js'
import { connect, isBusy, type Connection } from '../store/sqlite/driver.js'
import type { LedgerEntry } from './entry.js'
import { isMissing } from '../base/file-access.js'

/** Maximum size of a segment: small enough to be read at once, large enough for 10,000 entries. */
const SEGMENT_BYTES = 8 * 1024 * 1024
/** Maximum time until a line is synced to the disk. */
const SYNC_MS = 250
/**
 * The name of a segment: its owner (start time in Unix ms and a random number) and its number. Version 0.1.0
 * had a process id before the owner.
 */
const SEGMENT = /^rows-(?:\d+-)?(\d+-[0-9a-f]+)-\d+\.spool$/
const LOCK = /^rows-(\d+-[0-9a-f]+)\.lock$/

/** The result of an append. `full`: the maximum size is reached, or the disk failed. */
type AppendResult = 'kept' | 'full'

/** A segment of another process; the owner of an orphan has exited. */
interface Foreign {
  readonly segment: Segment
  readonly isOrphan: boolean
}

/** The spool of one process. Creates its folder with its first line. */
export class Spool {
  private readonly folder: string
  private readonly maxBytes: number
  private readonly isSynced: boolean
  private readonly owner: string
  private lock: OwnerLock | null = null
  private fd: number | null = null
  private current: string | null = null
  private currentBytes = 0
  private isDirty = false
  private sequence = 0
  private timer: NodeJS.Timeout | null = null
  /** Size of this process's segments. */
  private bytes = 0
  /** The error of the last append; null if it succeeded. */
  fault: Error | null = null

  /**
   * `maxBytes`: maximum total size of this process's segments. `isSynced`: whether each line is synced to the
   * disk within 250 ms; not needed for lines that are removed within moments.
   */
  constructor(folder: string, maxBytes: number, isSynced = true) {
    this.folder = folder
    this.maxBytes = maxBytes
    this.isSynced = isSynced
    const unique = Math.floor(Math.random() * 2 ** 48).toString(16)
    this.owner = `${Date.now()}-${unique}`
  }

  /** Size of this process's segments in bytes. */
  get waitingBytes(): number {
    return this.bytes
  }

  /** Appends all of the lines (without line breaks), or none. Never throws. */
  append(...texts: readonly string[]): AppendResult {
    const lines = checksummedLines(texts)
    if (this.bytes + lines.length > this.maxBytes) {
      this.fault = new Error(`the spool has reached its maximum of ${this.maxBytes} bytes`)
      return 'full'
    }
    try {
      this.write(lines)
      this.fault = null
      return 'kept'
    } catch (error) {
      this.fault = error instanceof Error ? error : new Error(String(error))
      // A line may have been truncated, so the next line begins a new file.
      this.closeSegment()
      return 'full'
    }
  }

  /** The readable segments, oldest first: those of this process, and those of processes that exited. */
  segments(): Segment[] {
    this.startNewSegment()
    const { names, running } = this.segmentsAndRunning()
    return names.filter((name) => !running.has(ownerOf(name))).map((name) => this.segmentFile(name))
  }

  /** The segments of other processes, oldest first; running processes may still append to theirs. */
  others(): Foreign[] {
    const { names, running } = this.segmentsAndRunning()
    return names
      .filter((name) => ownerOf(name) !== this.owner)
      .map((name) => ({ segment: this.segmentFile(name), isOrphan: !running.has(ownerOf(name)) }))
  }

  /** Ends the current segment, so that the next line begins a new file. Null if there is none. */
  startNewSegment(): Segment | null {
    const { current } = this
    this.closeSegment()
    return current === null ? null : readSegment(current)
  }

  /** Whether this process wrote it. */
  owns(segment: Segment): boolean {
    return segment.path.includes(`-${this.owner}-`)
  }

  /** Removes a segment whose lines are in the ledger. */
  remove(segment: Segment): void {
    if (this.owns(segment)) this.bytes -= sizeOf(segment.path)
    rmSync(segment.path, { force: true })
  }

  /** Renames a segment with damaged lines, so that it is kept for an operator and not read again. */
  setAside(segment: Segment): void {
    const { path } = segment
    const bytes = this.owns(segment) ? sizeOf(path) : 0
    try {
      renameSync(path, `${path}.damaged`)
      this.bytes -= bytes
    } catch (error) {
      // Another process has renamed or removed it.
      if (!isMissing(error)) throw error
    }
  }

  /** Syncs and closes the current segment, and releases the lock. */
  close(): void {
    this.closeSegment()
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
    const isOver = segmentNames(this.folder).every((name) => ownerOf(name) !== this.owner)
    this.lock?.release(isOver)
    this.lock = null
  }

  /**
   * The segments, and then the owners that run: an owner takes its lock before its first segment, so one that
   * starts between the two readings of the folder is not taken for one that has exited.
   */
  private segmentsAndRunning(): { names: string[]; running: ReadonlySet<string> } {
    const names = segmentNames(this.folder)
    return { names, running: this.runningOwners() }
  }

  /**
   * Other owners that hold their locks. Removes the lock files of exited owners that have no segments left.
   */
  private runningOwners(): ReadonlySet<string> {
    const running = new Set<string>()
    const names = namesIn(this.folder)
    const owners = new Set(names.filter((name) => SEGMENT.test(name)).map(ownerOf))
    for (const name of names) {
      const [, owner] = LOCK.exec(name) ?? []
      if (owner === undefined || owner === this.owner) continue
      const lock = OwnerLock.take(join(this.folder, name))
      if (lock === null) running.add(owner)
      else lock.release(!owners.has(owner))
    }
    return running
  }

  private segmentFile(name: string): Segment {
    return readSegment(join(this.folder, name))
  }

  private write(lines: Buffer): void {
    if (this.currentBytes + lines.length > SEGMENT_BYTES) this.closeSegment()
    this.fd ??= this.open()
    const written = writeSync(this.fd, lines)
    this.bytes += written
    this.currentBytes += written
    if (written < lines.length) throw new Error('the disk accepted only a part of the line')
    if (!this.isSynced) return
    this.isDirty = true
    this.timer ??= setInterval(() => this.sync(), SYNC_MS).unref()
  }

  private open(): number {
    createFolder(this.folder)
    // The lock comes before the first segment: segments of owners without a lock count as orphans.
    this.lock ??= OwnerLock.create(join(this.folder, `rows-${this.owner}.lock`))
    this.sequence += 1
    const number = String(this.sequence).padStart(6, '0')
    this.current = join(this.folder, `rows-${this.owner}-${number}.spool`)
    this.currentBytes = 0
    return openSync(this.current, 'a', 0o600)
  }

  private sync(): void {
    if (!this.isDirty || this.fd === null) return
    this.isDirty = false
    fsync(this.fd, (error) => {
      if (error !== null) this.isDirty = true
    })
  }

  private closeSegment(): void {
    const { fd, current, currentBytes } = this
    if (fd === null || current === null) return
    this.fd = null
    this.current = null
    this.currentBytes = 0
    try {
      if (this.isDirty) fsyncSync(fd)
    } catch {
      // A full or missing disk was reported when the line was written.
    }
    this.isDirty = false
    closeSync(fd)
    // A full disk would otherwise get an empty file for each line that it refuses.
    if (currentBytes === 0) rmSync(current, { force: true })
  }
}

/** The segments in the folder, sorted by the start of their owner and then by number. */
function segmentNames(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => SEGMENT.test(name))
    .sort()
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

function ownerOf(name: string): string {
  return SEGMENT.exec(name)?.[1] ?? ''
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** The file of checksummed lines at a path. */
export function readSegment(path: string): Segment {
  return new SegmentFile(path)
}

/** One segment file. `lines` reads it. */
export interface Segment {
  readonly path: string
  /** The lines whose checksum is right, in order; empty if the file does not exist any more. */
  lines(): string[]
  /** The number of truncated or damaged lines that the last call of `lines` found. */
  readonly damaged: number
}

/** A segment file on disk. */
class SegmentFile implements Segment {
  readonly path: string
  damaged = 0

  constructor(path: string) {
    this.path = path
  }

  lines(): string[] {
    this.damaged = 0
    const good: string[] = []
    for (const line of textOf(this.path).split('\n')) {
      if (line === '') continue
      const text = line.slice(SUM_BYTES + 1)
      if (line.slice(0, SUM_BYTES + 1) === `${checksum(text)} `) good.push(text)
      else this.damaged += 1
    }
    return good
  }
}

/** Empty if the file does not exist any more: another process has read and removed it. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(SUM_BYTES, '0')
}

const SUM_BYTES = 8
const [BLANK, BREAK] = [0x20, 0x0a]
const DIGITS = Buffer.from('0123456789abcdef')
/** Reused by each call of `checksummedLines`. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** One line for each text, with its checksum at the beginning. The buffer is valid until the next call. */
export function checksummedLines(texts: readonly string[]): Buffer {
  let maxBytes = 0
  for (const text of texts) maxBytes += SUM_BYTES + 2 + 3 * text.length
  if (maxBytes > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * maxBytes)
  let offset = 0
  for (const text of texts) {
    const from = offset + SUM_BYTES + 1
    const end = from + scratch.write(text, from)
    let sum = crc32(scratch.subarray(from, end))
    for (let digit = from - 2; digit >= offset; digit -= 1) {
      scratch[digit] = DIGITS[sum & 0xf] ?? 0
      sum >>>= 4
    }
    scratch[from - 1] = BLANK
    scratch[end] = BREAK
    offset = end + 1
  }
  return scratch.subarray(0, offset)
}

/** A spooled entry and the reservation of its request. */
export interface SpooledEntry {
  readonly row: LedgerEntry
  readonly reservation: Reservation | undefined
}

/**
 * The text of a line, without line breaks.
 *
 * A line is the row's text, then, after a tab (which the text of a row never has), the reservation as JSON,
 * `["nothing",[["usd_day","key:…",0,LIMIT,COST],…]]`. Rates are left out: they are whole again by the time
 * that the store is back.
 */
export function writeSpoolLine({ row, reservation }: SpooledEntry): string {
  const text = writeEntry(row)
  if (reservation === undefined) return text
  const budgets = reservation.demands.filter(isWindowed)
  if (budgets.length === 0) return text
  const parts = budgets.map((demand) => {
    const { kind, subject, shared } = demand
    const { limit, cost } = windowAmounts(demand)
    return [kind, subject, shared ? 1 : 0, limit, cost]
  })
  return `${text}\t${JSON.stringify([reservation.takenFrom, parts])}`
}

/** Reads a line. Throws an Error that names the damaged part and contains no values. */
export function readSpoolLine(line: string): SpooledEntry {
  const tab = line.indexOf('\t')
  if (tab < 0) return { row: readEntry(line), reservation: undefined }
  return { row: readEntry(line.slice(0, tab)), reservation: readReservation(line.slice(tab + 1)) }
}

function readReservation(text: string): Reservation {
  const [taken, parts] = listOf(parsed(text))
  if (taken !== 'slice' && taken !== 'nothing' && taken !== 'reserved') throw damaged()
  return { takenFrom: taken, demands: listOf(parts).map(readBudget) }
}

function readBudget(part: unknown): BudgetDemand | QuotaDemand {
  const [kind, subject, shared, limit, cost] = listOf(part)
  if (!isWindowKind(kind) || typeof subject !== 'string') throw damaged()
  if (typeof limit !== 'number' || typeof cost !== 'number') throw damaged()
  const of = { subject, shared: shared === 1 }
  return isBudgetKind(kind)
    ? { kind, ...of, limitNanoUsd: limit, costNanoUsd: cost }
    : { kind, ...of, limit, cost }
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw damaged()
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw damaged()
  }
}

function damaged(): Error {
  return new Error('the reservation of a spooled entry is not a list of budgets')
}

/**
 * A lock that this process holds.
 *
 * A lock on a file that ends with its process, also after a crash. It is SQLite's lock on a database: the
 * kernel keeps it with the open file, so it is valid across PID namespaces, in contrast to process ids. The
 * file stays empty.
 */
class OwnerLock {
  private readonly path: string
  private readonly database: Connection

  private constructor(path: string, database: Connection) {
    this.path = path
    this.database = database
  }

  /**
   * Creates the lock file of a new owner. It gets its name when the lock is held: other processes remove lock
   * files that no process holds. Throws if the file cannot be created.
   */
  static create(path: string): OwnerLock {
    const draft = `${path}.new`
    const lock = OwnerLock.take(draft)
    if (lock === null) throw new Error(`another process uses '${draft}'`)
    try {
      renameSync(draft, path)
    } catch (error) {
      lock.release(true)
      throw error
    }
    return new OwnerLock(path, lock.database)
  }

  /**
   * Takes the lock, and creates its file (mode 0600) if it is missing. Null if another process holds it.
   * Throws if the file cannot be created or opened.
   */
  static take(path: string): OwnerLock | null {
    // SQLite would create the file with the mode of the umask. The file is closed before SQLite opens it,
    // because closing it later would release the lock.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    const database = connect(path)
    try {
      database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
      return new OwnerLock(path, database)
    } catch (error) {
      database.close()
      if (isBusy(error)) return null
      throw error
    }
  }

  /** Releases the lock. `isOver`: no process needs the file any more, so it is removed. */
  release(isOver: boolean): void {
    // Removed while the lock is held, so that no other process can lock a file that does not exist any more.
    if (isOver) rmSync(this.path, { force: true })
    this.database.close()
  }
}
