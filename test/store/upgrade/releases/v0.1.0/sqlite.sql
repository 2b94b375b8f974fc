PRAGMA application_id = 1397511497;
PRAGMA user_version = 6;
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE accounts (
  place INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL UNIQUE,
  record TEXT NOT NULL
);
CREATE TABLE keys (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT NOT NULL UNIQUE,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  record TEXT NOT NULL
);
CREATE TABLE changes (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT
);
CREATE TABLE trail (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE passes (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  account_id TEXT NOT NULL,
  expires_at_ms REAL NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE attempts (
  name TEXT PRIMARY KEY,
  full_at_ms REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE shelf (
  name TEXT PRIMARY KEY,
  expires_at_ms REAL NOT NULL,
  bytes INTEGER NOT NULL,
  value BLOB NOT NULL
);
CREATE TABLE sizes (
  name TEXT PRIMARY KEY,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE limits (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  requests REAL NOT NULL,
  requests_at_ms REAL NOT NULL,
  tokens REAL NOT NULL,
  tokens_at_ms REAL NOT NULL,
  places INTEGER NOT NULL,
  day INTEGER NOT NULL,
  day_spent REAL NOT NULL,
  day_reserved REAL NOT NULL,
  month INTEGER NOT NULL,
  month_spent REAL NOT NULL,
  month_reserved REAL NOT NULL,
  UNIQUE (account_id, subject)
);
CREATE TABLE reservations (
  id INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  until_ms REAL NOT NULL,
  holds TEXT NOT NULL,
  entry TEXT NOT NULL
);
CREATE TABLE ledger_entries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  request_id TEXT NOT NULL UNIQUE,
  at_ms INTEGER NOT NULL,
  duration_ms REAL NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model_asked TEXT,
  model_answered TEXT,
  model TEXT NOT NULL,
  upstream TEXT,
  dialect TEXT,
  attempts INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  status INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  finish_reason TEXT,
  source TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cache_read_tokens INTEGER,
  cache_write_tokens INTEGER,
  cache_write_1h_tokens INTEGER,
  reasoning_tokens INTEGER,
  cost_nano_usd INTEGER,
  tokens_after_disconnect INTEGER NOT NULL,
  losses TEXT NOT NULL,
  generation INTEGER NOT NULL,
  first_content_ms REAL,
  overhead_ms REAL,
  hops TEXT NOT NULL,
  ingress TEXT,
  error_message TEXT,
  "limit" TEXT,
  upstream_status INTEGER,
  upstream_request_id TEXT,
  attempted TEXT,
  shadow_of TEXT,
  labels TEXT,
  client_request_id TEXT,
  attempt_ms TEXT,
  retry_after_seconds INTEGER,
  price_version TEXT
);
CREATE TABLE entry_places (
  owner TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (owner, at_ms, seq)
) WITHOUT ROWID;
CREATE TABLE usage_hours (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  first_content_0 INTEGER NOT NULL,
  first_content_1 INTEGER NOT NULL,
  first_content_2 INTEGER NOT NULL,
  first_content_3 INTEGER NOT NULL,
  first_content_4 INTEGER NOT NULL,
  first_content_5 INTEGER NOT NULL,
  first_content_6 INTEGER NOT NULL,
  first_content_7 INTEGER NOT NULL,
  first_content_8 INTEGER NOT NULL,
  first_content_9 INTEGER NOT NULL,
  first_content_10 INTEGER NOT NULL,
  first_content_11 INTEGER NOT NULL,
  first_content_12 INTEGER NOT NULL,
  errors_client INTEGER NOT NULL,
  errors_limits INTEGER NOT NULL,
  errors_gateway INTEGER NOT NULL,
  errors_provider INTEGER NOT NULL,
  PRIMARY KEY (start_ms, account_id, key_id, model)
) WITHOUT ROWID;
CREATE TABLE usage_days (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  first_content_0 INTEGER NOT NULL,
  first_content_1 INTEGER NOT NULL,
  first_content_2 INTEGER NOT NULL,
  first_content_3 INTEGER NOT NULL,
  first_content_4 INTEGER NOT NULL,
  first_content_5 INTEGER NOT NULL,
  first_content_6 INTEGER NOT NULL,
  first_content_7 INTEGER NOT NULL,
  first_content_8 INTEGER NOT NULL,
  first_content_9 INTEGER NOT NULL,
  first_content_10 INTEGER NOT NULL,
  first_content_11 INTEGER NOT NULL,
  first_content_12 INTEGER NOT NULL,
  errors_client INTEGER NOT NULL,
  errors_limits INTEGER NOT NULL,
  errors_gateway INTEGER NOT NULL,
  errors_provider INTEGER NOT NULL,
  PRIMARY KEY (start_ms, account_id, key_id, model)
) WITHOUT ROWID;
CREATE TABLE days_mark (
  start_ms INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  model TEXT NOT NULL
);
INSERT INTO meta VALUES ('counted_seq', '7');
INSERT INTO meta VALUES ('days_changed', '597ed569-9ef3-4861-bbcd-73ef39c4da22');
INSERT INTO meta VALUES ('limits_writer', 'f4522942-c894-4004-ba95-fabfe5810700');
INSERT INTO meta VALUES ('probe', '21954 15388480653007');
INSERT INTO meta VALUES ('proof', '1795710991197');
INSERT INTO meta VALUES ('store_id', 'GhkhdNn8OFVB');
INSERT INTO accounts VALUES (1, 'acc_tRbltnJvnZZlnd7N', 'upgrade@example.com', '{"v":1,"id":"acc_tRbltnJvnZZlnd7N","email":"upgrade@example.com","plan":"pro","role":"owner","passwordHash":"$argon2id$v=19$m=19456,t=2,p=1$T3pmFQBzD/r7qWN/BzQh2Q$mQvts14AKdtglb59qHaRmwAXMLdvEHY0Cgzci6Zvi/c","disabled":false,"createdAtMs":1795710984664,"order":1,"liveKeys":3}');
INSERT INTO keys VALUES (1, 'abcaeb37e5c929a3682edc1735540481c8c69af6670d7640e1d827b01c854e8c', 'key_4JazOgg7VUY8Jq8E', 'acc_tRbltnJvnZZlnd7N', '{"v":3,"id":"key_4JazOgg7VUY8Jq8E","accountId":"acc_tRbltnJvnZZlnd7N","name":"web","digest":"abcaeb37e5c929a3682edc1735540481c8c69af6670d7640e1d827b01c854e8c","prefix":"sk_fVWDf","lastFour":"TTvZ","createdAtMs":1795710985756,"labels":{"team":"shop"}}');
INSERT INTO keys VALUES (2, 'd281cb9ce8143d5b4fcbdd5b6fff2540724036a1ec730d297ecdb8946918c7ef', 'key_9MXSmWKbgJpuBrxn', 'acc_tRbltnJvnZZlnd7N', '{"v":2,"id":"key_9MXSmWKbgJpuBrxn","accountId":"acc_tRbltnJvnZZlnd7N","name":"spent","digest":"d281cb9ce8143d5b4fcbdd5b6fff2540724036a1ec730d297ecdb8946918c7ef","prefix":"sk_cOatv","lastFour":"12tq","createdAtMs":1795710986785,"limits":{"nanoUsdPerMonth":6000000}}');
INSERT INTO keys VALUES (3, '209e42a2893a81475a6902fd9ef33189025a6ad7bb731b29d03e322d410c6648', 'key_WsJCLpB8o3lg4tdv', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"key_WsJCLpB8o3lg4tdv","accountId":"acc_tRbltnJvnZZlnd7N","name":"revoked","digest":"209e42a2893a81475a6902fd9ef33189025a6ad7bb731b29d03e322d410c6648","prefix":"sk_IdS9G","lastFour":"lp7u","createdAtMs":1795710987840,"revokedAtMs":1795710993654}');
INSERT INTO keys VALUES (4, '82254ec624b6ca47e0fce375de66f128a1b8e855922b050b57d424e0b75e7817', 'key_fojZc5fZBliSyGv0', 'acc_tRbltnJvnZZlnd7N', '{"v":2,"id":"key_fojZc5fZBliSyGv0","accountId":"acc_tRbltnJvnZZlnd7N","name":"busy","digest":"82254ec624b6ca47e0fce375de66f128a1b8e855922b050b57d424e0b75e7817","prefix":"sk_43MVm","lastFour":"vTxE","createdAtMs":1795710989023,"limits":{"concurrent":1}}');
INSERT INTO changes VALUES (1, 'abcaeb37e5c929a3682edc1735540481c8c69af6670d7640e1d827b01c854e8c');
INSERT INTO changes VALUES (2, 'd281cb9ce8143d5b4fcbdd5b6fff2540724036a1ec730d297ecdb8946918c7ef');
INSERT INTO changes VALUES (3, '209e42a2893a81475a6902fd9ef33189025a6ad7bb731b29d03e322d410c6648');
INSERT INTO changes VALUES (4, '82254ec624b6ca47e0fce375de66f128a1b8e855922b050b57d424e0b75e7817');
INSERT INTO changes VALUES (5, '209e42a2893a81475a6902fd9ef33189025a6ad7bb731b29d03e322d410c6648');
INSERT INTO trail VALUES ('01a218b7-21d8-7261-a616-c03f695994b9', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-21d8-7261-a616-c03f695994b9","atMs":1795710984664,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"account.create","target":"acc_tRbltnJvnZZlnd7N","detail":"owner, plan pro"}');
INSERT INTO trail VALUES ('01a218b7-261c-7855-a1f5-326c3ea79fd9', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-261c-7855-a1f5-326c3ea79fd9","atMs":1795710985756,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"key.create","target":"key_4JazOgg7VUY8Jq8E","detail":"web (sk_fVWDf…TTvZ)"}');
INSERT INTO trail VALUES ('01a218b7-2a21-7537-ada0-357eb7c5339e', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-2a21-7537-ada0-357eb7c5339e","atMs":1795710986785,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"key.create","target":"key_9MXSmWKbgJpuBrxn","detail":"spent (sk_cOatv…12tq)"}');
INSERT INTO trail VALUES ('01a218b7-2e40-7df0-ad84-d3d4d91b7480', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-2e40-7df0-ad84-d3d4d91b7480","atMs":1795710987840,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"key.create","target":"key_WsJCLpB8o3lg4tdv","detail":"revoked (sk_IdS9G…lp7u)"}');
INSERT INTO trail VALUES ('01a218b7-32e0-7892-9c1e-9b2fd8838844', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-32e0-7892-9c1e-9b2fd8838844","atMs":1795710989024,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"key.create","target":"key_fojZc5fZBliSyGv0","detail":"busy (sk_43MVm…vTxE)"}');
INSERT INTO trail VALUES ('01a218b7-44f1-732a-854a-766a7fe602ec', 'acc_tRbltnJvnZZlnd7N', '{"v":1,"id":"01a218b7-44f1-732a-854a-766a7fe602ec","atMs":1795710993649,"actor":"command line (root)","address":null,"accountId":"acc_tRbltnJvnZZlnd7N","action":"key.revoke","target":"key_WsJCLpB8o3lg4tdv","detail":"revoked (sk_IdS9G…lp7u)"}');
INSERT INTO passes VALUES ('bca0e7b55ed57dee5622d6a688faa28646d9821366c2407aeb76835194bb4054', 'set-up', '', 1795797390308.0, '{"v":1,"id":"bca0e7b55ed57dee5622d6a688faa28646d9821366c2407aeb76835194bb4054","kind":"set-up","accountId":"","expiresAtMs":1795797390308,"text":""}');
INSERT INTO sizes VALUES ('shelf', 0, 0);
INSERT INTO sizes VALUES ('trail', 6, 0);
INSERT INTO limits VALUES (1, 'acc_tRbltnJvnZZlnd7N', 'key:key_9MXSmWKbgJpuBrxn;own', 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0.0, 682, 4506750.0, 0.0);
INSERT INTO limits VALUES (2, 'acc_tRbltnJvnZZlnd7N', 'key:key_fojZc5fZBliSyGv0;own', 0.0, 0.0, 0.0, 0.0, 1, 0, 0.0, 0.0, 0, 0.0, 0.0);
INSERT INTO reservations VALUES (1, '01a218b7-45b1-7233-9340-673fe711cf9f', 1795711053842.0, '[["acc_tRbltnJvnZZlnd7N","key:key_fojZc5fZBliSyGv0;own",null,0,1,null,0,null,0]]', '[2,"01a218b7-45b1-7233-9340-673fe711cf9f",1795710993841,0,"acc_tRbltnJvnZZlnd7N","key_fojZc5fZBliSyGv0","gpt-5.4-mini","gpt-5.4-mini","gpt-5.4-mini","openai","openai-chat",1,1,500,"lost",null,[259,128000],"estimated",576194250,0,[],1,[],null,null,null,null,null,null,null,null,null,null,null,"d765cd43a57c"]');
INSERT INTO ledger_entries VALUES (1, '01a218b7-38ea-7c26-b625-1a27d2e4b6a2', 1795710990570, 52.646, 'acc_tRbltnJvnZZlnd7N', 'key_4JazOgg7VUY8Jq8E', 'gpt-5.4-mini', 'gpt-5.4-mini', 'gpt-5.4-mini', 'openai', 'openai-chat', 1, 0, 200, 'ok', 'stop', 'reported', 4, 40, 0, NULL, NULL, 24, 183000, 0, '[]', 1, 52.646, 18.133, '[5.383,5.209,1.307,null,9.056,19.435,4.142,null]', 'chat', NULL, NULL, 200, 'req_emulated000000000001', 'openai:ok', NULL, 'team=shop', NULL, '[29.304]', NULL, 'd765cd43a57c');
INSERT INTO ledger_entries VALUES (2, '01a218b7-394b-7530-852b-43e75553fcb5', 1795710990667, 12.045, 'acc_tRbltnJvnZZlnd7N', 'key_4JazOgg7VUY8Jq8E', 'gpt-5.4-mini', 'gpt-5.4-mini', 'gpt-5.4-mini', 'openai', 'openai-chat', 1, 1, 200, 'ok', 'stop', 'reported', 4, 40, 0, NULL, NULL, 24, 183000, 0, '[]', 1, 12.045, 3.86, '[0.28,2.216,0.097,null,0.365,5.605,2.386,null]', 'chat', NULL, NULL, 200, 'req_emulated000000000002', 'openai:ok', NULL, 'team=shop', NULL, '[5.97]', NULL, 'd765cd43a57c');
INSERT INTO ledger_entries VALUES (3, '01a218b7-396b-73da-9a25-cdabb4de847f', 1795710990699, 21.151, 'acc_tRbltnJvnZZlnd7N', 'key_4JazOgg7VUY8Jq8E', 'gpt-5.4-mini', 'gpt-5.4-mini', 'gpt-5.4-mini', 'openai', 'openai-chat', 1, 0, 502, 'upstream_failed', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, '[]', 1, NULL, 1.381, '[0.197,1.076,0.065,null,0.253,15.527,0.133,null]', 'chat', 'Emulated failure with status 500.', NULL, 500, 'req_emulated000000000003', 'openai:upstream_failed', NULL, 'team=shop', NULL, '[18.694]', NULL, NULL);
INSERT INTO ledger_entries VALUES (4, '01a218b7-398a-7800-9d4d-422255dfb88b', 1795710990730, 23.925, 'acc_tRbltnJvnZZlnd7N', 'key_9MXSmWKbgJpuBrxn', 'gpt-5.4-mini', 'gpt-5.4-mini', 'gpt-5.4-mini', 'openai', 'openai-chat', 1, 0, 200, 'ok', 'length', 'reported', 9, 1000, 0, NULL, NULL, 24, 4506750, 0, '[]', 1, 23.925, 13.714, '[0.821,0.542,0.048,6.277,0.228,9.356,0.54,null]', 'chat', NULL, NULL, 200, 'req_emulated000000000004', 'openai:ok', NULL, NULL, NULL, '[9.669]', NULL, 'd765cd43a57c');
INSERT INTO ledger_entries VALUES (5, '01a218b7-3b7a-78c4-9305-f9c7dab7ad40', 1795710991225, 19.537, 'acc_tRbltnJvnZZlnd7N', 'key_9MXSmWKbgJpuBrxn', 'gpt-5.4-mini', NULL, 'gpt-5.4-mini', 'openai', 'openai-chat', 0, 0, 429, 'rate_limited', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, '[]', 1, NULL, 13.696, '[0.169,5.841,0.069,0.605,null,null,null,null]', 'chat', 'The budget of $0.006 a month for this key leaves $0.00149325, and this request may cost up to $0.004692; try again in 372209 s, or lower max_completion_tokens.', 'key:key_9MXSmWKbgJpuBrxn;own usd_per_month', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 372209, NULL);
INSERT INTO ledger_entries VALUES (6, '01a218b7-3bb6-72b7-83ad-94cb6642ac1a', 1795710991286, 59.749, 'acc_tRbltnJvnZZlnd7N', 'key_WsJCLpB8o3lg4tdv', 'gpt-5.4-mini', 'gpt-5.4-mini', 'gpt-5.4-mini', 'openai', 'openai-chat', 1, 0, 200, 'ok', 'stop', 'reported', 4, 40, 0, NULL, NULL, 24, 183000, 0, '[]', 1, 59.749, 18.67, '[3.351,8.16,14.578,null,0.384,32.444,0.328,null]', 'chat', NULL, NULL, 200, 'req_emulated000000000005', 'openai:ok', NULL, NULL, NULL, '[32.919]', NULL, 'd765cd43a57c');
INSERT INTO ledger_entries VALUES (7, '01a218b7-45ef-7e48-9387-deabd294ee5c', 1795710993904, 2.065, 'acc_tRbltnJvnZZlnd7N', 'key_fojZc5fZBliSyGv0', 'gpt-5.4-mini', NULL, 'gpt-5.4-mini', 'openai', 'openai-chat', 0, 0, 429, 'rate_limited', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, '[]', 1, NULL, 1.468, '[0.225,0.597,0.095,0.526,null,null,null,null]', 'chat', 'The limit of 1 request at the same time for this key is reached; try again when one has ended.', 'key:key_fojZc5fZBliSyGv0;own concurrent', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710990570, 1);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710990667, 2);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710990699, 3);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710990730, 4);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710991225, 5);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710991286, 6);
INSERT INTO entry_places VALUES ('acc_tRbltnJvnZZlnd7N', 1795710993904, 7);
INSERT INTO entry_places VALUES ('key_4JazOgg7VUY8Jq8E', 1795710990570, 1);
INSERT INTO entry_places VALUES ('key_4JazOgg7VUY8Jq8E', 1795710990667, 2);
INSERT INTO entry_places VALUES ('key_4JazOgg7VUY8Jq8E', 1795710990699, 3);
INSERT INTO entry_places VALUES ('key_9MXSmWKbgJpuBrxn', 1795710990730, 4);
INSERT INTO entry_places VALUES ('key_9MXSmWKbgJpuBrxn', 1795710991225, 5);
INSERT INTO entry_places VALUES ('key_WsJCLpB8o3lg4tdv', 1795710991286, 6);
INSERT INTO entry_places VALUES ('key_fojZc5fZBliSyGv0', 1795710993904, 7);
INSERT INTO usage_hours VALUES (1795708800000, '', '', 'gpt-5.4-mini', 7, 3, 21, 1120, 0, 0, 96, 5055750, 0, 0, 1795710993904, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);
INSERT INTO usage_hours VALUES (1795708800000, 'acc_tRbltnJvnZZlnd7N', '*', 'gpt-5.4-mini', 7, 3, 21, 1120, 0, 0, 96, 5055750, 0, 0, 1795710993904, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);
INSERT INTO usage_hours VALUES (1795708800000, 'acc_tRbltnJvnZZlnd7N', 'key_4JazOgg7VUY8Jq8E', 'gpt-5.4-mini', 3, 1, 8, 80, 0, 0, 48, 366000, 0, 0, 1795710990699, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
INSERT INTO usage_hours VALUES (1795708800000, 'acc_tRbltnJvnZZlnd7N', 'key_9MXSmWKbgJpuBrxn', 'gpt-5.4-mini', 2, 1, 9, 1000, 0, 0, 24, 4506750, 0, 0, 1795710991225, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0);
INSERT INTO usage_hours VALUES (1795708800000, 'acc_tRbltnJvnZZlnd7N', 'key_WsJCLpB8o3lg4tdv', 'gpt-5.4-mini', 1, 0, 4, 40, 0, 0, 24, 183000, 0, 0, 1795710991286, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_hours VALUES (1795708800000, 'acc_tRbltnJvnZZlnd7N', 'key_fojZc5fZBliSyGv0', 'gpt-5.4-mini', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1795710993904, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0);
INSERT INTO days_mark VALUES (0, '', '', '');
INSERT INTO sqlite_sequence VALUES ('keys', 4);
INSERT INTO sqlite_sequence VALUES ('changes', 5);
INSERT INTO sqlite_sequence VALUES ('ledger_entries', 7);
CREATE INDEX keys_by_account ON keys (account_id, place);
CREATE INDEX trail_by_account ON trail (account_id, id);
CREATE INDEX passes_by_account ON passes (account_id, kind);
CREATE INDEX passes_by_end ON passes (expires_at_ms);
CREATE INDEX attempts_by_end ON attempts (full_at_ms);
CREATE INDEX shelf_by_end ON shelf (expires_at_ms);
CREATE TRIGGER shelf_added AFTER INSERT ON shelf BEGIN
  UPDATE sizes SET entries = entries + 1, bytes = bytes + new.bytes WHERE name = 'shelf';
END;
CREATE TRIGGER shelf_removed AFTER DELETE ON shelf BEGIN
  UPDATE sizes SET entries = entries - 1, bytes = bytes - old.bytes WHERE name = 'shelf';
END;
CREATE TRIGGER trail_added AFTER INSERT ON trail BEGIN
  UPDATE sizes SET entries = entries + 1 WHERE name = 'trail';
END;
CREATE TRIGGER trail_removed AFTER DELETE ON trail BEGIN
  UPDATE sizes SET entries = entries - 1 WHERE name = 'trail';
END;
CREATE INDEX entries_by_time ON ledger_entries (at_ms);
CREATE INDEX entries_failed ON ledger_entries (at_ms) WHERE outcome <> 'ok';
CREATE VIEW entries AS SELECT
  request_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS at, duration_ms,
  account_id, key_id, model_asked, model_answered, model, upstream, dialect, attempts, stream, status,
  outcome, finish_reason, source, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
  cache_write_1h_tokens, reasoning_tokens, cost_nano_usd, cost_nano_usd / 1e9 AS cost_usd,
  tokens_after_disconnect, losses, generation, first_content_ms, overhead_ms, ingress, error_message,
  "limit", upstream_status, upstream_request_id, attempted, shadow_of, labels, client_request_id, price_version,
  at_ms
FROM ledger_entries;
CREATE INDEX usage_days_by_key
ON usage_days (account_id, key_id, start_ms, model, requests, cost_nano_usd, unpriced);
CREATE VIEW usage_pending AS SELECT *, start_ms / 86400000 * 86400000 AS day_ms FROM usage_hours WHERE
(start_ms, account_id, key_id, model) > (SELECT start_ms, account_id, key_id, model FROM days_mark);
