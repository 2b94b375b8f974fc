-- Several requests in one script, each for itself. `run` adds numbers of its request to `answer` with `add`, and returns
-- what else there is to say of it. If it fails, its number is -1, its error is what else there is to say, the
-- others go on, and `undo` forgets what was computed and not written. Answers with `answer` as JSON (the client reads
-- integers near 2^53 wrongly from Redis replies), then pairs: the place of a request, and what else there is to say of it.
-- Fails if every request fails, or if the server is a replica.
local answer = {}
local function add(n)
  if n < 1e14 then answer[#answer + 1] = n
  elseif n < 1e17 then answer[#answer + 1] = whole(n)
  else error('a number is none, or too large') end
end
local function each(first, run, undo)
  local more, failed, is_replica = {}, 0, false
  for at = first, #ARGV do
    local size = #answer
    local ok, said = pcall(run, ARGV[at])
    if not ok then
      said = type(said) == 'table' and said.err or tostring(said)
      failed = failed + 1
      is_replica = is_replica or string.find(said, 'READONLY ', 1, true) ~= nil
      for n = #answer, size + 1, -1 do answer[n] = nil end
      answer[size + 1] = -1
      if undo then undo() end
    end
    if said then
      more[#more + 1] = at - first + 1
      more[#more + 1] = said
    end
  end
  if is_replica or failed == #ARGV - first + 1 then return redis.error_reply(more[#more]) end
  return { '[' .. table.concat(answer, ',') .. ']', unpack(more) }
end
