-- Adds an entry to the log of its account. `prefix` is that of the account's keys; `shared` has the digest and the text
-- of each shared text by turns. A text is in the dictionary of the entry's month once, if it is not a short one; the
-- entry has its digest instead, unless another text has the same. Texts that are in one entry each, such as a label with
-- an id, do not fill the dictionary: it grows by one text for ten entries.
local SHORT, FREE, SHARE = 16, 1000, 10
-- Texts by their dictionary and digest, and numbers of accounts, of the entries of this command.
local texts, numbers = {}, {}
local function shared_text(dictionary, log, digest, text)
  if #text <= SHORT then return text end
  local name = dictionary .. digest
  local known = texts[name] or redis.call('HGET', dictionary, digest)
  if known then
    texts[name] = known
    return known == text and digest or text
  end
  if redis.call('HLEN', dictionary) > FREE + redis.call('ZCARD', log) / SHARE then return text end
  redis.call('HSET', dictionary, digest, text)
  local dictionaries, month = string.match(dictionary, '^(.*):(%d+)$')
  redis.call('SADD', dictionaries, month)
  return digest
end
-- The number of an account in the order of all: it is shorter than the id.
local function number_of(key, account)
  local number = numbers[account] or redis.call('HGET', key, account)
  if not number then
    number = tostring(redis.call('HLEN', key) + 1)
    redis.call('HSET', key, account, number)
  end
  numbers[account] = number
  return number
end
local function add_entry(prefix, account, entry, ids, order_of_all)
  local dictionary, log = prefix .. ':texts:' .. entry.month, prefix .. ':log'
  local member = entry.name .. '\0'
  for digest, text in string.gmatch(entry.shared, '([^\t]*)\t([^\t]*)\t') do
    member = member .. shared_text(dictionary, log, digest, text) .. '\t'
  end
  redis.call('ZADD', log, 0, member .. entry.own)
  if order_of_all ~= '' then
    redis.call('ZADD', order_of_all, 0, entry.name .. '\0' .. number_of(order_of_all .. ':accounts', account))
  end
  -- The name of an entry whose id does not determine it.
  local time, id = string.match(entry.name, '^(%w+)~(.*)$')
  if id then redis.call('HSET', ids, id, '@' .. time .. ' ' .. account) end
end
