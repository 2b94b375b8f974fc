-- Changes a store of version 6 to version 7.

-- Budgets of a week.
ALTER TABLE limits ADD COLUMN week INTEGER NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_spent REAL NOT NULL DEFAULT 0;
ALTER TABLE limits ADD COLUMN week_reserved REAL NOT NULL DEFAULT 0;
-- The sums count the requests whose tokens are assumed; there were none before.
DROP VIEW usage_pending;
ALTER TABLE usage_hours ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0;
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
