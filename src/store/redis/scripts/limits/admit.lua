-- Admits requests, each separately: checks all demands of one, then takes all or none. The script builds key names from
-- the account's hash tag; KEYS has all of them for a Cluster, and one otherwise. ARGV: now (empty: the server's clock),
-- ids, ends, then a text for each request as `encodeRequest` writes it. `take` takes the demands, `look` reads the
-- limits, `note` writes the reservation of a request that slices admitted. A request without an id gets no reservation.
-- Returns (see each-request.lua) day and month, then for each request 1: taken, 0: refused, 2: admitted before; and for
-- each of its limits, except of `note`: what is left, ms until it is unused, ms until the demand fits.
local now, ids, ends = clock(ARGV[1]), ARGV[2], ARGV[3]
local day = math.floor(now / DAY)
local month = month_of(day)
local function left_of(kind) return ms_left(kind, now, day, month) end
-- Counters that were read or written for an earlier request.
local states = {}
local function state_of(kind, key, limit)
  local s = states[key]
  if s then return s end
  if kind == 'concurrent' then
    s = { n = redis.call('ZCOUNT', key, '(' .. whole(now), '+inf') + slots_held(key, now) }
  else s = read_counter(key, kind, limit, now, day, month) end
  states[key] = s
  return s
end
local function used(s, limit) return drain(s.u, now - s.t, limit) + s.h * UNITS end
local function wait_for(s, kind, cost, limit)
  if kind == 'concurrent' then return s.n < limit and 0 or (limit > 0 and 1000 or -1) end
  if s.rate then
    local u = used(s, limit)
    if u + units_in(cost) <= limit * UNITS then return 0 end
    if cost > limit or limit <= 0 then return -1 end
    return math.ceil((u - (limit - cost) * UNITS) / limit)
  end
  if cost > limit then return -1 end
  if s.s + s.h + cost <= limit then return 0 end
  -- Running requests and slices may return a part.
  local left = left_of(kind)
  if s.s - s.r + cost <= limit then return math.min(1000, left or 1000) end
  return left or -1
end
local function apply(s, kind, cost, limit)
  if kind == 'concurrent' then s.n = s.n + cost
  else
    charge(s, limit, now, cost)
    -- A request that was admitted stays counted.
    if not s.rate and kind ~= 'requests_total' then s.r = s.r + cost end
  end
end
local function write(s, hold, lease, arrived)
  local kind, key, _, limit, member, keep = unpack(hold)
  if kind ~= 'concurrent' then
    if s.is_new and arrived then s.begun, s.since = arrived, s.since > 0 and arrived or 0 end
    write_counter(s, key, limit)
    if keep then redis.call('PEXPIRE', key, whole(keep)) end
    return
  end
  redis.call('ZADD', key, now + lease, member)
  -- Expired leases do not count; they are removed now and then.
  if redis.call('PTTL', key) < 1.5 * lease then
    redis.call('PEXPIRE', key, whole(2 * lease))
    redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now))
  end
end
local function add_state(s, kind, limit)
  if kind == 'concurrent' then
    add(math.max(0, limit - s.n))
    add(0)
  elseif s.rate then
    local u = used(s, limit)
    add(math.max(0, limit - math.ceil(u / UNITS)))
    add(limit > 0 and math.min(MOST, math.ceil(u / limit)) or 0)
  else
    local spent = s.s + s.h
    add(math.max(0, limit - spent))
    add(spent > 0 and left_of(kind) or 0)
  end
end
-- Takes the demands in memory; `undo` takes a refused request back before anything is written.
local function compute(holds, waits)
  local is_refused = false
  for at, hold in ipairs(holds) do
    local kind, key, cost, limit = unpack(hold)
    local s = state_of(kind, key, limit)
    waits[at] = wait_for(s, kind, cost, limit)
    if waits[at] == 0 then apply(s, kind, cost, limit) else is_refused = true end
  end
  return is_refused and 0 or 1
end
local function undo(holds, waits)
  for at, hold in ipairs(holds) do
    local kind, key, cost, limit = unpack(hold)
    if waits[at] == 0 then apply(states[key], kind, -cost, limit) end
  end
end
-- Whether the ledger has an entry of the request.
local function is_settled(own, id, name)
  return redis.call('HEXISTS', ids, id) == 1 or name ~= '' and has_entry(own .. ':log', name)
end
local function reserve(own, id, name, lease_member, lease, of_day, of_month, text)
  if is_settled(own, id, name) then return false end
  local open = own .. ':open'
  local reserved = of_day .. ' ' .. of_month .. '\n' .. text
  if redis.call('HSETNX', open, id, reserved) == 0 then return false end
  redis.call('ZADD', ends, now + lease, lease_member)
  return true
end
-- Counts the cost of a request that slices admitted as reserved.
local function note(holds, of_day, of_month)
  for _, hold in ipairs(holds) do
    local kind, key, cost, limit = unpack(hold)
    if window_of(kind) and kind ~= 'requests_total' then
      local s = state_of(kind, key, limit)
      if s.p == period_of(kind, of_day, of_month) then
        s.r = s.r + cost
        write_counter(s, key, limit)
      end
    end
  end
end
local function decide(text)
  local lease_member, account, id, lease_ms, what, at, name, rest =
    string.match(text, '^(([^%z]*)%z([^%z]*))%z(%d+)%z(%a+)%z(%d*)%z([^%z]*)%z()')
  local reserved, lease = string.sub(text, rest), tonumber(lease_ms)
  local at_ms = tonumber(at) or 0
  if at_ms == 0 then at_ms = nil end
  local holds = cjson.decode(string.match(reserved, '^[^\n]*'))
  local outcome, waits = 1, {}
  if what == 'take' then outcome = compute(holds, waits) end
  if what ~= 'look' and id ~= '' then
    local own = 'sluice:{' .. account .. '}'
    local of_day, of_month = day, month
    if what == 'note' then
      -- The day of its arrival: if a later day has counted it, that part is unknown and not returned.
      of_day = math.floor(tonumber(at) / DAY)
      of_month = month_of(of_day)
    end
    if outcome == 0 then
      if redis.call('HEXISTS', own .. ':open', id) == 1 or is_settled(own, id, name) then outcome = 2 end
    elseif not reserve(own, id, name, lease_member, lease, of_day, of_month, reserved) then outcome = 2
    elseif what == 'note' then note(holds, of_day, of_month) end
  end
  add(outcome)
  if what == 'note' then return end
  if outcome ~= 1 then undo(holds, waits) end
  for at, hold in ipairs(holds) do
    local kind, key, cost, limit = unpack(hold)
    if outcome == 1 and what == 'take' then write(states[key], hold, lease, at_ms) end
    local s = state_of(kind, key, limit)
    add_state(s, kind, limit)
    if what == 'look' then add(wait_for(s, kind, cost, limit))
    else add(outcome == 0 and waits[at] or 0) end
  end
end
add(day)
add(month)
-- After an error, computed counters may not be written: read them again.
return each(4, decide, function() states = {} end)
