/**
 * A file, or its folder, that was read-only when it was opened has a connection that never writes. Once it is
 * writable, another connection takes its place, without a restart.
 */
import { connect, type Connection, type Row, type Statement, type Value } from './driver.js'

/** Minimum time between two attempts. */
export const REOPEN_MS = 1_000

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
