-- Settles requests, each separately. The script builds key names from the account's hash tag; KEYS has all of them for a
-- Cluster, and one otherwise. ARGV: now, process, reports of its slices as JSON, ids, ends, order of all (empty: none),
-- the mark of the archive, the names that wait for it, then a text for each entry as `encodeSettlement` writes it. Mode `due` settles expired reservations only.
-- Returns (see each-request.lua) five numbers for each slice, then for each entry 1: settled, 0: was settled before,
-- or has not expired, or 2: the request began before what has left for the archive, which has to be searched first, unless
-- the mode is `asked`. The additional value of an entry is the shared holds of its reservation.
local now, me = clock(ARGV[1]), ARGV[2]
local ids, ends, order_of_all, waiting = ARGV[4], ARGV[5], ARGV[6], ARGV[8]
local mark = redis.call('GET', ARGV[7])
local removed_before = mark and tonumber(string.match(mark, ' (%d+)$'))
local function is_due(lease, open, id)
  local due = redis.call('ZSCORE', ends, lease)
  if not due or tonumber(due) > now then return false end
  if redis.call('HEXISTS', open, id) == 1 then return true end
  redis.call('ZREM', ends, lease)
  return false
end
local function settle(text)
  local lease, account, id, key, at_ms, began, tokens, cost, unreserved_cost, counters, mode, holds, from =
    string.match(text, '^(([^%z]+)%z([^%z]+))%z([^%z]+)%z([^%z]*)%z(%d*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(%a*)%z' ..
      '([^\n]*)\n()')
  local name, name_of_id, month, shared, own_text, cell =
    string.match(text, '^([^%z]+)%z([^%z]*)%z(%d+)%z([^\n]*)\n([^\n]*)\n(.*)$', from)
  local own, at = 'sluice:{' .. account .. '}', tonumber(at_ms)
  local open, log = own .. ':open', own .. ':log'
  if mode == 'due' and not is_due(lease, open, id) then return 0 end
  if redis.call('HEXISTS', ids, id) == 1 then return 0 end
  if name_of_id ~= '' and has_entry(log, name_of_id) then return 0 end
  local reserved = nil
  local known = redis.call('HGET', open, id)
  if not known and mode ~= 'asked' and removed_before and tonumber(began) < removed_before then return 2 end
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
  add_entry(own, account, { name = name, month = month, shared = shared, own = own_text }, ids, order_of_all)
  if mark then redis.call('ZADD', waiting, 0, name .. '\0' .. account) end
  -- A gateway of an earlier version looks up ids: its own late settlement of the same request must find this one.
  if mode == 'due' then redis.call('HSETNX', ids, id, '0-0 ' .. account) end
  local last = redis.call('HGET', own .. ':used', key)
  if not last or tonumber(last) < at then redis.call('HSET', own .. ':used', key, at_ms) end
  count_entry(own, now, at, cell, counters)
  return 1, reserved
end
-- Reports first: amounts that are returned below may be from a slice.
for _, report in ipairs(cjson.decode(ARGV[3])) do report_slice(now, me, report) end
return each(9, function(text)
  local code, reserved = settle(text)
  add(code)
  return reserved
end)
