-- Adds to a budget what was used before it counted. KEYS: the budget. ARGV: period, amount, and what it must count of
-- requests that have ended; empty: any amount. Returns 1 if it was added.
local r = redis.call('HMGET', KEYS[1], 'p', 's', 'r', 'h')
local spent = tonumber(r[2] or '0')
if tonumber(r[1] or '0') ~= tonumber(ARGV[1]) then return 0 end
if ARGV[3] ~= '' and spent + tonumber(r[4] or '0') - tonumber(r[3] or '0') ~= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], 's', whole(spent + tonumber(ARGV[2])))
return 1
