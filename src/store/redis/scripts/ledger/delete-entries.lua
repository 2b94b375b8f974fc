-- KEYS: entries, ids, order, order of all. ARGV: for each entry its request id and its two members.
for at = 1, #ARGV, 3 do
  local location = redis.call('HGET', KEYS[2], ARGV[at])
  if location then redis.call('XDEL', KEYS[1], (string.match(location, '^%S+'))) end
  redis.call('HDEL', KEYS[2], ARGV[at])
  redis.call('ZREM', KEYS[3], ARGV[at + 1])
  redis.call('ZREM', KEYS[4], ARGV[at + 2])
end
return 1
