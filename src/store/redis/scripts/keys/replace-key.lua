-- KEYS: the account, audit entries. ARGV: digest, the record that was read, the new record, channel, audit entries.
-- Returns 1, or 0: the record has changed since, or is revoked.
if redis.call('HEXISTS', KEYS[1], 'revoked:' .. ARGV[1]) == 1 then return 0 end
if redis.call('HGET', KEYS[1], 'key:' .. ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'key:' .. ARGV[1], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[4], ARGV[1])
leave_audit_entries(5)
return 1
