-- Stores objects of one account. KEYS: records, expiry times, the account's expiry times, and those of another account
-- that may lose an expired object (only for a Cluster). ARGV: now, account, maximum of objects of the account, maximum of
-- objects, then for each object its name, record and expiry time. An object of another account that has not expired stays.
-- Removes up to 256 surplus objects of the account, the first to expire first.
local now, account = tonumber(ARGV[1]), ARGV[2]
local function of(owner) return 'sluice:{objects}:of:' .. owner end
for at = 5, #ARGV, 3 do
  local name, record, ends = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local before = redis.call('HGET', KEYS[1], name)
  local owner = before and cjson.decode(before).accountId or account
  local is_over = before and tonumber(redis.call('ZSCORE', KEYS[2], name) or '0') <= now
  if owner == account or is_over then
    if owner ~= account then redis.call('ZREM', of(owner), name) end
    redis.call('HSET', KEYS[1], name, record)
    redis.call('ZADD', KEYS[2], ends, name)
    redis.call('ZADD', KEYS[3], ends, name)
  end
end
local surplus = math.max(redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[3]), redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4]))
if surplus <= 0 then return 0 end
local first = redis.call('ZRANGE', KEYS[3], 0, math.min(surplus, 256) - 1)
for _, name in ipairs(first) do
  redis.call('HDEL', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
  redis.call('ZREM', KEYS[3], name)
end
return #first
