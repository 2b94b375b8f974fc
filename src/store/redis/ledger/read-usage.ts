/**
 * Queries of the ledger in Redis. Long reads are split into batches, on a connection that no request uses.
 */
import {
  matchesEntry,
  type EntryPage,
  type EntryQuery,
  type GroupUse,
  type GroupUseQuery,
  type KeyUse,
  type KeyUseQuery,
  type SumQuery,
  type UsageSum,
} from '../../usage-queries.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { damaged, unavailable } from '../../store-errors.js'
import {
  ACCOUNTS,
  AFTER_ALL,
  BUCKET_MS,
  requestIdIn,
  timeIn,
  timePrefix,
  LEDGER_SCRIPTS,
  groupBy,
  type LedgerKeys,
} from './ledger-keys.js'
import { NEWEST_FIRST } from '../../entry-order.js'
import { RedisGroupUse } from './group-use.js'
import { sortedPage, type EntryNames, type EntrySource } from './sorted-entries.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { parseRecord, listOf, stringsOf } from '../connection/parse-replies.js'
import {
  selectSums,
  newSum,
  setCounter,
  sumFromCounters,
  type SumCounters,
} from '../../records/count-usage.js'
import { readEntry } from '../../records/entry-text.js'
import type { RedisPropertySums } from './property-sums.js'

/** Entries read in one batch. */
const BATCH = 250
/** Entries scanned for one page; if no more match, the page is short and its cursor continues there. */
const MAX_SCANNED = 10_000
/** Sums read concurrently. */
const BUCKETS = 50

/**
 * A part of the order of time: names of entries as bounds of `ZRANGEBYLEX`, or of `ZREVRANGEBYLEX` if
 * descending.
 */
interface TimeRange {
  readonly from: string
  readonly to: string
  readonly isDescending: boolean
}

/** An entry in the order of time, and its account. */
interface IndexedEntry {
  readonly name: string
  readonly accountId: string
}

interface UsageParts {
  readonly properties: RedisPropertySums
  readonly entryNames: EntryNames
  readonly nowMs: () => number
}

/** Queries on one connection. */
export class RedisUsage {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys
  private readonly uses: RedisGroupUse
  private readonly properties: RedisPropertySums
  private readonly source: EntrySource

  constructor(link: RedisConnection, names: LedgerKeys, { properties, entryNames, nowMs }: UsageParts) {
    this.link = link
    this.names = names
    const accounts = () => this.accounts()
    this.uses = new RedisGroupUse({ link, names, properties, nowMs, accounts })
    this.properties = properties
    this.source = {
      accounts: () => this.accounts(),
      count: (query) => this.count(query),
      range: (query) => this.range(query),
      page: (query) => this.page(query),
      cursorOf: ({ atMs, requestId }) => `${timePrefix(atMs)}${requestId}`,
      placeOf: (cursor) => ({ atMs: timeIn(cursor), requestId: requestIdIn(cursor) }),
      names: entryNames,
    }
  }

  /** The accounts with data in the ledger. */
  async accounts(): Promise<string[]> {
    return stringsOf(await this.link.send('listing accounts', 'smembers', [ACCOUNTS]))
  }

  async entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    const what = 'reading an entry'
    const all = async () => (this.names.isCluster ? await this.accounts() : [''])
    for (const account of accountId === null ? await all() : [accountId]) {
      const location = await this.link.send(what, 'hget', [this.names.ids(account), requestId])
      if (typeof location !== 'string') continue
      const owner = location.slice(location.indexOf(' ') + 1)
      if (accountId !== null && owner !== accountId) return null
      const [entry] = await this.read(what, owner, [requestId])
      return entry ?? null
    }
    return null
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
      const names = await this.order(accountId, {
        from: isDescending ? `(${from}` : `(${from}\0${AFTER_ALL}`,
        to,
        isDescending,
      })
      const found = await this.readAll('reading entries', names)
      for (const [at, entry] of found.entries()) {
        if (entries.length === limit) return { entries, next: from }
        from = names[at]?.name ?? from
        if (entry !== null && matchesEntry(entry, filter)) entries.push(entry)
      }
      if (names.length < BATCH) return { entries, next: null }
      scanned += names.length
    }
    return { entries, next: from }
  }

  /** The entries in the range of the query. */
  async count(query: Pick<EntryQuery, 'accountId' | 'fromMs' | 'toMs'>): Promise<number> {
    const { accountId } = query
    const [oldest, newest] = boundsOf(query)
    const { allOrder } = this.names
    const all = async () => (allOrder === null ? await this.ordersOf() : [allOrder])
    const indexes = accountId === null ? await all() : [this.names.order(accountId)]
    const counts = await Promise.all(
      indexes.map((index) =>
        this.link.send('counting entries', 'zlexcount', [index, `[${oldest}`, `(${newest}`]),
      ),
    )
    return counts.reduce((sum: number, count) => sum + Number(count), 0)
  }

  private async ordersOf(): Promise<string[]> {
    return (await this.accounts()).map((account) => this.names.order(account))
  }

  /** The same in batches, newest first. */
  private async *range(query: EntryQuery): AsyncGenerator<readonly LedgerEntry[]> {
    const [oldest, newest] = boundsOf(query)
    for (let from = newest; ;) {
      const range = { from: `(${from}`, to: `[${oldest}`, isDescending: true }
      const names = await this.order(query.accountId, range)
      const last = names.at(-1)
      if (last === undefined) return
      from = last.name
      const found = await this.readAll('reading entries', names)
      yield found.filter((entry) => entry !== null)
    }
  }

  async *export(sinceMs: number): AsyncGenerator<readonly LedgerEntry[]> {
    const namesFrom = (from: string): Promise<IndexedEntry[]> => {
      return this.order(null, { from, to: `[${AFTER_ALL}`, isDescending: false })
    }
    for (let reading = namesFrom(`[${timePrefix(sinceMs)}`); ;) {
      const names = await reading
      const last = names.at(-1)
      if (last === undefined) return
      // After the entry and its account's name, which follows it in the index of all accounts. Read while the
      // entries are read; if the caller stops, the reply is ignored.
      reading = namesFrom(`(${last.name}\0${AFTER_ALL}`)
      reading.catch(() => undefined)
      const found = await this.readAll('exporting entries', names)
      const entries = found.filter((entry) => entry !== null)
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

  /** A batch of entries of one account or of all, in order; in a Cluster, merged from all accounts. */
  private async order(
    accountId: string | null,
    { from, to, isDescending }: TimeRange,
    limit = BATCH,
  ): Promise<IndexedEntry[]> {
    const command = isDescending ? 'zrevrangebylex' : 'zrangebylex'
    const { allOrder } = this.names
    const read = async (account: string | null): Promise<IndexedEntry[]> => {
      const index = account === null ? (allOrder ?? '') : this.names.order(account)
      const range = [index, from, to, 'LIMIT', 0, limit]
      return stringsOf(await this.link.send('reading entries', command, range)).map((member) => {
        const [name = '', owner = account ?? ''] = member.split('\0')
        return { name, accountId: owner }
      })
    }
    const all = async () => (allOrder === null ? await this.accounts() : [null])
    const owners = accountId === null ? await all() : [accountId]
    const found = await Promise.all(owners.map(read))
    const [first = [], ...others] = found
    if (others.length === 0) return first
    const sign = isDescending ? -1 : 1
    return found
      .flat()
      .sort((a, b) => (a.name < b.name ? -sign : a.name > b.name ? sign : 0))
      .slice(0, limit)
  }

  /** In the order of the names; null for an entry that was pruned in between. */
  private async readAll(what: string, names: readonly IndexedEntry[]): Promise<(LedgerEntry | null)[]> {
    const byAccount = groupBy(names.keys(), (at) => names[at]?.accountId ?? '')
    const entries: (LedgerEntry | null)[] = names.map(() => null)
    await Promise.all(
      Array.from(byAccount, async ([accountId, positions]) => {
        const ids = positions.map((at) => requestIdIn(names[at]?.name ?? ''))
        const found = await this.read(what, accountId, ids)
        found.forEach((entry, at) => (entries[positions[at] ?? 0] = entry))
      }),
    )
    return entries
  }

  private async read(
    what: string,
    accountId: string,
    ids: readonly string[],
  ): Promise<(LedgerEntry | null)[]> {
    const keys = [this.names.entries(accountId), this.names.ids(accountId)]
    const texts = listOf(await this.link.run(what, LEDGER_SCRIPTS.readEntries, { keys, args: ids }))
    return ids.map((id, at) => {
      const text = texts[at]
      if (typeof text !== 'string') return null
      const entry = parseRecord(what, `entry '${id}'`, () => readEntry(text))
      if (entry.accountId === accountId) return entry
      throw unavailable(`${what} failed`, damaged(`entry '${id}'`, 'it belongs to another account'))
    })
  }

  private async bucket(
    accountId: string,
    { by, startMs, isByProperty }: Pick<SumQuery, 'by'> & { startMs: number; isByProperty: boolean },
  ): Promise<UsageSum[]> {
    const name = this.names[isByProperty ? 'propertySum' : 'sum'](accountId, by, startMs)
    const fields = await this.link.send('reading sums', 'hgetall', [name])
    const sums = new Map<string, SumCounters>()
    for (const [field, count] of pairsOf(fields)) {
      const end = field.lastIndexOf('\0')
      const of = field.slice(0, end)
      const sum = sums.get(of) ?? newSum()
      setCounter(sum, Number(field.slice(end + 1)), Number(count))
      sums.set(of, sum)
    }
    return Array.from(sums, ([of, sum]) => {
      const [keyId = '', model = ''] = of.split('\0')
      return sumFromCounters(sum, { startMs, accountId, keyId, model })
    })
  }
}

/** The range of a query: from the first (inclusive) to the second (exclusive) in the order of names. */
function boundsOf({
  fromMs = 0,
  toMs,
}: Pick<EntryQuery, 'fromMs' | 'toMs'>): readonly [oldest: string, newest: string] {
  return [timePrefix(fromMs), toMs === undefined ? AFTER_ALL : timePrefix(Math.max(0, toMs))]
}

/** Names and values of a hash, which ioredis returns as an object. */
function pairsOf(reply: unknown): [string, string][] {
  if (typeof reply !== 'object' || reply === null) return []
  return Object.entries(reply).map(([name, value]) => [name, String(value)])
}
