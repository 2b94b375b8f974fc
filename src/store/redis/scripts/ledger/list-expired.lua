-- KEYS: ends. ARGV: now, most, how long ago at least. Answers with what has run out, first things first.
local last = whole(clock(ARGV[1]) - tonumber(ARGV[3]))
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'LIMIT', 0, ARGV[2])
