-- Deletes a pointer, or the claim of a process, that has the value of ARGV. KEYS: the pointer or claim.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
