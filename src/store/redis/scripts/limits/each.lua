-- Many requests in one script, each for itself: `run` adds what it says to `answer`, and returns what more there is
-- to say of its request. One that fails keeps no other from it: `undo` forgets what was thought of it, its answer is
-- -1, and what went wrong is what there is to say. Answers: `answer` as JSON, since the client's own reader of numbers is not exact up to 2^53
-- and reads many texts slowly; then for requests that there is more to say of, their number and that. Fails
-- where every request does, or where the server takes no writes from anybody.
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
