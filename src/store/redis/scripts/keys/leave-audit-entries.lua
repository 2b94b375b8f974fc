-- Writes the audit entries of a change beside the account: the arguments from `from` on are ids and texts, by turns.
-- The last key is the hash that holds them. Lua passes a few thousand values to a function at most.
local function leave_audit_entries(from)
  for at = from, #ARGV, 1000 do
    redis.call('HSET', KEYS[#KEYS], unpack(ARGV, at, math.min(at + 999, #ARGV)))
  end
end
