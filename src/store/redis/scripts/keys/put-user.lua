-- Creates or replaces a user. KEYS: the user, audit entries. ARGV: the record that was read (empty: none), the new record,
-- audit entries. Returns 1, or 0: the record has changed since.
if (redis.call('HGET', KEYS[1], 'user') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'user', ARGV[2])
leave_audit_entries(3)
return 1
