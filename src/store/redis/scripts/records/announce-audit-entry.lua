-- KEYS: announced entries. ARGV: time, and account and id of an entry, by turns.
redis.call('ZADD', KEYS[1], unpack(ARGV))
return 1
