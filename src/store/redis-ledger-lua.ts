/**
 * What the scripts of the `redis` engine's ledger have in common. The arithmetic is that of
 * `limits/bucket.ts`, in doubles as there; numbers are written with all their digits, since Lua's own way
 * keeps 14. Knows no request and no row.
 */

/** What a process holds in a limit, its slice, is gone when it was not heard of for so long. */
export const SLICE_MS = 10_000

/** The same of places, as long as their leases: requests may run on while Redis is away. */
export const PLACES_MS = 60_000

/** Time and calendar. */
export const ARITHMETIC = `
local UNITS, DAY, MOST = 60000, 86400000, 9007199254740991
local function whole(n) return string.format('%.0f', n) end
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
-- Months since 1970 of a day since 1970, and the day that a month begins with (proleptic Gregorian).
local function month_of(day)
  local z = day + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local m = mp < 10 and mp + 3 or mp - 9
  local y = yoe + era * 400 + (m <= 2 and 1 or 0)
  return (y - 1970) * 12 + m - 1
end
local function first_day(month)
  local y, m = 1970 + math.floor(month / 12), month % 12 + 1
  if m <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local yoe = y - era * 400
  local doy = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5)
  return era * 146097 + yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy - 719468
end
local function drained(units, elapsed, per)
  if elapsed <= 0 then return units end
  return math.max(0, units - elapsed * per)
end
`

/**
 * How a rate or a budget is counted: `u` units used at `t` of a rate, `s` spent in the period `p` of a budget;
 * and `h`, what processes hold in slices besides, one of which may have run out at `x`. What is held
 * counts as used and does not flow back. `@PROCESS` has what that one was granted, has taken and has given
 * back so far, and until when it is believed to live. What the dead held counts as used.
 */
export const COUNTED = `
local function use(s, limit, now, cost)
  if s.rate then
    s.u = drained(s.u, now - s.t, limit) + cost * UNITS
    s.t = now
  else s.s = s.s + cost end
end
local function keep(s, key, limit)
  if s.rate then
    redis.call('HSET', key, 'u', whole(s.u), 't', whole(s.t))
    local whole_in = limit > 0 and math.ceil(s.u / limit) or 0
    redis.call('PEXPIRE', key, whole(math.min(40 * DAY, 2 * whole_in + 120000)))
  else
    redis.call('HSET', key, 'p', whole(s.p), 's', whole(s.s))
    redis.call('PEXPIRE', key, whole(40 * DAY))
  end
end
local function bury(s, key, limit, now)
  local all = redis.call('HGETALL', key)
  local dead = 0
  s.h, s.x = 0, 0
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 1) == '@' then
      local granted, taken, back, ends = string.match(all[at + 1], '^(%d+) (%d+) (%d+) (%d+)$')
      local rest = math.max(0, granted - taken - back)
      ends = tonumber(ends)
      if ends <= now then
        dead = dead + rest
        redis.call('HDEL', key, all[at])
      else
        s.h = s.h + rest
        if s.x == 0 or ends < s.x then s.x = ends end
      end
    end
  end
  use(s, limit, now, dead)
  keep(s, key, limit)
  redis.call('HSET', key, 'h', whole(s.h), 'x', whole(s.x))
end
local function counted(key, kind, limit, now, day, month)
  local s
  if kind == 'requests' or kind == 'tokens' then
    local r = redis.call('HMGET', key, 'u', 't', 'h', 'x')
    s = { rate = true, u = tonumber(r[1] or '0'), t = tonumber(r[2] or '0') }
    s.h, s.x = tonumber(r[3] or '0'), tonumber(r[4] or '0')
  else
    local r = redis.call('HMGET', key, 'p', 's', 'h', 'x')
    s = { rate = false, p = tonumber(r[1] or '0'), s = tonumber(r[2] or '0') }
    s.h, s.x = tonumber(r[3] or '0'), tonumber(r[4] or '0')
    local period = kind == 'usd_day' and day or month
    -- Never backwards: a clock that is set back over midnight would make a budget whole twice.
    if period > s.p then s.p, s.s = period, 0 end
  end
  if s.h > 0 and s.x <= now then bury(s, key, limit, now) end
  return s
end
`

/**
 * What processes hold of the places of a limit, beside those of the requests that asked for one: `h` all, one of
 * which may have run out at `x`; `@PROCESS` the number of its last word, how many it holds, and until when.
 */
export const HELD = `
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
`

/** Replaces what holds reserved by what was used; empty is not known, and what is reserved stands. */
export const GIVE_BACK = `
local function give_back(now, holds, day, month, used, cost)
  for _, hold in ipairs(holds) do
    local kind, key, reserved, limit = hold[1], hold[2], hold[3], hold[4]
    if kind == 'concurrent' then
      redis.call('ZREM', key, hold[5])
    elseif kind == 'tokens' then
      if used ~= '' then
        local r = redis.call('HMGET', key, 'u', 't')
        local u = drained(tonumber(r[1] or '0'), now - tonumber(r[2] or '0'), limit)
        u = math.max(0, u + (tonumber(used) - reserved) * UNITS)
        redis.call('HSET', key, 'u', whole(u), 't', whole(now))
        local whole_in = limit > 0 and math.ceil(u / limit) or 0
        redis.call('PEXPIRE', key, whole(math.min(40 * DAY, 2 * whole_in + 120000)))
      end
    elseif kind == 'requests' then
      -- Only where a request was refused after all: one that was made is not given back.
      if used == 'never' then
        local r = redis.call('HMGET', key, 'u', 't')
        local u = drained(tonumber(r[1] or '0'), now - tonumber(r[2] or '0'), limit)
        redis.call('HSET', key, 'u', whole(math.max(0, u - reserved * UNITS)), 't', whole(now))
      end
    elseif cost ~= '' then
      -- A period that is over has been forgotten, and the new one owes it nothing.
      local r = redis.call('HMGET', key, 'p', 's')
      local period, known = kind == 'usd_day' and day or month, tonumber(r[1] or '0')
      if known == period then
        redis.call('HSET', key, 's', whole(math.max(0, tonumber(r[2]) + tonumber(cost) - reserved)))
      elseif known < period and reserved == 0 then
        -- Spent while nobody could ask, the first of its day or month.
        redis.call('HSET', key, 'p', whole(period), 's', whole(tonumber(cost)))
        redis.call('PEXPIRE', key, whole(40 * DAY))
      end
    end
  end
end
`
