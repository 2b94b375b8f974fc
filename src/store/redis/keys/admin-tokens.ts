/**
 * Tokens of the admin API in Redis: records by id, ids by digest, and the order of creation, all in one slot.
 */
import {
  MAX_ADMIN_TOKENS,
  type AdminToken,
  type AdminTokenEdit,
  type AdminTokenPage,
  type AdminTokens,
} from '../../admin-tokens.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import { damaged, unavailable } from '../../store-errors.js'
import { readAdminToken, writeAdminToken } from '../../records/account-and-key-records.js'
import { isName, type RedisEngine } from '../connection/redis-engine.js'
import {
  EMPTY_PAGE,
  isCursor,
  listOf,
  MISMATCH,
  parseRecord,
  stringsOf,
} from '../connection/parse-replies.js'
import { COMPARE_AND_SET, guarded, loadScript } from '../connection/script.js'
import { SLOTS, type RedisAuditTrail } from './audit-trail.js'

const SLOT = `sluice:{${SLOTS.adminTokens}}:tokens`
const RECORDS = `${SLOT}:records`
const DIGESTS = `${SLOT}:digests`
const ORDER = `${SLOT}:order`
const KEYS = [RECORDS, DIGESTS, ORDER, `${SLOT}:last`]

const PUT = loadScript('keys/leave-audit-entries', 'records/put-admin-token')

interface Found {
  readonly token: AdminToken
  readonly text: string
}

/** The tokens of a store. */
export class RedisAdminTokens implements AdminTokens {
  private readonly engine: RedisEngine
  private readonly auditTrail: RedisAuditTrail

  constructor(engine: RedisEngine, auditTrail: RedisAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  async add(token: AdminToken, auditEntries: readonly AuditEntry[] = []): Promise<boolean> {
    return this.put({ token, text: '' }, token, auditEntries)
  }

  async byDigest(digest: string): Promise<AdminToken | null> {
    const what = 'reading an admin token'
    if (!isName(digest)) return null
    const id = await this.engine.admin.send(what, 'hget', [DIGESTS, digest])
    if (typeof id !== 'string') {
      await this.engine.assertSameStore(what)
      return null
    }
    const token = await this.byId(id)
    if (token?.digest === digest || token === null) return token
    throw unavailable(`${what} failed`, damaged('an admin token', MISMATCH))
  }

  async byId(id: string): Promise<AdminToken | null> {
    return (await this.find('reading an admin token', id))?.token ?? null
  }

  async page(after: string | null, limit: number): Promise<AdminTokenPage> {
    if (!isCursor(after)) return EMPTY_PAGE
    const what = 'listing admin tokens'
    const start = after === null ? '+inf' : `(${after}`
    // One more item shows whether there is another page.
    const range = [ORDER, start, '-inf', 'WITHSCORES', 'LIMIT', 0, limit + 1]
    const found = stringsOf(await this.engine.admin.send(what, 'zrevrangebyscore', range))
    if (found.length === 0) {
      await this.engine.assertSameStore(what)
      return EMPTY_PAGE
    }
    const ids = found.filter((_, at) => at % 2 === 0).slice(0, limit)
    const texts = listOf(await this.engine.admin.send(what, 'hmget', [RECORDS, ...ids]))
    const items = texts.flatMap((text) => (typeof text === 'string' ? [tokenOf(what, text)] : []))
    return { items, next: found.length > 2 * limit ? (found[2 * limit - 1] ?? null) : null }
  }

  async change(
    id: string,
    edit: AdminTokenEdit,
    auditEntries: AuditEntriesOf<AdminToken> = () => [],
  ): Promise<AdminToken | null> {
    for (;;) {
      const found = await this.find('changing an admin token', id)
      const after = found === null ? null : edit(found.token)
      if (found === null || after === null) return found?.token ?? null
      // If another change came in between, it is read again.
      if (await this.put(found, after, auditEntries(found.token, after))) return after
    }
  }

  async remove(ids: readonly string[]): Promise<void> {
    const what = 'removing admin tokens'
    for (const id of ids) {
      const found = await this.find(what, id)
      if (found === null) continue
      const removed = guarded({
        if: [],
        run: [
          ['HDEL', RECORDS, id],
          ['HDEL', DIGESTS, found.token.digest],
          ['ZREM', ORDER, id],
        ],
      })
      await this.engine.changes.runDurably(what, COMPARE_AND_SET, removed)
    }
  }

  private async put(
    { text }: Found,
    token: AdminToken,
    auditEntries: readonly AuditEntry[],
  ): Promise<boolean> {
    const args = [token.id, token.digest, text, writeAdminToken(token), MAX_ADMIN_TOKENS]
    const change = { accountId: SLOTS.adminTokens, keys: KEYS, args, auditEntries }
    const answer = await this.auditTrail.runDurably('changing an admin token', PUT, change)
    return answer === 1
  }

  private async find(what: string, id: string): Promise<Found | null> {
    if (!isName(id)) return null
    const text = await this.engine.admin.send(what, 'hget', [RECORDS, id])
    if (typeof text === 'string') return { text, token: tokenOf(what, text) }
    await this.engine.assertSameStore(what)
    return null
  }
}

function tokenOf(what: string, text: string): AdminToken {
  return parseRecord(what, 'an admin token', () => readAdminToken(text))
}
