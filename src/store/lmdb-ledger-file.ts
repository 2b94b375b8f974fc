/**
 * The file below the ledger: opening it on first use, one transaction for all that was asked meanwhile, what
 * waits in the journal, in the log, or to be counted; reads in slices. Knows no limit.
 */
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { open } from 'lmdb'
import { Checkpoints } from './lmdb-checkpoints.js'
import type { UsageRow } from '../ledger/row.js'
import { quietly, reasonOf, unavailable } from './lmdb-failure.js'
import { assertLmdbFile } from './lmdb-file.js'
import { Flush } from './lmdb-flush.js'
import { Journal, type Kept } from './lmdb-journal.js'
import { endOf, ledgerTables, timeName, type LedgerTables } from './lmdb-ledger-tables.js'
import { Recent } from './lmdb-recent.js'
import { Turn } from './lmdb-turn.js'
import { noTransaction, transact } from './lmdb-transaction.js'
import { Uncounted, type Slice } from './lmdb-uncounted.js'

/** Address space, not disk: some fifty million rows. */
const MAP_BYTES = 64 * 1024 ** 3
/** In one transaction; as many take two or three milliseconds of the event loop. */
const MOST_STEPS = 128
/** A read that waits for rows does without them where no transaction has ended for so long. */
const HELD_UP_MS = 500
/** Who has not read the log for so long reads it in slices first, which no other process has to wait for. */
const LATE_MS = 100
/** Of the log, in one slice: about a millisecond. */
const LOG_BYTES = 256 * 1024
/** Rows of other processes that one transaction counts. */
const ROWS_AT_ONCE = 128
/** Rows that their own process has not counted for so long are counted by any other: it may have died. */
const OTHERS_MS = 60_000

/** Something to be done in a transaction, and who waits for it. */
interface Step {
  readonly what: string
  readonly action: (turn: Turn, tables: LedgerTables) => void
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  failure: unknown
}

/** What a transaction has done beside its steps; without `…Whole` some of it could not be, for damage. */
interface Work {
  readonly turn: Turn
  readonly kept: readonly Kept[]
  readonly areKeptWhole: boolean
  readonly slice: Slice
  readonly isSliceWhole: boolean
}

/** Opened on first use; `close` may be called in any state. */
export class LedgerFile {
  private readonly path: string
  private readonly nowMs: () => number
  private readonly boot: string | undefined
  private checkpoints: Checkpoints | null = null
  private opening: Promise<LedgerTables> | null = null
  private tables: LedgerTables | null = null
  private steps: Step[] = []
  private running: Promise<void> | null = null
  private readonly journal: Journal
  private readonly uncounted: Uncounted
  private readonly recent = new Recent()
  private readonly flush: Flush
  private syncedMs = Number.NEGATIVE_INFINITY
  /** Unique to this ledger: no two transactions write under one name. */
  private readonly owner = `${process.pid}-${randomBytes(6).toString('hex')}`
  private transactions = 0
  private committed = 0
  /** Why the last transaction failed; null where it did not. */
  private failure: unknown = null
  private closed = false

  /** `boot` names the machine's present start, where a test pretends another. */
  constructor(path: string, nowMs: () => number, boot?: string) {
    this.path = path
    this.nowMs = nowMs
    this.boot = boot
    this.journal = new Journal(join(path, 'journal'), () => this.goOn())
    this.uncounted = new Uncounted(() => this.goOn())
    this.flush = new Flush(this.recent, () => this.goOn())
  }

  /** Resolves once the row survives this process; a transaction within 100 ms puts it into the tables. */
  append(row: UsageRow): Promise<void> {
    if (this.failure === null && !this.closed) return this.journal.append(row)
    // Where the tables take nothing, nothing is promised; trying tells whether they do by now.
    return this.change('settling a request', () => undefined).then(() => this.journal.append(row))
  }

  /** Done, together with whatever else is asked, in the next transaction; resolves once it is committed. */
  write<T>(what: string, action: (turn: Turn) => T): Promise<T> {
    return this.enqueue(what, action)
  }

  /** The same, for changes that only the tables concern. */
  change<T>(what: string, action: (tables: LedgerTables) => T): Promise<T> {
    return this.enqueue(what, (_, tables) => action(tables))
  }

  /** What is there now. */
  async read<T>(what: string, action: (tables: LedgerTables) => T): Promise<T> {
    try {
      const tables = this.tables ?? (await this.opened())
      this.assertOpen()
      // Otherwise a read may see the snapshot of an earlier one in the same turn of the loop.
      tables.root.resetReadTxn()
      return action(tables)
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /** What is there now, and what the log has beyond it. */
  async readRecent<T>(
    what: string,
    action: (tables: LedgerTables, recent: Recent) => T,
  ): Promise<T> {
    await this.readLog(what)
    return this.read(what, (tables) => {
      this.recent.sync(tables)
      return action(tables, this.recent)
    })
  }

  /** Puts into the tables what the log has by now. */
  async settleDown(): Promise<void> {
    await this.readLog('reading the log')
    const upTo = this.recent.seen
    while (this.recent.applied < upTo) {
      this.flush.want()
      await this.change('tidying the log', () => undefined)
    }
  }

  /**
   * Before a read of rows, or also of sums: takes up what any process has settled by now. Where something holds
   * the tables up, the read does without.
   */
  async catchUp(to: 'rows' | 'sums'): Promise<void> {
    const work = to === 'sums' ? this.count() : this.takeUp()
    const caughtUp = work.catch(() => undefined)
    let before = this.committed
    await new Promise<void>((resolve) => {
      const patience = setInterval(() => {
        if (this.committed === before) resolve()
        before = this.committed
      }, HELD_UP_MS)
      void caughtUp.then(resolve).finally(() => clearInterval(patience))
    })
  }

  /** Takes up what other processes have not yet, or only what dead ones have left. */
  adopt(which: 'all' | 'orphans'): Promise<void> {
    return this.journal.others(which, (texts) =>
      this.write('taking rows up', (turn) => turn.settleTexts(texts)),
    )
  }

  /** Counts what any process has settled by now. */
  async count(): Promise<void> {
    await this.takeUp()
    await this.countOwn()
    await this.countOthers(endOf(''))
  }

  /** Counts what others have not for long, as those do not that have died. */
  async countOrphans(): Promise<void> {
    await this.countOthers(timeName(this.nowMs() - OTHERS_MS))
  }

  /** Reads slice after slice, other work in between, until one answers true. */
  async readInSlices(what: string, slice: (tables: LedgerTables) => boolean): Promise<void> {
    while (!(await this.read(what, slice))) await nextTurn()
  }

  async close(): Promise<void> {
    // What cannot be taken up now stays in the journal for whoever opens the ledger next.
    if (this.tables !== null) {
      await this.takeUpOwn()
        .then(() => this.countOwn())
        .then(() => this.settleDown())
        .catch(() => undefined)
    }
    this.closed = true
    await this.running
    this.journal.close()
    this.uncounted.close()
    this.flush.close()
    const tables = await this.opening?.catch(() => null)
    this.tables = null
    try {
      await this.checkpoints?.close()
    } finally {
      await tables?.root.close()
    }
  }

  private enqueue<T>(what: string, action: (turn: Turn, tables: LedgerTables) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: { value: T } | null = null
      this.steps.push({
        what,
        action: (turn, tables) => (result = { value: action(turn, tables) }),
        resolve: () => (result === null ? reject(new Error('not done')) : resolve(result.value)),
        reject,
        failure: null,
      })
      this.running ??= this.run()
    })
  }

  /** Puts what any process has settled by now into the tables. */
  private async takeUp(): Promise<void> {
    await this.adopt('all')
    await this.takeUpOwn()
  }

  /** Takes up what others have logged, a slice at a time. */
  private async readLog(what: string): Promise<void> {
    await this.readInSlices(what, (tables) => this.recent.sync(tables, LOG_BYTES))
    this.syncedMs = performance.now()
  }

  private async takeUpOwn(): Promise<void> {
    const upTo = this.journal.flush()
    while (this.journal.takenUp < upTo) await this.change('taking rows up', () => undefined)
  }

  private async countOwn(): Promise<void> {
    const rounds = this.uncounted.roundsToCome
    while (this.uncounted.rounds < rounds) {
      this.uncounted.begin()
      await this.change('counting rows', () => undefined)
    }
  }

  private async countOthers(before: string): Promise<void> {
    const found = await this.read('counting rows', ({ uncounted }) =>
      Array.from(uncounted.getRange({ end: before })),
    )
    let records: string[] = []
    let rows = 0
    for (const { key, value } of found) {
      if (this.uncounted.has(key)) continue
      records.push(key)
      rows += value.split(' ').length
      if (rows < ROWS_AT_ONCE) continue
      await this.countRecords(records)
      records = []
      rows = 0
    }
    if (records.length > 0) await this.countRecords(records)
  }

  private async countRecords(records: readonly string[]): Promise<void> {
    await this.write('counting rows', (turn) => {
      for (const record of records) turn.countRecord(record)
    })
  }

  private goOn(): void {
    if (!this.closed) this.running ??= this.run()
  }

  /** Transaction after transaction, while there is something to do; never rejects. */
  private async run(): Promise<void> {
    do {
      let steps: Step[] = []
      try {
        const tables = this.tables ?? (await this.opened())
        this.assertOpen()
        // What cannot be put on the disk may not be promised.
        if (this.checkpoints?.failure) throw this.checkpoints.failure
        if (performance.now() - this.syncedMs > LATE_MS) await this.readLog('reading the log')
        const done = await transact(tables.root, () => {
          steps = this.steps.splice(0, MOST_STEPS)
          return this.work(tables, steps)
        })
        this.failure = null
        this.committed += 1
        this.journal.took(done.kept.length, done.areKeptWhole)
        this.uncounted.took(done.slice, done.isSliceWhole)
        this.uncounted.add(done.turn)
        this.syncedMs = performance.now()
      } catch (cause) {
        this.flush.reset()
        this.uncounted.doubt()
        // Before the transaction began, all who wait are told; later those who were in it.
        if (steps.length === 0) steps = this.steps.splice(0)
        this.failure = await reasonOf(cause)
        for (const step of steps) step.failure ??= this.failure
      }
      for (const step of steps) {
        if (step.failure === null) step.resolve()
        else step.reject(unavailable(`${step.what} failed`, step.failure))
      }
    } while (this.steps.length > 0 || (this.failure === null && this.isDue))
    this.running = null
    // Rows that could not be taken up are tried again, with or without others.
    this.journal.wait()
    this.flush.wait()
  }

  /** Whether a transaction is worth its while that nobody waits for. */
  private get isDue(): boolean {
    return this.journal.isDue || this.uncounted.isCounting || this.flush.isDue
  }

  /** Everything that one transaction does. */
  private work(tables: LedgerTables, steps: readonly Step[]): Work {
    this.transactions += 1
    this.recent.sync(tables)
    this.flush.begin(tables)
    const by = `${this.transactions} ${this.owner}`
    const turn = new Turn(tables, this.recent, this.nowMs(), by)
    const kept = this.journal.next()
    const areKeptWhole = settleKept(turn, kept)
    for (const step of steps) perform(step, turn, tables)
    const slice = this.uncounted.next()
    const isSliceWhole = countSlice(turn, slice, tables)
    this.flush.bring()
    turn.write()
    return { turn, kept, areKeptWhole, slice, isSliceWhole }
  }

  private async opened(): Promise<LedgerTables> {
    try {
      this.assertOpen()
      this.opening ??= this.open()
      this.tables = await this.opening
      return this.tables
    } catch (cause) {
      this.opening = null
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`opening the ledger in '${this.path}' failed: ${reason}`, { cause })
    }
  }

  private async open(): Promise<LedgerTables> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    await noTransaction()
    this.checkpoints ??= new Checkpoints(this.path, this.boot)
    await this.checkpoints.recover()
    await assertLmdbFile(join(this.path, 'data.mdb'))
    await noTransaction()
    const root = open<Buffer, string>({
      path: this.path,
      noSubdir: false,
      encoding: 'binary',
      overlappingSync: false,
      noSync: true,
      eventTurnBatching: false,
      mapSize: MAP_BYTES,
      maxReaders: 512,
      maxDbs: 16,
    })
    const tables = ledgerTables(root)
    await this.checkpoints.start(root)
    return tables
  }

  private assertOpen(): void {
    if (this.closed) throw new Error('the store has been closed')
  }
}

/** False where one of them could not be settled, because a record that it concerns is damaged. */
function settleKept(turn: Turn, kept: readonly Kept[]): boolean {
  let areWhole = true
  for (const { row, text } of kept) {
    try {
      turn.settle(row, text)
    } catch {
      areWhole = false
    }
  }
  return areWhole
}

/** False where a part of it could not be counted, because a record that it concerns is damaged. */
function countSlice(turn: Turn, slice: Slice, { uncounted }: LedgerTables): boolean {
  let isWhole = true
  for (const group of slice.groups) isWhole = turn.tryToCount(group, slice.others) && isWhole
  for (const record of slice.records) quietly(uncounted.remove(record))
  return isWhole
}

/** A step that fails fails alone: it has changed nothing yet. */
function perform(step: Step, turn: Turn, tables: LedgerTables): void {
  try {
    step.action(turn, tables)
  } catch (error) {
    step.failure = error
  }
}
