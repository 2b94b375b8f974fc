/**
 * What accounts used by month: entries that are kept, and a hash of each account to which pruning adds the
 * entries that it removes in the same script. A field is `MONTH\0PATH\0KEY\0MODEL\0LABELS`, its value the
 * figures of `ACCOUNT_FIGURES` with spaces between them, without zeroes at their end.
 */
import { jsonText } from '../../../base/json.js'
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { unitFigures, unitFiguresOf } from '../../../base/unit-counts.js'
import { unavailable } from '../../store-errors.js'
import { monthOf } from '../../limit-arithmetic.js'
import {
  ACCOUNT_FIGURES,
  AccountUses,
  joinedUses,
  LINES_OF,
  useOfEntry,
  usesOfMonth,
  wholeHours,
  type AccountUse,
  type AccountUseQuery,
} from '../../usage-queries.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { BUCKET_MS, type LedgerKeys } from './ledger-keys.js'
import type { RedisUsage } from './read-usage.js'

/** Reads are repeated while a gateway prunes entries. */
const MOST_READS = 20
/** Fields written by one command. */
const PUT_AT_ONCE = 500
/** Uses of ended days that are kept: about 60 MB. */
const MOST_KEPT = 200_000
/** In a longer time, the months without entries would take long to count. */
const MOST_MONTHS = 24
/** Uses that are added up in one turn of the event loop. */
const ADDED_AT_ONCE = 2_000

/** The entries of ended days of one month, added up, from the time in its name. */
interface EndedDays {
  /** Exclusive. */
  readonly toMs: number
  /**
   * Their entries then, what was pruned of the month, and corrections of entries: other numbers mean that
   * they changed since.
   */
  readonly entries: number
  readonly pruned: number
  readonly corrections: number
  readonly uses: readonly AccountUse[]
}

/** What sums are kept by. */
type SummedBy = keyof typeof LINES_OF

interface MonthPart extends Required<AccountUseQuery> {
  /** Requests of the month whose entries are pruned. */
  readonly pruned: number
}

/** Queries and writes on one connection. */
export class RedisAccountUse {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys
  private readonly usage: RedisUsage
  private readonly parts = new Map<string, EndedDays>()
  private kept = 0

  constructor(link: RedisConnection, names: LedgerKeys, usage: RedisUsage) {
    this.link = link
    this.names = names
    this.usage = usage
  }

  /** See `Ledger.accountUse`. An entry that is pruned meanwhile would be in both parts, or in none. */
  async of({ fromMs, toMs, by = 'labels' }: AccountUseQuery): Promise<AccountUse[]> {
    const [first, last] = [monthOf(fromMs), monthOf(toMs - 1)]
    let pruned = await this.pruned()
    for (let reads = 0; reads < MOST_READS; reads += 1) {
      const uses = new AccountUses(by)
      const requests = new Map<number, number>()
      /** The months that are read from sums, and their accounts whose entries are read. */
      const movedIn = new Map<number, ReadonlySet<string>>()
      for (const use of pruned) {
        if (use.month < first || use.month > last) continue
        requests.set(use.month, (requests.get(use.month) ?? 0) + use.requests)
      }
      for (let from = fromMs; from < toMs;) {
        const month = monthOf(from)
        const end = last - first < MOST_MONTHS ? Math.min(toMs, Date.UTC(1970, month + 1)) : toMs
        const part = { fromMs: from, toMs: end, by, pruned: requests.get(month) ?? 0 }
        const ofSums = by === 'labels' ? null : await this.ofMonth(part, by)
        if (ofSums !== null) movedIn.set(month, new Set(ofSums.moved))
        const known = ofSums?.uses ?? (by === 'labels' ? null : await this.ofHours(part, by))
        if (known !== null) {
          await addInTurns(uses, known)
          from = end
          continue
        }
        const endedMs = this.endOfEndedDays(part)
        if (endedMs > from) await addInTurns(uses, await this.ofEndedDays(part, endedMs))
        if (endedMs < end) await addInTurns(uses, await this.ofEntries(part, endedMs))
        from = end
      }
      for (const use of pruned) {
        if (use.month < first || use.month > last) continue
        if (movedIn.get(use.month)?.has(use.accountId) !== false) uses.add(use)
      }
      const after = await this.pruned()
      if (jsonText(after) === jsonText(pruned)) return uses.all()
      pruned = after
    }
    throw unavailable('reading the use of accounts failed', new Error('entries are being pruned'))
  }

  /**
   * The use of a month from the sums of its days, of which there are far fewer than entries, and from the
   * entries of accounts that were moved; these lack what is pruned. Null if the part is not a month to its
   * last entry, or sums lack some of its entries.
   */
  private async ofMonth(
    part: MonthPart,
    by: SummedBy,
  ): Promise<{ uses: readonly AccountUse[]; moved: readonly string[] } | null> {
    const { fromMs, toMs } = part
    const month = monthOf(fromMs)
    const endMs = Date.UTC(1970, month + 1)
    if (fromMs !== Date.UTC(1970, month) || toMs > endMs) return null
    const span = { accountId: null, fromMs, toMs: endMs }
    const [entries, later] = await Promise.all([
      this.usage.count(span),
      toMs === endMs ? 0 : this.usage.count({ ...span, fromMs: toMs }),
    ])
    if (later > 0) return null
    const sums = await this.sumsOf(span, by)
    if (sums === null || sums.requests < entries + part.pruned) return null
    return { uses: [...sums.uses, ...(await this.ofAccounts(span, sums.moved))], moved: sums.moved }
  }

  /**
   * The use by the entries that are kept of a part of a month: whole hours from sums, the edges from entries.
   * Null if there is no whole hour, or sums have other requests, as after entries were pruned.
   */
  private async ofHours(part: MonthPart, by: SummedBy): Promise<readonly AccountUse[] | null> {
    const { fromMs, toMs } = part
    if (monthOf(fromMs) !== monthOf(toMs - 1)) return null
    const oldestMs = await this.usage.oldestMs(fromMs)
    const hours = oldestMs === null ? null : wholeHours(part, oldestMs)
    const sums = hours && (await this.sumsOf(hours, by))
    if (hours === null || sums?.requests !== (await this.usage.countExactly(hours))) return null
    const first = await this.ofEntries({ ...part, toMs: hours.fromMs }, fromMs)
    const moved = await this.ofAccounts(hours, sums.moved)
    return joinedUses([first, sums.uses, moved, await this.ofEntries(part, hours.toMs)], by)
  }

  /** The sums of whole hours or days of one month; null if they lack paths, as those of earlier versions. */
  private async sumsOf({ fromMs, toMs }: Pick<AccountUseQuery, 'fromMs' | 'toMs'>, by: SummedBy) {
    const span = { accountId: null, fromMs, toMs }
    const lines = await this.usage.groupUse({ ...span, by: LINES_OF[by] })
    const ofAccounts = await this.usage.groupUse({ ...span, by: 'account' })
    return usesOfMonth({ month: monthOf(fromMs), by }, lines, ofAccounts)
  }

  /** The use of a time in one month by these accounts, from their entries. */
  private async ofAccounts(
    { fromMs, toMs }: Pick<AccountUseQuery, 'fromMs' | 'toMs'>,
    accountIds: readonly string[],
  ): Promise<AccountUse[]> {
    const uses: AccountUse[] = []
    const month = monthOf(fromMs)
    for (const accountId of accountIds) {
      const cells = await this.usage.cells({ accountId, fromMs, toMs, stepMs: Date.UTC(1970, month + 1) })
      for (const { accountPath, keyId, model, failed, ...cell } of cells) {
        const { requests, inputTokens, outputTokens, costNanoUsd, unpriced } = cell
        const of = { month, accountId, accountPath: accountPath ?? '', keyId, model, labels: '' }
        const figures = { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced }
        uses.push({ ...of, ...figures, ...unitFiguresOf(cell) })
      }
    }
    return uses
  }

  /**
   * The end of the days of a part of a month that ended by the clocks of all gateways; its start if there are
   * none. In a Cluster, entries are not counted: each account has an index of its own.
   */
  private endOfEndedDays({ fromMs, toMs }: MonthPart): number {
    const { day } = BUCKET_MS
    if (this.names.isCluster || monthOf(fromMs) !== monthOf(toMs - 1)) return fromMs
    return Math.max(fromMs, Math.floor(Math.min(toMs, Date.now() - day) / day) * day)
  }

  /** The use on ended days: what is kept of them, and the entries since. */
  private async ofEndedDays(part: MonthPart, endedMs: number): Promise<readonly AccountUse[]> {
    const { fromMs, by, pruned } = part
    const count = (from: number, to: number) => this.usage.count({ accountId: null, fromMs: from, toMs: to })
    const name = `${fromMs} ${by}`
    const kept = this.parts.get(name)
    const found = await this.link.send('reading the use of accounts', 'get', [this.names.corrections])
    const corrections = Number(found ?? 0)
    const isUnchanged = kept?.pruned === pruned && kept.corrections === corrections
    const isSame = isUnchanged && kept.toMs <= endedMs && (await count(fromMs, kept.toMs)) === kept.entries
    if (isSame && kept.toMs === endedMs) return kept.uses
    const known = isSame ? kept : { toMs: fromMs, entries: 0, uses: [] }
    const entries = known.entries + (await count(known.toMs, endedMs))
    const added = new AccountUses(by)
    await addInTurns(added, known.uses)
    await addInTurns(added, await this.ofEntries({ ...part, toMs: endedMs }, known.toMs))
    const uses = added.all()
    this.forget(name)
    // Entries came or went while these were read: they may be incomplete, and are not kept.
    if (uses.length > MOST_KEPT || (await count(fromMs, endedMs)) !== entries) return uses
    for (const [oldest] of this.parts) {
      if (this.kept + uses.length <= MOST_KEPT) break
      this.forget(oldest)
    }
    this.forget(name)
    this.parts.set(name, { toMs: endedMs, entries, pruned, corrections, uses })
    this.kept += uses.length
    return uses
  }

  private forget(name: string): void {
    this.kept -= this.parts.get(name)?.uses.length ?? 0
    this.parts.delete(name)
  }

  private async ofEntries({ toMs, by }: MonthPart, fromMs: number): Promise<AccountUse[]> {
    const uses = new AccountUses(by)
    if (fromMs >= toMs) return []
    for await (const entries of this.usage.export(fromMs)) {
      for (const entry of entries) {
        if (entry.atMs >= fromMs && entry.atMs < toMs) uses.add(useOfEntry(entry, monthOf(entry.atMs)))
      }
      if (entries.every(({ atMs }) => atMs >= toMs)) break
    }
    return uses.all()
  }

  /** See `Ledger.prunedUse`. */
  async pruned(): Promise<AccountUse[]> {
    const found: AccountUse[] = []
    for (const account of (await this.usage.accounts()).sort()) {
      const name = this.names.months(account)
      const fields = await this.link.send('reading the use of accounts', 'hgetall', [name])
      const pairs = typeof fields === 'object' && fields !== null ? Object.entries(fields) : []
      const own = pairs.map(([field, value]) => useIn(account, field, String(value)))
      found.push(...own.sort((a, b) => (fieldOf(a) < fieldOf(b) ? -1 : 1)))
    }
    return found
  }

  /** See `Ledger.putAccountUse`. */
  async put(uses: readonly AccountUse[]): Promise<void> {
    const accounts = new Set(uses.map(({ accountId }) => accountId))
    for (const account of accounts) {
      const own = uses.filter(({ accountId }) => accountId === account)
      for (let from = 0; from < own.length; from += PUT_AT_ONCE) {
        const pairs = own.slice(from, from + PUT_AT_ONCE).flatMap((use) => [fieldOf(use), figuresText(use)])
        const name = this.names.months(account)
        await this.link.send('putting the use of accounts', 'hset', [name, ...pairs])
      }
    }
  }

  /** Removes months that began before a time. */
  async prune(account: string, beforeMs: number): Promise<void> {
    const what = 'pruning sums'
    const name = this.names.months(account)
    const fields = await this.link.send(what, 'hkeys', [name])
    const first = monthOf(beforeMs)
    const old = (Array.isArray(fields) ? fields.map(String) : []).filter(
      (field) => Number(field.slice(0, field.indexOf('\0'))) < first,
    )
    if (old.length > 0) await this.link.send(what, 'hdel', [name, ...old])
  }
}

/** Adds them in several turns of the event loop. */
async function addInTurns(to: AccountUses, uses: readonly AccountUse[]): Promise<void> {
  for (const [at, use] of uses.entries()) {
    if (at % ADDED_AT_ONCE === ADDED_AT_ONCE - 1) await adminTurns.next()
    to.add(use)
  }
}

/** The field and the figures of an entry. */
export function useFieldsOf(entry: LedgerEntry): readonly [field: string, figures: string] {
  const use = useOfEntry(entry, monthOf(entry.atMs))
  return [fieldOf(use), figuresText(use)]
}

function figuresText(use: AccountUse): string {
  // Zeroes at the end are left out: most requests have no units.
  const figures = ACCOUNT_FIGURES.map((figure) => use[figure])
  return figures.slice(0, figures.findLastIndex((count) => count !== 0) + 1).join(' ')
}

/** The field of a use in the hash of its account. */
function fieldOf({ month, accountPath, keyId, model, labels }: AccountUse): string {
  return [month, accountPath, keyId, model, labels].join('\0')
}

function useIn(accountId: string, field: string, value: string): AccountUse {
  const [month = '', accountPath = '', keyId = '', model = '', labels = ''] = field.split('\0')
  const figures = value.split(' ')
  const counts = figures.map(Number)
  const [requests = 0, failed = 0, inputTokens = 0, outputTokens = 0, , unpriced = 0] = counts
  const costNanoUsd = nanoUsdOf(figures[ACCOUNT_FIGURES.indexOf('costNanoUsd')] ?? '0')
  return {
    ...{ month: Number(month), accountId, accountPath, keyId, model, labels },
    ...{ requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced },
    ...unitFigures((figure) => counts[ACCOUNT_FIGURES.indexOf(figure)] ?? 0),
  }
}
