-- Replaces the reserved amounts of holds by the used ones; if these are unknown (empty), the reserved ones stay.
-- `is_reserved`: the cost is part of the budget's reserved amount.
-- What a budget or quota counts of the usage; empty: unknown. A request that was admitted stays counted.
local function used_of(kind, used, charged, cost)
  if kind == 'requests_total' then return used == 'never' and '0' or '1' end
  if string.sub(kind, 1, 7) == 'tokens_' then return used == 'never' and '0' or charged end
  return cost
end
-- What the usage is for a rate of units; empty: unknown.
local function units_of(kind, units)
  local unit = string.sub(kind, 7)
  return string.match(' ' .. units, ' ' .. unit .. '=([%d.]+)') or string.match(units, '^%*=(%d+)') or ''
end
-- `usage`: tokens for limits of a minute, tokens for longer ones, and units as an entry has them (`*=0`: none of any
-- unit), with a space between them; or `never`: the request was not admitted.
local function charge_actual_usage(now, holds, day, month, usage, cost, is_reserved)
  local used, charged, units = string.match(usage, '^(%S*) ?(%S*) ?(.*)$')
  for _, hold in ipairs(holds) do
    local kind, key, reserved, limit = hold[1], hold[2], hold[3], hold[4]
    if kind == 'concurrent' then
      redis.call('ZREM', key, hold[5])
    elseif kind == 'tokens' or is_units(kind) then
      local count = kind == 'tokens' and used or units_of(kind, units)
      if count ~= '' then
        local r = redis.call('HMGET', key, 'u', 't')
        local before = tonumber(r[2] or '0')
        local u = drain(tonumber(r[1] or '0'), now - before, limit)
        u = math.max(0, u + units_in(tonumber(count)) - units_in(reserved))
        redis.call('HSET', key, 'u', u, 't', now)
        expire_rate(key, u, limit, before, now)
      end
    elseif kind == 'requests' then
      -- Only if the request was refused after all: a request that was sent is not returned.
      if used == 'never' then
        local r = redis.call('HMGET', key, 'u', 't')
        local before = tonumber(r[2] or '0')
        local u = drain(tonumber(r[1] or '0'), now - before, limit)
        redis.call('HSET', key, 'u', math.max(0, u - reserved * UNITS), 't', now)
        expire_rate(key, u, limit, before, now)
      end
    elseif used_of(kind, used, charged, cost) ~= '' or is_reserved then
      -- A period that is over is no longer stored, and does not change the new one.
      local r = redis.call('HMGET', key, 'p', 's', 'r')
      local period, known = period_of(kind, day, month), tonumber(r[1] or '0')
      local amount, running = used_of(kind, used, charged, cost), tonumber(r[3] or '0')
      local spent = amount == '' and reserved or tonumber(amount)
      if known == period then
        if is_reserved and kind ~= 'requests_total' then running = math.max(0, running - reserved) end
        redis.call('HSET', key, 's', math.max(0, tonumber(r[2]) + spent - reserved), 'r', running)
      elseif known < period and reserved == 0 then
        -- Spent while Redis was unavailable, as the first of its period.
        local mark = mark_text(period, now, begins(known, period, now), 0)
        redis.call('HSET', key, 'p', whole(period), 's', whole(math.max(0, spent)), 'r', 0, 'b', mark)
        if window_of(kind) ~= 'total' then redis.call('PEXPIRE', key, whole(40 * DAY)) end
      end
    end
  end
end
