-- Creates or changes an account with its members and keys, in one step. KEYS: the account, the order of its keys, the
-- list of an earlier version, its members, its keys' names, its user, that user's accounts, audit entries. ARGV: the
-- count of changes that was read (empty: the account does not exist), channel, maximum of keys, the writes as JSON
-- (`encodeWrites`), audit entries. Returns 1, 0: it has changed since, or `account_full`.
if (redis.call('HGET', KEYS[1], 'gen') or '') ~= ARGV[1] then return 0 end
local writes = cjson.decode(ARGV[4])
if writes.purge then
  for at = 1, 5 do redis.call('DEL', KEYS[at]) end
  -- The count goes on: a change that has read the account before must not take it for unchanged.
  redis.call('HSET', KEYS[1], 'purged', 1, 'gen', (tonumber(ARGV[1]) or 0) + 1)
  redis.call('PUBLISH', ARGV[2], '*')
  leave_audit_entries(5)
  return 1
end
if redis.call('ZCARD', KEYS[2]) + #writes.new > tonumber(ARGV[3]) then return 'account_full' end
if writes.account then
  redis.call('HSET', KEYS[1], 'account', writes.account)
  if ARGV[1] == '' then redis.call('HSET', KEYS[1], 'live', 0)
  else redis.call('PUBLISH', ARGV[2], '*') end
end
if writes.user then
  redis.call('HSETNX', KEYS[6], 'user', writes.user)
  redis.call('SADD', KEYS[7], writes.id)
end
-- A member may have lost the role with which its programs run.
if ARGV[1] ~= '' and not writes.account and #writes.members + #writes.removed > 0 then redis.call('PUBLISH', ARGV[2], '*') end
for _, member in ipairs(writes.members) do redis.call('HSET', KEYS[4], member[1], member[2]) end
for _, email in ipairs(writes.removed) do redis.call('HDEL', KEYS[4], email) end
if writes.ends then redis.call('HSET', KEYS[1], 'ends', writes.ends) end
local function put(key)
  local id, digest, text, name, naming, revoked = unpack(key)
  local former = redis.call('HGET', KEYS[1], 'key:' .. digest)
  local named = former and cjson.decode(former).name
  redis.call('HSET', KEYS[1], 'key:' .. digest, text, 'id:' .. id, digest)
  if named and (naming == '' or named ~= name) and redis.call('HGET', KEYS[5], named) == digest then
    redis.call('HDEL', KEYS[5], named)
  end
  -- An expired key leaves its name to another one.
  if naming == 'taken' then redis.call('HSET', KEYS[5], name, digest)
  elseif naming == 'if_free' then redis.call('HSETNX', KEYS[5], name, digest) end
  redis.call('PUBLISH', ARGV[2], digest)
  return revoked ~= '' and redis.call('HSETNX', KEYS[1], 'revoked:' .. digest, revoked) == 1
end
for _, key in ipairs(writes.keys) do
  if put(key) then redis.call('HINCRBY', KEYS[1], 'live', -1) end
end
for _, key in ipairs(writes.new) do
  if not put(key) then redis.call('HINCRBY', KEYS[1], 'live', 1) end
  append_digest(key[2])
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
leave_audit_entries(5)
return 1
