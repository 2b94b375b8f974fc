-- Adds the uses of values of dimensions of an account. KEYS: for each those of claim-value.lua. ARGV: for each value, time,
-- time to keep, requests, input tokens, output tokens, cost, calls of tools as JSON or nothing; then the most tools with
-- counts of their own, what their fields begin with, and the name of all others.
local most, prefix, other = tonumber(ARGV[#ARGV - 2]), ARGV[#ARGV - 1], ARGV[#ARGV]
local function add_tools(record, text)
  for _, tool in ipairs(cjson.decode(text)) do
    local field = prefix .. tool.name
    if redis.call('HEXISTS', record, field) == 0 then
      if tonumber(redis.call('HGET', record, 'tools') or 0) >= most then
        field = prefix .. other
      else
        redis.call('HINCRBY', record, 'tools', 1)
      end
    end
    redis.call('HINCRBY', record, field, tool.calls)
  end
end
local function whole(n) return string.format('%.0f', n) end
for each = 0, #KEYS / 2 - 1 do
  local values, record, from = KEYS[2 * each + 1], KEYS[2 * each + 2], 8 * each
  local value, at, keep = ARGV[from + 1], tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3])
  for index, field in ipairs({ 'requests', 'input', 'output', 'cost' }) do
    local amount = ARGV[from + index + 3]
    if amount ~= '0' then redis.call('HINCRBY', record, field, amount) end
  end
  if ARGV[from + 8] ~= '' then add_tools(record, ARGV[from + 8]) end
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
