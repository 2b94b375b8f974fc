-- Creates a pointer unless it exists. KEYS: the pointer. ARGV: its value. Returns 1 or 0, and the value.
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return {1, ARGV[1]} end
return {0, redis.call('GET', KEYS[1])}
