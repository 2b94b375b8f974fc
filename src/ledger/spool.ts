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
} from 'node:fs'
import { join } from 'node:path'
import { createFolder } from '../files/create-folder.js'
import { OwnerLock } from './owner-lock.js'
import { checksummedLines, isMissing, SegmentFile, type Segment } from './spool-segment.js'

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
export type AppendResult = 'kept' | 'full'

/** A segment of another process; the owner of an orphan has exited. */
export interface Foreign {
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
    const running = this.runningOwners()
    return segmentNames(this.folder)
      .filter((name) => !running.has(ownerOf(name)))
      .map((name) => this.segmentFile(name))
  }

  /** The segments of other processes, oldest first; running processes may still append to theirs. */
  others(): Foreign[] {
    const running = this.runningOwners()
    return segmentNames(this.folder)
      .filter((name) => ownerOf(name) !== this.owner)
      .map((name) => ({ segment: this.segmentFile(name), isOrphan: !running.has(ownerOf(name)) }))
  }

  /** Ends the current segment, so that the next line begins a new file. Null if there is none. */
  startNewSegment(): Segment | null {
    const { current } = this
    this.closeSegment()
    return current === null ? null : new SegmentFile(current)
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
    return new SegmentFile(join(this.folder, name))
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
    this.lock ??= OwnerLock.take(join(this.folder, `rows-${this.owner}.lock`))
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
