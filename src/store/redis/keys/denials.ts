/**
 * Denied workload identities in Redis: records by id, in the order of creation, and an index by subject. They
 * are in the slot of the audit trail, so that one script writes a denial with its audit entries.
 */
import { writeAuditEntry, readDenial, writeDenial } from '../../records/account-and-key-records.js'
import type { AuditEntry } from '../../audit-trail.js'
import { denialEndOf, subjectsOf, type Denial, type DenialSubject } from '../../denials.js'
import type { Denials, Page, PageQuery, StoreCapacity } from '../../store.js'
import { isName, type RedisEngine } from '../connection/redis-engine.js'
import { EMPTY_PAGE, isCursor, listOf, parseRecord, stringsOf } from '../connection/parse-replies.js'
import { loadScript, type Argument } from '../connection/script.js'
import { TRAIL_KEYS } from './audit-trail.js'

const RECORDS = 'sluice:{trail}:denials'
const ORDER = 'sluice:{trail}:denial-order'
/** Ids by expiry time. */
const ENDS = 'sluice:{trail}:denial-ends'
/** For each subject its denials, `ID END` in a line each. */
const SUBJECTS = 'sluice:{trail}:denied'
const KEYS = [...TRAIL_KEYS, RECORDS, ORDER, ENDS, SUBJECTS]
/** Denials that one script removes. */
const BATCH = 256

const PUT = loadScript('records/audit-entry', 'records/put-denial')
const REMOVE = loadScript('records/audit-entry', 'records/remove-denial')
const LIST = loadScript('records/list-denials')

/** The denials of a store. */
export class RedisDenials implements Denials {
  private readonly engine: RedisEngine
  private readonly capacity: StoreCapacity

  constructor(engine: RedisEngine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
  }

  async create(denial: Denial, auditEntries: readonly AuditEntry[] = []): Promise<'created' | 'full'> {
    const what = 'denying an identity'
    await this.engine.assertSameStore(what)
    const [subject = ''] = subjectsOf(denial)
    const { denials } = this.capacity
    const own = [denial.id, writeDenial(denial), subject, denialEndOf(denial), denials]
    const args = [...this.common(), ...own, ...auditArguments(auditEntries)]
    const outcome = await this.engine.changes.runDurably(what, PUT, { keys: KEYS, args })
    return outcome === 1 ? 'created' : 'full'
  }

  async byId(id: string): Promise<Denial | null> {
    const what = 'reading a denial'
    if (!isName(id)) return null
    const text = await this.engine.admin.send(what, 'hget', [RECORDS, id])
    if (typeof text === 'string') return denialIn(what, text)
    await this.engine.assertSameStore(what)
    return null
  }

  async list({ order, after, limit }: PageQuery): Promise<Page<Denial>> {
    if (!isCursor(after)) return EMPTY_PAGE
    const what = 'listing denials'
    // One more item shows whether there is another page.
    const args = [after ?? '', limit + 1, order]
    const found = stringsOf(await this.engine.admin.run(what, LIST, { keys: [RECORDS, ORDER], args }))
    if (found.length === 0) await this.engine.assertSameStore(what)
    const items: Denial[] = []
    for (let at = 0; at < Math.min(found.length, 2 * limit); at += 2) {
      items.push(denialIn(what, found[at + 1] ?? ''))
    }
    return { items, next: found.length <= 2 * limit ? null : (found[2 * (limit - 1)] ?? null) }
  }

  async remove(
    id: string,
    auditEntries: (removed: Denial) => readonly AuditEntry[] = () => [],
  ): Promise<Denial | null> {
    const denial = await this.byId(id)
    if (denial === null) return null
    const removed = await this.removeAll([denial], auditEntries(denial))
    return removed === 0 ? null : denial
  }

  async isDenied(token: DenialSubject, nowMs: number): Promise<boolean> {
    const what = 'reading denials'
    const subjects = subjectsOf(token)
    if (subjects.length === 0) return false
    const found = listOf(await this.engine.lookups.send(what, 'hmget', [SUBJECTS, ...subjects]))
    return found.some(
      (lines) =>
        typeof lines === 'string' &&
        lines.split('\n').some((line) => Number(line.slice(line.indexOf(' ') + 1)) > nowMs),
    )
  }

  async sweep(nowMs: number): Promise<number> {
    const what = 'removing expired denials'
    for (let count = 0; ;) {
      const range = [ENDS, '-inf', nowMs, 'LIMIT', 0, BATCH]
      const ids = stringsOf(await this.engine.admin.send(what, 'zrangebyscore', range))
      if (ids.length === 0) return count
      const texts = listOf(await this.engine.admin.send(what, 'hmget', [RECORDS, ...ids]))
      const denials = texts.flatMap((text) => {
        return typeof text === 'string' ? [denialIn(what, text)] : []
      })
      if (denials.length === 0) return count
      count += await this.removeAll(denials, [])
    }
  }

  private async removeAll(denials: readonly Denial[], auditEntries: readonly AuditEntry[]): Promise<number> {
    const items = denials.flatMap((denial) => [denial.id, subjectsOf(denial)[0] ?? ''])
    const args = [...this.common(), denials.length, ...items, ...auditArguments(auditEntries)]
    const what = 'removing a denial'
    return Number(await this.engine.changes.runDurably(what, REMOVE, { keys: KEYS, args }))
  }

  private common(): Argument[] {
    const { auditEntriesPerAccount, auditEntries } = this.capacity
    return [this.engine.channel, auditEntriesPerAccount, auditEntries]
  }
}

function auditArguments(entries: readonly AuditEntry[]): string[] {
  return entries.flatMap((entry) => [entry.id, writeAuditEntry(entry), entry.accountId])
}

function denialIn(what: string, text: string): Denial {
  return parseRecord(what, 'a denial', () => readDenial(text))
}
