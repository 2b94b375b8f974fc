-- What processes hold of the places of a limit, beside those of the requests that asked for one: `h` all, one of
-- which may have run out at `x`; `@PROCESS` the number of its last word, how many it holds, and until when.
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
