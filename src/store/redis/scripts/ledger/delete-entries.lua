-- Deletes entries and adds their use to the months of their account (src/store/redis/ledger/account-use.ts). KEYS:
-- entries, ids, order, order of all, months. ARGV: for each entry its request id, its two members, and the field and the
-- figures of its use, empty for an entry that cannot be read.
local function add(field, figures)
  local before, sum = string.gmatch(redis.call('HGET', KEYS[5], field) or '', '%S+'), {}
  for figure in string.gmatch(figures, '%S+') do
    sum[#sum + 1] = string.format('%.0f', tonumber(figure) + tonumber(before() or '0'))
  end
  redis.call('HSET', KEYS[5], field, table.concat(sum, ' '))
end
for at = 1, #ARGV, 5 do
  local location = redis.call('HGET', KEYS[2], ARGV[at])
  if location then
    redis.call('XDEL', KEYS[1], (string.match(location, '^%S+')))
    if ARGV[at + 3] ~= '' then add(ARGV[at + 3], ARGV[at + 4]) end
  end
  redis.call('HDEL', KEYS[2], ARGV[at])
  redis.call('ZREM', KEYS[3], ARGV[at + 1])
  redis.call('ZREM', KEYS[4], ARGV[at + 2])
end
return 1
