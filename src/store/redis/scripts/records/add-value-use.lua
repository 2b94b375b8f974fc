-- Adds the uses of values of dimensions of an account. KEYS: for each those of claim-value.lua. ARGV: for each value, time,
-- time to keep, requests, input tokens, output tokens, cost.
local function whole(n) return string.format('%.0f', n) end
for each = 0, #KEYS / 2 - 1 do
  local values, record, from = KEYS[2 * each + 1], KEYS[2 * each + 2], 7 * each
  local value, at, keep = ARGV[from + 1], tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3])
  for index, field in ipairs({ 'requests', 'input', 'output', 'cost' }) do
    local amount = ARGV[from + index + 3]
    if amount ~= '0' then redis.call('HINCRBY', record, field, amount) end
  end
  local times = redis.call('HMGET', record, 'first', 'last')
  if ARGV[from + 4] ~= '0' and (not times[1] or tonumber(times[1]) > at) then
    redis.call('HSET', record, 'first', whole(at))
  end
  if not times[2] or tonumber(times[2]) < at then redis.call('HSET', record, 'last', whole(at)) end
  local ends = redis.call('ZSCORE', values, value)
  if ends and tonumber(ends) < at + keep then redis.call('ZADD', values, whole(at + keep), value) end
  redis.call('PEXPIRE', record, whole(2 * keep))
  if redis.call('PTTL', values) < 1.5 * keep then redis.call('PEXPIRE', values, whole(2 * keep)) end
end
return 1
