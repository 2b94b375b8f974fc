-- KEYS: records, order. ARGV: the position of the last denial of the previous page (empty: none), number of denials,
-- `newest_first` or not. Returns two values for each denial: position and record.
local is_down = ARGV[3] == 'newest_first'
local first, last = is_down and '+inf' or '-inf', is_down and '-inf' or '+inf'
if ARGV[1] ~= '' then first = '(' .. ARGV[1] end
local command = is_down and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE'
local found = redis.call(command, KEYS[2], first, last, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local answer = {}
for at = 1, #found, 2 do
  local record = redis.call('HGET', KEYS[1], found[at])
  if record then
    answer[#answer + 1] = found[at + 1]
    answer[#answer + 1] = record
  end
end
return answer
