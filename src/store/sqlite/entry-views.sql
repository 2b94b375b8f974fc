-- The ledger with all of its columns. A store of version 7 or earlier has `former_entries`, too, until its rows are
-- moved (src/store/sqlite/ledger/former-entries.ts).
CREATE VIEW ledger_entries AS SELECT
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

-- Finds and counts entries: by `id`, with `at_ms` for one that is no text.
CREATE VIEW entry_ids AS SELECT seq, at_ms, id, is_failed FROM entry_rows;
