-- Adds whole numbers, as texts, exactly. The second one may be negative, but not their sum.
local LIMB = 1000000000
local function plus(a, b)
  if #a < 16 and #b < 16 then return whole(tonumber(a) + tonumber(b)) end
  local sum, carry, sign = {}, 0, 1
  if string.sub(b, 1, 1) == '-' then
    sign = -1
    b = string.sub(b, 2)
  end
  while #a > 0 or #b > 0 or carry > 0 do
    local n = tonumber(string.sub(a, -9)) or 0
    local m = tonumber(string.sub(b, -9)) or 0
    local limb = n + sign * m + carry
    carry = limb >= LIMB and 1 or limb < 0 and -1 or 0
    table.insert(sum, 1, string.format('%09.0f', limb - carry * LIMB))
    a, b = string.sub(a, 1, -10), string.sub(b, 1, -10)
  end
  return (string.gsub(table.concat(sum), '^0+(%d)', '%1'))
end
local EXACT = 1e14
-- Adds a list of counts to a cell of sums: a list in JSON, which has counts from 10^14 on as texts, because they would
-- not be exact as numbers of Lua. A cell of no requests is removed. Returns whether the cell is new.
local function add_to_cell(sum, cell, text, counts)
  local before = redis.call('HGET', sum, cell)
  if not before then
    redis.call('HSET', sum, cell, text)
    return true
  end
  local all = cjson.decode(before)
  for at, count in ipairs(counts) do
    local known = all[at] or 0
    if type(known) == 'number' and type(count) == 'number' and known + count < EXACT then all[at] = known + count
    elseif count ~= 0 then
      local of = type(known) == 'number' and whole(known) or known
      all[at] = plus(of, type(count) == 'number' and whole(count) or count)
    end
  end
  if all[1] == 0 and counts[1] and counts[1] < 0 then
    redis.call('HDEL', sum, cell)
    return false
  end
  for at, count in ipairs(all) do if type(count) == 'string' then all[at] = '"' .. count .. '"' end end
  redis.call('HSET', sum, cell, '[' .. table.concat(all, ',') .. ']')
  return false
end
-- Adds figures, separated by spaces, to those of a field, which may be more or fewer; one of no requests is removed.
local function add_use(months, field, figures)
  local before, sum = string.gmatch(redis.call('HGET', months, field) or '', '%S+'), {}
  for figure in string.gmatch(figures, '%S+') do sum[#sum + 1] = plus(before() or '0', figure) end
  for figure in before do sum[#sum + 1] = figure end
  if sum[1] == '0' then redis.call('HDEL', months, field) else redis.call('HSET', months, field, table.concat(sum, ' ')) end
end
