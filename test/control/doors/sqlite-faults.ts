/**
 * Faults of the writes of a SQLite store: triggers count the rows that a change writes, and fail one of them.
 */
import { connect } from '../../../src/store/sqlite/driver.js'
import { shape, type Faults } from './faults.js'

/** Tables that changes write. */
const TABLES = [
  ...['accounts', 'users', 'members', 'keys', 'trail', 'passes', 'admin_tokens', 'denials'],
  ...['dimension_values', 'sealed_records'],
] as const

/** The rows of a store that a change may write, and the faults of their writes. */
export class SqliteFaults implements Faults {
  private readonly db: ReturnType<typeof connect>

  constructor(file: string) {
    this.db = connect(file)
    this.db.exec('PRAGMA foreign_keys = OFF; PRAGMA busy_timeout = 5000')
    this.db.exec('CREATE TABLE fault (at INTEGER); INSERT INTO fault VALUES (-1)')
    this.db.exec('CREATE TABLE writes (place TEXT)')
    for (const table of TABLES) {
      this.db.exec(`CREATE TABLE kept_${table} AS SELECT * FROM ${table}`)
      for (const verb of ['INSERT', 'UPDATE', 'DELETE']) {
        // What a login notes of itself is no change.
        const isUse =
          table === 'admin_tokens' && verb === 'UPDATE'
            ? LAST_USE
            : table === 'sealed_records'
              ? `${verb === 'DELETE' ? 'old' : 'new'}.kind IN ('batch', 'recording')`
              : '1'
        this.db.exec(
          `CREATE TRIGGER fault_${table}_${verb} BEFORE ${verb} ON ${table} WHEN ${isUse} BEGIN
             SELECT RAISE(ABORT, 'fault') WHERE (SELECT at FROM fault) = (SELECT count(*) FROM writes);
             INSERT INTO writes VALUES ('${verb} ${table}');
           END`,
        )
      }
    }
  }

  /** Puts the rows back, and lets the next write with this number fail. */
  arm(at: number | null): Promise<void> {
    const restore = TABLES.map(
      (table) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table}`,
    )
    this.db.exec(`BEGIN IMMEDIATE; UPDATE fault SET at = -1; ${restore.join('; ')};
      INSERT INTO changes (digest) VALUES (NULL); DELETE FROM writes; DELETE FROM attempts;
      UPDATE fault SET at = ${at ?? -1}; COMMIT`)
    return Promise.resolve()
  }

  disarm(): void {
    this.db.exec('UPDATE fault SET at = -1; DELETE FROM attempts')
  }

  /** What was written since the rows were put back. */
  written(): string[] {
    return this.db
      .prepare('SELECT place FROM writes ORDER BY rowid')
      .all()
      .map((row) => String(row['place']))
  }

  /** The rows of each table, without what differs between two runs. */
  state(): Promise<Record<string, string[]>> {
    const rows = TABLES.map((table): [string, string[]] => {
      const rest = table === 'sealed_records' ? ` WHERE kind IN ('batch', 'recording')` : ''
      const all = this.db.prepare(`SELECT * FROM ${table}${rest}`).all()
      return [table, all.map((row) => shape(row)).sort()]
    })
    return Promise.resolve(Object.fromEntries(rows))
  }

  digests(): Promise<Set<string>> {
    const of = (table: string) => this.db.prepare(`SELECT digest FROM ${table}`).all()
    const all = [...of('keys'), ...of('admin_tokens')].map((row) => String(row['digest']))
    return Promise.resolve(new Set(all))
  }

  close(): void {
    this.db.close()
  }
}

const LAST_USE = `json_remove(new.record, '$.lastUsedAtMs') <> json_remove(old.record, '$.lastUsedAtMs')`
