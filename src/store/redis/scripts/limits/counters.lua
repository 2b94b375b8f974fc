-- Reads and writes a rate or a budget. A rate has `u` units used at time `t`. A budget has `s` spent in period `p`, of
-- that `r` reserved by running requests. Both have `h`, the amount that slices of processes hold; it counts as used and
-- does not drain. Field `@PROCESS` has the totals of one slice: granted, taken, returned, and its end; `x` is the end
-- of the first slice. The rest of a slice that ended counts as used. A budget that does not go on from the period before
-- has a mark `b`: its period, when its first request arrived (0: no use before it is still added), since when it counts
-- (0: in its whole period), and the use before it that was added.
local function charge(s, limit, now, cost)
  if s.rate then
    s.u = drain(s.u, now - s.t, limit) + units_in(cost)
    s.t = now
  else s.s = s.s + cost end
end
-- Writes the counter, with further fields. Redis writes all digits of numbers.
local function write_counter(s, key, limit, ...)
  if s.rate then
    redis.call('HSET', key, 'u', s.u, 't', s.t, ...)
    expire_rate(key, s.u, limit, s.before, s.t)
    s.before = s.t
  else
    redis.call('HSET', key, 'p', s.p, 's', s.s, 'r', s.r, ...)
    if s.is_new then redis.call('HSET', key, 'b', mark_text(s.p, s.begun, s.since, 0)) end
    -- Once is enough: no period is as long.
    if s.is_new and not s.kept then redis.call('PEXPIRE', key, whole(40 * DAY)) end
    s.is_new = false
  end
end
local function end_slices(s, key, limit, now)
  local all = redis.call('HGETALL', key)
  local lost = 0
  s.h, s.x = 0, 0
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 1) == '@' then
      local granted, taken, back, ends = string.match(all[at + 1], '^(%d+) (%d+) (%d+) (%d+)$')
      local rest = math.max(0, granted - taken - back)
      ends = tonumber(ends)
      if ends <= now then
        lost = lost + rest
        redis.call('HDEL', key, all[at])
      else
        s.h = s.h + rest
        if s.x == 0 or ends < s.x then s.x = ends end
      end
    end
  end
  charge(s, limit, now, lost)
  write_counter(s, key, limit, 'h', whole(s.h), 'x', whole(s.x))
end
-- Reads a counter; with the `field` of a process also its slice, as `mine`.
local function read_counter(key, kind, limit, now, day, month, field)
  local s
  if kind == 'requests' or kind == 'tokens' or is_units(kind) then
    local r = redis.call('HMGET', key, 'u', 't', 'h', 'x', field or 'x')
    s = { rate = true, u = tonumber(r[1] or '0'), t = tonumber(r[2] or '0') }
    s.h, s.x, s.mine, s.before = tonumber(r[3] or '0'), tonumber(r[4] or '0'), r[5], s.t
  else
    local r = redis.call('HMGET', key, 'p', 's', 'h', 'x', field or 'x', 'r')
    s = { rate = false, kept = window_of(kind) == 'total', p = tonumber(r[1] or '0'), s = tonumber(r[2] or '0'), r = tonumber(r[6] or '0') }
    s.h, s.x, s.mine = tonumber(r[3] or '0'), tonumber(r[4] or '0'), r[5]
    local period = period_of(kind, day, month)
    -- Never backwards: a clock that is set back over midnight would reset a budget twice.
    if period > s.p then
      s.begun, s.since = now, begins(s.p, period, now)
      s.p, s.s, s.r, s.is_new = period, 0, 0, true
    end
  end
  if s.h > 0 and s.x <= now then
    end_slices(s, key, limit, now)
    if field then s.mine = redis.call('HGET', key, field) end
  end
  return s
end
