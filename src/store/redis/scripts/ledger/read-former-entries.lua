-- KEYS: entries, ids. ARGV: request ids. Returns the records, false for an entry that does not exist.
local answer = {}
for at, id in ipairs(ARGV) do
  local location = redis.call('HGET', KEYS[2], id)
  local found = {}
  if location then
    local stream = string.match(location, '^%S+')
    found = redis.call('XRANGE', KEYS[1], stream, stream)
  end
  answer[at] = found[1] and found[1][2][2] or false
end
return answer
