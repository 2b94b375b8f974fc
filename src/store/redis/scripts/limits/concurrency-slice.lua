-- `slots_held` returns the slots that the slices of a limit hold, in addition to requests with leases of their own.
-- Key `:held`: `h` the sum, `x` the end of the first slice, `@PROCESS` the number of its last report, its slots, its end.
local function slots_held(key, now)
  local all = key .. ':held'
  local r = redis.call('HMGET', all, 'h', 'x')
  if not r[1] then return 0 end
  if tonumber(r[2]) > now then return tonumber(r[1]) end
  local fields, h, x, any = redis.call('HGETALL', all), 0, MOST, false
  for at = 1, #fields, 2 do
    if string.sub(fields[at], 1, 1) == '@' then
      local mine, ends = string.match(fields[at + 1], '^%d+ (%d+) (%d+)$')
      if tonumber(ends) <= now then redis.call('HDEL', all, fields[at])
      else h, x, any = h + tonumber(mine), math.min(x, tonumber(ends)), true end
    end
  end
  if any then redis.call('HSET', all, 'h', whole(h), 'x', whole(x)) else redis.call('DEL', all) end
  return h
end
-- `report_concurrency` applies the report of one process's slice: the slots that it keeps (`floor`), needs and has in use.
-- If it needs more than it keeps, slots are added, and none are taken away; otherwise it returns the others. Idle slots of
-- all processes are at most a tenth of the limit, and none are granted if less than a tenth is left. A report that
-- arrives after a later one is ignored. Adds to `answer`: its slots, the slots of all, the number of the last report, the
-- maximum of its idle slots, 1 if few are left.
local function report_concurrency(now, me, given)
  local key, _, limit, number, floor, want, busy = unpack(given)
  local all, field = key .. ':held', '@' .. me
  local h = slots_held(key, now)
  local last, mine = 0, 0
  local text = redis.call('HGET', all, field)
  if text then
    local n, m = string.match(text, '^(%d+) (%d+)')
    last, mine = tonumber(n), tonumber(m)
  end
  local others = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') + math.max(0, h - mine)
  local holders = math.max(1, redis.call('HLEN', all) - 2 + (text and 0 or 1))
  local idle = math.floor(limit / (10 * holders))
  local is_low = false
  if number > last then
    local before = mine
    mine = want > floor and math.max(mine, floor) or floor
    local room = limit - others - mine
    is_low = room * 10 < limit
    if not is_low then mine = math.max(mine, math.min(want, busy + idle, mine + room)) end
    -- A slice without slots stays for a while, so that a delayed report is still recognised.
    local ends = now + (mine > 0 and 60000 or 10000)
    local x = redis.call('HGET', all, 'x')
    if not x or tonumber(x) > ends then x = whole(ends) end
    local record = whole(number) .. ' ' .. whole(mine) .. ' ' .. whole(ends)
    redis.call('HSET', all, field, record, 'h', whole(math.max(0, h - before) + mine), 'x', x)
    redis.call('PEXPIRE', all, 120000)
    last = number
  end
  local numbers = { mine, others + mine, last, idle, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do add(n) end
end
