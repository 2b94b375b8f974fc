-- ARGV: when and what, by turns.
redis.call('ZADD', KEYS[1], unpack(ARGV))
return 1
