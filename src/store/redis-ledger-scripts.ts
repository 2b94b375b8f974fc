/**
 * The scripts of the `redis` engine's ledger, but for those that settle. Each touches names of one slot
 * only; without a Cluster, those of all that the request needs.
 */
import { ARITHMETIC, COUNTED, GIVE_BACK, HELD } from './redis-ledger-lua.js'
import { script } from './redis-link.js'

/**
 * KEYS: reservations, ids, ends, then one name per demand. ARGV: now (empty: the server's), what
 * (`take` or `look`), request (empty: none is kept), its place among the ends, lease in ms, holds,
 * shared holds, row; then for each demand: kind, limit, cost, member.
 * Answers: 1 taken, 0 refused, 2 known already; then four numbers for each demand.
 */
export const ADMIT = script(`${ARITHMETIC}${COUNTED}${HELD}
local now, take, id, lease = clock(ARGV[1]), ARGV[2] == 'take', ARGV[3], tonumber(ARGV[5])
local day = math.floor(now / DAY)
local month = month_of(day)
local states = {}
local function state_of(key, kind, limit)
  local s = states[key]
  if s then return s end
  if kind == 'concurrent' then
    s = { n = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') + held(key, now) }
  else s = counted(key, kind, limit, now, day, month) end
  states[key] = s
  return s
end
local function standing(s, kind, limit, cost)
  if kind == 'requests' or kind == 'tokens' then
    local u = drained(s.u, now - s.t, limit) + s.h * UNITS
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
  local spent = s.s + s.h
  if cost > limit then retry = -1 elseif spent + cost <= limit then retry = 0 else retry = left end
  return { limit, math.max(0, limit - spent), spent > 0 and left or 0, retry }
end
local function apply(s, kind, limit, cost)
  if kind == 'concurrent' then s.n = s.n + 1 else use(s, limit, now, cost) end
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
    local s = standing(state_of(d.key, d.kind, d.limit), d.kind, d.limit, d.cost)
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
  local s = state_of(d.key, d.kind, d.limit)
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
  else keep(s, d.key, d.limit) end
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

/**
 * The reservation of a request that a slice let in. KEYS: reservations, ids, ends. ARGV: now, request, its
 * place among the ends, lease in ms, when it arrived, holds, row. Answers: 1 reserved, 2 known already.
 */
export const NOTE = script(`${ARITHMETIC}
local now, id = clock(ARGV[1]), ARGV[2]
if redis.call('HEXISTS', KEYS[1], id) == 1 or redis.call('HEXISTS', KEYS[2], id) == 1 then return 2 end
-- The day that it came: what a later one has counted of it cannot be told, and is not given back.
local day = math.floor(tonumber(ARGV[5]) / DAY)
local text = whole(day) .. ' ' .. month_of(day) .. '\\n' .. ARGV[6] .. '\\n[]\\n' .. ARGV[7]
redis.call('HSET', KEYS[1], id, text)
redis.call('ZADD', KEYS[3], whole(now + tonumber(ARGV[4])), ARGV[3])
return 1`)

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
