/**
 * Keeps the entries of the ledger within a part of Redis's memory: the oldest leave before it is used up, and
 * their sums stay, so that limits, keys and reservations never lack room because of history.
 */
import { DAY_MS } from '../../../base/time-units.js'
import type { LedgerMemory, MemoryLimit } from '../../ledger.js'
import { infoFields } from '../connection/check-server.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { timeIn } from './entry-names.js'
import type { LedgerKeys } from './ledger-keys.js'
import type { UsagePruning } from './prune.js'
import type { RedisUsage } from './read-usage.js'

const WHAT = 'measuring the ledger'
/** Entries leave from this share of their part on, until this share is left. */
const [FULL, FREED] = [0.95, 0.9]
/** The share of Redis's memory that entries and everything else may use together. */
const ALL = 0.9
/** A measurement is used again for so long, unless Redis has grown by this share of its memory. */
const SAME_MS = 30_000
const GROWN = 0.02
/** The size is the mean of this number of entries; Redis usually takes five, which is a tenth off. */
const SAMPLES = 500
/** Accounts measured at once. */
const AT_ONCE = 100
/** One process removes entries at a time. */
const LOCK = 'sluice:ledger:fitting'
const LOCK_MS = 30_000

/** The memory of all primaries, in bytes; `maxBytes` is 0 without a limit. */
interface ServerMemory {
  readonly usedBytes: number
  readonly maxBytes: number
}

interface Measured extends LedgerMemory {
  readonly atMs: number
  readonly server: ServerMemory
  readonly entries: number
}

interface MemoryParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly usage: RedisUsage
  readonly pruning: UsagePruning
  readonly nowMs: () => number
}

/** The memory of one ledger. */
export class EntryMemory {
  private readonly parts: MemoryParts
  private last: Measured | null = null

  constructor(parts: MemoryParts) {
    this.parts = parts
  }

  /** See `Ledger.memory`. */
  async of(limit: MemoryLimit): Promise<LedgerMemory> {
    return this.measured(limit)
  }

  /** See `Ledger.fitMemory`. */
  async fit(limit: MemoryLimit): Promise<LedgerMemory> {
    const measured = await this.measured(limit)
    const { usedBytes, maxBytes, entries } = measured
    if (maxBytes === null || usedBytes <= FULL * maxBytes || entries === 0) return measured
    if (!(await this.locked())) return measured
    const excess = (usedBytes - FREED * maxBytes) / usedBytes
    await this.removeOldest(Math.min(entries, Math.ceil(excess * entries)))
    this.last = null
    return this.measured(limit)
  }

  /** Whether this process may remove entries. A server that is full refuses the lock: then any may. */
  private async locked(): Promise<boolean> {
    const { link } = this.parts
    try {
      return (await link.send(WHAT, 'set', [LOCK, 1, 'NX', 'PX', LOCK_MS])) === 'OK'
    } catch {
      return true
    }
  }

  private async removeOldest(count: number): Promise<void> {
    const { usage, pruning } = this.parts
    const beforeMs = await this.timeOfOldest(count)
    for (const account of await usage.accounts()) await pruning.pruneEntries(account, beforeMs)
  }

  /** A time before which there is this number of entries. */
  private async timeOfOldest(count: number): Promise<number> {
    const { link, names, usage, nowMs } = this.parts
    if (names.allNames !== null) {
      const [name] = stringsOf(await link.send(WHAT, 'zrange', [names.allNames, count - 1, count - 1]))
      return name === undefined ? 0 : timeIn(name) + 1
    }
    let [low, high] = [0, nowMs() + DAY_MS]
    while (high - low > 1_000) {
      const middle = Math.floor((low + high) / 2)
      if ((await usage.count({ accountId: null, toMs: middle })) < count) low = middle
      else high = middle
    }
    return high
  }

  private async measured({ max, keepDays }: MemoryLimit): Promise<Measured> {
    const { nowMs, usage } = this.parts
    const server = await this.server()
    const atMs = performance.now()
    const { last } = this
    const grown = server.usedBytes - (last?.server.usedBytes ?? 0)
    if (last !== null && atMs - last.atMs < SAME_MS && grown < GROWN * (last.maxBytes ?? Infinity))
      return last
    const { usedBytes, entries, oldestAtMs } = await this.entries()
    const own = max > 1 ? max : server.maxBytes > 0 ? max * server.maxBytes : null
    // What else is in Redis goes first.
    const room = server.maxBytes > 0 ? ALL * server.maxBytes - (server.usedBytes - usedBytes) : Infinity
    const maxBytes = own === null ? null : Math.max(0, Math.min(own, room))
    const dayAgoMs = nowMs() - DAY_MS
    const perDay =
      entries === 0 ? 0 : ((await usage.count({ accountId: null, fromMs: dayAgoMs })) * usedBytes) / entries
    const isFitting = maxBytes === null || perDay * keepDays <= maxBytes
    const fullInMs = isFitting ? null : (Math.max(0, FULL * maxBytes - usedBytes) / perDay) * DAY_MS
    this.last = { usedBytes, maxBytes, fullInMs, oldestAtMs, entries, atMs, server }
    return this.last
  }

  private async server(): Promise<ServerMemory> {
    const infos = await this.parts.link.infoOfPrimaries(WHAT, 'memory')
    const sum = (name: string) =>
      infos.reduce((all: number, info) => all + Number(infoFields(info).get(name) ?? '0'), 0)
    return { usedBytes: sum('used_memory'), maxBytes: sum('maxmemory') }
  }

  /** The memory of all entries, and their number. */
  private async entries() {
    const { link, names, usage } = this.parts
    const accounts = await usage.accounts()
    const logs = accounts.map((account) => names.log(account))
    if (names.allNames !== null) logs.push(names.allNames)
    const oldest: number[] = []
    let [usedBytes, entries] = [0, 0]
    for (let at = 0; at < logs.length; at += AT_ONCE) {
      const some = logs.slice(at, at + AT_ONCE)
      const found = await Promise.all(
        some.map(async (key) => {
          const [bytes, count, first] = await Promise.all([
            link.send(WHAT, 'memory', ['usage', key, 'SAMPLES', SAMPLES]),
            link.send(WHAT, 'zcard', [key]),
            link.send(WHAT, 'zrange', [key, 0, 0]),
          ])
          return { bytes: Number(bytes ?? 0), count: Number(count), first: listOf(first)[0], key }
        }),
      )
      for (const { bytes, count, first, key } of found) {
        usedBytes += bytes
        if (key === names.allNames) continue
        entries += count
        if (typeof first === 'string') oldest.push(timeIn(first))
      }
    }
    return { usedBytes, entries, oldestAtMs: oldest.length === 0 ? null : Math.min(...oldest) }
  }
}
