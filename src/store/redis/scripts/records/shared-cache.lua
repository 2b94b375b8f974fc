-- Stores a value if there is one, then deletes values that have expired or do not fit, the first to expire first,
-- 256 at most. KEYS: values, expiry times, bytes. ARGV: now, maximum of values and of bytes, then perhaps name, expiry
-- time, value, and 'kept' if a value that has not expired stays. The first 8 bytes of a value are its expiry time (HEAD_BYTES in shared-state.ts).
-- Returns the number of deleted values.
local function delete(name)
  local size = redis.call('HSTRLEN', KEYS[1], name)
  if size == 0 then return end
  redis.call('HDEL', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
  redis.call('DECRBY', KEYS[3], #name + size - 8)
end
local now, max_values, max_bytes, name, value = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[6]
local is_kept = name and ARGV[7] == 'kept' and tonumber(redis.call('ZSCORE', KEYS[2], name) or now) > now
if name and not is_kept then
  delete(name)
  redis.call('HSET', KEYS[1], name, value)
  redis.call('ZADD', KEYS[2], ARGV[5], name)
  redis.call('INCRBY', KEYS[3], #name + #value - 8)
end
for deleted = 0, 255 do
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if not first[1] then return deleted end
  local bytes = tonumber(redis.call('GET', KEYS[3]) or '0')
  if tonumber(first[2]) > now and redis.call('ZCARD', KEYS[2]) <= max_values and bytes <= max_bytes then
    return deleted
  end
  delete(first[1])
end
return 256
