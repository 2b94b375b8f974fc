-- KEYS: the account, the order of its keys, the list of an earlier version. ARGV: the position of the last key of the
-- previous page (empty: none), number of keys, `newest_first` or not. Returns four values for each key: digest,
-- position, record, time of revocation.
local is_down = ARGV[3] == 'newest_first'
local first, last = is_down and '+inf' or '-inf', is_down and '-inf' or '+inf'
if ARGV[1] ~= '' then first = '(' .. ARGV[1] end
local command = is_down and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE'
local found = redis.call(command, KEYS[2], first, last, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local answer = {}
for at = 1, #found, 2 do
  local digest = found[at]
  local values = redis.call('HMGET', KEYS[1], 'key:' .. digest, 'revoked:' .. digest)
  for _, value in ipairs({ digest, found[at + 1], values[1], values[2] }) do answer[#answer + 1] = value end
end
return answer
