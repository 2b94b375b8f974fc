/**
 * The use of keys, models and values of properties in Redis, added up from the sums of whole days and of the
 * hours before and after them.
 *
 * What each account used is kept in memory, because a thousand accounts have tens of thousands of sums: the
 * whole until the account has another entry, and the ended days until one of them has changed. An account
 * counts the entries that came after the end of their day (`past`).
 */
import { adminTurns } from '../../../base/turn-queue.js'
import type { GroupUse, GroupUseQuery, KeyUse, KeyUseQuery } from '../../usage-queries.js'
import { addUse, byCost, bucketOf } from '../../records/count-usage.js'
import { listOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { addFigures, GroupFigures } from './bucket-figures.js'
import { BUCKET_MS, type LedgerKeys } from './ledger-keys.js'
import type { RedisPropertySums } from './property-sums.js'

/** Spans in memory; each has as many uses as the account has groups. */
const MAX_SPANS = 20_000
/** Accounts whose versions are read at once. */
const AT_ONCE = 50
/** Accounts whose sums are read at once: each takes some ms of CPU. */
const READ_AT_ONCE = 4
/** Days have ended this long after midnight, since the clocks of this process and of Redis may differ. */
const CLOCKS_MS = 3_600_000
const WHAT = 'reading the use of groups'
const { hour: HOUR_MS, day: DAY_MS } = BUCKET_MS

interface Span {
  readonly version: string
  readonly uses: readonly GroupUse[]
}

/** What the use is read from. */
interface GroupUseParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly accounts: () => Promise<string[]>
  readonly properties: RedisPropertySums
  readonly nowMs: () => number
}

/** The state of an account's sums. */
interface Versions {
  readonly accountId: string
  /** Of the ended days. */
  readonly ended: string
  readonly whole: string
}

/** The use of the groups of one store. */
export class RedisGroupUse {
  private readonly parts: GroupUseParts
  private readonly spans = new Map<string, Span>()

  constructor(parts: GroupUseParts) {
    this.parts = parts
  }

  /** See `Ledger.keyUse`. */
  async ofKeys({ keyIds, most, fromMs, toMs, ...query }: KeyUseQuery): Promise<KeyUse[]> {
    const days = { fromMs: bucketOf(fromMs, DAY_MS), toMs: bucketOf(toMs, DAY_MS) + DAY_MS }
    const uses = await this.of({ ...query, ...days, by: 'key' })
    const wanted = keyIds === undefined ? null : new Set(keyIds)
    const found = uses.filter(({ keyId, requests }) => requests > 0 && wanted?.has(keyId) !== false)
    return most === undefined ? found : found.sort(byCost).slice(0, most)
  }

  /** See `Ledger.groupUse`. Lets other work run between accounts. */
  async of(query: GroupUseQuery): Promise<GroupUse[]> {
    const { accountId } = query
    const span = { ...query, ...wholeHours(query, this.parts.nowMs()) }
    const accounts = accountId === null ? await this.parts.accounts() : [accountId]
    const uses = new Map<string, GroupUse>()
    for (let at = 0; at < accounts.length; at += AT_ONCE) {
      const some = await Promise.all(
        accounts.slice(at, at + AT_ONCE).map((account) => this.versions(account)),
      )
      const changed: Versions[] = []
      for (const versions of some) {
        const kept = this.kept(nameOf(versions.accountId, span), versions.whole)
        if (kept === null) changed.push(versions)
        else for (const use of kept) addUse(uses, use)
      }
      for (let from = 0; from < changed.length; from += READ_AT_ONCE) {
        const reading = changed.slice(from, from + READ_AT_ONCE)
        for (const read of await Promise.all(reading.map((each) => this.whole(each, span)))) {
          for (const use of read) addUse(uses, use)
        }
        await adminTurns.next()
      }
    }
    return [...uses.values()]
  }

  private async versions(accountId: string): Promise<Versions> {
    const { link, names } = this.parts
    const [late, settled, last] = await Promise.all([
      link.send(WHAT, 'get', [names.past(accountId)]),
      link.send(WHAT, 'get', [names.settled(accountId)]),
      link.send(WHAT, 'xrevrange', [names.formerEntries(accountId), '+', '-', 'COUNT', 1]),
    ])
    const [id] = listOf(listOf(last)[0] ?? [])
    return { accountId, ended: String(late), whole: `${String(late)} ${String(settled)} ${String(id)}` }
  }

  private async whole(
    { accountId, ended, whole }: Versions,
    span: GroupUseQuery,
  ): Promise<readonly GroupUse[]> {
    const { fromMs, toMs } = span
    const recentMs = bucketOf(this.parts.nowMs() - CLOCKS_MS, DAY_MS)
    const past = { ...span, toMs: Math.max(fromMs, Math.min(toMs, recentMs)) }
    const name = nameOf(accountId, past)
    const kept = this.kept(name, ended)
    const before = kept ?? this.keep(name, ended, await this.read(accountId, past))
    if (toMs <= recentMs) return before
    const uses = new Map<string, GroupUse>()
    for (const use of before) addUse(uses, use)
    const recent = { ...span, fromMs: Math.max(fromMs, recentMs) }
    for (const use of await this.read(accountId, recent)) addUse(uses, use)
    return this.keep(nameOf(accountId, span), whole, [...uses.values()])
  }

  /** The use of an account in whole hours, from the sums of its days and of the hours around them. */
  private async read(accountId: string, query: GroupUseQuery): Promise<GroupUse[]> {
    const { fromMs, toMs } = query
    const [firstDay, lastDay] = [Math.ceil(fromMs / DAY_MS) * DAY_MS, bucketOf(toMs, DAY_MS)]
    const isShort = firstDay >= lastDay
    const spans = [
      ['hour', fromMs, isShort ? toMs : firstDay],
      ['day', firstDay, isShort ? firstDay : lastDay],
      ['hour', isShort ? toMs : lastDay, toMs],
    ] as const
    const figures = new GroupFigures(accountId, query)
    if (figures.isByProperty) await this.parts.properties.catchUp(accountId)
    for (const [length, from, to] of spans) {
      if (from >= to) continue
      const span = { length, fromMs: from, toMs: to }
      await addFigures(this.parts, accountId, span, figures)
    }
    return figures.uses()
  }

  /** What is in memory for a span; null if there is nothing, or of another version. */
  private kept(name: string, version: string): readonly GroupUse[] | null {
    const span = this.spans.get(name)
    return span?.version === version ? span.uses : null
  }

  private keep(name: string, version: string, uses: readonly GroupUse[]): readonly GroupUse[] {
    this.spans.delete(name)
    this.spans.set(name, { version, uses })
    const [oldest] = this.spans.keys()
    if (this.spans.size > MAX_SPANS && oldest !== undefined) this.spans.delete(oldest)
    return uses
  }
}

function nameOf(accountId: string, { by, model, keyId, fromMs, toMs }: GroupUseQuery): string {
  return JSON.stringify([accountId, by, model ?? null, keyId ?? null, fromMs, toMs])
}

/** The hours of a span. One that ends with the current hour or later ends with its day: one sum of a day. */
function wholeHours(
  { fromMs, toMs }: Pick<GroupUseQuery, 'fromMs' | 'toMs'>,
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } {
  const first = bucketOf(fromMs, HOUR_MS)
  const end = Math.max(first, Math.ceil(toMs / HOUR_MS) * HOUR_MS)
  return { fromMs: first, toMs: end > nowMs ? Math.ceil(end / DAY_MS) * DAY_MS : end }
}
