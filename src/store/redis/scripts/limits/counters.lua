-- How a rate or a budget is counted: `u` units used at `t` of a rate, `s` spent in the period `p` of a budget, `r`
-- of that reserved by requests that run;
-- and `h`, what processes hold in slices besides, one of which may have run out at `x`. What is held
-- counts as used and does not flow back. `@PROCESS` has what that one was granted, has taken and has given
-- back so far, and until when it is believed to live. What the dead held counts as used.
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
-- With `field`, which is one process's, also what that has: `mine`.
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
