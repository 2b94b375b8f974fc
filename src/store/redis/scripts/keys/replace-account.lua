-- KEYS: the account, audit entries. ARGV: the record that was read, the new record, the channel (empty: do not publish),
-- audit entries. Returns 1, or 0: the record has changed since.
if redis.call('HGET', KEYS[1], 'account') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'account', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
if ARGV[3] ~= '' then redis.call('PUBLISH', ARGV[3], '*') end
leave_audit_entries(4)
return 1
