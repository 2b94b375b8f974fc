-- Writes the audit entries of a change beside the account: the arguments from `from` on are ids and texts, by turns.
-- The last key is the hash that holds them.
local function leave_audit_entries(from)
  if #ARGV >= from then redis.call('HSET', KEYS[#KEYS], unpack(ARGV, from)) end
end
