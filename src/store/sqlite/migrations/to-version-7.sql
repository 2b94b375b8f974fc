-- Changes a store of version 6 to version 7.

-- Budgets of a week.
ALTER TABLE limits ADD COLUMN week INTEGER NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_spent REAL NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_reserved REAL NOT NULL DEFAULT 0;
-- Tokens of days, weeks and months, and amounts that never reset.
ALTER TABLE limits ADD COLUMN others TEXT;
ALTER TABLE limits ADD COLUMN kept_until_ms REAL NOT NULL DEFAULT 0;
-- The sums count the requests whose tokens are assumed; there were none before.
DROP VIEW usage_pending;
ALTER TABLE usage_hours ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0;
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
-- The owners of objects at providers.

CREATE TABLE provider_objects (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  upstream TEXT NOT NULL,
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  expires_at_ms REAL NOT NULL,
  facts TEXT NOT NULL,
  UNIQUE (upstream, id)
);
CREATE INDEX provider_objects_by_account ON provider_objects (account_id, expires_at_ms, place);
CREATE INDEX provider_objects_by_end ON provider_objects (expires_at_ms);
INSERT INTO sizes VALUES ('objects', 0, 0);
CREATE TRIGGER provider_object_added AFTER INSERT ON provider_objects BEGIN
  UPDATE sizes SET entries = entries + 1 WHERE name = 'objects';
  INSERT INTO sizes VALUES ('objects of ' || new.account_id, 1, 0)
    ON CONFLICT (name) DO UPDATE SET entries = entries + 1;
END;
CREATE TRIGGER provider_object_moved AFTER UPDATE OF account_id ON provider_objects
WHEN new.account_id <> old.account_id BEGIN
  UPDATE sizes SET entries = entries - 1 WHERE name = 'objects of ' || old.account_id;
  INSERT INTO sizes VALUES ('objects of ' || new.account_id, 1, 0)
    ON CONFLICT (name) DO UPDATE SET entries = entries + 1;
END;
CREATE TRIGGER provider_object_removed AFTER DELETE ON provider_objects BEGIN
  UPDATE sizes SET entries = entries - 1 WHERE name IN ('objects', 'objects of ' || old.account_id);
  DELETE FROM sizes WHERE name = 'objects of ' || old.account_id AND entries <= 0;
END;

-- The gateway of an entry, the hash of its configuration.
ALTER TABLE ledger_entries ADD COLUMN gateway TEXT;
ALTER TABLE ledger_entries ADD COLUMN generation_hash TEXT;
-- The exact cache.
ALTER TABLE ledger_entries ADD COLUMN cache_hit INTEGER;
ALTER TABLE ledger_entries ADD COLUMN saved_nano_usd INTEGER;
-- The accounts above that of an entry.
ALTER TABLE ledger_entries ADD COLUMN account_path TEXT;
-- The workload identity.
ALTER TABLE ledger_entries ADD COLUMN identity TEXT;
-- What guardrails did.
ALTER TABLE ledger_entries ADD COLUMN guardrails TEXT;
-- Marks for the prompt caches of providers.
ALTER TABLE ledger_entries ADD COLUMN cache_marks INTEGER;
ALTER TABLE ledger_entries ADD COLUMN cache_marks_saved_nano_usd INTEGER;
ALTER TABLE ledger_entries ADD COLUMN recorded INTEGER;
DROP VIEW entries;
CREATE VIEW entries AS SELECT
  request_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS at, duration_ms,
  account_id, key_id, model_asked, model_answered, model, upstream, dialect, attempts, stream, status,
  outcome, finish_reason, source, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
  cache_write_1h_tokens, reasoning_tokens, cost_nano_usd, cost_nano_usd / 1e9 AS cost_usd,
  tokens_after_disconnect, losses, generation, first_content_ms, overhead_ms, ingress, error_message,
  "limit", upstream_status, upstream_request_id, attempted, shadow_of, labels, client_request_id, price_version,
  gateway, generation_hash, cache_hit, saved_nano_usd, account_path, identity, guardrails,
  cache_marks, cache_marks_saved_nano_usd, recorded,
  at_ms
FROM ledger_entries;

-- Tokens of the admin API, in the order of creation.
CREATE TABLE admin_tokens (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL UNIQUE,
  record TEXT NOT NULL
);
-- Accounts have names, parents and members, and keys have unique names; migrate.ts writes the values.
ALTER TABLE accounts RENAME COLUMN email TO name;
ALTER TABLE accounts ADD COLUMN parent_id TEXT;
CREATE INDEX accounts_by_parent ON accounts (parent_id) WHERE parent_id IS NOT NULL;
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE members (
  account_id TEXT NOT NULL,
  email TEXT NOT NULL,
  user_id TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (account_id, email)
) WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user_id);
ALTER TABLE keys ADD COLUMN name TEXT;
CREATE UNIQUE INDEX keys_by_name ON keys (account_id, name) WHERE name IS NOT NULL;
-- Denied workload identities; `subject` is a digest of the identity and its `sub` or `jti` (src/store/denials.ts).
-- `expires_at_ms` is 2^53 - 1 for a denial without an end.
CREATE TABLE denials (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,
  expires_at_ms REAL NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX denials_by_subject ON denials (subject, expires_at_ms);
CREATE INDEX denials_by_end ON denials (expires_at_ms);

-- The use of pruned entries by month (months since 1970, UTC), so that the statement of a month stays complete.
CREATE TABLE usage_months (
  month INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  account_path TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  labels TEXT NOT NULL,
  requests INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  PRIMARY KEY (month, account_id, account_path, key_id, model, labels)
) WITHOUT ROWID;
-- Encrypted records of requests: cached replies, orders to clear the cache, recordings.
CREATE TABLE sealed_records (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  at_ms REAL NOT NULL,
  expires_at_ms REAL NOT NULL,
  info TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX sealed_records_by_end ON sealed_records (kind, expires_at_ms, id);
CREATE INDEX sealed_records_expired ON sealed_records (expires_at_ms);
CREATE INDEX sealed_records_by_account ON sealed_records (kind, account_id, at_ms);
CREATE TRIGGER sealed_record_added AFTER INSERT ON sealed_records BEGIN
  INSERT INTO sizes VALUES ('records ' || new.kind, 1, new.bytes)
    ON CONFLICT (name) DO UPDATE SET entries = entries + 1, bytes = bytes + new.bytes;
END;
CREATE TRIGGER sealed_record_removed AFTER DELETE ON sealed_records BEGIN
  UPDATE sizes SET entries = entries - 1, bytes = bytes - old.bytes WHERE name = 'records ' || old.kind;
END;
-- Values of dimensions that requests of an account have had (src/store/dimension-values.ts).
CREATE TABLE dimension_values (
  account_id TEXT NOT NULL,
  dimension TEXT NOT NULL,
  value TEXT NOT NULL,
  requests INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cost_nano_usd INTEGER NOT NULL DEFAULT 0,
  tools TEXT,
  first_at_ms REAL,
  last_at_ms REAL,
  ended_at_ms REAL,
  expires_at_ms REAL NOT NULL,
  UNIQUE (account_id, dimension, value)
);
CREATE INDEX dimension_values_by_end ON dimension_values (expires_at_ms);
CREATE INDEX dimension_values_of_account ON dimension_values (account_id, dimension, expires_at_ms);
CREATE TRIGGER dimension_value_added AFTER INSERT ON dimension_values BEGIN
  INSERT INTO sizes VALUES ('values of ' || new.account_id || ' ' || new.dimension, 1, 0)
    ON CONFLICT (name) DO UPDATE SET entries = entries + 1;
END;
CREATE TRIGGER dimension_value_removed AFTER DELETE ON dimension_values BEGIN
  UPDATE sizes SET entries = entries - 1 WHERE name = 'values of ' || old.account_id || ' ' || old.dimension;
  DELETE FROM sizes WHERE name = 'values of ' || old.account_id || ' ' || old.dimension AND entries <= 0;
END;
-- The totals of keys with errors and tokens; migrate.ts adds the sums by property.
DROP INDEX usage_days_by_key;
CREATE INDEX usage_days_by_key ON usage_days (account_id, key_id, start_ms, model, requests, errors, input_tokens,
output_tokens, cost_nano_usd, unpriced) WHERE key_id >= '+';

-- Lists in another order than that of time are read from this index alone.
DROP INDEX entries_by_time;
CREATE INDEX entries_by_time ON ledger_entries (at_ms, request_id, status, model, model_asked, upstream, input_tokens,
output_tokens, cost_nano_usd, first_content_ms, duration_ms);
