-- `free_name` takes the name of a key from it, so that another key may have it. KEYS: the account, its keys' names.
local function free_name(digest)
  local text = redis.call('HGET', KEYS[1], 'key:' .. digest)
  local name = text and cjson.decode(text).name
  if name and redis.call('HGET', KEYS[2], name) == digest then redis.call('HDEL', KEYS[2], name) end
end
