/**
 * The scripts of the `redis` engine's ledger. The arithmetic is that of `limits/bucket.ts`, in doubles
 * as there; numbers are written with all their digits, since Lua's own way keeps 14.
 * Each touches names of one slot only; without a Cluster, those of all that the request needs.
 */
import { script } from './redis-link.js'

/** Time, calendar, and how a limit stands. */
const ARITHMETIC = `
local UNITS, DAY, MOST = 60000, 86400000, 9007199254740991
local function whole(n) return string.format('%.0f', n) end
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
-- Months since 1970 of a day since 1970, and the day that a month begins with (proleptic Gregorian).
local function month_of(day)
  local z = day + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local m = mp < 10 and mp + 3 or mp - 9
  local y = yoe + era * 400 + (m <= 2 and 1 or 0)
  return (y - 1970) * 12 + m - 1
end
local function first_day(month)
  local y, m = 1970 + math.floor(month / 12), month % 12 + 1
  if m <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local yoe = y - era * 400
  local doy = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5)
  return era * 146097 + yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy - 719468
end
local function drained(units, elapsed, per)
  if elapsed <= 0 then return units end
  return math.max(0, units - elapsed * per)
end
`

/**
 * KEYS: reservations, ids, ends, then one name per demand. ARGV: now (empty: the server's), what
 * (`take` or `look`), request (empty: none is kept), its place among the ends, lease in ms, holds,
 * shared holds, row; then for each demand: kind, limit, cost, member.
 * Answers: 1 taken, 0 refused, 2 known already; then four numbers for each demand.
 */
export const ADMIT = script(`${ARITHMETIC}
local now, take, id, lease = clock(ARGV[1]), ARGV[2] == 'take', ARGV[3], tonumber(ARGV[5])
local day = math.floor(now / DAY)
local month = month_of(day)
local states = {}
local function state_of(key, kind)
  local s = states[key]
  if s then return s end
  if kind == 'requests' or kind == 'tokens' then
    local r = redis.call('HMGET', key, 'u', 't')
    s = { u = tonumber(r[1] or '0'), t = tonumber(r[2] or '0') }
  elseif kind == 'concurrent' then
    s = { n = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') }
  else
    local r = redis.call('HMGET', key, 'p', 's')
    s = { p = tonumber(r[1] or '0'), s = tonumber(r[2] or '0') }
    local period = kind == 'usd_day' and day or month
    -- Never backwards: a clock that is set back over midnight would make a budget whole twice.
    if period > s.p then s.p, s.s = period, 0 end
  end
  states[key] = s
  return s
end
local function standing(s, kind, limit, cost)
  if kind == 'requests' or kind == 'tokens' then
    local u = drained(s.u, now - s.t, limit)
    local retry
    if u + cost * UNITS <= limit * UNITS then retry = 0
    elseif cost > limit or limit <= 0 then retry = -1
    else retry = math.ceil((u - (limit - cost) * UNITS) / limit) end
    local reset = limit > 0 and math.min(MOST, math.ceil(u / limit)) or 0
    return { limit, math.max(0, limit - math.ceil(u / UNITS)), reset, retry }
  end
  if kind == 'concurrent' then
    local retry = s.n < limit and 0 or (limit > 0 and 1000 or -1)
    return { limit, math.max(0, limit - s.n), 0, retry }
  end
  local left = (kind == 'usd_day' and (day + 1) or first_day(month + 1)) * DAY - now
  local retry
  if cost > limit then retry = -1 elseif s.s + cost <= limit then retry = 0 else retry = left end
  return { limit, math.max(0, limit - s.s), s.s > 0 and left or 0, retry }
end
local function apply(s, kind, limit, cost)
  if kind == 'concurrent' then s.n = s.n + 1
  elseif kind == 'requests' or kind == 'tokens' then
    s.u = drained(s.u, now - s.t, limit) + cost * UNITS
    s.t = now
  else s.s = s.s + cost end
end
local demands = {}
for at = 9, #ARGV, 4 do
  local d = { key = KEYS[3 + (at - 9) / 4 + 1], kind = ARGV[at], limit = tonumber(ARGV[at + 1]) }
  d.cost, d.member = tonumber(ARGV[at + 2]), ARGV[at + 3]
  demands[#demands + 1] = d
end
local function all(outcome, refused)
  local answer = { outcome }
  for at, d in ipairs(demands) do
    local s = standing(state_of(d.key, d.kind), d.kind, d.limit, d.cost)
    if refused then s[4] = refused[at] or 0 end
    -- As text: the client's reader of numbers is not exact up to 2^53.
    for _, n in ipairs(s) do answer[#answer + 1] = whole(n) end
  end
  return answer
end
if not take then return all(1, nil) end
if id ~= '' then
  local known = redis.call('HEXISTS', KEYS[1], id) == 1 or redis.call('HEXISTS', KEYS[2], id) == 1
  if known then return all(2, {}) end
end
local refused, any = {}, false
for at, d in ipairs(demands) do
  local s = state_of(d.key, d.kind)
  local stands = standing(s, d.kind, d.limit, d.cost)
  if stands[4] == 0 then apply(s, d.kind, d.limit, d.cost) else refused[at], any = stands[4], true end
end
if any then
  states = {}
  return all(0, refused)
end
local until_ms = now + lease
for _, d in ipairs(demands) do
  local s = states[d.key]
  if d.kind == 'concurrent' then
    redis.call('ZADD', d.key, whole(until_ms), d.member)
    redis.call('ZREMRANGEBYSCORE', d.key, '-inf', whole(now))
    redis.call('PEXPIRE', d.key, whole(math.max(2 * lease, redis.call('PTTL', d.key))))
  elseif d.kind == 'requests' or d.kind == 'tokens' then
    redis.call('HSET', d.key, 'u', whole(s.u), 't', whole(s.t))
    local whole_in = d.limit > 0 and math.ceil(s.u / d.limit) or 0
    redis.call('PEXPIRE', d.key, whole(math.min(40 * DAY, 2 * whole_in + 120000)))
  else
    redis.call('HSET', d.key, 'p', whole(s.p), 's', whole(s.s))
    redis.call('PEXPIRE', d.key, whole(40 * DAY))
  end
end
if id ~= '' then
  local text = day .. ' ' .. month .. '\\n' .. ARGV[6] .. '\\n' .. ARGV[7] .. '\\n' .. ARGV[8]
  redis.call('HSET', KEYS[1], id, text)
  redis.call('ZADD', KEYS[3], whole(until_ms), ARGV[4])
end
local answer = all(1, {})
answer[#answer + 1] = day
answer[#answer + 1] = month
return answer`)

/** Replaces what holds reserved by what was used; empty is not known, and what is reserved stands. */
const GIVE_BACK = `
local function give_back(now, holds, day, month, used, cost)
  for _, hold in ipairs(holds) do
    local kind, key, reserved, limit = hold[1], hold[2], hold[3], hold[4]
    if kind == 'concurrent' then
      redis.call('ZREM', key, hold[5])
    elseif kind == 'tokens' then
      if used ~= '' then
        local r = redis.call('HMGET', key, 'u', 't')
        local u = drained(tonumber(r[1] or '0'), now - tonumber(r[2] or '0'), limit)
        u = math.max(0, u + (tonumber(used) - reserved) * UNITS)
        redis.call('HSET', key, 'u', whole(u), 't', whole(now))
        local whole_in = limit > 0 and math.ceil(u / limit) or 0
        redis.call('PEXPIRE', key, whole(math.min(40 * DAY, 2 * whole_in + 120000)))
      end
    elseif kind == 'requests' then
      -- Only where a request was refused after all: one that was made is not given back.
      if used == 'never' then
        local r = redis.call('HMGET', key, 'u', 't')
        local u = drained(tonumber(r[1] or '0'), now - tonumber(r[2] or '0'), limit)
        redis.call('HSET', key, 'u', whole(math.max(0, u - reserved * UNITS)), 't', whole(now))
      end
    elseif cost ~= '' then
      -- A period that is over has been forgotten, and the new one owes it nothing.
      local r = redis.call('HMGET', key, 'p', 's')
      local period = kind == 'usd_day' and day or month
      if tonumber(r[1] or '0') == period then
        redis.call('HSET', key, 's', whole(math.max(0, tonumber(r[2]) + tonumber(cost) - reserved)))
      end
    end
  end
end
`

/**
 * KEYS: reservations, ids, ends, rows, order, order of all (or the order again), used, sums of the
 * hour, of the day, hours, days. ARGV: now, `due` (only what has run out) or empty, request, its place
 * among the ends, its place in the order, in the order of all, the account, the row, tokens used, cost
 * (empty: not known), start of the hour, of the day, key, when used, then counters: name and number.
 * Answers: 1 settled, 0 already (or not due); then the shared holds, day and month of the reservation.
 */
export const SETTLE = script(`${ARITHMETIC}${GIVE_BACK}
local now, id, place = clock(ARGV[1]), ARGV[3], ARGV[4]
local due = redis.call('ZSCORE', KEYS[3], place)
if ARGV[2] == 'due' then
  if not due or tonumber(due) > now then return { 0 } end
  if redis.call('HEXISTS', KEYS[1], id) == 0 then
    redis.call('ZREM', KEYS[3], place)
    return { 0 }
  end
end
if redis.call('HEXISTS', KEYS[2], id) == 1 then return { 0 } end
local answer = { 1, '[]', '0', '0' }
local text = redis.call('HGET', KEYS[1], id)
if text then
  local day, month, holds, shared = string.match(text, '^(%d+) (%d+)\\n([^\\n]*)\\n([^\\n]*)\\n')
  give_back(now, cjson.decode(holds), tonumber(day), tonumber(month), ARGV[9], ARGV[10])
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[3], place)
  answer = { 1, shared, day, month }
end
local at = redis.call('XADD', KEYS[4], '*', 'row', ARGV[8])
redis.call('HSET', KEYS[2], id, at .. ' ' .. ARGV[7])
redis.call('ZADD', KEYS[5], 0, ARGV[5])
if KEYS[6] ~= KEYS[5] then redis.call('ZADD', KEYS[6], 0, ARGV[6]) end
local used = redis.call('HGET', KEYS[7], ARGV[13])
if not used or tonumber(used) < tonumber(ARGV[14]) then
  redis.call('HSET', KEYS[7], ARGV[13], ARGV[14])
end
redis.call('ZADD', KEYS[10], ARGV[11], ARGV[11])
redis.call('ZADD', KEYS[11], ARGV[12], ARGV[12])
for n = 15, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[8], ARGV[n], ARGV[n + 1])
  redis.call('HINCRBY', KEYS[9], ARGV[n], ARGV[n + 1])
end
return answer`)

/** Shared holds of a Cluster. KEYS: any of the slot. ARGV: now, holds, day, month, tokens, cost. */
export const RELEASE_SHARED = script(`${ARITHMETIC}${GIVE_BACK}
local holds = cjson.decode(ARGV[2])
local used = ARGV[5]
if used == 'never' then
  local rates = {}
  for _, hold in ipairs(holds) do
    if hold[1] == 'requests' then rates[#rates + 1] = hold end
  end
  give_back(clock(ARGV[1]), rates, 0, 0, 'never', '')
  used = '0'
end
local rest = {}
for _, hold in ipairs(holds) do
  if hold[1] ~= 'requests' then rest[#rest + 1] = hold end
end
give_back(clock(ARGV[1]), rest, tonumber(ARGV[3]), tonumber(ARGV[4]), used, ARGV[6])
return 1`)

/**
 * KEYS: reservations, ends. ARGV: now, lease, then for each request its id and its place among the ends.
 * Answers with the shared holds of each, for a Cluster.
 */
export const RENEW = script(`${ARITHMETIC}
local now, lease = clock(ARGV[1]), tonumber(ARGV[2])
local answer = {}
local until_ms = whole(now + lease)
for at = 3, #ARGV, 2 do
  local due = redis.call('ZSCORE', KEYS[2], ARGV[at + 1])
  -- What has run out may have lost its place to another request already.
  if due and tonumber(due) > now then
    redis.call('ZADD', KEYS[2], until_ms, ARGV[at + 1])
    local text = redis.call('HGET', KEYS[1], ARGV[at]) or '0 0\\n[]\\n[]\\n'
    local holds, shared = string.match(text, '^[^\\n]*\\n([^\\n]*)\\n([^\\n]*)\\n')
    for _, hold in ipairs(cjson.decode(holds)) do
      if hold[1] == 'concurrent' then
        redis.call('ZADD', hold[2], 'XX', until_ms, hold[5])
        redis.call('PEXPIRE', hold[2], whole(2 * lease))
      end
    end
    answer[#answer + 1] = shared
  end
end
return answer`)

/** Shared places of a Cluster. KEYS: the place's. ARGV: now, lease, member. */
export const RENEW_SHARED = script(`${ARITHMETIC}
local lease = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], 'XX', whole(clock(ARGV[1]) + lease), ARGV[3])
redis.call('PEXPIRE', KEYS[1], whole(2 * lease))
return 1`)

/** KEYS: ends. ARGV: now, most, how long ago at least. Answers with what has run out, first things first. */
export const DUE = script(`${ARITHMETIC}
local last = whole(clock(ARGV[1]) - tonumber(ARGV[3]))
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'LIMIT', 0, ARGV[2])`)

/** KEYS: rows, ids. ARGV: requests. Answers with the rows' texts, false for one that is gone. */
export const READ_ROWS = script(`
local answer = {}
for at, id in ipairs(ARGV) do
  local place = redis.call('HGET', KEYS[2], id)
  local found = {}
  if place then
    local stream = string.match(place, '^%S+')
    found = redis.call('XRANGE', KEYS[1], stream, stream)
  end
  answer[at] = found[1] and found[1][2][2] or false
end
return answer`)

/** KEYS: rows, ids, order, order of all. ARGV: for each row its request and its two places. */
export const DROP_ROWS = script(`
for at = 1, #ARGV, 3 do
  local place = redis.call('HGET', KEYS[2], ARGV[at])
  if place then redis.call('XDEL', KEYS[1], (string.match(place, '^%S+'))) end
  redis.call('HDEL', KEYS[2], ARGV[at])
  redis.call('ZREM', KEYS[3], ARGV[at + 1])
  redis.call('ZREM', KEYS[4], ARGV[at + 2])
end
return 1`)
