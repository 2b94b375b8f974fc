-- Changes a store of version 2 to version 3. Failures that were counted before have no cause.

ALTER TABLE ledger_entries ADD COLUMN attempt_ms TEXT;
ALTER TABLE ledger_entries ADD COLUMN retry_after_seconds INTEGER;
ALTER TABLE ledger_entries ADD COLUMN price_version TEXT;
DROP VIEW entries;
CREATE VIEW entries AS SELECT
  request_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS at, duration_ms,
  account_id, key_id, model_asked, model_answered, model, upstream, dialect, attempts, stream, status,
  outcome, finish_reason, source, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
  cache_write_1h_tokens, reasoning_tokens, cost_nano_usd, cost_nano_usd / 1e9 AS cost_usd,
  tokens_after_disconnect, losses, generation, first_content_ms, overhead_ms, ingress, error_message,
  "limit", upstream_status, upstream_request_id, attempted, shadow_of, labels, client_request_id, price_version,
  at_ms
FROM ledger_entries;

DROP VIEW usage_pending;
ALTER TABLE usage_hours ADD COLUMN errors_client INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_limits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_gateway INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_provider INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_client INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_limits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_gateway INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_provider INTEGER NOT NULL DEFAULT 0;
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
