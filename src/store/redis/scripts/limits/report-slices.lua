-- KEYS: those of the slices. ARGV: now, process, slices as JSON. Answers with five numbers for each, as JSON.
local now = clock(ARGV[1])
for _, given in ipairs(cjson.decode(ARGV[3])) do slice(now, ARGV[2], given) end
return '[' .. table.concat(answer, ',') .. ']'
