-- Changes a store of version 2 to version 3. Failures that were counted before have no cause.

ALTER TABLE ledger_entries ADD COLUMN attempt_ms TEXT;
ALTER TABLE ledger_entries ADD COLUMN retry_after_seconds INTEGER;

DROP VIEW usage_pending;
ALTER TABLE usage_hours ADD COLUMN errors_client INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_limits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_gateway INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN errors_provider INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_client INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_limits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_gateway INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN errors_provider INTEGER NOT NULL DEFAULT 0;
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours
WHERE (start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
