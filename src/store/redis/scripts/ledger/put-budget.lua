-- KEYS: the budget. ARGV: day or month, nano-dollars. Returns 0 if the budget is of a later period.
local known = redis.call('HGET', KEYS[1], 'p')
if known and tonumber(known) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'p', ARGV[1], 's', ARGV[2], 'r', 0)
redis.call('PEXPIRE', KEYS[1], 40 * 86400000)
return 1
