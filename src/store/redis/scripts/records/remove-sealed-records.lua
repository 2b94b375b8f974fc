-- Removes records. KEYS: heads, expiry times, values, bytes. ARGV: latest expiry time (empty: any), then ids; without ids
-- those that have expired, 256 at most. Returns their number.
local ids = {}
for at = 2, #ARGV do ids[at - 1] = ARGV[at] end
if #ARGV == 1 then ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 256) end
local removed = 0
for _, id in ipairs(ids) do
  redis.call('DECRBY', KEYS[4], redis.call('HSTRLEN', KEYS[3], id))
  removed = removed + redis.call('HDEL', KEYS[1], id)
  redis.call('HDEL', KEYS[3], id)
  redis.call('ZREM', KEYS[2], id)
end
return removed
