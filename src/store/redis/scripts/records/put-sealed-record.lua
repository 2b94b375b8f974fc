-- Stores a record, then deletes records that do not fit, the first to expire first, 256 at most. KEYS: heads, expiry
-- times, values, bytes. ARGV: maximum of bytes, id, expiry time, head, value.
local function delete(id)
  redis.call('DECRBY', KEYS[4], redis.call('HSTRLEN', KEYS[3], id))
  redis.call('HDEL', KEYS[1], id)
  redis.call('HDEL', KEYS[3], id)
  redis.call('ZREM', KEYS[2], id)
end
local id = ARGV[2]
delete(id)
redis.call('HSET', KEYS[1], id, ARGV[4])
redis.call('HSET', KEYS[3], id, ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[3], id)
redis.call('INCRBY', KEYS[4], #ARGV[5])
for deleted = 0, 255 do
  if tonumber(redis.call('GET', KEYS[4]) or '0') <= tonumber(ARGV[1]) then return deleted end
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)
  if not first[1] then return deleted end
  delete(first[1])
end
return 256
