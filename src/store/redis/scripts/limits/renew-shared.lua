-- Renews the lease of a shared limit in a Cluster. KEYS: the limit. ARGV: now, lease, member.
local lease = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], 'XX', whole(clock(ARGV[1]) + lease), ARGV[3])
redis.call('PEXPIRE', KEYS[1], whole(2 * lease))
return 1
