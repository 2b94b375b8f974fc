/**
 * Rows on their way into the embedded engine's tables: written to a file of this process at once, and put
 * where they belong many at a time, which costs a fraction. Knows no table.
 *
 * All rows of one turn of the event loop are one write. A file goes once its rows have been taken up; a
 * process that dies leaves its files to whoever comes by, and a row that is brought twice is taken once.
 */
import { Spool, type Segment } from '../ledger/spool.js'
import type { UsageRow } from '../ledger/row.js'
import { unavailable } from './failure.js'
import { writeRow } from './usage-record.js'

/** How long a row waits for others. */
const WAIT_MS = 100
/** So many wait only until a transaction was so long ago: each has a price of its own. */
const MANY = 128
const PACE_MS = 20
/** So many do not wait at all; one transaction takes as many, in two milliseconds. */
const AT_ONCE = 512
/** A transaction takes this share of what waits where that is more, so that no backlog can stay. */
const SHARE = 1 / 8
/** Rows of a file; whoever looks for rows that are not in the tables yet reads it whole. */
const FILE_ROWS = 1_024
/** Whoever has more that wait is told that the ledger is away: something holds the tables up. */
const MOST_WAITING = 50_000
const MOST_BYTES = 256 * 1024 ** 2

/** A row that survives its process, and is not in the tables yet. */
export interface Kept {
  readonly row: UsageRow
  /** As `writeRow` writes it. */
  readonly text: string
}

/** The rows of this turn of the loop, and who waits for them: all are kept, or none is. */
interface Fresh {
  readonly rows: Kept[]
  readonly settled: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A file that is not written any more: it goes when so many rows have been taken up. */
interface Full {
  readonly segment: Segment
  readonly upTo: number
}

/** The journal of one process. Creates its folder with its first row. */
export class Journal {
  private readonly spool: Spool
  private readonly onDue: () => void
  private fresh: Fresh | null = null
  private kept: Kept[] = []
  private full: Full[] = []
  /** Rows that were ever written; how many of them are in full files, and how many were taken up. */
  private written = 0
  private filed = 0
  private taken = 0
  /** Whether a row of a full file could not be taken up. */
  private isDamaged = false
  private endedMs = 0
  /** When rows were last taken up. */
  private tookMs = 0
  private timer: NodeJS.Timeout | null = null

  /** `onDue` is called where rows should be taken up. */
  constructor(folder: string, onDue: () => void) {
    this.spool = new Spool(folder, MOST_BYTES, false)
    this.onDue = onDue
  }

  /** How many rows were ever taken up. */
  get takenUp(): number {
    return this.taken
  }

  /** Whether so many wait that they are best taken up now. */
  get isDue(): boolean {
    const { length } = this.kept
    return length >= AT_ONCE || (length >= MANY && performance.now() - this.tookMs >= PACE_MS)
  }

  /** Resolves once the row survives this process; rejects with `GatewayError(store_unavailable)`. */
  append(row: UsageRow): Promise<void> {
    this.fresh ??= this.begun()
    this.fresh.rows.push({ row, text: writeRow(row) })
    return this.fresh.settled
  }

  /** The rows for one transaction, oldest first; `took` tells that they are in the tables. */
  next(): readonly Kept[] {
    this.flush()
    return this.kept.slice(0, Math.max(AT_ONCE, this.kept.length * SHARE))
  }

  /**
   * The first so many rows are in the tables for good; without `areWhole` one of them could not be put
   * there, and its file is set aside.
   */
  took(rows: number, areWhole: boolean): void {
    if (rows === 0) return
    this.taken += rows
    this.kept = this.kept.slice(rows)
    if (!areWhole) this.isDamaged = true
    // Others read the file whole when they look for rows that are not in the tables yet.
    const nowMs = performance.now()
    this.tookMs = nowMs
    if (!areWhole || (this.kept.length === 0 && nowMs - this.endedMs >= WAIT_MS)) this.endFile()
    for (const { segment, upTo } of this.full) {
      if (upTo > this.taken) break
      this.full = this.full.slice(1)
      if (this.isDamaged) this.spool.setAside(segment)
      else this.spool.remove(segment)
    }
    if (this.full.length === 0) this.isDamaged = false
  }

  /** Sees to it that what waits is taken up in a while. */
  wait(): void {
    if (this.kept.length === 0) return
    this.timer ??= setTimeout(() => {
      this.timer = null
      this.onDue()
    }, WAIT_MS).unref()
  }

  /**
   * Brings the rows that other processes have written, or that dead ones have left, so many at a time; most
   * are in the tables already. `take` says whether all it was brought could be taken. The files of the dead
   * go, or to the side where a line is damaged.
   */
  async others(
    which: 'all' | 'orphans',
    take: (texts: readonly string[]) => Promise<boolean>,
  ): Promise<void> {
    for (const { segment, isOrphan } of this.spool.others()) {
      if (!isOrphan && which === 'orphans') continue
      const texts = segment.lines()
      let isWhole = segment.damaged === 0
      for (let at = 0; at < texts.length; at += MANY) {
        isWhole = (await take(texts.slice(at, at + MANY))) && isWhole
      }
      // Who lives forgets its files itself.
      if (!isOrphan) continue
      if (isWhole) this.spool.remove(segment)
      else this.spool.setAside(segment)
    }
  }

  /** Writes what has not been yet, and lets go of the file; of all files where nothing waits. */
  close(): void {
    const written = this.flush()
    if (this.timer !== null) clearTimeout(this.timer)
    this.endFile()
    if (this.taken === written && !this.isDamaged) {
      for (const { segment } of this.full) this.spool.remove(segment)
    }
    this.spool.close()
  }

  /** Writes what has come in this turn of the loop; how many rows were ever written. */
  flush(): number {
    const { fresh } = this
    if (fresh === null) return this.written
    this.fresh = null
    const { rows } = fresh
    const isKept =
      this.kept.length < MOST_WAITING &&
      this.spool.append(...rows.map(({ text }) => text)) === 'kept'
    if (!isKept) {
      const cause = this.spool.fault ?? new Error('too many rows wait to be taken up')
      fresh.reject(unavailable('settling a request failed', cause))
      return this.written
    }
    this.written += rows.length
    for (const each of rows) this.kept.push(each)
    fresh.resolve()
    if (this.written - this.filed >= FILE_ROWS) this.endFile()
    if (this.isDue) this.onDue()
    else this.wait()
    return this.written
  }

  /** What the rows of this turn of the loop go into. */
  private begun(): Fresh {
    setImmediate(() => this.flush())
    let [resolve, reject]: [Fresh['resolve'], Fresh['reject']] = [() => undefined, () => undefined]
    const settled = new Promise<void>((kept, lost) => ([resolve, reject] = [kept, lost]))
    return { rows: [], settled, resolve, reject }
  }

  private endFile(): void {
    const segment = this.spool.cut()
    if (segment !== null) this.full.push({ segment, upTo: this.written })
    this.filed = this.written
    this.endedMs = performance.now()
  }
}
