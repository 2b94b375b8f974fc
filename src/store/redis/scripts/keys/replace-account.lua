-- KEYS: the account, what is told. ARGV: the record as it was, as it shall be, the channel (empty: it is no
-- news), and what is told. 1: changed; 0: it was another.
if redis.call('HGET', KEYS[1], 'account') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'account', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
if ARGV[3] ~= '' then redis.call('PUBLISH', ARGV[3], '*') end
leave_audit_entries(4)
return 1
