-- Removes denials. KEYS: as put-denial. ARGV: channel, maximum of audit entries of an account, maximum of audit entries,
-- the number of denials, then id and subject of each, then id, record and account of each audit entry. Returns the number
-- of denials that were removed; without any, no audit entry is written.
local count, removed = tonumber(ARGV[4]), 0
for at = 5, 4 + 2 * count, 2 do
  local id, subject = ARGV[at], ARGV[at + 1]
  removed = removed + redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[5], id)
  redis.call('ZREM', KEYS[6], id)
  local kept = {}
  for line in string.gmatch(redis.call('HGET', KEYS[7], subject) or '', '[^\n]+') do
    if string.sub(line, 1, #id + 1) ~= id .. ' ' then kept[#kept + 1] = line end
  end
  if #kept == 0 then redis.call('HDEL', KEYS[7], subject)
  else redis.call('HSET', KEYS[7], subject, table.concat(kept, '\n')) end
end
if removed == 0 then return 0 end
for at = 5 + 2 * count, #ARGV, 3 do add_audit_entry(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[2], ARGV[3]) end
redis.call('PUBLISH', ARGV[1], '*')
return removed
