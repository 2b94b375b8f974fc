-- KEYS: reservations, ends. ARGV: now, lease, ms by which expiry is held back after the clock has jumped, then for each
-- request its id and its member in ends.
-- Returns the shared holds of each, for a Cluster.
local now, lease = clock(ARGV[1]), tonumber(ARGV[2])
local answer = {}
local until_ms = whole(now + lease)
local held_back = tonumber(ARGV[3])
for at = 4, #ARGV, 2 do
  local due = redis.call('ZSCORE', KEYS[2], ARGV[at + 1])
  -- The slots of an expired lease may be in use by other requests.
  if due and tonumber(due) > now - held_back then
    redis.call('ZADD', KEYS[2], until_ms, ARGV[at + 1])
    local text = redis.call('HGET', KEYS[1], ARGV[at]) or '0 0\n[]\n[]\n'
    local holds, shared = string.match(text, '^[^\n]*\n([^\n]*)\n([^\n]*)\n')
    for _, hold in ipairs(cjson.decode(holds)) do
      if hold[1] == 'concurrent' then
        redis.call('ZADD', hold[2], 'XX', until_ms, hold[5])
        redis.call('PEXPIRE', hold[2], whole(2 * lease))
      end
    end
    answer[#answer + 1] = shared
  end
end
return answer
