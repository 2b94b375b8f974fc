-- Moves the list of an earlier version into the order of keys. KEYS: the account, the order, the list.
local function ordered(digest)
  redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[1], 'place', 1), digest)
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  for _, digest in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if not redis.call('ZSCORE', KEYS[2], digest) then ordered(digest) end
  end
  redis.call('DEL', KEYS[3])
end
