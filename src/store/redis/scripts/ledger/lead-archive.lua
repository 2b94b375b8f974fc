-- Takes, renews or ends the lease of the process that moves entries to the archive. KEYS: lease. ARGV: the id of the
-- leader, its text, and for how many ms; 0 ends its lease. Returns the text of the process that has the lease.
local held = redis.call('GET', KEYS[1])
local is_own = held and cjson.decode(held).id == ARGV[1]
if held and not is_own then return held end
if ARGV[3] == '0' then
  redis.call('DEL', KEYS[1])
  return ''
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return ARGV[2]
