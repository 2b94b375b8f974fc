-- Removes objects. KEYS: records, expiry times. ARGV: latest expiry time (empty: any), then names; without names those
-- that have expired, 256 at most. Returns their number.
local latest = tonumber(ARGV[1])
local names = {}
for at = 2, #ARGV do names[at - 1] = ARGV[at] end
if #ARGV == 1 then names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', latest, 'LIMIT', 0, 256) end
for _, name in ipairs(names) do
  local record = redis.call('HGET', KEYS[1], name)
  if record then redis.call('ZREM', 'sluice:{objects}:of:' .. cjson.decode(record).accountId, name) end
  redis.call('HDEL', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
end
return #names
