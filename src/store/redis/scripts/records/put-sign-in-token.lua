-- Adds a token, or replaces one unless it has changed. KEYS: records, expiry times, owners. ARGV: id, the record that was
-- read (empty: none), the new record, expiry time, owner. Returns 1, or 0: the record has changed since.
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('ZADD', KEYS[3], 0, ARGV[5])
return 1
