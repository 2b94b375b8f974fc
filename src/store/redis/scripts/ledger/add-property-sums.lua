-- Adds sums by property of the next entries, unless another process has added them (src/store/redis/ledger/property-sums.ts).
-- KEYS: mark, hours, days, then the sums. ARGV: the mark before, the mark after; the number of buckets, then of each
-- the number of its index (2: hours, 3: days) and its start; then for each count the number of its sums, its field and
-- the count. Returns whether they were added.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
local at = 4 + 2 * tonumber(ARGV[3])
for n = 4, at - 1, 2 do
  redis.call('ZADD', KEYS[tonumber(ARGV[n])], ARGV[n + 1], ARGV[n + 1])
end
for n = at, #ARGV, 3 do redis.call('HINCRBY', KEYS[tonumber(ARGV[n])], ARGV[n + 1], ARGV[n + 2]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
