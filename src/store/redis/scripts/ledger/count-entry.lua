-- Adds what an entry counts to the sums of its hour and its day.
local function count_in(own, by, length, at, cell, counters, counts)
  local start = whole(math.floor(at / length) * length)
  -- The first entry of its cell in this hour or day, which may be the first of all.
  if add_to_cell(own .. ':' .. by .. ':' .. start, cell, counters, counts) then
    redis.call('ZADD', own .. ':' .. by .. 's', start, start)
  end
end
local function count_entry(own, now, at, cell, counters)
  local counts = cjson.decode(counters)
  count_in(own, 'hour', HOUR, at, cell, counters, counts)
  count_in(own, 'day', DAY, at, cell, counters, counts)
  redis.call('INCR', own .. ':settled')
  if math.floor(at / DAY) < math.floor(now / DAY) then redis.call('INCR', own .. ':past') end
end
