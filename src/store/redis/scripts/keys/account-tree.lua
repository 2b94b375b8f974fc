-- The names and parents of all accounts: an account exists once it has a name here. KEYS: names by id, ids by name, the
-- names in order, parents by id, accounts that are being removed. ARGV: `place`, `close`, `open` or `remove`, the
-- account; for `place` its name, its parent (empty: none) and the most levels.
-- `place` gives an account its name and parent; `close` refuses new children, and a new account its name, `open` takes that back, `remove` frees
-- the name. Returns `ok`, or the rule that is broken and, for `name_taken`, the id of the account with the name.
local what, id, name, parent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local function children(of)
  return 'sluice:{accounts}:children:' .. of
end
if what == 'close' then
  if redis.call('SCARD', children(id)) > 0 then return {'has_children'} end
  redis.call('HSET', KEYS[5], id, 1)
  return {'ok'}
end
if what == 'open' then
  redis.call('HDEL', KEYS[5], id)
  return {'ok'}
end
local former = redis.call('HGET', KEYS[4], id)
if what == 'remove' then
  local own = redis.call('HGET', KEYS[1], id)
  if own then
    redis.call('HDEL', KEYS[2], own)
    redis.call('ZREM', KEYS[3], own)
  end
  if former then redis.call('SREM', children(former), id) end
  redis.call('HDEL', KEYS[1], id)
  redis.call('HDEL', KEYS[4], id)
  redis.call('HDEL', KEYS[5], id)
  return {'ok'}
end
-- Another process took this account for abandoned, to make its user.
if redis.call('HEXISTS', KEYS[5], id) == 1 and redis.call('HEXISTS', KEYS[1], id) == 0 then return {'email_taken'} end
local owner = redis.call('HGET', KEYS[2], name)
if owner and owner ~= id then return {'name_taken', owner} end
if parent ~= '' and parent ~= former then
  if redis.call('HEXISTS', KEYS[1], parent) == 0 or redis.call('HEXISTS', KEYS[5], parent) == 1 then
    return {'no_parent'}
  end
  local above, at = 0, parent
  while at do
    if at == id then return {'parent_loop'} end
    above, at = above + 1, redis.call('HGET', KEYS[4], at)
  end
  local function levels(of)
    local most = 0
    for _, child in ipairs(redis.call('SMEMBERS', children(of))) do most = math.max(most, levels(child)) end
    return most + 1
  end
  if above + levels(id) > tonumber(ARGV[5]) then return {'too_deep'} end
end
redis.call('HSET', KEYS[1], id, name)
redis.call('HSET', KEYS[2], name, id)
redis.call('ZADD', KEYS[3], 0, name)
if parent ~= (former or '') then
  if former then redis.call('SREM', children(former), id) end
  if parent == '' then redis.call('HDEL', KEYS[4], id)
  else
    redis.call('HSET', KEYS[4], id, parent)
    redis.call('SADD', children(parent), id)
  end
end
return {'ok'}
