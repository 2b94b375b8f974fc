-- KEYS: the limits of the slices. ARGV: now, process, reports as JSON. Returns five numbers for each, as JSON.
local now = clock(ARGV[1])
for _, report in ipairs(cjson.decode(ARGV[3])) do report_slice(now, ARGV[2], report) end
return '[' .. table.concat(answer, ',') .. ']'
