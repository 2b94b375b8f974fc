-- The tables of the embedded store, version 8 (PRAGMA user_version); each to-version-N.sql changes the tables of
-- version N - 1.
-- Money is in whole nano-dollars (1e-9 USD); times are milliseconds since 1970 (UTC).
-- `record` columns hold the JSON texts of src/store/records/account-and-key-records.ts, which all engines share.

-- 'store_id': a random id, made with the store. 'counted_seq': the last ledger entry that `entry_places` and the usage
-- tables include. 'days_changed': a random value, which changes when sums of a past day change. 'limits_writer': the
-- process that changed limits last.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- `place` is the order of creation.
CREATE TABLE accounts (
  place INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  record TEXT NOT NULL,
  parent_id TEXT
);
CREATE INDEX accounts_by_parent ON accounts (parent_id) WHERE parent_id IS NOT NULL;

-- People who sign in. The user that was made together with an account has its id.
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

-- `name` is null for a key that is revoked or replaced: another key may have its name.
CREATE TABLE keys (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT NOT NULL UNIQUE,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  record TEXT NOT NULL,
  name TEXT
);
CREATE INDEX keys_by_account ON keys (account_id, place);
CREATE UNIQUE INDEX keys_by_name ON keys (account_id, name) WHERE name IS NOT NULL;

-- Keys that other processes must drop from their caches; a null digest means all keys. The code limits the rows.
CREATE TABLE changes (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT
);

-- The audit trail; ids sort by time.
CREATE TABLE trail (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX trail_by_account ON trail (account_id, id);

-- Sessions, known devices and one-time links.
CREATE TABLE passes (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  account_id TEXT NOT NULL,
  expires_at_ms REAL NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX passes_by_account ON passes (account_id, kind);
CREATE INDEX passes_by_end ON passes (expires_at_ms);

-- Tokens of the admin API, in the order of creation.
CREATE TABLE admin_tokens (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL UNIQUE,
  record TEXT NOT NULL
);

-- Throttles, such as those of sign-ins: the time at which the bucket of attempts is full.
CREATE TABLE attempts (
  name TEXT PRIMARY KEY,
  full_at_ms REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX attempts_by_end ON attempts (full_at_ms);

-- The shared cache: values that may be lost, such as reasoning state. `bytes` is the size of name and value together.
CREATE TABLE shelf (
  name TEXT PRIMARY KEY,
  expires_at_ms REAL NOT NULL,
  bytes INTEGER NOT NULL,
  value BLOB NOT NULL
);
CREATE INDEX shelf_by_end ON shelf (expires_at_ms);

-- The sizes of the tables with a capacity, which triggers keep up to date: no write counts a whole table.
CREATE TABLE sizes (
  name TEXT PRIMARY KEY,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO sizes VALUES ('shelf', 0, 0), ('trail', 0, 0);
CREATE TRIGGER shelf_added AFTER INSERT ON shelf BEGIN
  UPDATE sizes SET entries = entries + 1, bytes = bytes + new.bytes WHERE name = 'shelf';
END;
CREATE TRIGGER shelf_removed AFTER DELETE ON shelf BEGIN
  UPDATE sizes SET entries = entries - 1, bytes = bytes - old.bytes WHERE name = 'shelf';
END;
CREATE TRIGGER trail_added AFTER INSERT ON trail BEGIN
  UPDATE sizes SET entries = entries + 1 WHERE name = 'trail';
END;
CREATE TRIGGER trail_removed AFTER DELETE ON trail BEGIN
  UPDATE sizes SET entries = entries - 1 WHERE name = 'trail';
END;

-- Objects that clients created at providers, with the account that owns each. `expires_at_ms` is 2^53 - 1 for an object
-- without an end. The triggers count the objects in all and of each account.
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

-- The amounts taken of limits. `account_id` is empty for a limit that accounts share. Rates are in 1/60,000 of a
-- request or token that has not flowed back (src/store/limit-arithmetic.ts); `places` are slots of concurrent
-- requests; `day`, `week` and `month` are days, weeks (from Monday) and months since 1970 (UTC). `..._reserved` is the
-- part of `..._spent` that running requests hold. `others` has the budgets and quotas without columns of their own
-- (src/store/sqlite/limits/counters.ts); amounts that never reset are kept until `kept_until_ms`, 0: without end.
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
  week INTEGER NOT NULL,
  week_spent REAL NOT NULL,
  week_reserved REAL NOT NULL,
  month INTEGER NOT NULL,
  month_spent REAL NOT NULL,
  month_reserved REAL NOT NULL,
  others TEXT,
  kept_until_ms REAL NOT NULL DEFAULT 0,
  UNIQUE (account_id, subject)
);

-- Requests that run; they are few, so that no index has their end. `holds` has the amounts that each holds of limits
-- (src/store/sqlite/limits/holds.ts); `entry` is the ledger entry that is written if no process settles it
-- (src/store/records/entry-text.ts).
CREATE TABLE reservations (
  id INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  until_ms REAL NOT NULL,
  holds TEXT NOT NULL,
  entry TEXT NOT NULL
);

-- The ledger: one row for each request, in `ledger_entries` (entry-views.sql) with all of its columns.
-- What entries have in common is stored once a month (since 1970, UTC): all values of a kind, labels, messages of
-- errors. `digest` is that of the values. A month without entries is removed (src/store/sqlite/ledger/entry-row.ts).
CREATE TABLE entry_kinds (
  number INTEGER PRIMARY KEY,
  month INTEGER NOT NULL,
  digest BLOB NOT NULL,
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
  losses TEXT NOT NULL,
  generation INTEGER NOT NULL,
  ingress TEXT,
  "limit" TEXT,
  upstream_status INTEGER,
  attempted TEXT,
  price_version TEXT,
  gateway TEXT,
  generation_hash TEXT,
  cache_hit INTEGER,
  account_path TEXT,
  identity TEXT,
  guardrails TEXT,
  recorded INTEGER,
  program TEXT,
  "user" TEXT,
  UNIQUE (month, digest)
);
CREATE TABLE entry_texts (
  number INTEGER PRIMARY KEY,
  month INTEGER NOT NULL,
  digest BLOB NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (month, digest)
);

-- What an entry has of its own. `id` is the request id: 16 bytes of a UUID of version 7 whose time is `at_ms`, else the
-- text. Durations are in microseconds; lists of them are as src/store/records/packed-entry.ts writes them.
CREATE TABLE entry_rows (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id NOT NULL,
  at_ms INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  labels_text INTEGER,
  error_text INTEGER,
  is_failed INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cache_read_tokens INTEGER,
  cache_write_tokens INTEGER,
  cache_write_1h_tokens INTEGER,
  reasoning_tokens INTEGER,
  cost_nano_usd INTEGER,
  tokens_after_disconnect INTEGER NOT NULL,
  first_content_us INTEGER,
  overhead_us INTEGER,
  stages_us TEXT NOT NULL,
  attempts_us TEXT,
  upstream_request_id TEXT,
  shadow_of TEXT,
  client_request_id TEXT,
  retry_after_seconds INTEGER,
  saved_nano_usd INTEGER,
  cache_marks INTEGER,
  cache_marks_saved_nano_usd INTEGER,
  dimensions TEXT,
  units TEXT,
  batch TEXT
);
-- In the order of lists, and unique; with the values by which they can be sorted, so that another order of a million
-- entries is read from this index and the kinds.
CREATE UNIQUE INDEX entry_rows_by_time ON entry_rows (at_ms, id, kind, input_tokens, output_tokens, cost_nano_usd,
first_content_us, duration_us);
CREATE UNIQUE INDEX entry_rows_by_text ON entry_rows (id) WHERE typeof(id) = 'text';
CREATE INDEX entry_rows_failed ON entry_rows (at_ms, id) WHERE is_failed = 1;

-- An index of entries by account and by key, with two rows for each entry. It is a table because the roll-up fills it
-- in batches: an index would change two more pages for each settlement.
CREATE TABLE entry_places (
  owner TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (owner, at_ms, seq)
) WITHOUT ROWID;

-- The columns of `sluice usage export`, in its order.
CREATE VIEW entries AS SELECT
  request_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS at, duration_ms,
  account_id, key_id, model_asked, model_answered, model, upstream, dialect, attempts, stream, status,
  outcome, finish_reason, source, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
  cache_write_1h_tokens, reasoning_tokens, cost_nano_usd, cost_nano_usd / 1e9 AS cost_usd,
  tokens_after_disconnect, losses, generation, first_content_ms, overhead_ms, ingress, error_message,
  "limit", upstream_status, upstream_request_id, attempted, shadow_of, labels, client_request_id, price_version,
  gateway, generation_hash, cache_hit, saved_nano_usd, account_path, identity, guardrails,
  cache_marks, cache_marks_saved_nano_usd, recorded, dimensions, program, "user", units, batch,
  at_ms
FROM ledger_entries;

-- Sums of an hour or day (UTC) for each key and model. Rows with the key '*' are those of all keys of an account, and
-- rows with an empty account those of all accounts. Rows with a key `*PROPERTY=VALUE`, such as `*upstream=openai`, are
-- those of the requests with this property (PROPERTIES in src/store/usage-queries.ts), of an account or of all.
-- A past hour is added to its day: `usage_days` includes the rows of `usage_hours` up to `days_mark`, and the view
-- `usage_pending` has the others. `last_at_ms` is the time at which the last of the requests arrived.
-- `first_content_N` counts requests by time to first content, in the intervals of FIRST_CONTENT_COUNTERS.
-- `errors_CAUSE` counts failures by cause (src/errors.ts).
CREATE TABLE usage_hours (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  first_content_0 INTEGER NOT NULL,
  first_content_1 INTEGER NOT NULL,
  first_content_2 INTEGER NOT NULL,
  first_content_3 INTEGER NOT NULL,
  first_content_4 INTEGER NOT NULL,
  first_content_5 INTEGER NOT NULL,
  first_content_6 INTEGER NOT NULL,
  first_content_7 INTEGER NOT NULL,
  first_content_8 INTEGER NOT NULL,
  first_content_9 INTEGER NOT NULL,
  first_content_10 INTEGER NOT NULL,
  first_content_11 INTEGER NOT NULL,
  first_content_12 INTEGER NOT NULL,
  errors_client INTEGER NOT NULL,
  errors_limits INTEGER NOT NULL,
  errors_gateway INTEGER NOT NULL,
  errors_provider INTEGER NOT NULL,
  assumed INTEGER NOT NULL,
  first_content_13 INTEGER NOT NULL DEFAULT 0,
  first_content_14 INTEGER NOT NULL DEFAULT 0,
  first_content_15 INTEGER NOT NULL DEFAULT 0,
  first_content_16 INTEGER NOT NULL DEFAULT 0,
  first_content_17 INTEGER NOT NULL DEFAULT 0,
  first_content_18 INTEGER NOT NULL DEFAULT 0,
  first_content_19 INTEGER NOT NULL DEFAULT 0,
  first_content_20 INTEGER NOT NULL DEFAULT 0,
  first_content_21 INTEGER NOT NULL DEFAULT 0,
  first_content_22 INTEGER NOT NULL DEFAULT 0,
  first_content_23 INTEGER NOT NULL DEFAULT 0,
  first_content_24 INTEGER NOT NULL DEFAULT 0,
  first_content_25 INTEGER NOT NULL DEFAULT 0,
  first_content_26 INTEGER NOT NULL DEFAULT 0,
  first_content_27 INTEGER NOT NULL DEFAULT 0,
  first_content_28 INTEGER NOT NULL DEFAULT 0,
  first_content_29 INTEGER NOT NULL DEFAULT 0,
  first_content_30 INTEGER NOT NULL DEFAULT 0,
  first_content_31 INTEGER NOT NULL DEFAULT 0,
  first_content_32 INTEGER NOT NULL DEFAULT 0,
  first_content_33 INTEGER NOT NULL DEFAULT 0,
  first_content_34 INTEGER NOT NULL DEFAULT 0,
  first_content_35 INTEGER NOT NULL DEFAULT 0,
  first_content_36 INTEGER NOT NULL DEFAULT 0,
  first_content_37 INTEGER NOT NULL DEFAULT 0,
  cache_hits INTEGER NOT NULL DEFAULT 0,
  saved_nano_usd INTEGER NOT NULL DEFAULT 0,
  images INTEGER NOT NULL DEFAULT 0,
  audio_ms INTEGER NOT NULL DEFAULT 0,
  characters INTEGER NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0,
  searches INTEGER NOT NULL DEFAULT 0,
  documents INTEGER NOT NULL DEFAULT 0,
  lines INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (start_ms, account_id, key_id, model)
) WITHOUT ROWID;

CREATE TABLE usage_days (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  first_content_0 INTEGER NOT NULL,
  first_content_1 INTEGER NOT NULL,
  first_content_2 INTEGER NOT NULL,
  first_content_3 INTEGER NOT NULL,
  first_content_4 INTEGER NOT NULL,
  first_content_5 INTEGER NOT NULL,
  first_content_6 INTEGER NOT NULL,
  first_content_7 INTEGER NOT NULL,
  first_content_8 INTEGER NOT NULL,
  first_content_9 INTEGER NOT NULL,
  first_content_10 INTEGER NOT NULL,
  first_content_11 INTEGER NOT NULL,
  first_content_12 INTEGER NOT NULL,
  errors_client INTEGER NOT NULL,
  errors_limits INTEGER NOT NULL,
  errors_gateway INTEGER NOT NULL,
  errors_provider INTEGER NOT NULL,
  assumed INTEGER NOT NULL,
  first_content_13 INTEGER NOT NULL DEFAULT 0,
  first_content_14 INTEGER NOT NULL DEFAULT 0,
  first_content_15 INTEGER NOT NULL DEFAULT 0,
  first_content_16 INTEGER NOT NULL DEFAULT 0,
  first_content_17 INTEGER NOT NULL DEFAULT 0,
  first_content_18 INTEGER NOT NULL DEFAULT 0,
  first_content_19 INTEGER NOT NULL DEFAULT 0,
  first_content_20 INTEGER NOT NULL DEFAULT 0,
  first_content_21 INTEGER NOT NULL DEFAULT 0,
  first_content_22 INTEGER NOT NULL DEFAULT 0,
  first_content_23 INTEGER NOT NULL DEFAULT 0,
  first_content_24 INTEGER NOT NULL DEFAULT 0,
  first_content_25 INTEGER NOT NULL DEFAULT 0,
  first_content_26 INTEGER NOT NULL DEFAULT 0,
  first_content_27 INTEGER NOT NULL DEFAULT 0,
  first_content_28 INTEGER NOT NULL DEFAULT 0,
  first_content_29 INTEGER NOT NULL DEFAULT 0,
  first_content_30 INTEGER NOT NULL DEFAULT 0,
  first_content_31 INTEGER NOT NULL DEFAULT 0,
  first_content_32 INTEGER NOT NULL DEFAULT 0,
  first_content_33 INTEGER NOT NULL DEFAULT 0,
  first_content_34 INTEGER NOT NULL DEFAULT 0,
  first_content_35 INTEGER NOT NULL DEFAULT 0,
  first_content_36 INTEGER NOT NULL DEFAULT 0,
  first_content_37 INTEGER NOT NULL DEFAULT 0,
  cache_hits INTEGER NOT NULL DEFAULT 0,
  saved_nano_usd INTEGER NOT NULL DEFAULT 0,
  images INTEGER NOT NULL DEFAULT 0,
  audio_ms INTEGER NOT NULL DEFAULT 0,
  characters INTEGER NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0,
  searches INTEGER NOT NULL DEFAULT 0,
  documents INTEGER NOT NULL DEFAULT 0,
  lines INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (start_ms, account_id, key_id, model)
) WITHOUT ROWID;
-- Covers the query for the usage of every key.
CREATE INDEX usage_days_by_key ON usage_days (account_id, key_id, start_ms, model, requests, errors, input_tokens,
output_tokens, cost_nano_usd, unpriced, images, audio_ms, characters, pages, searches, documents,
lines) WHERE key_id >= '+';

-- One row: the last row of `usage_hours`, in the order of its primary key, that `usage_days` includes.
CREATE TABLE days_mark (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL
);
INSERT INTO days_mark VALUES (0, '', '', '');

CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);

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
  images INTEGER NOT NULL DEFAULT 0,
  audio_ms INTEGER NOT NULL DEFAULT 0,
  characters INTEGER NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0,
  searches INTEGER NOT NULL DEFAULT 0,
  documents INTEGER NOT NULL DEFAULT 0,
  lines INTEGER NOT NULL DEFAULT 0,
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
  -- Names and numbers of calls, as JSON.
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
