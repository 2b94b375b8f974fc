-- `report_slice` applies the report of one process's slice. The report has the totals of what the process took and
-- returned, so a report that arrives twice counts once. All slices of a limit hold at most a hundredth of it, in equal
-- parts; no more is granted if less than a tenth of the limit is left, or less than one request needs (`least`). Adds to
-- `answer`: total granted, used (units of a rate), held by all, ms until the period ends, 1 if little is left.
local function report_slice(now, me, given)
  if given[2] == 'concurrent' then return report_concurrency(now, me, given) end
  local key, kind, limit, taken, back, want, least = unpack(given)
  local day = math.floor(now / DAY)
  local month = month_of(day)
  local s = read_counter(key, kind, limit, now, day, month, '@' .. me)
  local text = s.mine
  local granted, had_taken, had_back = taken + back, taken, back
  if text then
    local g, n, b = string.match(text, '^(%d+) (%d+) (%d+)')
    granted, had_taken, had_back = tonumber(g), tonumber(n), tonumber(b)
  end
  local others = math.max(0, s.h - math.max(0, granted - had_taken - had_back))
  charge(s, limit, now, math.max(0, taken - had_taken))
  taken, back = math.max(taken, had_taken), math.max(back, had_back)
  local mine = math.max(0, granted - taken - back)
  local used = s.rate and math.ceil(s.u / UNITS) or s.s
  local room = limit - used - others - mine
  local is_low = room * 10 < limit
  if want > mine and not is_low then
    local all = math.floor(limit / 100)
    local own = s.rate and 4 or 5 + redis.call('HEXISTS', key, 'b')
    local holders = math.max(0, redis.call('HLEN', key) - own) + (text and 0 or 1)
    local aim = math.min(want, all - others, math.floor(all / (holders + 1)))
    if aim > mine and aim >= least then
      granted = taken + back + aim
      mine = aim
    end
  end
  local ends = now + 10000
  if mine > 0 then
    local totals = whole(granted) .. ' ' .. whole(taken) .. ' ' .. whole(back) .. ' ' .. whole(ends)
    if s.x == 0 or s.x > ends then s.x = ends end
    write_counter(s, key, limit, '@' .. me, totals, 'h', whole(others + mine), 'x', whole(s.x))
  elseif text then
    write_counter(s, key, limit, 'h', whole(others), 'x', whole(s.x))
    redis.call('HDEL', key, '@' .. me)
  else write_counter(s, key, limit) end
  local left = 0
  if not s.rate then left = ms_left(kind, now, day, month) or 0 end
  local numbers = { granted, s.rate and s.u or s.s, others + mine, left, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do add(n) end
end
