-- Changes a store of version 9 to version 10: what requests used of each unit (src/base/unit-counts.ts). Requests before it
-- are not in these sums.

DROP VIEW usage_pending;
DROP INDEX usage_days_by_key;
ALTER TABLE usage_hours ADD COLUMN images INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN audio_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN characters INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN lines INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN images INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN audio_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN characters INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN lines INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN images INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN audio_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN characters INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN lines INTEGER NOT NULL DEFAULT 0;
CREATE INDEX usage_days_by_key ON usage_days (account_id, key_id, start_ms, model, requests, errors, input_tokens,
output_tokens, cost_nano_usd, unpriced, images, audio_ms, characters, pages, searches, documents,
lines) WHERE key_id >= '+';
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
