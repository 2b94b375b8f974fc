-- Entries without what they have in common: `former_entries` are moved to `entry_rows` in the background.
DROP VIEW entries;
ALTER TABLE ledger_entries RENAME TO former_entries;
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
CREATE UNIQUE INDEX entry_rows_by_time ON entry_rows (at_ms, id, kind, input_tokens, output_tokens, cost_nano_usd,
first_content_us, duration_us);
CREATE UNIQUE INDEX entry_rows_by_text ON entry_rows (id) WHERE typeof(id) = 'text';
CREATE INDEX entry_rows_failed ON entry_rows (at_ms, id) WHERE is_failed = 1;

INSERT INTO sqlite_sequence SELECT 'entry_rows', seq FROM sqlite_sequence WHERE name = 'former_entries';

CREATE VIEW moved_entries AS SELECT
  seq, id,
  iif(typeof(id) = 'text', id, lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4)
    || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21))) AS request_id,
  at_ms, duration_us / 1000.0 AS duration_ms, account_id, key_id, model_asked, model_answered, model,
  upstream, dialect, attempts, stream, status, outcome, finish_reason, source, input_tokens, output_tokens,
  cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, reasoning_tokens, cost_nano_usd,
  tokens_after_disconnect, losses, generation, first_content_us / 1000.0 AS first_content_ms,
  overhead_us / 1000.0 AS overhead_ms, stages_us AS hops, ingress,
  (SELECT text FROM entry_texts WHERE number = error_text) AS error_message, "limit", upstream_status,
  upstream_request_id, attempted, shadow_of,
  (SELECT text FROM entry_texts WHERE number = labels_text) AS labels, client_request_id,
  attempts_us AS attempt_ms, retry_after_seconds, price_version, gateway, generation_hash, cache_hit,
  saved_nano_usd, account_path, identity, guardrails, cache_marks, cache_marks_saved_nano_usd, recorded,
  dimensions, program, "user", units, batch, is_failed
FROM entry_rows CROSS JOIN entry_kinds ON entry_kinds.number = entry_rows.kind;
CREATE VIEW unmoved_entries AS SELECT
  seq,
  iif(printf('%08x-%04x-7', at_ms / 65536, at_ms % 65536) = substr(request_id, 1, 15) AND length(request_id) = 36,
    coalesce(unhex(replace(request_id, '-', '')), request_id), request_id) AS id,
  request_id, at_ms, duration_ms, account_id, key_id, model_asked, model_answered, model, upstream, dialect,
  attempts, stream, status, outcome, finish_reason, source, input_tokens, output_tokens, cache_read_tokens,
  cache_write_tokens, cache_write_1h_tokens, reasoning_tokens, cost_nano_usd, tokens_after_disconnect,
  losses, generation, first_content_ms, overhead_ms, hops, ingress, error_message, "limit", upstream_status,
  upstream_request_id, attempted, shadow_of, labels, client_request_id, attempt_ms, retry_after_seconds,
  price_version, gateway, generation_hash, cache_hit, saved_nano_usd, account_path, identity, guardrails,
  cache_marks, cache_marks_saved_nano_usd, recorded, NULL AS dimensions, NULL AS program, NULL AS "user", NULL AS units, NULL AS batch,
  outcome <> 'ok' AS is_failed
FROM former_entries;
CREATE VIEW ledger_entries AS SELECT * FROM moved_entries UNION ALL SELECT * FROM unmoved_entries;
CREATE VIEW entry_ids AS SELECT seq, at_ms, id, is_failed FROM entry_rows
UNION ALL SELECT seq, at_ms, request_id, outcome <> 'ok' FROM former_entries;

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
