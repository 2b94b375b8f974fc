/**
 * What the archive needs of a database: statements with parameters, inserts of rows, and the few expressions
 * in which the SQL of the engines differs.
 */
import { GatewayError } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { ArchiveProgress } from '../archive-feed.js'
import type { OwnColumn } from '../entry-order.js'
import type { ArchiveAddress } from './archive-address.js'
import type { ArchiveRow, TableRows } from './columns.js'

/** The statements of the gateway end on the server after this time. */
export const STATEMENT_SECONDS = 20

/** A value of a statement. */
export type Parameter =
  | { readonly type: 'text'; readonly value: string }
  | { readonly type: 'texts'; readonly value: readonly string[] }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'numbers'; readonly value: readonly number[] }
  | { readonly type: 'decimal'; readonly value: number }

/** Expressions that differ between engines. */
export interface Expressions {
  /** The latest versions of entries, as the table of a query. */
  readonly entries: string
  readonly hours: string
  readonly archive: string
  /** The placeholder of the parameter with this number, from 1. */
  placeholder(at: number, type: Parameter['type']): string
  /** A time column in ms since 1970. */
  millis(column: string): string
  /** A time from ms since 1970, whose expression is given. */
  time(millis: string): string
  /**
   * The start of the step of a time column, in ms since 1970, after a number of ms was added; steps begin at
   * multiples of their length.
   */
  stepOf(column: string, stepMs: number, addedMs?: number): string
  /** The start of the hour of a time. */
  hourOf(column: string): string
  /** Whether a text is one of those in a placeholder. */
  isOneOf(text: string, placeholder: string): string
  /** Whether labels, separated by spaces, have one of those in a placeholder. */
  hasPair(column: 'labels' | 'dimensions', placeholder: string): string
  /** Whether a path of names has this one above its last name. */
  isBelow(placeholder: string): string
  /** The number of rows that meet a condition. */
  countIf(condition: string): string
  /** What an entry has of a unit in its column `units`, times a number, as a whole number. */
  units(unit: string, times: number): string
  /** Numbers as one text, separated by commas, which is parsed faster than many columns. NULL is 0. */
  numbersText(expressions: readonly string[]): string
  /** The sums of each place of a list of numbers of this length, as `numbersText`; the last ones may lack. */
  listSumsText(column: string, length: number): string
  /** A text column without NULL. */
  plain(column: string): string
  /** The value by which a column sorts; NULL if it is unknown. */
  sortValue(column: OwnColumn): string
  /** A name that is a word of SQL. */
  quoted(column: string): string
}

/** The database of an archive. */
export interface ArchiveEngine {
  readonly kind: ArchiveAddress['engine']
  readonly is: Expressions
  /** Rejects with `ArchiveFailure`. */
  query(sql: string, parameters?: readonly Parameter[], seconds?: number): Promise<ArchiveRow[]>
  /** Runs a statement without a result. */
  run(sql: string): Promise<void>
  /**
   * Adds rows; repeated with the same token it adds nothing. Rows of several partitions may be added in part.
   * True if the reply proves that every row is there; else the caller reads them back.
   */
  insert(table: 'entries' | 'hours', rows: TableRows, token: string): Promise<boolean>
  /** Writes values of the table `archive`; a higher version replaces a lower one. */
  put(values: Readonly<Record<string, string>>, version: number): Promise<void>
  /** How many of the entries of a batch it has, and their cost. */
  countBatch(
    batch: number,
    entries: readonly Pick<LedgerEntry, 'requestId' | 'atMs'>[],
  ): Promise<{ readonly count: number; readonly cost: bigint }>
  /** Makes partitions for these times, if the engine needs them. */
  prepare(timesMs: readonly number[]): Promise<void>
  /** Bytes and rows of the tables, about. */
  size(): Promise<{ readonly bytes: number; readonly rows: number; readonly oldestMs: number | null }>
  close(): Promise<void>
}

/** Why the database did not do something. */
export type FailureKind = 'away' | 'refused' | 'missing' | 'denied' | 'password' | 'database' | 'slow'

/** A failure of the database. The message has no password and no data of requests. */
export class ArchiveFailure extends Error {
  readonly kind: FailureKind

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ArchiveFailure'
    this.kind = kind
  }
}

/** The error for a client whose question needs the archive. */
export function archiveUnavailable(cause: unknown, sinceMs: number): GatewayError {
  const isSlow = cause instanceof ArchiveFailure && cause.kind === 'slow'
  const since = new Date(sinceMs).toISOString()
  return new GatewayError(
    'archive_unavailable',
    isSlow
      ? 'The archive took too long: choose a shorter time.'
      : `The archive does not reply; figures are complete from ${since} on: choose a later time.`,
    { retryAfterSeconds: 10, cause },
  )
}

/** Throws `GatewayError(archive_unavailable)` if entries of the time are still on the disk of a gateway. */
export function requireComplete(
  { onDisk }: Pick<ArchiveProgress, 'onDisk'>,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): void {
  const waiting = onDisk.filter((each) => each.fromMs < toMs && each.toMs >= fromMs)
  if (waiting.length === 0) return
  const places = waiting.map(({ rows, gateway }) => `${rows.toLocaleString('en-US')} on gateway "${gateway}"`)
  throw new GatewayError(
    'archive_unavailable',
    `Entries of this time wait for the archive: ${places.join(', ')}; choose a later time.`,
    { retryAfterSeconds: 10 },
  )
}

/** A statement that is put together, with its parameters. */
export class Sql {
  readonly parameters: Parameter[] = []
  readonly is: Expressions

  constructor(is: Expressions) {
    this.is = is
  }

  text(value: string): string {
    return this.add({ type: 'text', value })
  }

  texts(value: readonly string[]): string {
    return this.add({ type: 'texts', value })
  }

  number(value: number): string {
    return this.add({ type: 'number', value })
  }

  numbers(value: readonly number[]): string {
    return this.add({ type: 'numbers', value })
  }

  /** A number that may have a fraction. */
  decimal(value: number): string {
    return this.add({ type: 'decimal', value })
  }

  /** A time in ms since 1970. */
  time(millis: number): string {
    return this.is.time(this.number(Math.floor(millis)))
  }

  private add(parameter: Parameter): string {
    this.parameters.push(parameter)
    return this.is.placeholder(this.parameters.length, parameter.type)
  }
}
