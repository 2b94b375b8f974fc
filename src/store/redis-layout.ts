/**
 * Where the `redis` engine keeps what: names of keys and the scripts that change them.
 * Knows no client. Why it is laid out so is in docs/decisions.
 *
 * All of an account is in one slot of a Cluster (`{acc_…}`), so that one script can change it. In the
 * account's hash: `account` (its record), `live` (keys that are not revoked), `gen` (changes so far),
 * for each key `key:DIGEST` (its record), `id:KEY_ID` (its digest) and, once revoked, `revoked:DIGEST`
 * (when), `place` (the last place given in the order of keys) and `removed-before` (keys that ended before
 * that time may have been removed). Outside are pointers, which stand while the key does: `key:DIGEST` and
 * `key-id:ID` say whose it is.
 */
import { script } from './redis-link.js'

const PREFIX = 'sluice:'

/** Which store this is; made with the store, so that an emptied one is known to be another. */
export const STORE_KEY = `${PREFIX}store`
/** Written and read to prove that the store works. */
export const PROBE_KEY = `${PREFIX}probe`
/** The accounts in order of creation, and the last place given. */
export const ORDER_KEYS = [`${PREFIX}{accounts}:order`, `${PREFIX}{accounts}:last`] as const

/** All of an account but the order of its keys. */
export function accountKey(id: string): string {
  return `${PREFIX}{${id}}:account`
}

/** What its changes have left for the audit trail, texts by id, until they have been brought there. */
export function toldKey(id: string): string {
  return `${PREFIX}{${id}}:told`
}

/** The digests of an account's keys by their place in the order of creation. */
export function orderKey(id: string): string {
  return `${PREFIX}{${id}}:key-order`
}

/** The same as earlier versions kept it: a list, from which no page can be read by its place. */
export function formerOrderKey(id: string): string {
  return `${PREFIX}{${id}}:keys`
}

/** Whose the digest is. */
export function digestKey(digest: string): string {
  return `${PREFIX}key:${digest}`
}

/** Whose the key's id is. */
export function idKey(id: string): string {
  return `${PREFIX}key-id:${id}`
}

/** Whose the e-mail is. */
export function emailKey(email: string): string {
  return `${PREFIX}email:${email}`
}

/** Where changes are told. */
export function newsChannel(storeId: string): string {
  return `${PREFIX}news:${storeId}`
}

/** Leaves the last key what the arguments from there on say: ids and texts, by turns. */
function tell(from: number): string {
  return `if #ARGV >= ${from} then redis.call('HSET', KEYS[#KEYS], unpack(ARGV, ${from})) end`
}

/** A pointer is made once; it answers with what stands there. */
export const CLAIM = script(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return {1, ARGV[1]} end
return {0, redis.call('GET', KEYS[1])}`)

/** Only by who made it. */
export const RELEASE = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0`)

/** KEYS: the account, what is told. ARGV: the record, and what is told. */
export const PUT_ACCOUNT = script(`
if redis.call('HSETNX', KEYS[1], 'account', ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'live', 0, 'gen', 1)
${tell(2)}
return 1`)

/** KEYS: the order, the last place. ARGV: the account. */
export const PUT_IN_ORDER = script(`
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), ARGV[1])
return 1`)

/**
 * KEYS: the account, what is told. ARGV: the record as it was, as it shall be, the channel (empty: it is no
 * news), and what is told. 1: changed; 0: it was another.
 */
export const REPLACE_ACCOUNT = script(`
if redis.call('HGET', KEYS[1], 'account') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'account', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
if ARGV[3] ~= '' then redis.call('PUBLISH', ARGV[3], '*') end
${tell(4)}
return 1`)

/** Moves the list of an earlier version into the order of keys. KEYS: the account, the order, the list. */
const IN_ORDER = `
local function ordered(digest)
  redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[1], 'place', 1), digest)
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  for _, digest in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if not redis.call('ZSCORE', KEYS[2], digest) then ordered(digest) end
  end
  redis.call('DEL', KEYS[3])
end`

/**
 * KEYS: the account, the order of its keys, the list of an earlier version, what is told. ARGV: digest, id,
 * record, most live keys (empty: no limit), when revoked (empty: it is not), channel, most keys, and what is
 * told.
 */
export const PUT_KEY = script(`
local account, digest = KEYS[1], ARGV[1]
local live = redis.call('HGET', account, 'live')
if not live then return 'no_account' end
${IN_ORDER}
if ARGV[4] ~= '' and tonumber(live) >= tonumber(ARGV[4]) then return 'plan_limit' end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return 'account_full' end
if redis.call('HEXISTS', account, 'key:' .. digest) == 1 then return 'id_taken' end
if redis.call('HEXISTS', account, 'id:' .. ARGV[2]) == 1 then return 'id_taken' end
redis.call('HSET', account, 'key:' .. digest, ARGV[3], 'id:' .. ARGV[2], digest)
if ARGV[5] == '' then
  redis.call('HINCRBY', account, 'live', 1)
else
  redis.call('HSET', account, 'revoked:' .. digest, ARGV[5])
end
redis.call('HINCRBY', account, 'gen', 1)
ordered(digest)
redis.call('PUBLISH', ARGV[6], digest)
${tell(8)}
return 'created'`)

/**
 * KEYS: the account, the order of its keys, the list of an earlier version. ARGV: the place of the last key of
 * the page before (empty: none), how many, `newest_first` or not. Four parts for each key: its digest, its
 * place, its record, and when it was revoked.
 */
export const LIST_KEYS = script(`
${IN_ORDER}
local found
if ARGV[3] == 'newest_first' then
  local first = ARGV[1] == '' and '+inf' or '(' .. ARGV[1]
  found = redis.call('ZREVRANGEBYSCORE', KEYS[2], first, '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
else
  local first = ARGV[1] == '' and '-inf' or '(' .. ARGV[1]
  found = redis.call('ZRANGEBYSCORE', KEYS[2], first, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
end
local answer = {}
for at = 1, #found, 2 do
  local digest = found[at]
  answer[2 * at - 1], answer[2 * at] = digest, found[at + 1]
  answer[2 * at + 1] = redis.call('HGET', KEYS[1], 'key:' .. digest)
  answer[2 * at + 2] = redis.call('HGET', KEYS[1], 'revoked:' .. digest)
end
return answer`)

/**
 * Marks the keys that ended before a time as revoked, so that nothing brings them back while they are
 * removed. KEYS: the account. ARGV: the time, then ids. The ids and digests of those keys, by turns.
 */
export const END_KEYS = script(`
local answer, before = {}, tonumber(ARGV[1])
for at = 2, #ARGV do
  local digest = redis.call('HGET', KEYS[1], 'id:' .. ARGV[at])
  local text = digest and redis.call('HGET', KEYS[1], 'key:' .. digest)
  if text then
    local revoked = tonumber(redis.call('HGET', KEYS[1], 'revoked:' .. digest) or nil)
    local expires = tonumber(cjson.decode(text).expiresAtMs)
    if (revoked and revoked < before) or (expires and expires < before) then
      if not revoked then
        redis.call('HSET', KEYS[1], 'revoked:' .. digest, string.format('%.0f', expires))
        redis.call('HINCRBY', KEYS[1], 'live', -1)
      end
      answer[#answer + 1], answer[#answer + 2] = ARGV[at], digest
    end
  end
end
local former = tonumber(redis.call('HGET', KEYS[1], 'removed-before') or '0')
if #answer > 0 and before > former then
  redis.call('HSET', KEYS[1], 'removed-before', string.format('%.0f', before))
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
return answer`)

/** KEYS: the account, the order of its keys, the list. ARGV: the channel, then ids and digests by turns. */
export const REMOVE_KEYS = script(`
${IN_ORDER}
local count = 0
for at = 2, #ARGV, 2 do
  local id, digest = 'id:' .. ARGV[at], ARGV[at + 1]
  count = count + redis.call('HDEL', KEYS[1], 'key:' .. digest)
  redis.call('HDEL', KEYS[1], id, 'revoked:' .. digest)
  redis.call('ZREM', KEYS[2], digest)
  redis.call('PUBLISH', ARGV[1], digest)
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
return count`)

/**
 * KEYS: the account, what is told. ARGV: digest, the record as it was, as it shall be, channel, and what is
 * told. 0: it was another, or is revoked.
 */
export const REPLACE_KEY = script(`
if redis.call('HEXISTS', KEYS[1], 'revoked:' .. ARGV[1]) == 1 then return 0 end
if redis.call('HGET', KEYS[1], 'key:' .. ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'key:' .. ARGV[1], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[4], ARGV[1])
${tell(5)}
return 1`)

/**
 * KEYS: the account, what is told. ARGV: the key's id, when, channel, and what is told. The mark is made and
 * told once; the count of changes is written again, so that a repetition can wait for the replicas, too.
 */
export const REVOKE_KEY = script(`
local digest = redis.call('HGET', KEYS[1], 'id:' .. ARGV[1])
if not digest then return false end
if redis.call('HSETNX', KEYS[1], 'revoked:' .. digest, ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'live', -1)
  ${tell(4)}
end
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('PUBLISH', ARGV[3], digest)
return digest`)
