-- Deletes a pointer that has the value of ARGV. KEYS: the pointer.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
