-- KEYS: ends. ARGV: now, maximum number, minimum age in ms. Returns the time, then expired leases with their ends, the
-- oldest first.
local now = clock(ARGV[1])
local last = whole(now - tonumber(ARGV[3]))
local leases = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
return { whole(now), unpack(leases) }
