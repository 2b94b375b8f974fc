-- Time and calendar.
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
-- The window of a budget or quota: `usd_day`, `tokens_total`; nil for other kinds.
local WINDOWS = { day = true, week = true, month = true, total = true }
local windows = {}
local function window_of(kind)
  local known = windows[kind]
  if known == nil then
    known = string.match(kind, '_(%a+)$')
    if not WINDOWS[known or ''] then known = false end
    windows[kind] = known
  end
  return known or nil
end
-- The period since 1970 of a budget or quota on a day of a month, and the ms until it ends: nil for one that never resets.
-- Weeks begin on Monday.
local function period_of(kind, day, month)
  local window = window_of(kind)
  if window == 'total' then return 1 end
  if window == 'day' then return day end
  return window == 'week' and math.floor((day + 3) / 7) or month
end
local function day_after(window, period)
  if window == 'day' then return period + 1 end
  return window == 'week' and 7 * period + 4 or first_day(period + 1)
end
local function ms_left(kind, now, day, month)
  local window = window_of(kind)
  if window == 'total' then return nil end
  return day_after(window, period_of(kind, day, month)) * DAY - now
end
-- Since when a budget counts whose period begins with a request: 0 is the whole period, if it counted in the one before.
local function begins(last, period, now) return last > 0 and last == period - 1 and 0 or now end
-- The mark `b` of a budget (see counters.lua).
local function mark_text(period, begun, since, added)
  return whole(period) .. ' ' .. whole(begun) .. ' ' .. whole(since) .. ' ' .. whole(added)
end
-- Rates of units other than tokens, whose amounts have three digits after the point at most.
local function is_units(kind) return string.sub(kind, 1, 6) == 'units_' end
local function units_in(cost) return math.floor(cost * UNITS + 0.5) end
local function drain(units, elapsed, per)
  if elapsed <= 0 then return units end
  return math.max(0, units - elapsed * per)
end
-- Lets a rate expire some time after the hour in which it was last written, and later if it drains for more than a
-- minute; `before` is the time of the previous write.
local function expire_rate(key, u, limit, before, now)
  local whole_in = limit > 0 and math.ceil(u / limit) or 0
  if whole_in > 60000 or math.floor(before / HOUR) ~= math.floor(now / HOUR) then
    redis.call('PEXPIRE', key, whole(math.min(40 * DAY, HOUR + 2 * whole_in + 120000)))
  end
end
