-- KEYS: the sum, the index of sums. ARGV: its start, then names and values of counters.
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1])
for n = 2, #ARGV, 2 do
  if ARGV[n + 1] == '0' then redis.call('HDEL', KEYS[1], ARGV[n])
  else redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
end
return 1
