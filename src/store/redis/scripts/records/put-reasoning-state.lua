local name, ends, value = ARGV[1], ARGV[2], ARGV[3]
removed(name)
redis.call('HSET', KEYS[1], name, value)
redis.call('ZADD', KEYS[2], ends, name)
redis.call('INCRBY', KEYS[3], #name + #value - 8)
return trimmed(tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
