-- Adds an entry to the audit trail, whose keys are the first three. Removes up to ten surplus entries: a new version may
-- have lower maxima.
local function remove_audit_entry(id, account)
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZREM', KEYS[3], account .. '\0' .. id)
end
local function add_audit_entry(id, record, account, maximum_of_account, maximum)
  local own = account .. '\0'
  redis.call('HSET', KEYS[1], id, record)
  redis.call('ZADD', KEYS[2], 0, id)
  redis.call('ZADD', KEYS[3], 0, own .. id)
  local first, last = '[' .. own, '[' .. own .. '\255'
  local surplus = redis.call('ZLEXCOUNT', KEYS[3], first, last) - tonumber(maximum_of_account)
  if surplus > 0 then
    local most = math.min(surplus, 10)
    for _, owner in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], first, last, 'LIMIT', 0, most)) do
      remove_audit_entry(string.sub(owner, #own + 1), account)
    end
  end
  surplus = redis.call('ZCARD', KEYS[2]) - tonumber(maximum)
  if surplus > 0 then
    for _, old in ipairs(redis.call('ZRANGE', KEYS[2], 0, math.min(surplus, 10) - 1)) do
      local text = redis.call('HGET', KEYS[1], old)
      remove_audit_entry(old, text and cjson.decode(text).accountId or '')
    end
  end
end
