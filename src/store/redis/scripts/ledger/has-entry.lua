-- Whether the log of an account has an entry of this name.
local function has_entry(log, name)
  return #redis.call('ZRANGEBYLEX', log, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, 1) > 0
end
