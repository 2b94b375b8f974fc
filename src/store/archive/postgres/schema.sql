-- The tables of an archive in PostgreSQL 14 or newer. Statements are separated by empty lines. {name} are parameters
-- of schema-statements.ts. Entries have a partition for each day, sums one for each month.
CREATE TABLE IF NOT EXISTS {prefix}entries (
{entry_columns},
  PRIMARY KEY (at, request_id)
) PARTITION BY RANGE (at)

ALTER TABLE {prefix}entries ADD COLUMN IF NOT EXISTS units text,
ADD COLUMN IF NOT EXISTS batch_id text

CREATE INDEX IF NOT EXISTS {prefix}entries_account ON {prefix}entries (account_id, at)

CREATE INDEX IF NOT EXISTS {prefix}entries_failed ON {prefix}entries (at) WHERE outcome <> 'ok'

CREATE INDEX IF NOT EXISTS {prefix}entries_batch ON {prefix}entries USING brin (batch)

CREATE TABLE IF NOT EXISTS {prefix}hours (
{sum_columns},
  dims uuid GENERATED ALWAYS AS (md5(grain || chr(31) || account_path || chr(31) || key_id || chr(31) || model || chr(31)
    || upstream || chr(31) || ingress || chr(31) || labels || chr(31) || shadow)::uuid) STORED,
  PRIMARY KEY (account_id, start, dims, seal)
) PARTITION BY RANGE (start)

ALTER TABLE {prefix}hours {later_figures}

CREATE INDEX IF NOT EXISTS {prefix}hours_seal ON {prefix}hours USING brin (seal)

CREATE INDEX IF NOT EXISTS {prefix}hours_start ON {prefix}hours (start)

CREATE TABLE IF NOT EXISTS {prefix}archive (name text PRIMARY KEY, value text NOT NULL, version bigint NOT NULL)

CREATE OR REPLACE FUNCTION {prefix}partitions(ahead_days int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $partitions$
DECLARE
  today date := (now() AT TIME ZONE 'UTC')::date;
  first_day date := CASE WHEN ahead_days < 0 THEN today + ahead_days ELSE today - 2 END;
  last_day date := CASE WHEN ahead_days < 0 THEN first_day ELSE today + ahead_days END;
  day date;
  month date;
  part record;
BEGIN
  -- Two gateways may call it at the same time.
  PERFORM pg_advisory_xact_lock(hashtext('{prefix}partitions'));
  IF last_day >= today - {keep_days} THEN
    FOR day IN SELECT generate_series(first_day, last_day, interval '1 day') LOOP
      EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF {prefix}entries FOR VALUES FROM (%L) TO (%L)',
        '{prefix}entries_' || to_char(day, 'YYYYMMDD'), day::timestamptz, (day + 1)::timestamptz);
    END LOOP;
  END IF;
  IF last_day >= today - {sums_days} THEN
    FOR month IN SELECT generate_series(date_trunc('month', first_day), date_trunc('month', last_day), interval '1 month') LOOP
      EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF {prefix}hours FOR VALUES FROM (%L) TO (%L)',
        '{prefix}hours_' || to_char(month, 'YYYYMM'), month::timestamptz, (month + interval '1 month')::timestamptz);
    END LOOP;
  END IF;
  FOR part IN
    SELECT child.relname AS name FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid WHERE
      CASE inhparent
      WHEN '{prefix}entries'::regclass
        THEN to_date(right(child.relname, 8), 'YYYYMMDD') < today - {keep_days}
      WHEN '{prefix}hours'::regclass
        THEN to_date(right(child.relname, 6), 'YYYYMM') + interval '1 month' < today - {sums_days}
      ELSE false END
  LOOP
    EXECUTE format('DROP TABLE %I', part.name);
  END LOOP;
END
$partitions$

REVOKE EXECUTE ON FUNCTION {prefix}partitions(int) FROM PUBLIC

SELECT {prefix}partitions(14)

CREATE OR REPLACE VIEW {prefix}usage AS
SELECT start, grain, {dimensions},
  {figure_sums},
  (sum(cost_nano_usd) / 1000000000.0)::numeric(38, 9) AS cost_usd,
  {later_sums},
  {first_content_sums} AS first_content
FROM {prefix}hours WHERE
  seal <= (SELECT coalesce(max(value::bigint), 0) FROM {prefix}archive WHERE name = 'round')
  AND NOT seal::text = ANY (
    SELECT unnest(string_to_array(value, ',')) FROM {prefix}archive WHERE name = 'abandoned')
GROUP BY start, grain, {dimensions}

CREATE OR REPLACE VIEW {prefix}requests AS
SELECT {first_columns}, (cost_nano_usd / 1000000000.0)::numeric(38, 9) AS cost_usd, {later_columns}
FROM {prefix}entries WHERE
  batch <= (SELECT coalesce(max(value::bigint), 0) FROM {prefix}archive WHERE name = 'confirmed')

COMMENT ON FUNCTION {prefix}partitions(int) IS
  'Makes missing partitions for this number of days ahead, or of one day before, and drops those past their time.'
