-- Adds to a budget what was used before it counted. KEYS: the budget. ARGV: period, all that is added to it in this
-- period. Returns 1 if the budget has it. Field `a` has the period and what was added: a repeated call adds nothing.
local r = redis.call('HMGET', KEYS[1], 'p', 's', 'a')
if tonumber(r[1] or '0') ~= tonumber(ARGV[1]) then return 0 end
local period, before = string.match(r[3] or '', '^(%S+) (%S+)$')
local more = tonumber(ARGV[2]) - (period == ARGV[1] and tonumber(before) or 0)
if more > 0 then redis.call('HSET', KEYS[1], 's', whole(tonumber(r[2] or '0') + more), 'a', ARGV[1] .. ' ' .. ARGV[2]) end
return 1
