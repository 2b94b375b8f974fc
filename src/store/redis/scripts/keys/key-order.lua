-- `append_digest` adds a digest to the end of the order of keys. Before that, the list that earlier versions wrote is
-- moved into the order. KEYS: the account, the order, the list.
local function append_digest(digest)
  redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[1], 'place', 1), digest)
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  for _, digest in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if not redis.call('ZSCORE', KEYS[2], digest) then append_digest(digest) end
  end
  redis.call('DEL', KEYS[3])
end
