-- KEYS: gateways by expiry time, their records. ARGV: id, record, ms until it expires, maximum number of gateways.
-- Returns the records of all that have not expired.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 256)
for n = 1, #gone do
  redis.call('ZREM', KEYS[1], gone[n])
  redis.call('HDEL', KEYS[2], gone[n])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'LIMIT', 0, tonumber(ARGV[4]))
if #ids == 0 then return {} end
return redis.call('HMGET', KEYS[2], unpack(ids))
