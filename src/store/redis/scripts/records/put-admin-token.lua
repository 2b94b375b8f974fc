-- Adds a token, or replaces one unless it has changed. KEYS: records by id, ids by digest, order, last position, audit
-- entries. ARGV: id, digest, the record that was read (empty: none), the new record, maximum number, audit entries.
-- Returns 1, or 0: the record has changed since, the digest is in use, or there are too many.
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[3] then return 0 end
if ARGV[3] == '' then
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then return 0 end
  if redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[1]) == 0 then return 0 end
  redis.call('ZADD', KEYS[3], redis.call('INCR', KEYS[4]), ARGV[1])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
leave_audit_entries(6)
return 1
