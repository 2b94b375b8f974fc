-- Functions that delete values: `removed` one by name, `trimmed` those that have expired or do not fit any more, the
-- first to expire first, 256 at most; it answers with how many. KEYS: values, ends, bytes. 8 bytes of each value
-- are its time of expiry (HEAD_BYTES in shared-cache.ts).
local function removed(name)
  local size = redis.call('HSTRLEN', KEYS[1], name)
  if size == 0 then return end
  redis.call('HDEL', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
  redis.call('DECRBY', KEYS[3], #name + size - 8)
end
local function trimmed(nowMs, entries, bytes)
  for gone = 0, 255 do
    local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    if not first[1] then return gone end
    local held = tonumber(redis.call('GET', KEYS[3]) or '0')
    if tonumber(first[2]) > nowMs and redis.call('ZCARD', KEYS[2]) <= entries and held <= bytes then
      return gone
    end
    removed(first[1])
  end
  return 256
end
