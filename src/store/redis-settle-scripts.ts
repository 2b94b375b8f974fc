/**
 * The scripts that settle rows and keep slices. Knows the arithmetic of limits from `redis-ledger-lua.ts`.
 */
import { PREFIX, SUFFIX } from './redis-ledger-layout.js'
import {
  ARITHMETIC,
  COUNTED,
  EACH,
  GIVE_BACK,
  HELD,
  PLACES_MS,
  SLICE_MS,
} from './redis-ledger-lua.js'
import { script } from './redis-link.js'

/**
 * One process's places of one limit. It says how many it may use already (`floor`), wants, and has in use; what it
 * wants beyond its floor is added to what it holds, never taken away, unless it wants no more than that: then
 * it gives back. Idle places of all processes are a tenth of the limit at the most, and none are granted where
 * less than a tenth is left. A word that comes after a later one counts for nothing. Adds to `answer`:
 * places held by it, all that are taken, the last word, idle places that it may hold, 1 where little is left.
 */
const PLACES = `
local function hold_places(now, me, given)
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
  for _, n in ipairs(numbers) do add(n) end
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
local function slice(now, me, given)
  if given[2] == 'concurrent' then return hold_places(now, me, given) end
  local key, kind, limit, taken, back, want, least = unpack(given)
  local day = math.floor(now / DAY)
  local month = month_of(day)
  local s = counted(key, kind, limit, now, day, month, '@' .. me)
  local text = s.mine
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
    local holders = math.max(0, redis.call('HLEN', key) - (s.rate and 4 or 5)) + (text and 0 or 1)
    local aim = math.min(want, all - others, math.floor(all / (holders + 1)))
    if aim > mine and aim >= least then
      granted = taken + back + aim
      mine = aim
    end
  end
  local ends = now + ${SLICE_MS}
  if mine > 0 then
    local totals = whole(granted) .. ' ' .. whole(taken) .. ' ' .. whole(back) .. ' ' .. whole(ends)
    if s.x == 0 or s.x > ends then s.x = ends end
    keep(s, key, limit, '@' .. me, totals, 'h', whole(others + mine), 'x', whole(s.x))
  elseif text then
    keep(s, key, limit, 'h', whole(others), 'x', whole(s.x))
    redis.call('HDEL', key, '@' .. me)
  else keep(s, key, limit) end
  local left = 0
  if not s.rate then left = (kind == 'usd_day' and (day + 1) or first_day(month + 1)) * DAY - now end
  local numbers = { granted, s.rate and s.u or s.s, others + mine, left, is_low and 1 or 0 }
  for _, n in ipairs(numbers) do add(n) end
end
`

/**
 * KEYS: those of the slices. ARGV: now, process, slices as JSON. Answers with five numbers for each, as JSON.
 */
export const SLICES = script(`${ARITHMETIC}${EACH}${COUNTED}${SLICE}
local now = clock(ARGV[1])
for _, given in ipairs(cjson.decode(ARGV[3])) do slice(now, ARGV[2], given) end
return '[' .. table.concat(answer, ',') .. ']'`)

/**
 * Settles rows, each for itself. Names are made of the account's tag; KEYS has all of them for a Cluster, and
 * else one. ARGV: now, process, its slices as JSON, ids, ends, order of all (empty: none), then a text for
 * each row as `settlingText` writes it. One that settles only what has run out says `due`.
 * Answers (see `EACH`): five numbers for each slice; then for each row 1 settled, 0 already (or not due); what
 * more there is to say of one is the shared holds of its reservation.
 */
export const SETTLE = script(`${ARITHMETIC}${EACH}${COUNTED}${GIVE_BACK}${SLICE}
local now, me = clock(ARGV[1]), ARGV[2]
local ids, ends, order_of_all = ARGV[4], ARGV[5], ARGV[6]
local function is_due(place, open, id)
  local due = redis.call('ZSCORE', ends, place)
  if not due or tonumber(due) > now then return false end
  if redis.call('HEXISTS', open, id) == 1 then return true end
  redis.call('ZREM', ends, place)
  return false
end
local function count(own, by, length, at, fields, counts)
  local start = whole(math.floor(at / length) * length)
  local sum = own .. ':' .. by .. ':' .. start
  local before, pairs_of = redis.call('HMGET', sum, unpack(fields)), {}
  for n, field in ipairs(fields) do
    pairs_of[2 * n - 1] = field
    pairs_of[2 * n] = math.min(MOST, tonumber(before[n] or '0') + counts[n])
  end
  redis.call('HSET', sum, unpack(pairs_of))
  -- The first of its key and model in the bucket, which may be the first of all.
  if not before[1] then redis.call('ZADD', own .. ':' .. by .. 's', start, start) end
end
local function settle(text)
  local place, account, id, key, model, time, at_ms, tokens, cost, owed, counted_up, mode, holds, from =
    string.match(text, '^(([^%z]+)%z([^%z]+))%z([^%z]+)%z([^%z]+)%z(%w+)%z' ..
      '([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(%a*)%z([^\\n]*)\\n()')
  local own, at = '${PREFIX}{' .. account .. '}', tonumber(at_ms)
  local open = own .. '${SUFFIX.open}'
  if mode == 'due' and not is_due(place, open, id) then return 0 end
  if redis.call('HEXISTS', ids, id) == 1 then return 0 end
  local reserved = nil
  local known = redis.call('HGET', open, id)
  if known then
    local day, month, held, shared = string.match(known, '^(%d+) (%d+)\\n([^\\n]*)\\n([^\\n]*)\\n')
    give_back(now, cjson.decode(held), tonumber(day), tonumber(month), tokens, cost, true)
    redis.call('HDEL', open, id)
    redis.call('ZREM', ends, place)
    if shared ~= '[]' then reserved = shared end
  elseif holds ~= '[]' then
    local day = math.floor(at / DAY)
    give_back(now, cjson.decode(holds), day, month_of(day), tokens, owed, false)
  end
  local entry = redis.call('XADD', own .. '${SUFFIX.rows}', '*', 'row', string.sub(text, from))
  redis.call('HSET', ids, id, entry .. ' ' .. account)
  local name = time .. id
  redis.call('ZADD', own .. '${SUFFIX.order}', 0, name)
  if order_of_all ~= '' then redis.call('ZADD', order_of_all, 0, name .. '\\0' .. account) end
  local last = redis.call('HGET', own .. '${SUFFIX.used}', key)
  if not last or tonumber(last) < at then redis.call('HSET', own .. '${SUFFIX.used}', key, at_ms) end
  local fields, counts, prefix = {}, {}, key .. '\\0' .. model .. '\\0'
  for field, n in string.gmatch(counted_up, '(%d+) (%d+)') do
    fields[#fields + 1] = prefix .. field
    counts[#counts + 1] = tonumber(n)
  end
  count(own, 'hour', HOUR, at, fields, counts)
  count(own, 'day', DAY, at, fields, counts)
  return 1, reserved
end
-- First what was taken: what is given back below may be of it.
for _, told in ipairs(cjson.decode(ARGV[3])) do slice(now, me, told) end
return each(7, function(text)
  local code, reserved = settle(text)
  add(code)
  return reserved
end)`)
