/**
 * Converts a store of this version to version 8, or to version 7, in which each entry is a row with all of
 * its values.
 */
import { readFileSync } from 'node:fs'
import { textIn, type Connection } from '../../../src/store/sqlite/driver.js'

const TABLE = `
CREATE TABLE ledger_entries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  request_id TEXT NOT NULL UNIQUE,
  at_ms INTEGER NOT NULL,
  duration_ms REAL NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model_asked TEXT,
  model_answered TEXT,
  model TEXT NOT NULL,
  upstream TEXT,
  dialect TEXT,
  attempts INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  status INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  finish_reason TEXT,
  source TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cache_read_tokens INTEGER,
  cache_write_tokens INTEGER,
  cache_write_1h_tokens INTEGER,
  reasoning_tokens INTEGER,
  cost_nano_usd INTEGER,
  tokens_after_disconnect INTEGER NOT NULL,
  losses TEXT NOT NULL,
  generation INTEGER NOT NULL,
  first_content_ms REAL,
  overhead_ms REAL,
  hops TEXT NOT NULL,
  ingress TEXT,
  error_message TEXT,
  "limit" TEXT,
  upstream_status INTEGER,
  upstream_request_id TEXT,
  attempted TEXT,
  shadow_of TEXT,
  labels TEXT,
  client_request_id TEXT,
  attempt_ms TEXT,
  retry_after_seconds INTEGER,
  price_version TEXT,
  gateway TEXT,
  generation_hash TEXT,
  cache_hit INTEGER,
  saved_nano_usd INTEGER,
  account_path TEXT,
  identity TEXT,
  guardrails TEXT,
  cache_marks INTEGER,
  cache_marks_saved_nano_usd INTEGER,
  recorded INTEGER
);
CREATE INDEX entries_by_time ON ledger_entries (at_ms, request_id, status, model, model_asked, upstream, input_tokens,
output_tokens, cost_nano_usd, first_content_ms, duration_ms);
CREATE INDEX entries_failed ON ledger_entries (at_ms) WHERE outcome <> 'ok';
`

/** Converts a store of this version to version 9. */
export function toVersion9(db: Connection): void {
  db.exec('DROP INDEX usage_days_by_key')
  dropColumnsOf(db, 10)
  const [index] = /CREATE INDEX usage_days_by_key[^;]*/.exec(migrationTo(7)) ?? ['']
  db.exec(index)
}

/** Converts a store of this version to version 8. */
export function toVersion8(db: Connection): void {
  toVersion9(db)
  dropColumnsOf(db, 9)
}

/** Drops the columns that a version added. */
function dropColumnsOf(db: Connection, version: number): void {
  const pending = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'usage_pending'").get()
  // In one transaction: each change of a table would be written and synced alone.
  db.exec('BEGIN; DROP VIEW usage_pending')
  for (const [, table, column] of migrationTo(version).matchAll(/^ALTER TABLE (\w+) ADD COLUMN (\w+)/gm)) {
    db.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`)
  }
  db.exec(`${textIn(pending ?? {}, 'sql')}; PRAGMA user_version = ${version - 1}; COMMIT`)
}

function migrationTo(version: number): string {
  return readFileSync(`src/store/sqlite/migrations/to-version-${version}.sql`, 'utf8')
}

/** Converts it to version 7. The view `entries` has no columns that version 8 added. */
export function toVersion7(db: Connection): void {
  toVersion8(db)
  const row = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'entries'").get()
  db.exec(`
    BEGIN;
    CREATE TABLE copy AS SELECT * FROM ledger_entries ORDER BY seq;
    ALTER TABLE copy DROP COLUMN id;
    ALTER TABLE copy DROP COLUMN is_failed;
    ALTER TABLE copy DROP COLUMN dimensions;
    ALTER TABLE copy DROP COLUMN program;
    ALTER TABLE copy DROP COLUMN "user";
    ALTER TABLE copy DROP COLUMN units;
    ALTER TABLE copy DROP COLUMN batch;
    DROP VIEW entries; DROP VIEW ledger_entries; DROP VIEW entry_ids;
    DROP TABLE entry_rows; DROP TABLE entry_kinds; DROP TABLE entry_texts;
    ${TABLE}
    INSERT INTO ledger_entries SELECT * FROM copy;
    DROP TABLE copy;
    PRAGMA user_version = 7;
    ${textIn(row ?? {}, 'sql').replace(' dimensions, program, "user", units, batch,', '')};
    COMMIT;
  `)
}
