-- Replaces cells of a sum, each only if none of its fields has changed since it was read. KEYS: the sum, and a counter of
-- changes. ARGV: for each cell its name, its value before and after (empty: none), the number of fields of a former
-- version that it replaces, and their names and values.
local changed = 0
local at = 1
while at <= #ARGV do
  local cell, before, after, former = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local first, last = at + 4, at + 3 + 2 * former
  local is_same = (redis.call('HGET', KEYS[1], cell) or '') == before
  for n = first, last, 2 do is_same = is_same and redis.call('HGET', KEYS[1], ARGV[n]) == ARGV[n + 1] end
  if is_same then
    for n = first, last, 2 do redis.call('HDEL', KEYS[1], ARGV[n]) end
    if after == '' then redis.call('HDEL', KEYS[1], cell) else redis.call('HSET', KEYS[1], cell, after) end
    changed = changed + 1
  end
  at = last + 1
end
if changed > 0 then redis.call('INCR', KEYS[2]) end
return changed
