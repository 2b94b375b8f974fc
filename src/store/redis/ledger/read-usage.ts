/**
 * Queries of the ledger in Redis. Long reads are split into batches, on a connection that no request uses.
 */
import {
  matchesEntry,
  type CellQuery,
  type EntryPage,
  type EntryQuery,
  type GroupUse,
  type GroupUseQuery,
  type KeyUse,
  type KeyUseQuery,
  type SumQuery,
  type UsageCell,
  type UsageSum,
} from '../../usage-queries.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { ACCOUNTS, BUCKET_MS, type LedgerKeys } from './ledger-keys.js'
import { NEWEST_FIRST } from '../../entry-order.js'
import { parseCell, readBucket, type Count } from './cells.js'
import { BATCH, EntryLog, type EntryPlace } from './entry-log.js'
import { AFTER_ALL, NEAR_MS, nameOfEntry, requestIdIn, timeIn, timePrefix } from './entry-names.js'
import { RedisGroupUse } from './group-use.js'
import { sortedPage, type EntryNames, type EntrySource } from './sorted-entries.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import {
  addCounter,
  selectSums,
  newSum,
  sumFromCounters,
  type SumCounters,
} from '../../records/count-usage.js'
import { EntryCells } from '../../records/count-cells.js'
import type { RedisPropertySums } from './property-sums.js'

/** Entries scanned for one page; if no more match, the page is short and its cursor continues there. */
const MAX_SCANNED = 10_000
/** Sums read concurrently. */
const BUCKETS = 50

interface UsageParts {
  readonly properties: RedisPropertySums
  readonly entryNames: EntryNames
  readonly nowMs: () => number
}

/** Queries on one connection. */
export class RedisUsage {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly properties: RedisPropertySums
  private readonly uses: RedisGroupUse
  private readonly source: EntrySource
  /** The entries. */
  readonly log: EntryLog

  constructor(link: RedisConnection, names: LedgerKeys, { properties, entryNames, nowMs }: UsageParts) {
    this.link = link
    this.names = names
    const accounts = () => this.accounts()
    this.log = new EntryLog(link, names, accounts)
    this.uses = new RedisGroupUse({ link, names, properties, nowMs, accounts })
    this.properties = properties
    this.source = {
      accounts: () => this.accounts(),
      count: (query) => this.count(query),
      range: (query) => this.range(query),
      page: (query) => this.page(query),
      cursorOf: (place) => nameOfEntry(place),
      placeOf: (cursor) => ({ atMs: timeIn(cursor), requestId: requestIdIn(cursor) }),
      names: entryNames,
    }
  }

  /** The accounts with data in the ledger. */
  async accounts(): Promise<string[]> {
    return stringsOf(await this.link.send('listing accounts', 'smembers', [ACCOUNTS]))
  }

  entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    return this.log.entry(accountId, requestId)
  }

  /** A page in any order. */
  entries(query: EntryQuery): Promise<EntryPage> {
    const { order = NEWEST_FIRST } = query
    return order.column === 'atMs' ? this.page(query) : sortedPage(this.source, query, order)
  }

  /** A page in the order of time. */
  private async page(query: EntryQuery): Promise<EntryPage> {
    const { accountId, after, limit, order = NEWEST_FIRST, ...filter } = query
    const { isDescending } = order
    const [oldest, newest] = boundsOf(query)
    const [first, last] = isDescending ? [newest, oldest] : [oldest, newest]
    const isInside = after !== null && after < newest && (isDescending || after > oldest)
    const entries: LedgerEntry[] = []
    let from = isInside ? after : first
    const to = isDescending ? `[${last}` : `(${last}`
    for (let scanned = 0; scanned < MAX_SCANNED;) {
      // In the index of all accounts, the account follows the name.
      const places = await this.log.places(accountId, {
        from: isDescending ? `(${from}` : `(${from}\0${AFTER_ALL}`,
        to,
        isDescending,
      })
      const found = await this.log.read('reading entries', places)
      for (const [at, entry] of found.entries()) {
        if (entries.length === limit) return { entries, next: from }
        from = places[at]?.name ?? from
        if (entry !== null && isInRange(entry, query) && matchesEntry(entry, filter)) entries.push(entry)
      }
      if (places.length < BATCH) return { entries, next: null }
      scanned += places.length
    }
    return { entries, next: from }
  }

  /** The number of entries in the range of the query, by the times in their names. */
  async count(query: Pick<EntryQuery, 'accountId' | 'fromMs' | 'toMs'>): Promise<number> {
    const { accountId } = query
    const [oldest, newest] = boundsOf(query, 0)
    const { names } = this
    const { allNames, formerNames } = names
    const ofAll = allNames === null || formerNames === null ? null : [allNames, formerNames]
    const accounts = accountId === null ? (ofAll ?? (await this.accounts())) : [accountId]
    const indexes =
      accountId === null && ofAll !== null
        ? ofAll
        : accounts.flatMap((account) => [names.log(account), names.formerOrder(account)])
    const counts = await Promise.all(
      indexes.map((index) =>
        this.link.send('counting entries', 'zlexcount', [index, `[${oldest}`, `(${newest}`]),
      ),
    )
    return counts.reduce((sum: number, count) => sum + Number(count), 0)
  }

  /** The number of entries in a time of more than a second, by their own times. */
  async countExactly(query: { readonly fromMs: number; readonly toMs: number }): Promise<number> {
    const [fromMs, toMs] = [query.fromMs + NEAR_MS, query.toMs - NEAR_MS]
    let count = await this.count({ accountId: null, fromMs, toMs })
    for (const atMs of [query.fromMs, query.toMs]) {
      const [oldest, newest] = [timePrefix(atMs - NEAR_MS), timePrefix(atMs + NEAR_MS)]
      for await (const entries of this.named(null, oldest, newest)) {
        count += entries.filter((entry) => isInRange(entry, query)).length
      }
    }
    return count
  }

  /** A time before the first entry from `fromMs` on, by less than a second; null without entries. */
  async oldestMs(fromMs: number): Promise<number | null> {
    const from = `[${timePrefix(fromMs - NEAR_MS)}`
    const [first] = await this.log.places(null, { from, to: `[${AFTER_ALL}`, isDescending: false })
    return first === undefined ? null : timeIn(first.name) - NEAR_MS
  }

  /** The same in batches, newest first. */
  private async *range(query: EntryQuery): AsyncGenerator<readonly LedgerEntry[]> {
    for await (const entries of this.named(query.accountId, ...boundsOf(query))) {
      yield entries.filter((entry) => isInRange(entry, query))
    }
  }

  /** The entries with names from the first (inclusive) to the second (exclusive), newest first. */
  private async *named(
    accountId: string | null,
    oldest: string,
    newest: string,
  ): AsyncGenerator<readonly LedgerEntry[]> {
    for (let from = newest; ;) {
      const range = { from: `(${from}`, to: `[${oldest}`, isDescending: true }
      const places = await this.log.places(accountId, range)
      const last = places.at(-1)
      if (last === undefined) return
      from = last.name
      const found = await this.log.read('reading entries', places)
      yield found.filter((entry) => entry !== null)
    }
  }

  async *export(sinceMs: number): AsyncGenerator<readonly LedgerEntry[]> {
    const placesFrom = (from: string): Promise<EntryPlace[]> => {
      return this.log.places(null, { from, to: `[${AFTER_ALL}`, isDescending: false })
    }
    for (let reading = placesFrom(`[${timePrefix(sinceMs - NEAR_MS)}`); ;) {
      const places = await reading
      const last = places.at(-1)
      if (last === undefined) return
      // After the entry and what follows its name. Read while the entries are read; if the caller stops, the
      // reply is ignored.
      reading = placesFrom(`(${last.name}\0${AFTER_ALL}`)
      reading.catch(() => undefined)
      const found = await this.log.read('exporting entries', places)
      const entries = found.filter((entry) => entry !== null).filter(({ atMs }) => atMs >= sinceMs)
      if (entries.length > 0) yield entries
    }
  }

  async sums(query: SumQuery): Promise<UsageSum[]> {
    const { accountId, fromMs, toMs, offsets } = query
    const isByProperty = query.property !== undefined || query.accounts !== undefined
    const by = offsets === undefined ? query.by : 'hour'
    const length = BUCKET_MS[by]
    const first = Math.floor(Math.max(0, fromMs) / length) * length
    const accounts = accountId === null ? await this.accounts() : [accountId]
    const found: UsageSum[] = []
    for (const account of accounts) {
      if (isByProperty) await this.properties.catchUp(account)
      const range = [this.names.buckets(account, by), first, toMs]
      const starts = listOf(await this.link.send('reading sums', 'zrangebyscore', range)).map(Number)
      for (let at = 0; at < starts.length; at += BUCKETS) {
        const some = starts.slice(at, at + BUCKETS)
        const sums = await Promise.all(
          some.map((startMs) => this.bucket(account, { by, startMs, isByProperty })),
        )
        found.push(...sums.flat())
      }
    }
    return selectSums(found, query).sort((a, b) => a.startMs - b.startMs)
  }

  /** See `Ledger.cells`. */
  async cells({ accountId, fromMs, toMs, stepMs }: CellQuery): Promise<UsageCell[]> {
    const cells = new EntryCells(stepMs)
    const query = { accountId, fromMs, toMs, after: null, limit: BATCH }
    for await (const entries of this.range(query)) for (const entry of entries) cells.add(entry)
    return cells.all()
  }

  keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    return this.uses.ofKeys(query)
  }

  groupUse(query: GroupUseQuery): Promise<GroupUse[]> {
    return this.uses.of(query)
  }

  async lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const what = 'reading uses'
    const name = this.names.lastUse(accountId)
    const uses = new Map<string, number>()
    if (keyIds === undefined) {
      const used = await this.link.send(what, 'hgetall', [name])
      for (const [keyId, atMs] of pairsOf(used)) uses.set(keyId, Number(atMs))
    } else if (keyIds.length > 0) {
      const used = listOf(await this.link.send(what, 'hmget', [name, ...keyIds]))
      keyIds.forEach((keyId, at) => {
        if (typeof used[at] === 'string') uses.set(keyId, Number(used[at]))
      })
    }
    return uses
  }

  private async bucket(
    accountId: string,
    { by, startMs, isByProperty }: Pick<SumQuery, 'by'> & { startMs: number; isByProperty: boolean },
  ): Promise<UsageSum[]> {
    const sums = new Map<string, SumCounters>()
    const add = (owner: string, counts: readonly Count[]): void => {
      const sum = sums.get(owner) ?? newSum()
      for (const [counter, count] of counts) addCounter(sum, counter, count)
      sums.set(owner, sum)
    }
    const names = [this.names.sum(accountId, by, startMs)]
    if (isByProperty) names.push(this.names.propertySum(accountId, by, startMs))
    for (const [at, name] of names.entries()) {
      for (const [field, value] of await readBucket(this.link, 'reading sums', name)) {
        const cell = parseCell(accountId, field, value)
        // Of the first bucket, only entries have properties.
        if (isByProperty && at === 0) {
          for (const property of cell.properties()) add(`${property}\0${cell.model}`, cell.counts)
        } else add(cell.owner, cell.counts)
      }
    }
    return Array.from(sums, ([of, sum]) => {
      const [keyId = '', model = ''] = of.split('\0')
      return sumFromCounters(sum, { startMs, accountId, keyId, model })
    })
  }
}

/** Names have the time of an entry to `NEAR_MS`. */
function isInRange(
  { atMs }: LedgerEntry,
  { fromMs = 0, toMs = Number.MAX_VALUE }: Pick<EntryQuery, 'fromMs' | 'toMs'>,
): boolean {
  return atMs >= fromMs && atMs < toMs
}

/**
 * The range of a query: from the first (inclusive) to the second (exclusive) in the order of names, with
 * those whose time is near.
 */
function boundsOf(
  { fromMs = 0, toMs }: Pick<EntryQuery, 'fromMs' | 'toMs'>,
  nearMs = NEAR_MS,
): readonly [oldest: string, newest: string] {
  const newest = toMs === undefined ? AFTER_ALL : timePrefix(Math.max(0, toMs) + nearMs)
  return [timePrefix(fromMs - nearMs), newest]
}

/** Names and values of a hash, which ioredis returns as an object. */
function pairsOf(reply: unknown): [string, string][] {
  if (typeof reply !== 'object' || reply === null) return []
  return Object.entries(reply).map(([name, value]) => [name, String(value)])
}
