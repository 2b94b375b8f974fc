-- KEYS: the account, the names of its keys, audit entries. ARGV: digest, the record that was read, the new record,
-- channel, the former name, the new name (empty: none), the digest of the expired key that has it (empty: none), audit
-- entries. Returns 1, or 0: the record has changed since, is revoked, or another key has the name.
local digest, name = ARGV[1], ARGV[6]
if redis.call('HEXISTS', KEYS[1], 'revoked:' .. digest) == 1 then return 0 end
if redis.call('HGET', KEYS[1], 'key:' .. digest) ~= ARGV[2] then return 0 end
local holder = name ~= '' and redis.call('HGET', KEYS[2], name)
if holder and holder ~= digest and holder ~= ARGV[7] then return 0 end
if redis.call('HGET', KEYS[2], ARGV[5]) == digest then redis.call('HDEL', KEYS[2], ARGV[5]) end
if name ~= '' then redis.call('HSET', KEYS[2], name, digest) end
redis.call('HSET', KEYS[1], 'key:' .. digest, ARGV[3])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[4], digest)
leave_audit_entries(8)
return 1
