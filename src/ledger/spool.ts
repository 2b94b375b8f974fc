/**
 * Rows that wait on disk for a ledger, because it is away or does better with many at a time: lines with
 * a checksum in segment files of bounded size, in a folder that all processes of a machine share. Knows
 * no ledger and no row.
 *
 * A line is in the kernel's hands before `append` returns, so the death of the process loses nothing. A segment's
 * name holds its owner, and the owner holds a lock for as long as it lives; segments of owners without a lock are
 * read by any process. Reading one twice is harmless: the ledger takes each row once, by its id.
 */
import {
  closeSync,
  existsSync,
  fsync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { OwnerLock } from './owner-lock.js'
import { checksummedLines, isMissing, SegmentFile, type Segment } from './spool-segment.js'

/** Small enough to be read at once, large enough that 10,000 rows share one file. */
const SEGMENT_BYTES = 8 * 1024 * 1024
/** How long the disk may lag behind where it has to follow. */
const SYNC_MS = 250
/** Owner (its start in Unix ms and a random number) and number; version 0.1.0 put a process id before the owner. */
const SEGMENT = /^rows-(?:\d+-)?(\d+-[0-9a-f]+)-\d+\.spool$/
const LOCK = /^rows-(\d+-[0-9a-f]+)\.lock$/

/** What became of a line; `full`: there is no room for it, or the disk took none. */
export type AppendResult = 'kept' | 'full'

/** A segment of another process; an orphan's is dead. */
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
  /** Of this process, waiting to be read. */
  private bytes = 0
  /** Why the last line was not kept; null where it was. */
  fault: Error | null = null

  /**
   * `maxBytes`: what the segments of this process may have together. `isSynced`: whether the disk has to
   * have each line within 250 ms; lines that hardly wait need not go there at all.
   */
  constructor(folder: string, maxBytes: number, isSynced = true) {
    this.folder = folder
    this.maxBytes = maxBytes
    this.isSynced = isSynced
    const unique = Math.floor(Math.random() * 2 ** 48).toString(16)
    this.owner = `${Date.now()}-${unique}`
  }

  /** Bytes that wait. */
  get waitingBytes(): number {
    return this.bytes
  }

  /** Keeps lines (none has a line break in it), all or none of them. Never throws. */
  append(...texts: readonly string[]): AppendResult {
    const lines = checksummedLines(texts)
    if (this.bytes + lines.length > this.maxBytes) {
      this.fault = new Error(`the spool has its ${this.maxBytes} bytes`)
      return 'full'
    }
    try {
      this.write(lines)
      this.fault = null
      return 'kept'
    } catch (error) {
      this.fault = error instanceof Error ? error : new Error(String(error))
      // A line may have been cut: what follows begins a file of its own.
      this.seal()
      return 'full'
    }
  }

  /** All that can be read now, oldest first: what this process has written, and what the dead have left. */
  segments(): Segment[] {
    this.cut()
    const alive = this.livingOwners()
    return segmentNames(this.folder)
      .filter((name) => !alive.has(ownerOf(name)))
      .map((name) => this.named(name))
  }

  /** What other processes have written, oldest first; those that live may be writing on. */
  others(): Foreign[] {
    const alive = this.livingOwners()
    return segmentNames(this.folder)
      .filter((name) => ownerOf(name) !== this.owner)
      .map((name) => ({ segment: this.named(name), isOrphan: !alive.has(ownerOf(name)) }))
  }

  /** Ends the present segment: what follows begins a file of its own. Null where nothing was written. */
  cut(): Segment | null {
    const { current } = this
    this.seal()
    return current === null ? null : new SegmentFile(current)
  }

  /** Whether this process wrote it. */
  owns(segment: Segment): boolean {
    return segment.path.includes(`-${this.owner}-`)
  }

  /** Forgets a segment whose lines are where they belong. */
  remove(segment: Segment): void {
    if (this.owns(segment)) this.bytes -= sizeOf(segment.path)
    rmSync(segment.path, { force: true })
  }

  /** Keeps a segment that has damaged lines for an operator to look at; nobody reads it again. */
  setAside(segment: Segment): void {
    const { path } = segment
    const bytes = this.owns(segment) ? sizeOf(path) : 0
    try {
      renameSync(path, `${path}.damaged`)
      this.bytes -= bytes
    } catch (error) {
      // Of several that come by a dead process's files, another was quicker.
      if (!isMissing(error)) throw error
    }
  }

  /** Puts everything on the disk and lets go of the file. */
  close(): void {
    this.seal()
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
    const isOver = segmentNames(this.folder).every((name) => ownerOf(name) !== this.owner)
    this.lock?.release(isOver)
    this.lock = null
  }

  /** Other owners that hold their locks. The locks of those that are gone, with all their segments, are removed. */
  private livingOwners(): ReadonlySet<string> {
    const alive = new Set<string>()
    const names = namesIn(this.folder)
    const owners = new Set(names.filter((name) => SEGMENT.test(name)).map(ownerOf))
    for (const name of names) {
      const [, owner] = LOCK.exec(name) ?? []
      if (owner === undefined || owner === this.owner) continue
      const lock = OwnerLock.take(join(this.folder, name))
      if (lock === null) alive.add(owner)
      else lock.release(!owners.has(owner))
    }
    return alive
  }

  private named(name: string): Segment {
    return new SegmentFile(join(this.folder, name))
  }

  private write(lines: Buffer): void {
    if (this.currentBytes + lines.length > SEGMENT_BYTES) this.seal()
    this.fd ??= this.open()
    const written = writeSync(this.fd, lines)
    this.bytes += written
    this.currentBytes += written
    if (written < lines.length) throw new Error('the disk took a part of a line')
    if (!this.isSynced) return
    this.isDirty = true
    this.timer ??= setInterval(() => this.sync(), SYNC_MS).unref()
  }

  private open(): number {
    if (!existsSync(this.folder)) {
      // Node's recursive form never returns where a file system says "not there" of a new folder.
      const recursive = !existsSync(dirname(this.folder))
      mkdirSync(this.folder, { recursive, mode: 0o700 })
    }
    // Before the first segment: one whose owner has no lock is taken for a dead process's.
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

  private seal(): void {
    const { fd } = this
    if (fd === null) return
    this.fd = null
    this.current = null
    this.currentBytes = 0
    try {
      if (this.isDirty) fsyncSync(fd)
    } catch {
      // A disk that is full or gone was told of when the line was written.
    }
    this.isDirty = false
    closeSync(fd)
  }
}

/** By the start of their owner and then by number. */
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
