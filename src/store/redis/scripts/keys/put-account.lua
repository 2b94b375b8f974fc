-- KEYS: the account, its audit entries. ARGV: the record, then audit entries. Returns 1, or 0: it exists.
if redis.call('HSETNX', KEYS[1], 'account', ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'live', 0, 'gen', 1)
leave_audit_entries(2)
return 1
