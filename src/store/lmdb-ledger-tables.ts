/**
 * The tables of the embedded engine's ledger and the names under which they keep things.
 * Knows no limit and no sum.
 *
 * A time in a name is 9 digits to the base 36, so that names sort by time and can be read by people.
 * Within a name, a blank ends an account or a key; neither may hold one.
 */
import type { Database, RootDatabase } from 'lmdb'
import type { UsageRow } from '../ledger/row.js'
import { spanOf } from './usage-days.js'

/** One LMDB environment. */
export interface LedgerTables {
  readonly root: RootDatabase<Buffer, string>
  /**
   * What transactions have changed and the tables of limits and reservations may not have yet: the record of a
   * transaction by its number, and under 0 how far the tables are.
   */
  readonly log: Database<Buffer, number>
  /** What is taken of limits, by subject. */
  readonly subjects: Database<Buffer, string>
  /** Reservations, by request id. */
  readonly open: Database<string, string>
  /** Rows by time and request id. */
  readonly rows: Database<string, string>
  /** Time of each row whose id does not tell it, by request id. */
  readonly ids: Database<string, string>
  /**
   * Names of rows that have been counted, a blank between them, by account and then by the last and the first of
   * them; of a single row its name alone, and nothing.
   */
  readonly byAccount: Database<string, string>
  /**
   * Where rows are that may not have been counted, a blank between them, by the time of their transaction and
   * whose it was.
   */
  readonly uncounted: Database<string, string>
  /**
   * Sums by length, time, account, key and model; without a key those of an account's model, and without an
   * account, too, those of everybody's.
   */
  readonly sums: Database<Buffer, string>
  /** Days of use by span, account, key and model. */
  readonly days: Database<Buffer, string>
}

/** Whose use is counted, of what, and from when on. */
export interface PlaceOfUse {
  readonly startMs: number
  readonly accountId: string
  readonly keyId: string
  readonly model: string
}

/** Names beyond this are no keys of the engine (1,978 bytes, four to a character at worst). */
export const MOST_NAMES = 480
const TIME_DIGITS = 9
const LAST_TIME = 36 ** TIME_DIGITS - 1
/** Sorts after every other character. */
const AFTER_ALL = '\u{10ffff}'

/** Opens the tables of an environment. */
export function ledgerTables(root: RootDatabase<Buffer, string>): LedgerTables {
  const texts = (name: string) => root.openDB<string, string>(name, { encoding: 'string' })
  const bytes = (name: string) => root.openDB<Buffer, string>(name, { encoding: 'binary' })
  return {
    root,
    log: root.openDB<Buffer, number>('log', { encoding: 'binary' }),
    subjects: bytes('subjects'),
    open: texts('open'),
    rows: texts('rows'),
    ids: texts('ids'),
    byAccount: texts('by-account'),
    uncounted: texts('uncounted'),
    sums: bytes('sums'),
    days: bytes('days'),
  }
}

/** Throws where the engine could not keep what these make names of. */
export function assertNames(row: UsageRow): void {
  const { requestId, accountId, keyId, model } = row
  if (!isName(requestId) || !isName(accountId) || !isName(keyId) || model === '') {
    throw new Error('the name of a request, an account, a key or a model is empty, or has a blank')
  }
  if (requestId.length + accountId.length + keyId.length + model.length > MOST_NAMES) {
    throw new Error(`names are over ${MOST_NAMES} characters together`)
  }
}

/** Whether a name can be one that is there. */
export function isName(name: string): boolean {
  return name !== '' && name.length <= MOST_NAMES && !name.includes(' ')
}

/** A time as it stands in names; the same few are asked for over and over. */
export function timeName(atMs: number): string {
  const known = timeNames.get(atMs)
  if (known !== undefined) return known
  const whole = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
  const name = whole.toString(36).padStart(TIME_DIGITS, '0')
  if (timeNames.size === MOST_TIMES) timeNames.clear()
  timeNames.set(atMs, name)
  return name
}

const MOST_TIMES = 1_024
const timeNames = new Map<number, string>()

/**
 * The time that a request's id begins with, ms since 1970, where it is one of version 7 (RFC 9562), as all
 * are that the gateway makes; else null.
 */
export function timeToldBy(requestId: string): number | null {
  // Asked several times in a row for each row.
  if (requestId !== told.by) {
    const isTimed = TIMED_ID.test(requestId)
    told.by = requestId
    told.atMs = isTimed ? timeIn(requestId.slice(0, 8) + requestId.slice(9, 13)) : null
  }
  return told.atMs
}

const told: { by: string; atMs: number | null } = { by: '', atMs: null }

/** Many ids are of the same millisecond, and to compare digits costs a third of reading them. */
function timeIn(digits: string): number {
  if (digits !== read.digits) {
    read.digits = digits
    read.atMs = Number.parseInt(digits, 16)
  }
  return read.atMs
}

const read = { digits: '', atMs: 0 }

const TIMED_ID = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

/** The time that a name begins with. */
export function timeOf(name: string): number {
  return Number.parseInt(name.slice(0, TIME_DIGITS), 36)
}

/** What stands behind the time that a name begins with. */
export function afterTime(name: string): string {
  return name.slice(TIME_DIGITS)
}

/** A row's place in the order of time: that of its id, else its own. */
export function rowName({ atMs, requestId }: Pick<UsageRow, 'atMs' | 'requestId'>): string {
  return timeName(timeToldBy(requestId) ?? atMs) + requestId
}

/** Where the row of a request is or would be; null where only the table of ids could tell, and does not. */
export function rowNameOf(tables: LedgerTables, requestId: string): string | null {
  const toldMs = timeToldBy(requestId)
  const time = toldMs === null ? tables.ids.get(requestId) : timeName(toldMs)
  return time === undefined ? null : time + requestId
}

/** Behind everything that begins so. */
export function endOf(prefix: string): string {
  return prefix + AFTER_ALL
}

/** The place of the sum that a time falls into; without a key (empty) it is that of all of the account. */
export function sumName(
  by: 'hour' | 'day',
  atMs: number,
  of: Pick<UsageRow, 'accountId' | 'keyId' | 'model'>,
): string {
  const startMs = Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by]
  const kind = of.keyId === '' ? 'model' : 'key'
  return `${sumsFrom(by, startMs, kind)}${of.accountId} ${of.keyId} ${of.model}`
}

/** Where the sums of a bucket begin: those of keys, or those of models. */
export function sumsFrom(by: 'hour' | 'day', startMs: number, kind: 'key' | 'model'): string {
  return sumsBegin(by, kind) + timeName(startMs)
}

/** What all sums of a kind begin with. */
export function sumsBegin(by: 'hour' | 'day', kind: 'key' | 'model'): string {
  const letter = by === 'hour' ? 'h' : 'd'
  return kind === 'key' ? letter : letter.toUpperCase()
}

/** The place of the days that a time is among. */
export function daysName(
  atMs: number,
  of: Pick<UsageRow, 'accountId' | 'keyId' | 'model'>,
): string {
  return `${timeName(spanOf(atMs))}${of.accountId} ${of.keyId} ${of.model}`
}

/** What a sum's place says. */
export function readSumName(name: string): PlaceOfUse {
  return readDaysName(name.slice(1))
}

/** What a place of days says. */
export function readDaysName(rest: string): PlaceOfUse {
  const [accountId = '', keyId = '', ...model] = afterTime(rest).split(' ')
  return { startMs: timeOf(rest), accountId, keyId, model: model.join(' ') }
}

/** How long a bucket is. */
export const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 } as const
