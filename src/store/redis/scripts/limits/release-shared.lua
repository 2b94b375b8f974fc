-- Returns holds of a shared limit in a Cluster. KEYS: any of the slot. ARGV: now, holds, day, month, usage, cost.
local holds = cjson.decode(ARGV[2])
local used = ARGV[5]
if string.sub(used, 1, 5) == 'never' then
  local rates = {}
  for _, hold in ipairs(holds) do
    if hold[1] == 'requests' or hold[1] == 'requests_total' then rates[#rates + 1] = hold end
  end
  charge_actual_usage(clock(ARGV[1]), rates, 0, 0, 'never', '')
  used = '0 0 *=0'
end
local rest = {}
for _, hold in ipairs(holds) do
  if hold[1] ~= 'requests' and hold[1] ~= 'requests_total' then rest[#rest + 1] = hold end
end
charge_actual_usage(clock(ARGV[1]), rest, tonumber(ARGV[3]), tonumber(ARGV[4]), used, ARGV[6], true)
return 1
