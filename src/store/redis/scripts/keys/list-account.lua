-- Adds an account to the order of accounts. KEYS: the order, the last position. ARGV: the account.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), ARGV[1])
return 1
