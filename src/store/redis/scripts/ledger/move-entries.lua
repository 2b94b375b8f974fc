-- Moves entries from the stream of former versions to the log. KEYS: stream, ids, former order, former order of all (the
-- former order, if there is none), log. ARGV: the account, order of all (empty: none), then for each entry its place in
-- the stream, its request id, its former name, and its parts as `encodeSettlement` writes them.
local account, order_of_all = ARGV[1], ARGV[2]
local prefix = 'sluice:{' .. account .. '}'
for at = 3, #ARGV, 4 do
  local place, id, former = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local name, name_of_id, month, shared, own =
    string.match(ARGV[at + 3], '^([^%z]+)%z([^%z]*)%z(%d+)%z([^\n]*)\n([^\n]*)\n')
  -- Another gateway may have moved it.
  if redis.call('XDEL', KEYS[1], place) == 1 then
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZREM', KEYS[3], former)
    redis.call('ZREM', KEYS[4], former .. '\0' .. account)
    if not has_entry(KEYS[5], name) then
      add_entry(prefix, account, { name = name, month = month, shared = shared, own = own }, KEYS[2], order_of_all)
    end
  end
end
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[1]) end
return 1
