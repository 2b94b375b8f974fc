-- Gives a value of a dimension a place. KEYS: the values of the account by the time until which they are kept, the record
-- of the value. ARGV: value, now, most values, time to keep. Returns 1 with a place or 0 without, and when it was ended.
local now, most, keep = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ends and tonumber(ends) > now then return { 1, redis.call('HGET', KEYS[2], 'ended') or '' } end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
if redis.call('ZCARD', KEYS[1]) >= most then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])
  if redis.call('ZCARD', KEYS[1]) >= most then return { 0, '' } end
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + keep), ARGV[1])
if redis.call('PTTL', KEYS[1]) < 1.5 * keep then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', 2 * keep)) end
return { 1, '' }
