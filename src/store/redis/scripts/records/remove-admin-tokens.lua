-- Removes tokens. KEYS: records by id, ids by digest, order. ARGV: id and digest of each, by turns. Returns 1.
for at = 1, #ARGV, 2 do
  redis.call('HDEL', KEYS[1], ARGV[at])
  redis.call('HDEL', KEYS[2], ARGV[at + 1])
  redis.call('ZREM', KEYS[3], ARGV[at])
end
return 1
