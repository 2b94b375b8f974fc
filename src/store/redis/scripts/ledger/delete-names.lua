-- Deletes the dictionary of a month without entries. KEYS: log, dictionary, months with a dictionary. ARGV: the bounds of
-- the month in the log, the month.
local left = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, 1)
if #left > 0 then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SREM', KEYS[3], ARGV[3])
return 1
