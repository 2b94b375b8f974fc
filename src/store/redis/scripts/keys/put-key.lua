-- KEYS: the account, the order of its keys, the list of an earlier version, what is told. ARGV: digest, id,
-- record, most live keys (empty: no limit), when revoked (empty: it is not), channel, most keys, and what is
-- told.
local account, digest = KEYS[1], ARGV[1]
local live = redis.call('HGET', account, 'live')
if not live then return 'no_account' end

if ARGV[4] ~= '' and tonumber(live) >= tonumber(ARGV[4]) then return 'plan_limit' end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return 'account_full' end
if redis.call('HEXISTS', account, 'key:' .. digest) == 1 then return 'id_taken' end
if redis.call('HEXISTS', account, 'id:' .. ARGV[2]) == 1 then return 'id_taken' end
redis.call('HSET', account, 'key:' .. digest, ARGV[3], 'id:' .. ARGV[2], digest)
if ARGV[5] == '' then
  redis.call('HINCRBY', account, 'live', 1)
else
  redis.call('HSET', account, 'revoked:' .. digest, ARGV[5])
end
redis.call('HINCRBY', account, 'gen', 1)
ordered(digest)
redis.call('PUBLISH', ARGV[6], digest)
leave_audit_entries(8)
return 'created'
