-- Changes a store of version 3 to version 4.

DROP INDEX usage_days_by_key;
CREATE INDEX usage_days_by_key
ON usage_days (account_id, key_id, start_ms, model, requests, cost_nano_usd, unpriced);
