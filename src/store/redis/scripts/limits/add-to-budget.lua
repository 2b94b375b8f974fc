-- Adds to a budget what was used before it counted. KEYS: the budget. ARGV: period, amount. Returns 1 if it was added.
local r = redis.call('HMGET', KEYS[1], 'p', 's')
if tonumber(r[1] or '0') ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 's', whole(tonumber(r[2] or '0') + tonumber(ARGV[2])))
return 1
