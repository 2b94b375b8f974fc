-- Adds a denial. KEYS: the audit trail (3), records, order, expiry times, denials by subject. ARGV: channel, maximum of
-- audit entries of an account, maximum of audit entries, then the id, the record, the subject, the expiry time (2^53 - 1:
-- none), the maximum of denials, then id, record and account of each audit entry. Returns 0 if there are too many.
local id, record, subject, ends = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if redis.call('HEXISTS', KEYS[4], id) == 1 then return 1 end
if redis.call('HLEN', KEYS[4]) >= tonumber(ARGV[8]) then return 0 end
local last = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')
redis.call('HSET', KEYS[4], id, record)
redis.call('ZADD', KEYS[5], (last[2] or 0) + 1, id)
if ends ~= '9007199254740991' then redis.call('ZADD', KEYS[6], ends, id) end
local lines = redis.call('HGET', KEYS[7], subject)
local line = id .. ' ' .. ends
redis.call('HSET', KEYS[7], subject, lines and lines .. '\n' .. line or line)
for at = 9, #ARGV, 3 do add_audit_entry(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[2], ARGV[3]) end
redis.call('PUBLISH', ARGV[1], '*')
return 1
