-- Revokes the keys that ended before a time, so that no edit makes them valid while they are removed. KEYS: the account,
-- the names of its keys.
-- ARGV: the time, then ids. Returns the ids and digests of those keys, by turns.
local answer, before = {}, tonumber(ARGV[1])
for at = 2, #ARGV do
  local digest = redis.call('HGET', KEYS[1], 'id:' .. ARGV[at])
  local text = digest and redis.call('HGET', KEYS[1], 'key:' .. digest)
  if text then
    local revoked = tonumber(redis.call('HGET', KEYS[1], 'revoked:' .. digest) or nil)
    local expires = tonumber(cjson.decode(text).expiresAtMs)
    if (revoked and revoked < before) or (expires and expires < before) then
      if not revoked then
        redis.call('HSET', KEYS[1], 'revoked:' .. digest, string.format('%.0f', expires))
        redis.call('HINCRBY', KEYS[1], 'live', -1)
        free_name(digest)
      end
      answer[#answer + 1], answer[#answer + 2] = ARGV[at], digest
    end
  end
end
local former = tonumber(redis.call('HGET', KEYS[1], 'removed-before') or '0')
if #answer > 0 and before > former then
  redis.call('HSET', KEYS[1], 'removed-before', string.format('%.0f', before))
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
return answer
