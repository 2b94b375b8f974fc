-- Replaces the progress of the archive. KEYS: progress, lease. ARGV: the id of the leader, the version, the text.
-- Returns 1, or 0 if another process leads or another version is stored.
local held = redis.call('GET', KEYS[2])
if not held or cjson.decode(held).id ~= ARGV[1] then return 0 end
local before = redis.call('GET', KEYS[1])
local version = before and cjson.decode(before).version or 0
if version ~= tonumber(ARGV[2]) - 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[3])
return 1
