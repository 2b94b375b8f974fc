/**
 * The audit trail in Redis: records by id, with an index in order of ids and one by account, in one slot.
 *
 * An account is in another slot, and a script changes one slot only. So a change is announced here first, its
 * script leaves the audit entry beside the account, and the entry is then moved here. If the process is
 * killed in between, the next reader finds the announcement and moves the entry.
 */
import { readAuditEntry, readUser, writeAuditEntry } from '../../records/account-and-key-records.js'
import { damaged, unavailable } from '../../store-errors.js'
import { isName, type RedisEngine } from '../connection/redis-engine.js'
import { accountKey, emailKey, pendingAuditKey, TREE_KEYS, userKey } from './key-names.js'
import { loadScript, type Argument, type Script } from '../connection/script.js'
import { MISMATCH, parseRecord, listOf, stringsOf } from '../connection/parse-replies.js'
import { adminTurns } from '../../../base/turn-queue.js'
import type { StoreCapacity } from '../../store.js'
import type { Steps } from '../../../base/steps.js'
import {
  isPastFilter,
  matchesAudit,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  type AuditSearch,
  type AuditTrail,
} from '../../audit-trail.js'

const TEXTS = 'sluice:{trail}:texts'
const IDS = 'sluice:{trail}:ids'
/** Account and id. */
const OWNERS = 'sluice:{trail}:owners'
/** The keys of the trail, in the order of its scripts. */
export const TRAIL_KEYS = [TEXTS, IDS, OWNERS]
/** Account and id of announced entries, by time. */
const ANNOUNCED = 'sluice:{trail}:announced'
/** A change takes a few commands of a second each; after this time an announced change was never made. */
const ABANDONED_AFTER_MS = 600_000
/** Entries that one search looks at. */
const MAX_SCANNED = 10_000
const SCANNED_AT_ONCE = 500
/** Announcements that one reader handles. */
const MAX_COLLECTED = 1_000
/** Entries of one change that are announced, or moved, at the same time. */
const MOVED_AT_ONCE = 250
/** Entries that are encoded in one step. */
const ENCODED_AT_ONCE = 100

/**
 * In place of an account in announcements of changes that are in the slot of none: admin tokens, sign-in
 * tokens, sealed records. Each is the name of its slot.
 */
export const SLOTS = { adminTokens: 'gateway', signInTokens: 'passes', records: 'records' } as const

const ADD = loadScript('records/audit-entry', 'records/add-audit-entry')

/** A change of an account: the keys and arguments of its script, without those of the audit entries. */
interface AuditedChange {
  readonly accountId: string
  readonly keys: readonly string[]
  readonly args: readonly Argument[]
  readonly auditEntries: readonly AuditEntry[]
}

/** The trail of a store. */
export class RedisAuditTrail implements AuditTrail {
  private readonly engine: RedisEngine
  private readonly capacity: StoreCapacity

  constructor(engine: RedisEngine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
  }

  async add(entry: AuditEntry): Promise<void> {
    const { id, accountId } = entry
    const { auditEntriesPerAccount, auditEntries } = this.capacity
    const args = [id, writeAuditEntry(entry), accountId, auditEntriesPerAccount, auditEntries]
    await this.engine.changes.runDurably('adding to the audit trail', ADD, {
      keys: TRAIL_KEYS,
      args,
    })
  }

  /** Runs the script of a change, which leaves the audit entries beside the account. */
  runDurably(what: string, script: Script, change: AuditedChange): Promise<unknown> {
    const { accountId, args, auditEntries } = change
    const keys = [...change.keys, pendingAuditKey(accountId)]
    return this.withAuditEntries(accountId, auditEntries, (entryArgs) =>
      this.engine.changes.runDurably(what, script, { keys, args: [...args, ...entryArgs] }),
    )
  }

  /**
   * Makes a change of an account with its audit entries: `change` gets the ids and records for its script. If
   * it rejects, the next reader finds out whether the change was made.
   */
  async withAuditEntries<T>(
    accountId: string,
    auditEntries: readonly AuditEntry[],
    change: (entryArgs: readonly string[]) => Promise<T>,
  ): Promise<T> {
    if (auditEntries.length === 0) return change([])
    const ids = auditEntries.map(({ id }) => id)
    const what = 'announcing a change'
    for (let at = 0; at < ids.length; at += MOVED_AT_ONCE) {
      const some = ids.slice(at, at + MOVED_AT_ONCE)
      const args = some.flatMap((id) => [Date.now(), announcement(accountId, id)])
      await this.engine.changes.prepareDurably(what, 'zadd', { keys: [ANNOUNCED], args })
    }
    const answer = await change(await adminTurns.start(encodeEntries(auditEntries)))
    // If this fails, the next reader moves the entries.
    await this.collect(accountId, ids).catch(() => undefined)
    return answer
  }

  page(query: AuditQuery): Promise<AuditEntry[]> {
    return this.read(query, 'newest_first')
  }

  async find({ accountId, after, limit, order, filter }: AuditSearch): Promise<AuditPage> {
    const entries: AuditEntry[] = []
    let place = after
    for (let scanned = 0; scanned < MAX_SCANNED; scanned += SCANNED_AT_ONCE) {
      const found = await this.read({ accountId, after: place, limit: SCANNED_AT_ONCE }, order)
      for (const entry of found) {
        if (matchesAudit(entry, filter)) {
          // One more entry shows that there is another page.
          if (entries.length === limit) return { entries, next: place }
          entries.push(entry)
        }
        place = entry.id
        if (isPastFilter(entry, { order, filter })) return { entries, next: null }
      }
      if (found.length < SCANNED_AT_ONCE) return { entries, next: null }
    }
    return { entries, next: place }
  }

  private async read(
    { accountId, after, limit }: AuditQuery,
    order: AuditSearch['order'],
  ): Promise<AuditEntry[]> {
    if (after !== null && !isName(after)) return []
    if (accountId !== null && !isName(accountId)) return []
    const what = 'reading the audit trail'
    await this.collectAll(what)
    const start = accountId === null ? '' : `${accountId}\0`
    const ends =
      order === 'newest_first' ? [`[${start}\uffff`, `[${start}`] : [`[${start}`, `[${start}\uffff`]
    const [first = '', last = ''] = ends
    const command = order === 'newest_first' ? 'zrevrangebylex' : 'zrangebylex'
    const index = accountId === null ? IDS : OWNERS
    const range = [index, after === null ? first : `(${start}${after}`, last, 'LIMIT', 0, limit]
    const members = stringsOf(await this.engine.admin.send(what, command, range))
    if (members.length === 0) return []
    const ids = members.map((member) => member.slice(start.length))
    const texts = listOf(await this.engine.admin.send(what, 'hmget', [TEXTS, ...ids]))
    return texts.map((text) => {
      if (typeof text !== 'string') throw unavailable(`${what} failed`, damaged('an entry', MISMATCH))
      return parseRecord(what, 'an entry', () => readAuditEntry(text))
    })
  }

  /** Moves the entries that the change has left beside the account. Idempotent. */
  private async collect(accountId: string, ids: readonly string[]): Promise<void> {
    const what = 'moving an audit entry to the trail'
    const { admin } = this.engine
    const own = pendingAuditKey(accountId)
    for (let at = 0; at < ids.length; at += MOVED_AT_ONCE) {
      const some = ids.slice(at, at + MOVED_AT_ONCE)
      const texts = listOf(await admin.send(what, 'hmget', [own, ...some]))
      const entries = texts
        .filter((text) => typeof text === 'string')
        .map((text) => parseRecord(what, 'an entry', () => readAuditEntry(text)))
      await Promise.all(entries.map((entry) => this.add(entry)))
      await this.forget(accountId, some)
    }
  }

  /** Deletes the entry beside the account first: without its announcement no reader would find it. */
  private async forget(accountId: string, ids: readonly string[]): Promise<void> {
    const what = 'deleting an announcement'
    await this.engine.admin.send(what, 'hdel', [pendingAuditKey(accountId), ...ids])
    const members = ids.map((id) => announcement(accountId, id))
    await this.engine.admin.send(what, 'zrem', [ANNOUNCED, ...members])
  }

  private async collectAll(what: string): Promise<void> {
    const range = [ANNOUNCED, 0, MAX_COLLECTED - 1, 'WITHSCORES']
    const found = stringsOf(await this.engine.admin.send(what, 'zrange', range))
    for (let at = 0; at < found.length; at += 2) {
      const [accountId = '', id = ''] = found[at]?.split('\0') ?? []
      const left = await this.engine.admin.send(what, 'hget', [pendingAuditKey(accountId), id])
      const isMade = typeof left === 'string' && (await this.isFinished(what, accountId))
      if (isMade) await this.collect(accountId, [id])
      else if (Number(found[at + 1]) < Date.now() - ABANDONED_AFTER_MS) await this.forget(accountId, [id])
    }
  }

  /**
   * Whether the account, or the user, exists: its audit entry is written with the first step of several. A
   * purged account existed.
   */
  private async isFinished(what: string, id: string): Promise<boolean> {
    if (Object.values<string>(SLOTS).includes(id)) return true
    const { admin } = this.engine
    if ((await admin.send(what, 'hexists', [TREE_KEYS[0], id])) === 1) return true
    if ((await admin.send(what, 'hexists', [accountKey(id), 'purged'])) === 1) return true
    const [text, account] = listOf(await admin.send(what, 'hmget', [userKey(id), 'user', 'with']))
    // With `with`, it is the user of an account that has no name yet.
    if (typeof text !== 'string' || typeof account === 'string') return false
    const { email } = parseRecord(what, 'a user', () => readUser(text))
    return (await admin.send(what, 'get', [emailKey(email)])) === id
  }
}

function* encodeEntries(entries: readonly AuditEntry[]): Steps<string[]> {
  const args: string[] = []
  for (const [at, entry] of entries.entries()) {
    if (at % ENCODED_AT_ONCE === ENCODED_AT_ONCE - 1) yield
    args.push(entry.id, writeAuditEntry(entry))
  }
  return args
}

function announcement(accountId: string, id: string): string {
  return `${accountId}\0${id}`
}
