/**
 * Encrypted records of requests in Redis: for each kind the heads and the values by id, an index by expiry
 * time, and the size of the values, all in one slot.
 */
import { isObject, numberOf, stringOf } from '../../../base/json.js'
import {
  isSelected,
  MAX_LISTED_RECORDS,
  RECORD_KINDS,
  type RecordFilter,
  type RecordHead,
  type RecordKind,
  type SealedRecord,
  type SealedRecords,
} from '../../sealed-records.js'
import type { AuditEntry } from '../../audit-trail.js'
import { SLOTS, type RedisAuditTrail } from './audit-trail.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseRecord } from '../connection/parse-replies.js'
import { loadScript } from '../connection/script.js'

/** Records that one script removes. */
const BATCH = 256

const PUT = loadScript('records/put-sealed-record')
const TAKE = loadScript('keys/leave-audit-entries', 'records/take-sealed-record')
const REPLACE = loadScript('keys/leave-audit-entries', 'records/replace-sealed-record')
const REMOVE = loadScript('records/remove-sealed-records')

/** The records of a store. */
export class RedisSealedRecords implements SealedRecords {
  private readonly engine: RedisEngine
  private readonly auditTrail: RedisAuditTrail

  constructor(engine: RedisEngine, auditTrail: RedisAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  async put(record: SealedRecord, maxBytes: number): Promise<void> {
    const args = [maxBytes, record.id, record.expiresAtMs, headText(record), Buffer.from(record.value)]
    await this.engine.cache.run('storing a record', PUT, { keys: keysOf(record.kind), args })
  }

  async replace(
    record: SealedRecord,
    before: string | null,
    auditEntries: readonly AuditEntry[] = [],
  ): Promise<boolean> {
    const { id, kind, expiresAtMs, value } = record
    const args = [
      before ?? '',
      before === null ? 1 : 0,
      id,
      expiresAtMs,
      headText(record),
      Buffer.from(value),
    ]
    const what = 'changing a record'
    const keys = keysOf(kind)
    const replaced =
      auditEntries.length === 0
        ? await this.engine.cache.run(what, REPLACE, { keys, args })
        : await this.auditTrail.runDurably(what, REPLACE, {
            ...{ accountId: SLOTS.records, keys, args, auditEntries },
          })
    return Number(replaced) === 1
  }

  async find(kind: RecordKind, id: string, nowMs: number): Promise<SealedRecord | null> {
    const [heads, , values] = keysOf(kind)
    const { cache } = this.engine
    const what = 'reading a record'
    const [head, value] = await Promise.all([
      cache.send(what, 'hget', [heads, id]),
      cache.sendForBytes(what, 'hget', [values, id]),
    ])
    if (typeof head !== 'string' || !(value instanceof Buffer)) return null
    const found = readHead(what, head)
    return found.expiresAtMs <= nowMs ? null : { ...found, value }
  }

  async list(kind: RecordKind, filter: RecordFilter, nowMs: number): Promise<RecordHead[]> {
    const heads = filter.id === undefined ? await this.heads(kind) : await this.headOf(kind, filter.id)
    const selected = heads.filter((head) => head.expiresAtMs > nowMs && isSelected(head, filter))
    selected.sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1))
    return selected.slice(0, MAX_LISTED_RECORDS)
  }

  async take(kind: RecordKind, id: string, auditEntries: readonly AuditEntry[]): Promise<boolean> {
    const taken = await this.auditTrail.runDurably('removing a record', TAKE, {
      ...{ accountId: SLOTS.records, keys: keysOf(kind), args: [id], auditEntries },
    })
    return Number(taken) === 1
  }

  async remove(kind: RecordKind, filter: RecordFilter): Promise<number> {
    const { id } = filter
    const ids =
      id !== undefined && Object.keys(filter).length === 1
        ? [id]
        : (await this.heads(kind)).filter((head) => isSelected(head, filter)).map((head) => head.id)
    let removed = 0
    for (let at = 0; at < ids.length; at += BATCH) {
      const args = ['', ...ids.slice(at, at + BATCH)]
      const parameters = { keys: keysOf(kind), args }
      removed += Number(await this.engine.cache.run('removing records', REMOVE, parameters))
    }
    return removed
  }

  async sweep(nowMs: number): Promise<number> {
    let count = 0
    for (const kind of RECORD_KINDS) {
      for (let removed = BATCH; removed >= BATCH; count += removed) {
        const parameters = { keys: keysOf(kind), args: [nowMs] }
        const what = 'removing expired records'
        removed = Number(await this.engine.cache.run(what, REMOVE, parameters))
      }
    }
    return count
  }

  /** The head with the id; an empty list without one. */
  private async headOf(kind: RecordKind, id: string): Promise<RecordHead[]> {
    const what = 'reading a record'
    const text = await this.engine.cache.send(what, 'hget', [keysOf(kind)[0], id])
    return typeof text === 'string' ? [readHead(what, text)] : []
  }

  private async heads(kind: RecordKind): Promise<RecordHead[]> {
    const what = 'listing records'
    const heads: RecordHead[] = []
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const args = [keysOf(kind)[0], cursor, 'COUNT', BATCH]
      const [next, items] = listOf(await this.engine.cache.send(what, 'hscan', args))
      cursor = String(next)
      for (const [at, item] of listOf(items).entries()) {
        if (at % 2 === 1) heads.push(readHead(what, String(item)))
      }
    }
    // A scan may return a record twice.
    return [...new Map(heads.map((head) => [head.id, head])).values()]
  }
}

function headText({ value, ...head }: SealedRecord): string {
  return JSON.stringify({ ...head, bytes: value.length })
}

/** Heads, expiry times, values, bytes. */
function keysOf(kind: RecordKind): readonly [string, string, string, string] {
  const prefix = `sluice:{records}:${kind}`
  return [`${prefix}:heads`, `${prefix}:ends`, `${prefix}:values`, `${prefix}:bytes`]
}

function readHead(what: string, text: string): RecordHead {
  return parseRecord(what, 'a record of a request', () => {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) throw new Error('it is no object')
    const textOf = (name: string): string => stringOf(value[name]) ?? ''
    const kind = RECORD_KINDS.find((each) => each === value['kind'])
    if (kind === undefined) throw new Error('it has no kind')
    return {
      kind,
      id: textOf('id'),
      accountId: textOf('accountId'),
      keyId: textOf('keyId'),
      model: textOf('model'),
      atMs: numberOf(value['atMs']) ?? 0,
      expiresAtMs: numberOf(value['expiresAtMs']) ?? 0,
      info: textOf('info'),
      bytes: numberOf(value['bytes']) ?? 0,
    }
  })
}
