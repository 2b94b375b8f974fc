-- KEYS: the id of the store. Returns its value, and why the server accepts no writes (empty: it does). PERSIST is a write
-- that changes nothing, since the key does not expire.
local written = redis.pcall('PERSIST', KEYS[1])
return {redis.call('GET', KEYS[1]), type(written) == 'table' and written.err or ''}
