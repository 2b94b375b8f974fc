-- Declares a batch of entries for the archive. KEYS: waiting, batch. ARGV: the number of the batch, the most entries.
-- Returns the names of its entries: the same ones for the same number.
local held = redis.call('LRANGE', KEYS[2], 0, -1)
if held[1] == ARGV[1] then
  table.remove(held, 1)
  return held
end
local function each_part(list, first, run)
  for at = first, #list, 1000 do run(unpack(list, at, math.min(at + 999, #list))) end
end
-- It was confirmed, and the process ended before it was removed.
each_part(held, 2, function(...) redis.call('ZREM', KEYS[1], ...) end)
redis.call('DEL', KEYS[2])
if tonumber(ARGV[2]) < 1 then return {} end
local names = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)
if #names == 0 then return names end
redis.call('RPUSH', KEYS[2], ARGV[1])
each_part(names, 1, function(...) redis.call('RPUSH', KEYS[2], ...) end)
return names
