/**
 * The rows of changes that make cached key look-ups stale, written in the transaction of a change; each
 * process reads new rows (`notifications.ts`).
 */
import type { Statements } from '../driver.js'

/** Rows kept: 4,096 in 200 ms is 20,000 key changes a second. */
const MOST_ROWS = 4_096
/** Old rows are removed with each change of this many. */
const TRIM_EVERY = 64
const TRIM = 'DELETE FROM changes WHERE place <= (SELECT max(place) FROM changes) - ?'

/** Rows of changes that a connection writes. */
export class ChangeRows {
  /** The rows that are kept. */
  readonly mostRows: number
  private readonly statements: Statements

  constructor(statements: Statements, mostRows = MOST_ROWS) {
    this.statements = statements
    this.mostRows = mostRows
  }

  /** Writes a change; null means that any key may have changed. Only inside a transaction. */
  note(digest: string | null): void {
    const { lastInsertRowid } = this.statements.prepare('INSERT INTO changes (digest) VALUES (?)').run(digest)
    // By the number of the row: a command writes one change and ends.
    if (Number(lastInsertRowid) % Math.min(TRIM_EVERY, this.mostRows) !== 0) return
    this.statements.prepare(TRIM).run(this.mostRows)
  }
}
