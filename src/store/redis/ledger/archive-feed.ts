/**
 * What Redis does for the archive. `waiting` has the names of entries that it has not confirmed, oldest
 * first, each with a NUL and its account; settling an entry adds its name. A batch is a copy of some of
 * them, with its number first. In a Cluster each account has its own, and a mark for settling that there is
 * an archive.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import {
  leaderIn,
  progressIn,
  type ArchiveFeed,
  type ArchiveLeader,
  type ArchiveProgress,
  type WaitingEntries,
} from '../../archive-feed.js'
import { stringsOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import type { EntryPlace } from './entry-log.js'
import { timeIn } from './entry-names.js'
import { LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'
import { moveFormer } from './move-former.js'
import type { UsagePruning } from './prune.js'
import type { RedisUsage } from './read-usage.js'

const WHAT = 'moving entries to the archive'
/** Entries read, or added to those that wait, by one command. */
const AT_ONCE = 500
/** The memory of an entry without its name among those that wait (`test/store/size`). */
const ENTRY_BYTES = 400

interface FeedParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly usage: RedisUsage
  readonly pruning: UsagePruning
}

/** The feed of one store. */
export class RedisArchiveFeed implements ArchiveFeed {
  private readonly parts: FeedParts

  constructor(parts: FeedParts) {
    this.parts = parts
  }

  async progress(): Promise<ArchiveProgress | null> {
    const { link, names } = this.parts
    return progressIn(await link.send(WHAT, 'get', [names.archiveProgress]))
  }

  async lead(leader: ArchiveLeader, ttlMs: number): Promise<ArchiveLeader> {
    const { link, names } = this.parts
    const args = [leader.id, JSON.stringify(leader), ttlMs]
    const text = await link.run(WHAT, LEDGER_SCRIPTS.leadArchive, { keys: [names.archiveLease], args })
    return leaderIn(text) ?? leader
  }

  async leader(): Promise<ArchiveLeader | null> {
    const { link, names } = this.parts
    return leaderIn(await link.send(WHAT, 'get', [names.archiveLease]))
  }

  async resign(id: string): Promise<void> {
    const { link, names } = this.parts
    await link.run(WHAT, LEDGER_SCRIPTS.leadArchive, { keys: [names.archiveLease], args: [id, '', 0] })
  }

  async begin(): Promise<void> {
    const { link, names, usage } = this.parts
    if (!names.isCluster && (await this.isMarked(''))) return
    for (const account of await this.accounts()) {
      if (names.isCluster && (await this.isMarked(account))) continue
      await moveFormer(usage, account)
      const log = names.log(account)
      // From now on, settling adds to those that wait.
      await link.send(WHAT, 'set', [names.archiveMark(account), 'begun'])
      for (let from = '-'; ;) {
        const members = stringsOf(await link.send(WHAT, 'zrangebylex', [log, from, '+', 'LIMIT', 0, AT_ONCE]))
        const last = members.at(-1)
        if (last === undefined) break
        const waiting = members.flatMap((member) => [0, waitingName(nameIn(member), account)])
        await link.send(WHAT, 'zadd', [names.waiting(account), ...waiting])
        from = `(${last}`
      }
      if (names.isCluster) await link.send(WHAT, 'set', [names.archiveMark(account), 'all'])
    }
    if (!names.isCluster) await link.send(WHAT, 'set', [names.archiveMark(''), 'all'])
  }

  /** Whether all entries of the account wait that were there before the archive. */
  private async isMarked(account: string): Promise<boolean> {
    const { link, names } = this.parts
    return (await link.send(WHAT, 'get', [names.archiveMark(account)])) === 'all'
  }

  async declare(batch: number, limit: number): Promise<LedgerEntry[]> {
    const { link, names, usage } = this.parts
    const places: EntryPlace[] = []
    for (const account of await this.slots()) {
      const keys = [names.waiting(account), names.batch(account)]
      const left = limit - places.length
      const declared = stringsOf(
        await link.run(WHAT, LEDGER_SCRIPTS.declareBatch, { keys, args: [batch, left] }),
      )
      for (const text of declared) {
        const end = text.indexOf('\0')
        const accountId = text.slice(end + 1)
        places.push({ name: text.slice(0, end), accountId, isFormer: false, member: null })
      }
    }
    const entries: LedgerEntry[] = []
    for (let at = 0; at < places.length; at += AT_ONCE) {
      const found = await usage.log.read(WHAT, places.slice(at, at + AT_ONCE))
      for (const entry of found) if (entry !== null) entries.push(entry)
    }
    return entries
  }

  async save(leaderId: string, next: ArchiveProgress): Promise<boolean> {
    const { link, names } = this.parts
    const keys = [names.archiveProgress, names.archiveLease]
    const args = [leaderId, next.version, JSON.stringify(next)]
    if ((await link.run(WHAT, LEDGER_SCRIPTS.saveProgress, { keys, args })) !== 1) return false
    for (const account of await this.slots()) {
      const own = [names.waiting(account), names.batch(account)]
      await link.run(WHAT, LEDGER_SCRIPTS.confirmBatch, { keys: own, args: [next.confirmed] })
    }
    return true
  }

  async remove(beforeMs: number): Promise<number> {
    let count = 0
    for (const account of await this.accounts()) {
      count += await this.parts.pruning.pruneEntries(account, beforeMs, true)
    }
    return count
  }

  async waiting(): Promise<WaitingEntries> {
    const { link, names } = this.parts
    let [rows, bytes] = [0, 0]
    const oldest: number[] = []
    for (const account of await this.slots()) {
      const key = names.waiting(account)
      const own = Number(await link.send(WHAT, 'zcard', [key]))
      rows += own
      if (own > 0) bytes += own * ENTRY_BYTES + Number(await link.send(WHAT, 'memory', ['usage', key]))
      const [first] = stringsOf(await link.send(WHAT, 'zrange', [key, 0, 0]))
      if (first !== undefined) oldest.push(timeIn(first))
    }
    return { rows, oldestAtMs: oldest.length === 0 ? null : Math.min(...oldest), bytes }
  }

  private accounts(): Promise<string[]> {
    return this.parts.usage.accounts()
  }

  /** An account of each part of those that wait. */
  private async slots(): Promise<readonly string[]> {
    return this.parts.names.isCluster ? this.accounts() : ['']
  }
}

/** The name in a member of a log. */
function nameIn(member: string): string {
  return member.slice(0, member.indexOf('\0'))
}

function waitingName(name: string, account: string): string {
  return `${name}\0${account}`
}
