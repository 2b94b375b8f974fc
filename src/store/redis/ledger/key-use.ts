/**
 * The use of keys in Redis. Sums of ended days are added up once and kept in memory, because a thousand
 * accounts have tens of thousands of them; an account counts the entries that came late (`past`), so that
 * they are added up again when one of them has changed.
 */
import { byCost, useByGroup } from '../../records/count-usage.js'
import type { KeyUse, KeyUseQuery, SumQuery, UsageSum } from '../../usage-queries.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { BUCKET_MS, type LedgerKeys } from './ledger-keys.js'

/** Spans in memory; each has as many uses as the account has keys. */
const MAX_SPANS = 20_000
/** Accounts that are read at once. */
const AT_ONCE = 50
const WHAT = 'reading the use of keys'

interface Span {
  readonly late: string
  readonly uses: readonly KeyUse[]
}

/** What the use is read from. */
export interface KeyUseParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly accounts: () => Promise<string[]>
  readonly sums: (query: SumQuery) => Promise<UsageSum[]>
}

/** The use of the keys of one store. */
export class RedisKeyUse {
  private readonly parts: KeyUseParts
  private readonly spans = new Map<string, Span>()

  constructor(parts: KeyUseParts) {
    this.parts = parts
  }

  /** See `Ledger.keyUse`. */
  async of({ keyIds, most, ...query }: KeyUseQuery): Promise<KeyUse[]> {
    const { accountId } = query
    const accounts = accountId === null ? await this.parts.accounts() : [accountId]
    const wanted = keyIds === undefined ? null : new Set(keyIds)
    const found: KeyUse[] = []
    for (let at = 0; at < accounts.length; at += AT_ONCE) {
      const some = accounts.slice(at, at + AT_ONCE)
      for (const uses of await Promise.all(some.map((account) => this.ofAccount(account, query)))) {
        for (const use of uses) {
          if (use.requests > 0 && wanted?.has(use.keyId) !== false) found.push(use)
        }
      }
    }
    return most === undefined ? found : found.sort(byCost).slice(0, most)
  }

  private async ofAccount(accountId: string, query: KeyUseQuery): Promise<readonly KeyUse[]> {
    const { model, toMs } = query
    const fromMs = dayOf(query.fromMs)
    // The clocks of this process and of Redis may differ by some minutes at midnight.
    const recentMs = dayOf(Date.now()) - BUCKET_MS.day
    const read = async (from: number, to: number): Promise<KeyUse[]> => {
      const of = { accountId, by: 'day', fromMs: from, toMs: to } as const
      return useByGroup(
        await this.parts.sums({ ...of, ...(model === undefined ? {} : { model }) }),
        'key',
      )
    }
    if (fromMs >= recentMs) return read(fromMs, toMs)
    const pastMs = Math.min(toMs, recentMs - 1)
    const name = JSON.stringify([accountId, model, fromMs, dayOf(pastMs)])
    const { link, names } = this.parts
    const late = String(await link.send(WHAT, 'get', [names.past(accountId)]))
    let span = this.spans.get(name)
    if (span?.late !== late) {
      span = { late, uses: await read(fromMs, pastMs) }
      this.keep(name, span)
    }
    return toMs < recentMs ? span.uses : added(span.uses, await read(recentMs, toMs))
  }

  private keep(name: string, span: Span): void {
    this.spans.delete(name)
    this.spans.set(name, span)
    const [oldest] = this.spans.keys()
    if (this.spans.size > MAX_SPANS && oldest !== undefined) this.spans.delete(oldest)
  }
}

function dayOf(atMs: number): number {
  return Math.floor(Math.max(0, atMs) / BUCKET_MS.day) * BUCKET_MS.day
}

/** The uses of one account together. */
function added(some: readonly KeyUse[], more: readonly KeyUse[]): KeyUse[] {
  const uses = new Map(some.map((use) => [use.keyId, use]))
  for (const use of more) {
    const before = uses.get(use.keyId)
    uses.set(use.keyId, {
      ...use,
      requests: use.requests + (before?.requests ?? 0),
      costNanoUsd: use.costNanoUsd + (before?.costNanoUsd ?? 0),
      unpriced: use.unpriced + (before?.unpriced ?? 0),
    })
  }
  return [...uses.values()]
}
