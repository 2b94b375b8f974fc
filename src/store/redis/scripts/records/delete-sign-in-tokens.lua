-- Deletes tokens unless they have changed. KEYS: records, expiry times, owners. ARGV: for each its id, the record that was
-- read, owner. Returns their number.
local count = 0
for at = 1, #ARGV, 3 do
  if redis.call('HGET', KEYS[1], ARGV[at]) == ARGV[at + 1] then
    redis.call('HDEL', KEYS[1], ARGV[at])
    redis.call('ZREM', KEYS[2], ARGV[at])
    redis.call('ZREM', KEYS[3], ARGV[at + 2])
    count = count + 1
  end
end
return count
