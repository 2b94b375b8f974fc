/**
 * Removes old entries and sums, and moves what former versions wrote; on a connection that no request uses.
 */
import type { Retention } from '../../ledger.js'
import { monthOf } from '../../limit-arithmetic.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { useFieldsOf, type RedisAccountUse } from './account-use.js'
import { requestIdIn, timePrefix } from './entry-names.js'
import { ACCOUNTS, BUCKET_MS, LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'
import { moveFormer } from './move-former.js'
import type { RedisUsage } from './read-usage.js'

/** Entries removed in one batch. */
const BATCH = 250
const WHAT = 'pruning entries'

interface PruningParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
}

/** Prunes the ledger of one store. */
export class UsagePruning {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys
  private readonly usage: RedisUsage
  private readonly uses: RedisAccountUse

  constructor({ link, names }: PruningParts, usage: RedisUsage, uses: RedisAccountUse) {
    this.link = link
    this.names = names
    this.usage = usage
    this.uses = uses
  }

  /** Resolves to the number of removed entries. */
  async prune(retention: Retention): Promise<number> {
    const { entriesBeforeMs, hoursBeforeMs, daysBeforeMs, isArchived = false } = retention
    let count = 0
    for (const account of stringsOf(await this.link.send('listing accounts', 'smembers', [ACCOUNTS]))) {
      await moveFormer(this.usage, account)
      count += await this.pruneEntries(account, entriesBeforeMs, isArchived)
      await this.pruneSums(account, 'hour', hoursBeforeMs)
      await this.pruneSums(account, 'day', daysBeforeMs)
      await this.uses.prune(account, daysBeforeMs)
    }
    return count
  }

  /**
   * Removes the entries of an account that arrived before a time; with `isArchived` those stay that wait for
   * the archive.
   */
  async pruneEntries(account: string, beforeMs: number, isArchived = false): Promise<number> {
    const { names } = this
    const log = names.log(account)
    const what = 'reading entries'
    const number = names.isCluster ? '' : await this.link.send(what, 'hget', [names.accountNumbers, account])
    let from = '-'
    for (let count = 0; ;) {
      const range = [log, from, `(${timePrefix(beforeMs)}`, 'LIMIT', 0, BATCH]
      const members = stringsOf(await this.link.send(WHAT, 'zrangebylex', range))
      const last = members.at(-1)
      if (last === undefined) {
        await this.pruneDictionaries(account, beforeMs)
        return count
      }
      const uses = await this.usesOf(account, members)
      const entries = members.flatMap((member, at) => {
        const name = member.slice(0, member.indexOf('\0'))
        return [member, `${name}\0${String(number)}`, requestIdIn(name), ...(uses[at] ?? ['', ''])]
      })
      const own = [log, names.ids(account), names.allNames ?? log, names.months(account)]
      const keys = [...own, names.waiting(account)]
      const args = [isArchived ? 1 : 0, account, ...entries]
      from = `(${last}`
      count += Number(await this.link.run(WHAT, LEDGER_SCRIPTS.deleteEntries, { keys, args }))
    }
  }

  /** The field and the figures of each entry; null for a damaged one, which is pruned, too. */
  private async usesOf(account: string, members: readonly string[]) {
    const { log } = this.usage
    try {
      const entries = await log.parse(WHAT, account, members)
      return entries.map((entry) => entry && useFieldsOf(entry))
    } catch {
      const alone = members.map((member) => log.parse(WHAT, account, [member]).catch(() => [null]))
      return (await Promise.all(alone)).map(([entry = null]) => entry && useFieldsOf(entry))
    }
  }

  /** Removes the dictionaries of months that are over and have no entries. */
  private async pruneDictionaries(account: string, beforeMs: number): Promise<void> {
    const { names } = this
    const dictionaries = names.dictionaries(account)
    const months = stringsOf(await this.link.send(WHAT, 'smembers', [dictionaries])).map(Number)
    for (const month of months) {
      if (month >= monthOf(beforeMs)) continue
      const bounds = [month, month + 1].map((each) => timePrefix(Date.UTC(1970, each)))
      const keys = [names.log(account), names.dictionary(account, month), dictionaries]
      const args = [`[${bounds[0] ?? ''}`, `(${bounds[1] ?? ''}`, month]
      await this.link.run(WHAT, LEDGER_SCRIPTS.deleteNames, { keys, args })
    }
  }

  private async pruneSums(account: string, by: 'hour' | 'day', beforeMs: number): Promise<void> {
    const what = 'pruning sums'
    const length = BUCKET_MS[by]
    const buckets = this.names.buckets(account, by)
    const range = [buckets, '-inf', `(${Math.floor(beforeMs / length) * length}`]
    const starts = listOf(await this.link.send(what, 'zrangebyscore', range)).map(Number)
    for (const start of starts) {
      await this.link.send(what, 'del', [this.names.sum(account, by, start)])
      await this.link.send(what, 'del', [this.names.propertySum(account, by, start)])
      await this.link.send(what, 'zrem', [buckets, start])
    }
    // Processes keep what was used on past days.
    if (starts.length > 0) await this.link.send(what, 'incr', [this.names.past(account)])
  }
}
