/**
 * The scripts that settle rows and keep slices. Knows the arithmetic of limits from `redis-ledger-lua.ts`.
 */
import { SUFFIX } from './redis-ledger-layout.js'
import { ARITHMETIC, COUNTED, GIVE_BACK, HELD, PLACES_MS, SLICE_MS } from './redis-ledger-lua.js'
import { script } from './redis-link.js'

/**
 * One process's places of one limit. It says how many it may use already (`floor`), wants, and has in use; what it
 * wants beyond its floor is added to what it holds, never taken away, unless it wants no more than that: then
 * it gives back. Idle places of all processes are a tenth of the limit at the most, and none are granted where
 * less than a tenth is left. A word that comes after a later one counts for nothing. Adds to `answer`:
 * places held by it, all that are taken, the last word, idle places that it may hold, 1 where little is left.
 */
const PLACES = `
local function hold_places(answer, now, me, given)
  local key, _, limit, word, floor, want, busy = unpack(given)
  local all, field = key .. ':held', '@' .. me
  local h = held(key, now)
  local heard, mine = 0, 0
  local text = redis.call('HGET', all, field)
  if text then
    local n, m = string.match(text, '^(%d+) (%d+)')
    heard, mine = tonumber(n), tonumber(m)
  end
  local others = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') + math.max(0, h - mine)
  local holders = math.max(1, redis.call('HLEN', all) - 2 + (text and 0 or 1))
  local idle = math.floor(limit / (10 * holders))
  local is_low = false
  if word > heard then
    local before = mine
    mine = want > floor and math.max(mine, floor) or floor
    local room = limit - others - mine
    is_low = room * 10 < limit
    if not is_low then mine = math.max(mine, math.min(want, busy + idle, mine + room)) end
    -- Who holds none is remembered for a while: a word of before, held up until now, would be believed.
    local ends = now + (mine > 0 and ${PLACES_MS} or ${SLICE_MS})
    local x = redis.call('HGET', all, 'x')
    if not x or tonumber(x) > ends then x = whole(ends) end
    local record = whole(word) .. ' ' .. whole(mine) .. ' ' .. whole(ends)
    redis.call('HSET', all, field, record, 'h', whole(math.max(0, h - before) + mine), 'x', x)
    redis.call('PEXPIRE', all, ${2 * PLACES_MS})
    heard = word
  end
  local numbers = { mine, others + mine, heard, idle, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do answer[#answer + 1] = whole(n) end
end
`

/**
 * One process's slice of one limit: it tells what it has taken of it and given back so far, all in all, so
 * that telling it twice counts once; and is granted more where there is plenty. All slices of a limit together
 * hold a hundredth of it at the most, each its part of that; none is granted where less than a tenth is left.
 * A slice too small for one request (`least`) is none. Adds to `answer`: all in all granted, used (units of
 * a rate), held by all, ms until the period ends, 1 where little is left.
 */
const SLICE = `${HELD}${PLACES}
local function slice(answer, now, me, given)
  if given[2] == 'concurrent' then return hold_places(answer, now, me, given) end
  local key, kind, limit, taken, back, want, least = unpack(given)
  local day = math.floor(now / DAY)
  local month = month_of(day)
  local s = counted(key, kind, limit, now, day, month)
  local text = redis.call('HGET', key, '@' .. me)
  local granted, had_taken, had_back = taken + back, taken, back
  if text then
    local g, n, b = string.match(text, '^(%d+) (%d+) (%d+)')
    granted, had_taken, had_back = tonumber(g), tonumber(n), tonumber(b)
  end
  local others = math.max(0, s.h - math.max(0, granted - had_taken - had_back))
  use(s, limit, now, math.max(0, taken - had_taken))
  taken, back = math.max(taken, had_taken), math.max(back, had_back)
  local mine = math.max(0, granted - taken - back)
  local used = s.rate and math.ceil(s.u / UNITS) or s.s
  local room = limit - used - others - mine
  local is_low = room * 10 < limit
  if want > mine and not is_low then
    local all = math.floor(limit / 100)
    local holders = math.max(0, redis.call('HLEN', key) - 4) + (text and 0 or 1)
    local aim = math.min(want, all - others, math.floor(all / (holders + 1)))
    if aim > mine and aim >= least then
      granted = taken + back + aim
      mine = aim
    end
  end
  keep(s, key, limit)
  local ends = now + ${SLICE_MS}
  if mine > 0 then
    local totals = whole(granted) .. ' ' .. whole(taken) .. ' ' .. whole(back) .. ' ' .. whole(ends)
    if s.x == 0 or s.x > ends then s.x = ends end
    redis.call('HSET', key, '@' .. me, totals, 'h', whole(others + mine), 'x', whole(s.x))
  elseif text then
    redis.call('HDEL', key, '@' .. me)
    redis.call('HSET', key, 'h', whole(others), 'x', whole(s.x))
  end
  local left = 0
  if not s.rate then left = (kind == 'usd_day' and (day + 1) or first_day(month + 1)) * DAY - now end
  local numbers = { granted, s.rate and s.u or s.s, others + mine, left, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do answer[#answer + 1] = whole(n) end
end
`

/**
 * KEYS: those of the slices. ARGV: now, process, slices as JSON. Answers with five numbers for each, as JSON:
 * the client's own reader of numbers is not exact up to 2^53, and reads many texts slowly.
 */
export const SLICES = script(`${ARITHMETIC}${COUNTED}${SLICE}
local answer, now = {}, clock(ARGV[1])
for _, given in ipairs(cjson.decode(ARGV[3])) do slice(answer, now, ARGV[2], given) end
return '[' .. table.concat(answer, ',') .. ']'`)

/**
 * Settles rows, each for itself: one that cannot be counted keeps no other from it. Names are made of the
 * account's tag; KEYS has all of them for a Cluster, and else one. ARGV: now, `due` (only what has run out) or
 * empty, process, its slices as JSON, ids, ends, order of all (empty: none), then for each row what it is to
 * the ledger, as JSON in the order in which it is taken apart below, and its text.
 * Answers: five numbers for each slice; then for each row 1 settled, 0 already (or not due), -1 failed; both
 * as JSON. Then, for rows that there is more to say of, their number and the shared holds of the reservation,
 * or what went wrong. Fails where every row does.
 */
export const SETTLE = script(`${ARITHMETIC}${COUNTED}${GIVE_BACK}${SLICE}
local now, is_due, me = clock(ARGV[1]), ARGV[2] == 'due', ARGV[3]
local ids, ends, order_of_all = ARGV[5], ARGV[6], ARGV[7]
local function settle(given, row)
  local own, id, account, name, used, cost, key, at, prefix, counters, holds, owed =
    unpack(given)
  local open, place = own .. '${SUFFIX.open}', account .. '\\0' .. id
  if is_due then
    local due = redis.call('ZSCORE', ends, place)
    if not due or tonumber(due) > now then return 0 end
    if redis.call('HEXISTS', open, id) == 0 then
      redis.call('ZREM', ends, place)
      return 0
    end
  end
  if redis.call('HEXISTS', ids, id) == 1 then return 0 end
  local reserved = '[]'
  local text = redis.call('HGET', open, id)
  if text then
    local day, month, held, shared = string.match(text, '^(%d+) (%d+)\\n([^\\n]*)\\n([^\\n]*)\\n')
    give_back(now, cjson.decode(held), tonumber(day), tonumber(month), used, cost)
    redis.call('HDEL', open, id)
    redis.call('ZREM', ends, place)
    reserved = shared
  elseif #holds > 0 then
    local day = math.floor(at / DAY)
    give_back(now, holds, day, month_of(day), used, owed)
  end
  local entry = redis.call('XADD', own .. '${SUFFIX.rows}', '*', 'row', row)
  redis.call('HSET', ids, id, entry .. ' ' .. account)
  redis.call('ZADD', own .. '${SUFFIX.order}', 0, name)
  if order_of_all ~= '' then redis.call('ZADD', order_of_all, 0, name .. '\\0' .. account) end
  local last = redis.call('HGET', own .. '${SUFFIX.used}', key)
  if not last or tonumber(last) < at then redis.call('HSET', own .. '${SUFFIX.used}', key, whole(at)) end
  for by, length in pairs({ hour = 3600000, day = DAY }) do
    local start = whole(math.floor(at / length) * length)
    redis.call('ZADD', own .. ':' .. by .. 's', start, start)
    local sum = own .. ':' .. by .. ':' .. start
    for n = 1, #counters, 2 do
      redis.call('HINCRBY', sum, prefix .. counters[n], whole(counters[n + 1]))
    end
  end
  return 1, reserved
end
-- First what was taken: what is given back below may be of it.
local told = {}
for _, each in ipairs(cjson.decode(ARGV[4])) do slice(told, now, me, each) end
local codes, more, failed = {}, {}, 0
for at = 8, #ARGV, 2 do
  local ok, code, shared = pcall(settle, cjson.decode(ARGV[at]), ARGV[at + 1])
  if not ok then
    shared = type(code) == 'table' and code.err or tostring(code)
    code, failed = -1, failed + 1
  end
  codes[#codes + 1] = code
  if shared and shared ~= '[]' then
    more[#more + 1] = #codes
    more[#more + 1] = shared
  end
end
if failed == #codes then return redis.error_reply(more[2]) end
return { '[' .. table.concat(told, ',') .. ']', '[' .. table.concat(codes, ',') .. ']', unpack(more) }`)
