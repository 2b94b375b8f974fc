-- Removes one record with its audit entries; returns 1, or 0 if there is none. KEYS: heads, expiry times, values, bytes,
-- the hash of audit entries. ARGV: id, audit entries.
local id = ARGV[1]
redis.call('DECRBY', KEYS[4], redis.call('HSTRLEN', KEYS[3], id))
redis.call('HDEL', KEYS[3], id)
redis.call('ZREM', KEYS[2], id)
if redis.call('HDEL', KEYS[1], id) == 0 then return 0 end
leave_audit_entries(2)
return 1
