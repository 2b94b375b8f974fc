-- Changes a store of version 1 to version 2.

ALTER TABLE limits RENAME TO limits_1;
CREATE TABLE limits (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  requests REAL NOT NULL,
  requests_at_ms REAL NOT NULL,
  tokens REAL NOT NULL,
  tokens_at_ms REAL NOT NULL,
  places INTEGER NOT NULL,
  day INTEGER NOT NULL,
  day_spent REAL NOT NULL,
  day_reserved REAL NOT NULL,
  month INTEGER NOT NULL,
  month_spent REAL NOT NULL,
  month_reserved REAL NOT NULL,
  UNIQUE (account_id, subject)
);
INSERT INTO limits (account_id, subject, requests, requests_at_ms, tokens, tokens_at_ms, places, day, day_spent,
  day_reserved, month, month_spent, month_reserved)
SELECT account_id, subject, requests, requests_at_ms, tokens, tokens_at_ms, places, day, day_spent,
  day_reserved, month, month_spent, month_reserved FROM limits_1;
DROP TABLE limits_1;

DROP INDEX entries_by_account;
DROP INDEX entries_by_key;
CREATE TABLE entry_places (
  owner TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (owner, at_ms, seq)
) WITHOUT ROWID;
INSERT OR IGNORE INTO entry_places SELECT owner, at_ms, seq FROM (
  SELECT account_id AS owner, at_ms, seq FROM ledger_entries
  UNION ALL SELECT key_id, at_ms, seq FROM ledger_entries
) AS old WHERE seq <= (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'counted_seq') ORDER BY owner, at_ms, seq;
