-- Ends a value of a dimension. KEYS: as claim-value.lua, the hash of audit entries. ARGV: value, now, time to keep,
-- channel, digest of the value, audit entries, which it leaves unless the value had ended. Returns its record.
local now, keep = tonumber(ARGV[2]), tonumber(ARGV[3])
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ends and tonumber(ends) <= now then redis.call('DEL', KEYS[2]) end
if redis.call('HSETNX', KEYS[2], 'ended', ARGV[2]) == 1 then leave_audit_entries(6) end
if not ends or tonumber(ends) < now + keep then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + keep), ARGV[1])
end
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', 2 * keep))
if redis.call('PTTL', KEYS[1]) < 1.5 * keep then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', 2 * keep)) end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return redis.call('HGETALL', KEYS[2])
