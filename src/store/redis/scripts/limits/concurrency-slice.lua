-- `held`: how many concurrent requests the slices of a limit hold, beside the requests with leases of their own.
-- Key `:held`: `h` the sum, `x` when the first slice ends, `@PROCESS` the number of its last report, what it holds and
-- when it ends.
local function held(key, now)
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
-- One process's places of one limit. It says how many it may use already (`floor`), wants, and has in use; what it
-- wants beyond its floor is added to what it holds, never taken away, unless it wants no more than that: then
-- it gives back. Idle places of all processes are a tenth of the limit at the most, and none are granted where
-- less than a tenth is left. A word that comes after a later one counts for nothing. Adds to `answer`:
-- places held by it, all that are taken, the last word, idle places that it may hold, 1 where little is left.
local function hold_places(now, me, given)
  local key, _, limit, word, floor, want, busy = unpack(given)
  local all, field = key .. ':held', '@' .. me
  local h = held(key, now)
  local heard, mine = 0, 0
  local text = redis.call('HGET', all, field)
  if text then
    local n, m = string.match(text, '^(%d+) (%d+)')
    heard, mine = tonumber(n), tonumber(m)
  end
  local others = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') + math.max(0, h - mine)
  local holders = math.max(1, redis.call('HLEN', all) - 2 + (text and 0 or 1))
  local idle = math.floor(limit / (10 * holders))
  local is_low = false
  if word > heard then
    local before = mine
    mine = want > floor and math.max(mine, floor) or floor
    local room = limit - others - mine
    is_low = room * 10 < limit
    if not is_low then mine = math.max(mine, math.min(want, busy + idle, mine + room)) end
    -- Who holds none is remembered for a while: a word of before, held up until now, would be believed.
    local ends = now + (mine > 0 and 60000 or 10000)
    local x = redis.call('HGET', all, 'x')
    if not x or tonumber(x) > ends then x = whole(ends) end
    local record = whole(word) .. ' ' .. whole(mine) .. ' ' .. whole(ends)
    redis.call('HSET', all, field, record, 'h', whole(math.max(0, h - before) + mine), 'x', x)
    redis.call('PEXPIRE', all, 120000)
    heard = word
  end
  local numbers = { mine, others + mine, heard, idle, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do add(n) end
end
