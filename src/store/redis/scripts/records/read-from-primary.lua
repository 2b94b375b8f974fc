-- KEYS: the store's name. Answers with its value, and with why the server takes no writes (empty: it does). PERSIST
-- changes nothing here, since the key does not expire, and is a write all the same.
local written = redis.pcall('PERSIST', KEYS[1])
return {redis.call('GET', KEYS[1]), type(written) == 'table' and written.err or ''}
