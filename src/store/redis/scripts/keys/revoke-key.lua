-- KEYS: the account, the names of its keys, audit entries. ARGV: the key's id, the time, channel, audit entries. The revocation and its audit
-- entries are written once. A repetition writes the count of changes again, so that it can wait for the replicas, too.
-- Returns the digest, or nothing: there is no such key.
local digest = redis.call('HGET', KEYS[1], 'id:' .. ARGV[1])
if not digest then return false end
if redis.call('HSETNX', KEYS[1], 'revoked:' .. digest, ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'live', -1)
  free_name(digest)
  leave_audit_entries(4)
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[3], digest)
return digest
