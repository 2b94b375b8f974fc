-- Settles requests, each separately. The script builds key names from the account's hash tag; KEYS has all of them for a
-- Cluster, and one otherwise. ARGV: now, process, reports of its slices as JSON, ids, ends, order of all (empty: none),
-- then a text for each entry as `encodeSettlement` writes it. Mode `due` settles expired reservations only.
-- Returns (see each-request.lua) five numbers for each slice, then for each entry 1: settled, or 0: was settled before,
-- or has not expired. The additional value of an entry is the shared holds of its reservation.
local now, me = clock(ARGV[1]), ARGV[2]
local ids, ends, order_of_all = ARGV[4], ARGV[5], ARGV[6]
local function is_due(lease, open, id)
  local due = redis.call('ZSCORE', ends, lease)
  if not due or tonumber(due) > now then return false end
  if redis.call('HEXISTS', open, id) == 1 then return true end
  redis.call('ZREM', ends, lease)
  return false
end
local function count(own, by, length, at, fields, counts)
  local start = whole(math.floor(at / length) * length)
  local sum = own .. ':' .. by .. ':' .. start
  local before, pairs_of = redis.call('HMGET', sum, unpack(fields)), {}
  for n, field in ipairs(fields) do
    pairs_of[2 * n - 1] = field
    pairs_of[2 * n] = math.min(MOST, tonumber(before[n] or '0') + counts[n])
  end
  redis.call('HSET', sum, unpack(pairs_of))
  -- The first entry of its key and model in this hour or day, which may be the first of all.
  if not before[1] then redis.call('ZADD', own .. ':' .. by .. 's', start, start) end
end
local function settle(text)
  local lease, account, id, key, model, time, at_ms, tokens, cost, unreserved_cost, counters, mode, holds, from =
    string.match(text, '^(([^%z]+)%z([^%z]+))%z([^%z]+)%z([^%z]+)%z(%w+)%z' ..
      '([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(%a*)%z([^\n]*)\n()')
  local own, at = 'sluice:{' .. account .. '}', tonumber(at_ms)
  local open = own .. ':open'
  if mode == 'due' and not is_due(lease, open, id) then return 0 end
  if redis.call('HEXISTS', ids, id) == 1 then return 0 end
  local reserved = nil
  local known = redis.call('HGET', open, id)
  if known then
    local day, month, held, shared = string.match(known, '^(%d+) (%d+)\n([^\n]*)\n([^\n]*)\n')
    charge_actual_usage(now, cjson.decode(held), tonumber(day), tonumber(month), tokens, cost, true)
    redis.call('HDEL', open, id)
    redis.call('ZREM', ends, lease)
    if shared ~= '[]' then reserved = shared end
  elseif holds ~= '[]' then
    local day = math.floor(at / DAY)
    charge_actual_usage(now, cjson.decode(holds), day, month_of(day), tokens, unreserved_cost, false)
  end
  local entry = redis.call('XADD', own .. ':rows', '*', 'row', string.sub(text, from))
  redis.call('HSET', ids, id, entry .. ' ' .. account)
  local name = time .. id
  redis.call('ZADD', own .. ':order', 0, name)
  if order_of_all ~= '' then redis.call('ZADD', order_of_all, 0, name .. '\0' .. account) end
  local last = redis.call('HGET', own .. ':used', key)
  if not last or tonumber(last) < at then redis.call('HSET', own .. ':used', key, at_ms) end
  local fields, counts, prefix = {}, {}, key .. '\0' .. model .. '\0'
  for field, n in string.gmatch(counters, '(%d+) (%d+)') do
    fields[#fields + 1] = prefix .. field
    counts[#counts + 1] = tonumber(n)
  end
  count(own, 'hour', HOUR, at, fields, counts)
  count(own, 'day', DAY, at, fields, counts)
  if math.floor(at / DAY) < math.floor(now / DAY) then redis.call('INCR', own .. ':past') end
  return 1, reserved
end
-- Reports first: amounts that are returned below may be from a slice.
for _, report in ipairs(cjson.decode(ARGV[3])) do report_slice(now, me, report) end
return each(7, function(text)
  local code, reserved = settle(text)
  add(code)
  return reserved
end)
