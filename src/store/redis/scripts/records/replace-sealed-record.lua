-- Replaces a record if its info is the expected one, or adds it if none is expected; returns 1, else 0. KEYS: heads,
-- expiry times, values, bytes, the hash of audit entries if there are any. ARGV: expected info, 1 if no record is
-- expected, id, expiry time, head, value, audit entries.
local id = ARGV[3]
local head = redis.call('HGET', KEYS[1], id)
if ARGV[2] == '1' then
  if head then return 0 end
elseif not head or cjson.decode(head).info ~= ARGV[1] then
  return 0
end
redis.call('INCRBY', KEYS[4], #ARGV[6] - redis.call('HSTRLEN', KEYS[3], id))
redis.call('HSET', KEYS[1], id, ARGV[5])
redis.call('HSET', KEYS[3], id, ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[4], id)
leave_audit_entries(7)
return 1
