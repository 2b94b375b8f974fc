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
local UNITS, HOUR, DAY, MOST = 60000, 3600000, 86400000, 9007199254740991
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
-- A rate is forgotten some time after the hour that it was last written in; \`before\` is when that was until now.
-- Longer where it has more to flow back than a minute's worth.
local function stay(key, u, limit, before, now)
  local whole_in = limit > 0 and math.ceil(u / limit) or 0
  if whole_in > 60000 or math.floor(before / HOUR) ~= math.floor(now / HOUR) then
    redis.call('PEXPIRE', key, whole(math.min(40 * DAY, HOUR + 2 * whole_in + 120000)))
  end
end
`

/**
 * Many requests in one script, each for itself: `run` adds what it says to `answer`, and returns what more there is
 * to say of its request. One that fails keeps no other from it: `undo` forgets what was thought of it, its answer is
 * -1, and what went wrong is what there is to say. Answers: `answer` as JSON, since the client's own reader of numbers is not exact up to 2^53
 * and reads many texts slowly; then for requests that there is more to say of, their number and that. Fails
 * where every request does, or where the server takes no writes from anybody.
 */
export const EACH = `
local answer = {}
local function add(n)
  if n < 1e14 then answer[#answer + 1] = n
  elseif n < 1e17 then answer[#answer + 1] = whole(n)
  else error('a number is none, or too large') end
end
local function each(first, run, undo)
  local more, failed, is_replica = {}, 0, false
  for at = first, #ARGV do
    local size = #answer
    local ok, said = pcall(run, ARGV[at])
    if not ok then
      said = type(said) == 'table' and said.err or tostring(said)
      failed = failed + 1
      is_replica = is_replica or string.find(said, 'READONLY ', 1, true) ~= nil
      for n = #answer, size + 1, -1 do answer[n] = nil end
      answer[size + 1] = -1
      if undo then undo() end
    end
    if said then
      more[#more + 1] = at - first + 1
      more[#more + 1] = said
    end
  end
  if is_replica or failed == #ARGV - first + 1 then return redis.error_reply(more[#more]) end
  return { '[' .. table.concat(answer, ',') .. ']', unpack(more) }
end
`

/**
 * How a rate or a budget is counted: `u` units used at `t` of a rate, `s` spent in the period `p` of a budget, `r`
 * of that reserved by requests that run;
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
-- With other fields of the same, if there are any. Numbers go as they are: the server writes all their digits.
local function keep(s, key, limit, ...)
  if s.rate then
    redis.call('HSET', key, 'u', s.u, 't', s.t, ...)
    stay(key, s.u, limit, s.before, s.t)
    s.before = s.t
  else
    redis.call('HSET', key, 'p', s.p, 's', s.s, 'r', s.r, ...)
    -- Once: no period is as long.
    if s.is_new then redis.call('PEXPIRE', key, whole(40 * DAY)) end
    s.is_new = false
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
  keep(s, key, limit, 'h', whole(s.h), 'x', whole(s.x))
end
-- With \`field\`, which is one process's, also what that has: \`mine\`.
local function counted(key, kind, limit, now, day, month, field)
  local s
  if kind == 'requests' or kind == 'tokens' then
    local r = redis.call('HMGET', key, 'u', 't', 'h', 'x', field or 'x')
    s = { rate = true, u = tonumber(r[1] or '0'), t = tonumber(r[2] or '0') }
    s.h, s.x, s.mine, s.before = tonumber(r[3] or '0'), tonumber(r[4] or '0'), r[5], s.t
  else
    local r = redis.call('HMGET', key, 'p', 's', 'h', 'x', field or 'x', 'r')
    s = { rate = false, p = tonumber(r[1] or '0'), s = tonumber(r[2] or '0'), r = tonumber(r[6] or '0') }
    s.h, s.x, s.mine = tonumber(r[3] or '0'), tonumber(r[4] or '0'), r[5]
    local period = kind == 'usd_day' and day or month
    -- Never backwards: a clock that is set back over midnight would make a budget whole twice.
    if period > s.p then s.p, s.s, s.r, s.is_new = period, 0, 0, true end
  end
  if s.h > 0 and s.x <= now then
    bury(s, key, limit, now)
    if field then s.mine = redis.call('HGET', key, field) end
  end
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

/**
 * Replaces what holds reserved by what was used; empty is not known, and what is reserved stands. `is_reserved`: it
 * was counted among what is reserved.
 */
export const GIVE_BACK = `
local function give_back(now, holds, day, month, used, cost, is_reserved)
  for _, hold in ipairs(holds) do
    local kind, key, reserved, limit = hold[1], hold[2], hold[3], hold[4]
    if kind == 'concurrent' then
      redis.call('ZREM', key, hold[5])
    elseif kind == 'tokens' then
      if used ~= '' then
        local r = redis.call('HMGET', key, 'u', 't')
        local before = tonumber(r[2] or '0')
        local u = drained(tonumber(r[1] or '0'), now - before, limit)
        u = math.max(0, u + (tonumber(used) - reserved) * UNITS)
        redis.call('HSET', key, 'u', u, 't', now)
        stay(key, u, limit, before, now)
      end
    elseif kind == 'requests' then
      -- Only where a request was refused after all: one that was made is not given back.
      if used == 'never' then
        local r = redis.call('HMGET', key, 'u', 't')
        local before = tonumber(r[2] or '0')
        local u = drained(tonumber(r[1] or '0'), now - before, limit)
        redis.call('HSET', key, 'u', math.max(0, u - reserved * UNITS), 't', now)
        stay(key, u, limit, before, now)
      end
    elseif cost ~= '' or is_reserved then
      -- A period that is over has been forgotten, and the new one owes it nothing.
      local r = redis.call('HMGET', key, 'p', 's', 'r')
      local period, known = kind == 'usd_day' and day or month, tonumber(r[1] or '0')
      local spent, running = cost == '' and reserved or tonumber(cost), tonumber(r[3] or '0')
      if known == period then
        if is_reserved then running = math.max(0, running - reserved) end
        redis.call('HSET', key, 's', math.max(0, tonumber(r[2]) + spent - reserved), 'r', running)
      elseif known < period and reserved == 0 then
        -- Spent while nobody could ask, the first of its day or month.
        redis.call('HSET', key, 'p', whole(period), 's', whole(spent), 'r', 0)
        redis.call('PEXPIRE', key, whole(40 * DAY))
      end
    end
  end
end
`
