-- KEYS: last use by key. ARGV: keys and times.
for n = 1, #ARGV, 2 do
  local used = redis.call('HGET', KEYS[1], ARGV[n])
  if not used or tonumber(used) < tonumber(ARGV[n + 1]) then
    redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1])
  end
end
return 1
