-- KEYS: the account, the order of its keys, the list of an earlier version, the names of its keys, audit entries. ARGV:
-- digest, id, record, maximum of live keys (empty: no limit), time of revocation (empty: none), channel, maximum of keys,
-- the name that the key takes (empty: none), the digest of the expired key that has it (empty: none), audit entries.
local account, digest = KEYS[1], ARGV[1]
local live = redis.call('HGET', account, 'live')
if not live then return 'no_account' end

if ARGV[4] ~= '' and tonumber(live) >= tonumber(ARGV[4]) then return 'plan_limit' end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return 'account_full' end
if redis.call('HEXISTS', account, 'key:' .. digest) == 1 then return 'id_taken' end
if redis.call('HEXISTS', account, 'id:' .. ARGV[2]) == 1 then return 'id_taken' end
if ARGV[8] ~= '' then
  local holder = redis.call('HGET', KEYS[4], ARGV[8])
  if holder and holder ~= ARGV[9] then return 'name_taken' end
  redis.call('HSET', KEYS[4], ARGV[8], digest)
end
redis.call('HSET', account, 'key:' .. digest, ARGV[3], 'id:' .. ARGV[2], digest)
if ARGV[5] == '' then
  redis.call('HINCRBY', account, 'live', 1)
else
  redis.call('HSET', account, 'revoked:' .. digest, ARGV[5])
end
redis.call('HINCRBY', account, 'gen', 1)
append_digest(digest)
redis.call('PUBLISH', ARGV[6], digest)
leave_audit_entries(10)
return 'created'
