-- Changes a store of version 4 to version 5: reservations have a number, and their holds one list for each subject.

ALTER TABLE reservations RENAME TO reservations_4;
CREATE TABLE reservations (
  id INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  until_ms REAL NOT NULL,
  holds TEXT NOT NULL,
  entry TEXT NOT NULL
);
INSERT INTO reservations (request_id, until_ms, holds, entry)
SELECT request_id, until_ms, CASE WHEN json_valid(holds) THEN (
  SELECT json_group_array(json_array(
    account_id, subject, tokens, per_minute, slots, day_nano_usd, day, month_nano_usd, month
  )) FROM (
    SELECT value ->> 1 AS account_id, value ->> 2 AS subject,
      sum(CASE value ->> 0 WHEN 'tokens' THEN value ->> 3 END) AS tokens,
      max(CASE value ->> 0 WHEN 'tokens' THEN value ->> 4 ELSE 0 END) AS per_minute,
      sum(value ->> 0 = 'concurrent') AS slots,
      sum(CASE value ->> 0 WHEN 'usd_day' THEN value ->> 3 END) AS day_nano_usd,
      max(CASE value ->> 0 WHEN 'usd_day' THEN value ->> 4 ELSE 0 END) AS day,
      sum(CASE value ->> 0 WHEN 'usd_month' THEN value ->> 3 END) AS month_nano_usd,
      max(CASE value ->> 0 WHEN 'usd_month' THEN value ->> 4 ELSE 0 END) AS month
    FROM json_each(holds) GROUP BY 1, 2
  )
) ELSE holds END, entry FROM reservations_4;
DROP TABLE reservations_4;
CREATE INDEX reservations_by_end ON reservations (until_ms);
