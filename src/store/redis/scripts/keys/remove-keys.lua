-- Removes keys. KEYS: the account, the order of its keys, the list. ARGV: the channel, then ids and digests by turns.
local count = 0
for at = 2, #ARGV, 2 do
  local id, digest = 'id:' .. ARGV[at], ARGV[at + 1]
  count = count + redis.call('HDEL', KEYS[1], 'key:' .. digest)
  redis.call('HDEL', KEYS[1], id, 'revoked:' .. digest)
  redis.call('ZREM', KEYS[2], digest)
  redis.call('PUBLISH', ARGV[1], digest)
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
return count
