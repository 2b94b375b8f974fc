/**
 * The SQLite driver: `node:sqlite` when this Node has it, else `@photostructure/sqlite`, which has the same
 * API. The second driver closes a connection that is garbage-collected, although statements of it remain:
 * code that keeps statements must keep the connection.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** A value of a column. */
export type Value = string | number | bigint | null | Uint8Array
/** A row by column names. */
export type Row = Readonly<Record<string, Value>>

/** A prepared statement. */
export interface Statement {
  run(...values: readonly Value[]): {
    readonly changes: number | bigint
    readonly lastInsertRowid: number | bigint
  }
  get(...values: readonly Value[]): Row | undefined
  all(...values: readonly Value[]): readonly Row[]
  iterate(...values: readonly Value[]): Iterable<Row>
}

/** The statements of a connection. */
export interface Statements {
  /** The statement, prepared once for each SQL text. Throws the error of SQLite. */
  prepare(sql: string): Statement
}

/** An open connection. */
export interface Connection {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

/** The export of both drivers. */
interface Driver {
  readonly DatabaseSync: new (path: string, options?: { readonly readOnly?: boolean }) => Connection
}

const BUSY = 5
const READ_ONLY = 8
const CANNOT_OPEN = 14
const CONSTRAINT = 19
const require = createRequire(import.meta.url)
let loaded: Driver | null = null

/**
 * Opens a connection; creates the file if it is not there. The driver is loaded by the first call: 10 ms and
 * 4 MB if it is not built in. Throws the driver's error.
 */
export function connect(path: string): Connection {
  loaded ??= load()
  return new loaded.DatabaseSync(path)
}

/**
 * Opens a file whose folder cannot be written and that has no log: SQLite cannot make the log, and reads the
 * file as one that does not change. Throws the driver's error.
 */
export function connectUnchanging(path: string): Connection {
  loaded ??= load()
  return new loaded.DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true })
}

function load(): Driver {
  const builtIn = builtInDriver()
  if (isDriver(builtIn) && bindsByNumber(builtIn)) return builtIn
  const installed: unknown = require('@photostructure/sqlite')
  if (isDriver(installed)) return installed
  throw new Error('neither node:sqlite nor @photostructure/sqlite can be loaded')
}

/**
 * `node:sqlite`; absent before Node 22.13. Node 22 warns that it is experimental, on the stderr of each
 * command: the store's tests run on it, so users need no warning.
 */
function builtInDriver(): unknown {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = () => undefined
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Whether numbered parameters such as `?1` work; early releases of `node:sqlite` ignore them. */
function bindsByNumber({ DatabaseSync }: Driver): boolean {
  const db = new DatabaseSync(':memory:')
  try {
    return db.prepare('SELECT ?2 AS second, ?1 AS first').get(1, 2)?.['second'] === 2
  } catch {
    return false
  } finally {
    db.close()
  }
}

function isDriver(module: unknown): module is Driver {
  return (
    typeof module === 'object' &&
    module !== null &&
    'DatabaseSync' in module &&
    typeof module.DatabaseSync === 'function'
  )
}

const statements = new WeakMap<Connection, Map<string, Statement>>()
/** Statements kept for a connection. */
const MOST_KEPT = 200

/** The statement, prepared once: a page of keys of a hundred accounts runs the same one for each. */
export function prepared(db: Connection, sql: string): Statement {
  const kept = statements.get(db) ?? new Map<string, Statement>()
  statements.set(db, kept)
  const known = kept.get(sql)
  if (known !== undefined) return known
  // The filters of lists make many texts.
  if (kept.size >= MOST_KEPT) kept.clear()
  const statement = db.prepare(sql)
  kept.set(sql, statement)
  return statement
}

/** Whether another connection holds the lock that this one needed. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === BUSY
}

/** Whether the file could not be written when its connection was opened. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === READ_ONLY
}

/** Whether the log, or its index, could neither be opened nor made. */
export function isWithoutLog(error: unknown): boolean {
  const code = codeOf(error)
  return code === READ_ONLY || code === CANNOT_OPEN
}

/** Whether a constraint of a table refused the row, such as a second row with the same key. */
export function isConstraint(error: unknown): boolean {
  return codeOf(error) === CONSTRAINT
}

/** The primary result code of SQLite. */
function codeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode & 0xff : null
}

/** The text in a column. Throws an Error if the value has another type. */
export function textIn(row: Row, name: string): string {
  const value = row[name]
  if (typeof value !== 'string') throw new Error(`column '${name}' is not a text`)
  return value
}

/** The text in a column, or null. Throws an Error if the value has another type. */
export function textOrNull(row: Row, name: string): string | null {
  return row[name] === null ? null : textIn(row, name)
}

/** The number in a column. Throws an Error if the value has another type. */
export function numberIn(row: Row, name: string): number {
  const value = row[name]
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'number') throw new Error(`column '${name}' is not a number`)
  return value
}
