-- A pointer is made once; it answers with what stands there.
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return {1, ARGV[1]} end
return {0, redis.call('GET', KEYS[1])}
