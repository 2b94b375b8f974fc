-- Deletes entries and adds their use to the months of their account (src/store/redis/ledger/account-use.ts). KEYS: log,
-- ids, order of all (the log again, if there is none), months, the names that wait for the archive. ARGV: whether those
-- that wait stay (1), the account, then for each entry its member, its name in the order of
-- all, its request id, and the field and the figures of its use, empty for an entry that cannot be read.

local deleted = 0
for at = 3, #ARGV, 5 do
  local waiting = string.match(ARGV[at], '^[^%z]*') .. '\0' .. ARGV[2]
  local corrected = waiting .. '\0corrected'
  local waits = redis.call('ZSCORE', KEYS[5], waiting) or redis.call('ZSCORE', KEYS[5], corrected)
  if ARGV[1] ~= '1' or not waits then
    if redis.call('ZREM', KEYS[1], ARGV[at]) == 1 then
      deleted = deleted + 1
      if ARGV[at + 3] ~= '' then add_use(KEYS[4], ARGV[at + 3], ARGV[at + 4]) end
    end
    redis.call('ZREM', KEYS[3], ARGV[at + 1])
    redis.call('HDEL', KEYS[2], ARGV[at + 2])
    redis.call('ZREM', KEYS[5], waiting, corrected)
  end
end
return deleted
