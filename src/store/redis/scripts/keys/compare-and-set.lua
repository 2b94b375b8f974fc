-- Makes changes of hashes that are unchanged since they were read (`GuardedChange` in script.ts). KEYS: what they read and
-- write, last the hash of audit entries. ARGV: the changes as JSON, audit entries. Returns the number of changes made.
local made = 0
for _, change in ipairs(cjson.decode(ARGV[1])) do
  local holds = true
  for _, condition in ipairs(change['if']) do
    local value, is_allowed = redis.call('HGET', condition[1], condition[2]) or '', false
    for at = 3, #condition do is_allowed = is_allowed or condition[at] == value end
    holds = holds and is_allowed
  end
  if holds then
    for _, command in ipairs(change.run) do redis.call(unpack(command)) end
    made = made + 1
  end
end
if made > 0 then leave_audit_entries(2) end
return made
