/** Removes ledger entries and sums of usage in Redis that are older than their retention time. */
import type { RedisConnection } from '../connection/redis-connection.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import type { Retention } from '../../ledger.js'
import { ACCOUNTS, BUCKET_MS, requestIdIn, timePrefix, type LedgerKeys } from './key-names.js'
import { LEDGER_SCRIPTS } from './scripts.js'

/** Entries removed in one batch. */
const BATCH = 250

/** Prunes on a connection that no request uses. */
export class UsagePruning {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys

  constructor(link: RedisConnection, names: LedgerKeys) {
    this.link = link
    this.names = names
  }

  /** Resolves to the number of removed entries. */
  async prune({ entriesBeforeMs, hoursBeforeMs, daysBeforeMs }: Retention): Promise<number> {
    let count = 0
    for (const account of stringsOf(
      await this.link.send('listing accounts', 'smembers', [ACCOUNTS]),
    )) {
      count += await this.pruneRows(account, entriesBeforeMs)
      await this.pruneSums(account, 'hour', hoursBeforeMs)
      await this.pruneSums(account, 'day', daysBeforeMs)
    }
    return count
  }

  private async pruneRows(account: string, beforeMs: number): Promise<number> {
    const what = 'pruning entries'
    const order = this.names.order(account)
    const keys = [this.names.entries(account), this.names.ids(account), order]
    for (let count = 0; ;) {
      const range = [order, '-', `(${timePrefix(beforeMs)}`, 'LIMIT', 0, BATCH]
      const names = stringsOf(await this.link.send(what, 'zrangebylex', range))
      if (names.length === 0) return count
      const args = names.flatMap((name) => [requestIdIn(name), name, `${name}\0${account}`])
      await this.link.run(what, LEDGER_SCRIPTS.deleteEntries, {
        keys: [...keys, this.names.allOrder ?? order],
        args,
      })
      count += names.length
    }
  }

  private async pruneSums(account: string, by: 'hour' | 'day', beforeMs: number): Promise<void> {
    const what = 'pruning sums'
    const length = BUCKET_MS[by]
    const buckets = this.names.buckets(account, by)
    const range = [buckets, '-inf', `(${Math.floor(beforeMs / length) * length}`]
    for (const start of listOf(await this.link.send(what, 'zrangebyscore', range)).map(Number)) {
      await this.link.send(what, 'del', [this.names.sum(account, by, start)])
      await this.link.send(what, 'zrem', [buckets, start])
    }
  }
}
