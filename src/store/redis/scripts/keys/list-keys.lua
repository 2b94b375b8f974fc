-- KEYS: the account, the order of its keys, the list of an earlier version. ARGV: the position of the last key of the
-- previous page (empty: none), number of keys, `newest_first` or not. Returns four values for each key: digest,
-- position, record, time of revocation.
local found
if ARGV[3] == 'newest_first' then
  local first = ARGV[1] == '' and '+inf' or '(' .. ARGV[1]
  found = redis.call('ZREVRANGEBYSCORE', KEYS[2], first, '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
else
  local first = ARGV[1] == '' and '-inf' or '(' .. ARGV[1]
  found = redis.call('ZRANGEBYSCORE', KEYS[2], first, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
end
local answer = {}
for at = 1, #found, 2 do
  local digest = found[at]
  answer[2 * at - 1], answer[2 * at] = digest, found[at + 1]
  answer[2 * at + 1] = redis.call('HGET', KEYS[1], 'key:' .. digest)
  answer[2 * at + 2] = redis.call('HGET', KEYS[1], 'revoked:' .. digest)
end
return answer
