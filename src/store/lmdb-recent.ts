/**
 * What the embedded engine's log has and its tables may not have yet, in the memory of each process: limits and
 * open reservations. Every transaction begins with what other processes have logged since, under the writers'
 * lock, so what is here is how things stand. Knows no arithmetic of limits.
 *
 * A transaction changes what is here before it is committed; where that fails, all is forgotten and read anew.
 */
import { damaged, quietly } from './lmdb-failure.js'
import type { LedgerTables } from './lmdb-ledger-tables.js'
import type { Demand } from './ledger.js'
import { LIMIT_NUMBERS, readLimits, subjectName, copyLimits } from './lmdb-limits.js'
import { LogWriter, readLog, type LogReader } from './lmdb-log.js'
import { readReservation, type Reservation } from './lmdb-reservation.js'

/** Limits of so many subjects are remembered beyond those that have to be: some ten megabytes. */
const MOST_SUBJECTS = 32_768
/** Subjects that one transaction looks at, to forget some where there are too many. */
const LOOKED_AT = 256
/** Where the log's record of itself is; those of transactions follow. */
const MARKS = 0

/** In the place of an account; none has a blank in its name. */
const EVERYBODY = ' '

/** The limits of one subject. */
export interface Subject {
  readonly name: string
  /** Whose it is, once a demand has asked for it. */
  owner: string | null
  readonly record: Float64Array
  /** The last record of the log that has it, 0 where none has. */
  at: number
}

/** An open reservation, and which records of the log had it first and last; what only the table had is of 0. */
interface Opened extends Reservation {
  readonly sinceAt: number
  readonly at: number
}

/** How far others have come. */
interface Marks {
  /** Everything up to this record of the log is in the tables. */
  readonly applied: number
  /** Somebody has begun to put everything there up to this one. */
  readonly cut: number
}

/** Of one process. */
export class Recent implements LogReader {
  /** The last record of the log that is in here. */
  seen = 0
  applied = 0
  cut = 0
  /** Bytes of the log since `cut`. */
  bytes = 0
  private readonly open = new Map<string, Opened>()
  private readonly subjects = new Map<string, Subject>()
  /** Some of them by what demands call them. */
  private readonly lately = new Map<string, Subject>()
  /** Those that were changed after `dirtyAfter`. */
  private dirty: Subject[] = []
  private dirtyAfter = 0
  private changed: Subject[] = []
  private log = new LogWriter()
  private looking = this.subjects.values()
  private isFresh = true
  /** How often it was begun anew. */
  starts = 0

  /** Forgets everything: a transaction may not have happened. */
  reset(): void {
    this.isFresh = true
  }

  /**
   * Takes up what is in the log by now, or about so many bytes of it; whether that is all. First in every transaction,
   * and wherever something is looked at.
   */
  sync(tables: LedgerTables, mostBytes = Number.POSITIVE_INFINITY): boolean {
    const { applied, cut } = readMarks(tables)
    if (this.isFresh || applied > this.seen) this.startFrom(applied, cut)
    if (applied > this.applied) this.forget(applied)
    let isAll = false
    for (let read = 0; read < mostBytes && !isAll;) {
      const bytes = tables.log.get(this.seen + 1)
      isAll = bytes === undefined
      if (bytes === undefined) continue
      this.take(bytes)
      this.seen += 1
      this.bytes += bytes.length
      read += bytes.length
    }
    if (cut > this.cut) this.noteCut(cut)
    return isAll
  }

  /** The limits that a demand falls under, for a transaction that may change them. */
  asked(tables: LedgerTables, accountId: string, demand: Demand): Subject {
    const owner = demand.shared ? EVERYBODY : accountId
    // A name is long, and many are made of each request's.
    const known = this.lately.get(demand.subject)
    if (known?.owner === owner) return known
    const subject = this.subject(tables, subjectName(accountId, demand))
    subject.owner = owner
    if (this.lately.size >= MOST_SUBJECTS) this.lately.clear()
    this.lately.set(demand.subject, subject)
    return subject
  }

  /** The limits of a subject, for a transaction that may change them. */
  subject(tables: LedgerTables, name: string): Subject {
    const known = this.subjects.get(name)
    if (known !== undefined) return known
    const record = readLimits(tables.subjects.get(name), name)
    const subject = { name, owner: null, record, at: 0 }
    this.subjects.set(name, subject)
    return subject
  }

  /** The same to look at. */
  look(tables: LedgerTables, name: string): Float64Array {
    return this.subjects.get(name)?.record ?? readLimits(tables.subjects.get(name), name)
  }

  /** The transaction has changed the subject's limits, or is about to. */
  change(subject: Subject): void {
    if (subject.at > this.seen) return
    this.mark(subject)
    this.changed.push(subject)
  }

  /** Null where there is none; what was settled has none in here, and none in the table. */
  reservation(tables: LedgerTables, requestId: string): Reservation | null {
    const known = this.open.get(requestId)
    if (known !== undefined) return known
    const text = tables.open.get(requestId)
    if (text === undefined) return null
    try {
      return readReservation(text)
    } catch (cause) {
      throw damagedBy(`the reservation of '${requestId}'`, cause)
    }
  }

  /** A reservation that is in here. */
  opened(requestId: string): Reservation | undefined {
    // Where there is none, as where nothing is limited, the id need not be hashed.
    return this.open.size === 0 ? undefined : this.open.get(requestId)
  }

  /** Reservations in here that run out by then. */
  dueBy(atMs: number): string[] {
    const due: string[] = []
    for (const [id, { untilMs }] of this.open) if (untilMs <= atMs) due.push(id)
    return due
  }

  /** Reservations that were opened or prolonged after a record of the log. */
  openedAfter(record: number): string[] {
    const opened: string[] = []
    for (const [id, { at }] of this.open) if (at > record) opened.push(id)
    return opened
  }

  /** The transaction opens a reservation, or prolongs it. */
  reserve(requestId: string, reservation: Reservation, isNew: boolean): void {
    this.log.reserved(requestId, reservation, isNew)
    this.reserved(requestId, reservation, isNew)
  }

  /** The transaction ends a reservation. */
  end(tables: LedgerTables, requestId: string): void {
    // One that is not in here is in the table; so may be what was open when somebody came to put it there.
    const sinceAt = this.open.get(requestId)?.sinceAt ?? 0
    if (sinceAt <= this.cut) quietly(tables.open.remove(requestId))
    this.log.ended(requestId)
    this.open.delete(requestId)
  }

  /** Logs what the transaction has changed. */
  write(tables: LedgerTables): void {
    for (const { name, record } of this.changed) this.log.limits(name, record)
    this.changed = []
    if (!this.log.isEmpty) {
      const bytes = this.log.bytes()
      quietly(tables.log.put(this.seen + 1, bytes))
      this.seen += 1
      this.bytes += bytes.length
      this.log = new LogWriter()
    }
    this.forgetSubjects()
  }

  /** Says that everything up to now will be put into the tables; the subjects that are to be. */
  cutHere(tables: LedgerTables): Subject[] {
    const { dirty } = this
    this.dirty = []
    this.dirtyAfter = this.seen
    this.noteCut(this.seen)
    this.writeMarks(tables)
    return dirty
  }

  /** Says that everything up to a record of the log is in the tables. */
  appliedUpTo(tables: LedgerTables, at: number): void {
    if (at <= this.applied) return
    this.forget(at)
    this.writeMarks(tables)
  }

  limits(name: string, numbers: Float64Array, from: number, count: number): void {
    let subject = this.subjects.get(name)
    if (subject === undefined) {
      subject = { name, owner: null, record: new Float64Array(LIMIT_NUMBERS), at: 0 }
      this.subjects.set(name, subject)
    }
    copyLimits(subject.record, numbers, from, count)
    this.mark(subject)
  }

  reserved(requestId: string, { untilMs, holds, row }: Reservation, isNew: boolean): void {
    const at = this.seen + 1
    const sinceAt = isNew ? at : (this.open.get(requestId)?.sinceAt ?? 0)
    this.open.set(requestId, { untilMs, holds, row, sinceAt, at })
  }

  ended(requestId: string): void {
    this.open.delete(requestId)
  }

  private take(bytes: Buffer): void {
    try {
      readLog(bytes, this)
    } catch (cause) {
      // A part of it may have been taken.
      this.reset()
      throw damagedBy(`record ${this.seen + 1} of the log`, cause)
    }
  }

  /** The next record of the log has the subject. */
  private mark(subject: Subject): void {
    if (subject.at <= this.dirtyAfter) this.dirty.push(subject)
    subject.at = this.seen + 1
  }

  private startFrom(applied: number, cut: number): void {
    this.seen = applied
    this.applied = applied
    this.dirtyAfter = applied
    this.cut = cut
    this.bytes = 0
    this.open.clear()
    this.subjects.clear()
    this.lately.clear()
    this.looking = this.subjects.values()
    this.dirty = []
    this.changed = []
    this.log = new LogWriter()
    this.isFresh = false
    this.starts += 1
  }

  private noteCut(cut: number): void {
    this.cut = cut
    this.bytes = 0
  }

  private forget(applied: number): void {
    this.applied = applied
    if (applied <= this.dirtyAfter) return
    this.dirtyAfter = applied
    this.dirty = this.dirty.filter(({ at }) => at > applied)
  }

  private forgetSubjects(): void {
    for (let looked = 0; looked < LOOKED_AT && this.subjects.size > MOST_SUBJECTS; looked += 1) {
      const { value, done } = this.looking.next()
      if (done === true) this.looking = this.subjects.values()
      else if (value.at <= this.applied) this.forgetSubject(value)
    }
  }

  private forgetSubject(subject: Subject): void {
    this.subjects.delete(subject.name)
    // Nobody who remembers it takes it for the one that is read anew.
    subject.owner = null
  }

  private writeMarks(tables: LedgerTables): void {
    const marks = Buffer.from(new Float64Array([this.applied, this.cut]).buffer)
    quietly(tables.log.put(MARKS, marks))
  }
}

function readMarks({ log }: LedgerTables): Marks {
  const bytes = log.get(MARKS)
  if (bytes === undefined) return { applied: 0, cut: 0 }
  if (bytes.length !== 16) throw damaged('the log', 'its marks are of another form')
  return { applied: bytes.readDoubleLE(0), cut: bytes.readDoubleLE(8) }
}

function damagedBy(what: string, cause: unknown): Error {
  return damaged(what, cause instanceof Error ? cause.message : String(cause))
}
