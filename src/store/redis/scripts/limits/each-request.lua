-- Runs several requests in one script, each separately. `run` adds numbers of its request to `answer` with `add`, and may
-- return an additional value. If it fails, its number is -1, the additional value is its error, the others continue, and
-- `undo` drops what was computed and not written. Returns `answer` as JSON (the client reads integers near 2^53 wrongly
-- from Redis replies), then pairs: the position of a request and its additional value.
-- Fails if every request fails, or if the server is a replica.
local answer = {}
local function add(n)
  if n < 1e14 then answer[#answer + 1] = n
  elseif n < 1e17 then answer[#answer + 1] = whole(n)
  else error('a number is too large or not a number') end
end
local function each(first, run, undo)
  local more, failed, is_replica = {}, 0, false
  for at = first, #ARGV do
    local size = #answer
    local ok, value = pcall(run, ARGV[at])
    if not ok then
      value = type(value) == 'table' and value.err or tostring(value)
      failed = failed + 1
      is_replica = is_replica or string.find(value, 'READONLY ', 1, true) ~= nil
      for n = #answer, size + 1, -1 do answer[n] = nil end
      answer[size + 1] = -1
      if undo then undo() end
    end
    if value then
      more[#more + 1] = at - first + 1
      more[#more + 1] = value
    end
  end
  if is_replica or failed == #ARGV - first + 1 then return redis.error_reply(more[#more]) end
  return { '[' .. table.concat(answer, ',') .. ']', unpack(more) }
end
