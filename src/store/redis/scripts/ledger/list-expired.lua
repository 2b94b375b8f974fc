-- KEYS: ends. ARGV: now, maximum number, minimum age in ms. Returns expired leases, the oldest first.
local last = whole(clock(ARGV[1]) - tonumber(ARGV[3]))
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'LIMIT', 0, ARGV[2])
