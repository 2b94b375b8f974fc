-- ARGV: id, record, account, maximum of entries of the account, maximum of entries. Removes up to ten surplus entries:
-- a new version may have lower maxima.
local function remove(id, account)
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZREM', KEYS[3], account .. '\0' .. id)
end
local own = ARGV[3] .. '\0'
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], 0, own .. ARGV[1])
local first, last = '[' .. own, '[' .. own .. '\255'
local surplus = redis.call('ZLEXCOUNT', KEYS[3], first, last) - tonumber(ARGV[4])
if surplus > 0 then
  local most = math.min(surplus, 10)
  for _, owner in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], first, last, 'LIMIT', 0, most)) do
    remove(string.sub(owner, #own + 1), ARGV[3])
  end
end
surplus = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[5])
if surplus > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, math.min(surplus, 10) - 1)) do
    local text = redis.call('HGET', KEYS[1], id)
    remove(id, text and cjson.decode(text).accountId or '')
  end
end
return 1
