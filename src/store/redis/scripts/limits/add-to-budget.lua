-- Adds to a budget what was used before it counted. KEYS: the budget. ARGV: period, all that is added to it in this
-- period, since when it counts with that (0: in its whole period), 1 if it is the last addition. Returns 1 if the budget
-- has it. The mark of the budget has what was added: a repeated call adds nothing.
local r = redis.call('HMGET', KEYS[1], 'p', 's', 'b')
local period, begun, since, before = string.match(r[3] or '', '^(%d+) (%d+) (%d+) (%d+)$')
if period ~= ARGV[1] or r[1] ~= ARGV[1] then return 0 end
local total = math.max(tonumber(before), tonumber(ARGV[2]))
local from = math.min(tonumber(since), tonumber(ARGV[3]))
local mark = mark_text(period, ARGV[4] == '1' and 0 or begun, from, total)
redis.call('HSET', KEYS[1], 's', whole(tonumber(r[2] or '0') + total - tonumber(before)), 'b', mark)
return 1
