-- KEYS: the account, what is told. ARGV: the key's id, when, channel, and what is told. The mark is made and
-- told once; the count of changes is written again, so that a repetition can wait for the replicas, too.
local digest = redis.call('HGET', KEYS[1], 'id:' .. ARGV[1])
if not digest then return false end
if redis.call('HSETNX', KEYS[1], 'revoked:' .. digest, ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'live', -1)
  leave_audit_entries(4)
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[3], digest)
return digest
