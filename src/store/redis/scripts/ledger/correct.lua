-- Replaces the entry of a request that was taken for lost by that of its settlement. The script builds key names from
-- the account's hash tag; KEYS has all of them for a Cluster, and one otherwise. ARGV: now, account, ids, order of all
-- (empty: none), the mark of the archive, the names that wait for it, the declared batch; then the former entry: its
-- member (empty: it has left the store), what takes it off the sums, its cell, and the field and the figures that take it
-- off the months of removed entries; then the entry: its time, what it counts, its cell, its name, month, shared texts and
-- own text. At the end holds of budgets and quotas with 0 reserved, and by how many tokens and nano-dollars more each is
-- used. Returns 1, or 0: the former entry is not there any more.
local now, account, ids, order_of_all = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local waiting, batch, member = ARGV[6], ARGV[7], ARGV[8]
local at, name = tonumber(ARGV[13]), ARGV[16]
local own = 'sluice:{' .. account .. '}'
local log = own .. ':log'
if member ~= '' then
  if redis.call('ZREM', log, member) == 0 then return 0 end
elseif has_entry(log, name) then
  return 0
else
  add_use(own .. ':months', ARGV[11], ARGV[12])
end
count_entry(own, now, at, ARGV[10], ARGV[9])
add_entry(own, account, { name = name, month = ARGV[17], shared = ARGV[18], own = ARGV[19] }, ids, order_of_all)
count_entry(own, now, at, ARGV[15], ARGV[14])
if redis.call('EXISTS', ARGV[5]) == 1 then
  -- A batch with the former entry may be on its way: the new one waits under another name.
  local former = name .. '\0' .. account
  redis.call('ZREM', waiting, former)
  redis.call('LREM', batch, 0, former)
  redis.call('ZADD', waiting, 0, former .. '\0corrected')
end
if order_of_all ~= '' then redis.call('INCR', order_of_all .. ':corrected') end
local day = math.floor(at / DAY)
for _, hold in ipairs(cjson.decode(ARGV[20])) do
  charge_actual_usage(now, { hold }, day, month_of(day), ARGV[21], ARGV[22], false)
end
return 1
