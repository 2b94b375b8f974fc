-- KEYS: log. ARGV: names of entries. Returns the members, false for an entry that does not exist.
local answer = {}
for at, name in ipairs(ARGV) do
  local found = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, 1)
  answer[at] = found[1] or false
end
return answer
