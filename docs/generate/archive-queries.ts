/** The queries of `docs/reference/archive.md`, by engine; tests run each of them. */

/** A question and the query that answers it. */
interface ArchiveQuery {
  readonly question: string
  readonly clickhouse: string
  readonly postgresql: string
}

function same(question: string, sql: string): ArchiveQuery {
  return { question, clickhouse: sql, postgresql: sql }
}

export const ARCHIVE_QUERIES: readonly ArchiveQuery[] = [
  same(
    'What did each model cost by month?',
    `SELECT date_trunc('month', start) AS month, model, sum(requests) AS requests, sum(cost_usd) AS usd
FROM sluice_usage
GROUP BY date_trunc('month', start), model
ORDER BY month, usd DESC`,
  ),
  {
    question: 'What did each team cost this month?',
    clickhouse: `SELECT arrayJoin(splitByChar(' ', labels)) AS label, sum(cost_usd) AS usd, sum(requests) AS requests
FROM sluice_usage WHERE
  start >= toStartOfMonth(now('UTC'))
GROUP BY label HAVING label LIKE 'team=%'
ORDER BY usd DESC`,
    postgresql: `SELECT label, sum(cost_usd) AS usd, sum(requests) AS requests
FROM sluice_usage, regexp_split_to_table(labels, ' ') AS label WHERE
  start >= date_trunc('month', now()) AND label LIKE 'team=%'
GROUP BY label
ORDER BY usd DESC`,
  },
  {
    question: 'Which accounts cost most in the last 30 days?',
    clickhouse: `SELECT account_id, any(account_path) AS path, sum(cost_usd) AS usd
FROM sluice_usage WHERE
  start >= now('UTC') - INTERVAL 30 DAY
GROUP BY account_id
ORDER BY usd DESC
LIMIT 20`,
    postgresql: `SELECT account_id, max(account_path) AS path, sum(cost_usd) AS usd
FROM sluice_usage WHERE
  start >= now() - interval '30 days'
GROUP BY account_id
ORDER BY usd DESC
LIMIT 20`,
  },
  same(
    'What share of requests failed, by upstream and cause?',
    `SELECT upstream, sum(requests) AS requests, sum(errors_provider) AS provider, sum(errors_limits) AS limits,
  sum(errors_client) AS client, sum(errors_gateway) AS gateway
FROM sluice_usage
GROUP BY upstream
ORDER BY requests DESC`,
  ),
  same(
    'How many tokens came from the prompt cache of the provider?',
    `SELECT model, sum(cache_read_tokens) AS cached, sum(input_tokens) AS input
FROM sluice_usage
GROUP BY model
ORDER BY cached DESC`,
  ),
  {
    question: 'What did the cache of the gateway save?',
    clickhouse: `SELECT toStartOfDay(at) AS day, count() AS hits, sum(saved_nano_usd) / 1e9 AS usd
FROM sluice_requests WHERE
  cache_hit = true
GROUP BY day
ORDER BY day`,
    postgresql: `SELECT date_trunc('day', at) AS day, count(*) AS hits, sum(saved_nano_usd) / 1e9 AS usd
FROM sluice_requests WHERE
  cache_hit
GROUP BY day
ORDER BY day`,
  },
  {
    question: 'Which apps wait longest for the first content?',
    clickhouse: `SELECT key_id, count() AS requests, quantile(0.95)(first_content_ms) AS p95_ms
FROM sluice_requests WHERE
  at >= now('UTC') - INTERVAL 1 DAY AND first_content_ms IS NOT NULL
GROUP BY key_id
ORDER BY p95_ms DESC
LIMIT 20`,
    postgresql: `SELECT key_id, count(*) AS requests, percentile_cont(0.95) WITHIN GROUP (ORDER BY first_content_ms) AS p95_ms
FROM sluice_requests WHERE
  at >= now() - interval '1 day' AND first_content_ms IS NOT NULL
GROUP BY key_id
ORDER BY p95_ms DESC
LIMIT 20`,
  },
  same(
    'Which errors did clients get most often?',
    `SELECT outcome, upstream, upstream_status, count(*) AS requests
FROM sluice_requests WHERE
  outcome <> 'ok'
GROUP BY outcome, upstream, upstream_status
ORDER BY requests DESC
LIMIT 20`,
  ),
  {
    question: 'When is the traffic highest?',
    clickhouse: `SELECT toHour(start) AS hour, sum(requests) / count(DISTINCT toDate(start)) AS requests_a_day
FROM sluice_usage
GROUP BY hour
ORDER BY hour`,
    postgresql: `SELECT extract(hour FROM start AT TIME ZONE 'UTC') AS hour,
  sum(requests) / count(DISTINCT (start AT TIME ZONE 'UTC')::date) AS requests_a_day
FROM sluice_usage
GROUP BY hour
ORDER BY hour`,
  },
  same(
    'Which requests cost most?',
    `SELECT at, request_id, account_id, model, input_tokens, output_tokens, cost_usd
FROM sluice_requests WHERE
  cost_nano_usd IS NOT NULL
ORDER BY cost_nano_usd DESC
LIMIT 20`,
  ),
]
