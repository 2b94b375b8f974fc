-- Ends the wait of the entries of a confirmed batch. KEYS: waiting, batch. ARGV: the last confirmed number.
local number = redis.call('LINDEX', KEYS[2], 0)
if not number or tonumber(number) > tonumber(ARGV[1]) then return 0 end
local names = redis.call('LRANGE', KEYS[2], 1, -1)
for at = 1, #names, 1000 do redis.call('ZREM', KEYS[1], unpack(names, at, math.min(at + 999, #names))) end
redis.call('DEL', KEYS[2])
return #names
