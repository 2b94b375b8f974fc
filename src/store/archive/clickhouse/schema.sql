-- The tables of an archive in ClickHouse. Statements are separated by empty lines. {name} are parameters of
-- schema-statements.ts; {{name}} is a macro of the server. Comments of columns come from columns.ts.
CREATE TABLE IF NOT EXISTS {prefix}entries{local}{on_cluster} (
{entry_columns},
  INDEX by_id request_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_batch batch TYPE minmax GRANULARITY 1
) ENGINE = {entries_engine}
PARTITION BY toYYYYMM(at) ORDER BY (account_id, at, request_id)
TTL toDateTime(at) + INTERVAL {keep_days} DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
COMMENT {means_of_entries}

ALTER TABLE {prefix}entries{local}{on_cluster} {later_entry_columns}

CREATE TABLE IF NOT EXISTS {prefix}hours{local}{on_cluster} (
{sum_columns},
  INDEX by_seal seal TYPE minmax GRANULARITY 1
) ENGINE = {hours_engine}
PARTITION BY toYYYYMM(start)
ORDER BY (account_id, start, key_id, model, upstream, ingress, labels, account_path, shadow, grain, seal)
TTL start + INTERVAL {sums_days} DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
COMMENT {means_of_hours}

ALTER TABLE {prefix}hours{local}{on_cluster} {later_figures}

CREATE TABLE IF NOT EXISTS {prefix}archive{on_cluster} (
  name String COMMENT {means_of_name},
  value String COMMENT {means_of_value},
  version UInt64 COMMENT {means_of_version}
) ENGINE = {archive_engine} ORDER BY name
COMMENT {means_of_archive}

CREATE OR REPLACE VIEW {prefix}usage{on_cluster} AS
SELECT start, grain, {dimensions},
  {figure_sums},
  sumForEach(cells.first_content) AS first_content,
  CAST(sum(cells.cost_nano_usd) AS Decimal(38, 9)) / CAST(1000000000 AS Decimal(38, 0)) AS cost_usd,
  {later_sums}
FROM {prefix}hours AS cells WHERE
  seal <= (SELECT toUInt64(max(toUInt64OrZero(value))) FROM {prefix}archive FINAL WHERE name = 'round')
  AND NOT has((SELECT splitByChar(',', any(value)) FROM {prefix}archive FINAL WHERE name = 'abandoned'), toString(seal))
GROUP BY start, grain, {dimensions}

CREATE OR REPLACE VIEW {prefix}requests{on_cluster} AS
SELECT *, CAST(cost_nano_usd AS Nullable(Decimal(38, 9))) / CAST(1000000000 AS Decimal(38, 0)) AS cost_usd
FROM {prefix}entries FINAL WHERE
  batch <= (SELECT toUInt64(max(toUInt64OrZero(value))) FROM {prefix}archive FINAL WHERE name = 'confirmed')

ALTER TABLE {prefix}usage{on_cluster} MODIFY COMMENT {means_of_usage}

ALTER TABLE {prefix}usage{on_cluster} {usage_comments}

ALTER TABLE {prefix}requests{on_cluster} MODIFY COMMENT {means_of_requests}

ALTER TABLE {prefix}requests{on_cluster} {requests_comments}
