-- Makes a pointer once. KEYS: the pointer. ARGV: its value. Answers with 1 or 0, and with what is there.
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return {1, ARGV[1]} end
return {0, redis.call('GET', KEYS[1])}
