-- `PERSIST` changes nothing where nothing runs out, and is a write: a server that may not, says so.
local written = redis.pcall('PERSIST', KEYS[1])
return {redis.call('GET', KEYS[1]), type(written) == 'table' and written.err or ''}
