-- KEYS: the subjects. ARGV: now, then burst and interval of each. Computes `throttleWaitMs` and `throttleFullAtMs`.
local now, waits, isFull = tonumber(ARGV[1]), {}, false
local full = {}
for n = 1, #KEYS do
  local burst, every = tonumber(ARGV[2 * n]), tonumber(ARGV[2 * n + 1])
  full[n] = tonumber(redis.call('GET', KEYS[n]) or '0')
  waits[n] = math.max(0, full[n] + every - now - burst * every)
  if waits[n] > 0 then isFull = true end
end
if isFull then return waits end
for n = 1, #KEYS do
  local after = math.max(now, full[n]) + tonumber(ARGV[2 * n + 1])
  redis.call('SET', KEYS[n], string.format('%.0f', after), 'PX', string.format('%.0f', after - now))
end
return waits
