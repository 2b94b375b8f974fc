/**
 * A file, or its folder, that was read-only when it was opened has a connection that never writes. Once it is
 * writable, another connection takes its place, without a restart.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { connect, connectUnchanging, isWithoutLog } from './driver.js'
import type { Connection, Row, Statement, Value } from './driver.js'
import { logBytes } from './background/write-ahead-log.js'

/** Minimum time between two attempts. */
export const REOPEN_MS = 1_000

/** An open connection. */
export interface Opened {
  readonly db: Connection
  /** Set for a file without a log in a folder that cannot be written: changes of it are not seen. */
  readonly unchanging: FileVersion | null
}

/** What a file looked like when it was opened. */
export interface FileVersion {
  readonly mtimeMs: number
  readonly size: number
}

/** Opens a file, to read it at least. Throws the driver's error. */
export function openToRead(path: string, pragmas: string): Opened {
  let db: Connection | null = null
  try {
    db = connect(path)
    db.exec(pragmas)
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return { db, unchanging: null }
  } catch (error) {
    db?.close()
    if (!isWithoutLog(error) || logBytes(path) > 0 || mayWriteFiles(path)) throw error
    const { mtimeMs, size } = statSync(path)
    db = connectUnchanging(path)
    db.exec(pragmas)
    return { db, unchanging: { mtimeMs, size } }
  }
}

/** Whether a file that was opened without a log can be written now, or was changed by another user. */
export function isChanged(path: string, { mtimeMs, size }: FileVersion): boolean {
  const now = statSync(path, { throwIfNoEntry: false })
  return now?.mtimeMs !== mtimeMs || now.size !== size || logBytes(path) > 0 || mayWriteFiles(path)
}

/** A connection that can write the file; null if there is none yet. */
export function writableConnection(path: string, pragmas: string): Connection | null {
  let db: Connection | null = null
  try {
    db = connect(path)
    db.exec(pragmas)
    // A transaction of a read-only connection begins without an error, and fails with its first write.
    db.exec('BEGIN IMMEDIATE; DELETE FROM meta WHERE name IS NULL; ROLLBACK')
    return db
  } catch {
    // Still read-only, or another process writes: the next attempt follows.
    db?.close()
    return null
  }
}

/**
 * Whether this process may write the file, its log, the index of the log, and their folder. SQLite opens the
 * index once for all connections of a process: if it was read-only then, no connection can write until all
 * are closed.
 */
export function mayWriteFiles(path: string): boolean {
  const files = [path, `${path}-wal`, `${path}-shm`].filter((each) => existsSync(each))
  try {
    for (const each of [dirname(path), ...files]) accessSync(each, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Frees statements that are not referred to any more: with the second driver a closed connection stays open
 * as long as it has any.
 */
export async function freeStatements(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (isCallable(collect)) collect()
  // The statements are freed in the next turns.
  for (let turn = 0; turn < 3; turn += 1) await nextTurn()
}

function isCallable(value: unknown): value is () => void {
  return typeof value === 'function'
}

function closed(): never {
  throw new Error('the file is opened again')
}

/** The statement of a connection that is closed to open another. */
export const CLOSED: Statement = { run: closed, get: closed, all: closed, iterate: closed }

/** A statement that keeps its place when the connection is replaced. */
export class ReplaceableStatement implements Statement {
  private current: Statement

  constructor(statement: Statement) {
    this.current = statement
  }

  replace(statement: Statement): void {
    this.current = statement
  }

  run(...values: readonly Value[]): ReturnType<Statement['run']> {
    return this.current.run(...values)
  }

  get(...values: readonly Value[]): Row | undefined {
    return this.current.get(...values)
  }

  all(...values: readonly Value[]): readonly Row[] {
    return this.current.all(...values)
  }

  iterate(...values: readonly Value[]): Iterable<Row> {
    return this.current.iterate(...values)
  }
}
