/**
 * A record of the embedded engine's log: limits and reservations as one transaction has left them. Records say
 * how things stand and not what was done to them, so one that is read again, or whose content is in the tables
 * already, does no harm. Numbers come first, then all texts one behind another. Knows no table.
 */
import { FORMER_NUMBERS, LIMIT_NUMBERS, type Hold } from './lmdb-limits.js'
import type { Reservation } from './lmdb-reservation.js'

/** Who is told what a record says, in the order in which it was written. */
export interface LogReader {
  /** A subject's record is so many of the numbers, from there on. */
  limits(name: string, numbers: Float64Array, from: number, count: number): void
  /** `isNew`: it was opened, and not only prolonged. */
  reserved(requestId: string, reservation: Reservation, isNew: boolean): void
  /** There is no such reservation any more. */
  ended(requestId: string): void
}

/** The version that this code writes; it reads the one before, too, whose limits have fewer numbers. */
const VERSION = 2
const FORMER_VERSION = 1
/** What stands before the numbers: the version, and how many there are. */
const HEAD = 2
const [LIMITS, RESERVED, ENDED] = [1, 2, 3]
const HOLDS: readonly Hold[0][] = ['tokens', 'concurrent', 'usd_day', 'usd_month']
/** In the place of a text's length: it is the text before. */
const SAME = -1

/** Many transactions' worth; a record that is larger has larger ones. */
let numbers = new Float64Array(16 * 1024)
let scratch = Buffer.allocUnsafeSlow(256 * 1024)

/** One record, written in one go: all writers use the same memory. */
export class LogWriter {
  private texts = ''
  private last = ''
  private at = HEAD

  /** Whether nothing was written. */
  get isEmpty(): boolean {
    return this.at === HEAD
  }

  limits(name: string, record: Float64Array): void {
    this.room(2 + LIMIT_NUMBERS)
    this.number(LIMITS)
    this.text(name)
    for (let at = 0; at < LIMIT_NUMBERS; at += 1) this.number(record[at] ?? 0)
  }

  reserved(requestId: string, { untilMs, holds, row }: Reservation, isNew: boolean): void {
    this.room(6 + holds.length * 4)
    this.number(RESERVED)
    this.text(requestId)
    this.text(row)
    this.number(isNew ? 1 : 0)
    this.number(untilMs)
    this.number(holds.length)
    for (const hold of holds) {
      this.number(HOLDS.indexOf(hold[0]))
      this.text(hold[1])
      this.number(hold[0] === 'concurrent' ? 0 : hold[2])
      this.number(hold[0] === 'concurrent' ? 0 : hold[3])
    }
  }

  ended(requestId: string): void {
    this.room(2)
    this.number(ENDED)
    this.text(requestId)
  }

  /** The record; good until the next is made. */
  bytes(): Buffer {
    numbers[0] = VERSION
    numbers[1] = this.at - HEAD
    const from = this.at * Float64Array.BYTES_PER_ELEMENT
    const most = from + 3 * this.texts.length
    if (most > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * most)
    scratch.set(new Uint8Array(numbers.buffer, 0, from))
    return scratch.subarray(0, from + scratch.write(this.texts, from))
  }

  private text(text: string): void {
    if (text === this.last) {
      this.number(SAME)
      return
    }
    this.last = text
    this.texts += text
    this.number(text.length)
  }

  private number(value: number): void {
    numbers[this.at] = value
    this.at += 1
  }

  private room(more: number): void {
    if (this.at + more <= numbers.length) return
    const larger = new Float64Array(2 * numbers.length + more)
    larger.set(numbers)
    numbers = larger
  }
}

/** Tells the reader what a record says. Throws an Error that says how it is damaged. */
export function readLog(bytes: Buffer, reader: LogReader): void {
  const record = new Fields(bytes)
  while (!record.done) {
    const kind = record.number()
    if (kind === LIMITS) {
      const name = record.text()
      const count = record.isFormer ? FORMER_NUMBERS : LIMIT_NUMBERS
      reader.limits(name, record.all, record.skip(count), count)
    } else if (kind === RESERVED) {
      const requestId = record.text()
      const row = record.text()
      const isNew = record.flag()
      const untilMs = record.number()
      const holds = Array.from({ length: record.number() }, () => record.hold())
      reader.reserved(requestId, { untilMs, holds, row }, isNew)
    } else if (kind === ENDED) {
      reader.ended(record.text())
    } else {
      throw new Error('it says what this version does not know')
    }
  }
}

/** A record, asked one after another. */
class Fields {
  readonly all: Float64Array
  /** Whether the version before has written it. */
  readonly isFormer: boolean
  private readonly texts: string
  private at = 0
  private textAt = 0
  private last = ''

  constructor(bytes: Buffer) {
    const head = new Float64Array(HEAD)
    copy(bytes, 0, head)
    const [version, count = 0] = head
    this.isFormer = version === FORMER_VERSION
    if (version !== VERSION && !this.isFormer) throw new Error(`its version is not ${VERSION}`)
    const end = head.byteLength + count * head.BYTES_PER_ELEMENT
    if (end > bytes.length) throw new Error('it is cut short')
    this.all = new Float64Array(count)
    copy(bytes, head.byteLength, this.all)
    this.texts = bytes.toString('utf8', end)
  }

  get done(): boolean {
    return this.at === this.all.length
  }

  number(): number {
    const value = this.all[this.at]
    if (value === undefined) throw new Error('it is cut short')
    this.at += 1
    return value
  }

  flag(): boolean {
    return this.number() !== 0
  }

  /** Where the next so many numbers are. */
  skip(count: number): number {
    const from = this.at
    this.at += count
    if (this.at > this.all.length) throw new Error('it is cut short')
    return from
  }

  text(): string {
    const length = this.number()
    if (length === SAME) return this.last
    const end = this.textAt + length
    if (end > this.texts.length) throw new Error('it is cut short')
    this.last = this.texts.slice(this.textAt, end)
    this.textAt = end
    return this.last
  }

  hold(): Hold {
    const kind = HOLDS[this.number()]
    const subject = this.text()
    const [cost, last] = [this.number(), this.number()]
    if (kind === undefined) throw new Error('it holds what this version does not know')
    return kind === 'concurrent' ? [kind, subject] : [kind, subject, cost, last]
  }
}

function copy(bytes: Buffer, from: number, into: Float64Array): void {
  if (bytes.length < from + into.byteLength) throw new Error('it is cut short')
  new Uint8Array(into.buffer).set(bytes.subarray(from, from + into.byteLength))
}
