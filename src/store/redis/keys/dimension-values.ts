/**
 * The values of dimensions in Redis: for each a hash of its counts, and for each dimension of an account the
 * values by the time until which they are kept. Both are in the slot of the account.
 */
import { objectOf } from '../../../base/json.js'
import {
  byName,
  MAX_TOOLS,
  OTHER_TOOL,
  type DimensionValues,
  type StoredValue,
  type ValueBounds,
  type ValueName,
  type ValueRecord,
  type ValueState,
  type ValueUse,
} from '../../dimension-values.js'
import { valueDigest } from '../../value-digest.js'
import type { AuditEntry } from '../../audit-trail.js'
import type { RedisAuditTrail } from './audit-trail.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf } from '../connection/parse-replies.js'
import { loadScript } from '../connection/script.js'
import { groupBy } from '../ledger/ledger-keys.js'

const CLAIM = loadScript('records/claim-value')
const ADD = loadScript('records/add-value-use')
const END = loadScript('keys/leave-audit-entries', 'records/end-value')
/** Values that the server scans for one reply. */
const SCANNED = 256
/** As in `keysOf`. */
const NAME = /^sluice:\{(.*?)\}:values:([a-z][a-z0-9_]*)$/s
/** Uses of one command. */
const AT_ONCE = 64

/** The values of a store. */
export class RedisDimensionValues implements DimensionValues {
  private readonly engine: RedisEngine
  private readonly auditTrail: RedisAuditTrail

  constructor(engine: RedisEngine, auditTrail: RedisAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  async claim(name: ValueName, { maxValues, keepMs }: ValueBounds, nowMs: number): Promise<ValueState> {
    const args = [name.value, Math.floor(nowMs), maxValues, keepMs]
    const answer = await this.engine.lookups.run('finding a value', CLAIM, { keys: keysOf(name), args })
    const [hasPlace, endedAtMs] = listOf(answer)
    return { hasPlace: hasPlace === 1, endedAtMs: timeOf(endedAtMs) }
  }

  async add(uses: readonly ValueUse[]): Promise<void> {
    for (const own of groupBy(uses, ({ accountId }) => accountId).values()) {
      for (let from = 0; from < own.length; from += AT_ONCE)
        await this.addSome(own.slice(from, from + AT_ONCE))
    }
  }

  async find(name: ValueName, nowMs: number): Promise<ValueRecord | null> {
    const what = 'reading a value'
    const [values = '', record = ''] = keysOf(name)
    const [ends, fields] = await Promise.all([
      this.engine.admin.send(what, 'zscore', [values, name.value]),
      this.engine.admin.send(what, 'hgetall', [record]),
    ])
    return ends === null || Number(ends) <= nowMs ? null : recordIn(fields)
  }

  async end(
    name: ValueName,
    keepMs: number,
    nowMs: number,
    auditEntries: readonly AuditEntry[] = [],
  ): Promise<ValueRecord> {
    const { accountId, value } = name
    const args = [value, Math.floor(nowMs), keepMs, this.engine.channel, valueDigest(name)]
    const change = { accountId, keys: keysOf(name), args, auditEntries }
    return recordIn(await this.auditTrail.runDurably('ending a value', END, change))
  }

  async *all(): AsyncIterable<readonly StoredValue[]> {
    const what = 'reading values'
    const seen = new Set<string>()
    for await (const names of this.engine.admin.scan(what, 'sluice:{*}:values:*')) {
      for (const name of names) {
        const [, accountId, dimension] = NAME.exec(name) ?? []
        if (accountId === undefined || dimension === undefined || seen.has(name)) continue
        seen.add(name)
        yield* this.valuesOf(name, { accountId, dimension })
      }
    }
  }

  /** Those of a dimension of an account. A scan may return one twice. */
  private async *valuesOf(
    name: string,
    of: Omit<ValueName, 'value'>,
  ): AsyncGenerator<readonly StoredValue[]> {
    const { admin } = this.engine
    const what = 'reading values'
    const seen = new Set<string>()
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const [next, items] = listOf(await admin.send(what, 'zscan', [name, cursor, 'COUNT', SCANNED]))
      cursor = String(next)
      const texts = listOf(items).map(String)
      const found = texts.flatMap((value, at): (readonly [string, number])[] => {
        if (at % 2 === 1 || seen.has(value)) return []
        seen.add(value)
        return [[value, Number(texts[at + 1])]]
      })
      yield await Promise.all(
        found.map(async ([value, untilMs]): Promise<StoredValue> => {
          const own = { ...of, value }
          const [, record = ''] = keysOf(own)
          return { ...own, ...recordIn(await admin.send(what, 'hgetall', [record])), untilMs }
        }),
      )
    }
  }

  sweep(): Promise<number> {
    return Promise.resolve(0)
  }

  /** Those of one account, whose keys are in one slot. */
  private async addSome(uses: readonly ValueUse[]): Promise<void> {
    const args = uses.flatMap((use) => {
      const { value, keepMs, atMs, requests, inputTokens, outputTokens, costNanoUsd, tools = [] } = use
      const counts = [requests, inputTokens, outputTokens, costNanoUsd]
      return [value, Math.floor(atMs), keepMs, ...counts, tools.length === 0 ? '' : JSON.stringify(tools)]
    })
    args.push(MAX_TOOLS, TOOL, OTHER_TOOL)
    await this.engine.admin.run('counting the use of values', ADD, { keys: uses.flatMap(keysOf), args })
  }
}

/** The names of fields with the calls of a tool begin so. */
const TOOL = 'tool:'

/** The record in a hash: fields and values by turns from a script, an object from a command. */
function recordIn(hash: unknown): ValueRecord {
  const texts = (Array.isArray(hash) ? hash : Object.entries(objectOf(hash)).flat()).map(String)
  const fields = new Map<string, string>()
  for (let at = 0; at + 1 < texts.length; at += 2) fields.set(texts[at] ?? '', texts[at + 1] ?? '')
  const tools = [...fields].flatMap(([name, calls]): [string, number][] =>
    name.startsWith(TOOL) ? [[name.slice(TOOL.length), Number(calls)]] : [],
  )
  const count = (name: string): number => Number(fields.get(name) ?? 0)
  return {
    requests: count('requests'),
    inputTokens: count('input'),
    outputTokens: count('output'),
    costNanoUsd: count('cost'),
    tools: byName(tools),
    firstAtMs: timeOf(fields.get('first')),
    lastAtMs: timeOf(fields.get('last')),
    endedAtMs: timeOf(fields.get('ended')),
  }
}

function timeOf(text: unknown): number | null {
  return text === null || text === undefined || text === '' ? null : Number(text)
}

function keysOf({ accountId, dimension, value }: ValueName): string[] {
  const own = `sluice:{${accountId}}`
  return [`${own}:values:${dimension}`, `${own}:value:${dimension}:${value}`]
}
