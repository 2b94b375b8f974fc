/**
 * What Redis does for the archive. `waiting` has the names of entries that it has not confirmed, oldest
 * first, each with a NUL and its account; settling an entry adds its name. A batch is a copy of some of
 * them, with its number first. In a Cluster each account has its own, and a mark for settling that there is
 * an archive.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { readSpoolLine, writeSpoolLine } from '../../../ledger/spool.js'
import {
  leaderIn,
  PART_ENTRIES,
  progressIn,
  type ArchiveFeed,
  type ArchiveLeader,
  type ArchiveProgress,
  type DeclaredBatch,
  type FedEntries,
  type WaitingEntries,
} from '../../archive-feed.js'
import type { Reservation, SettleOutcome } from '../../ledger.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import type { Argument } from '../connection/script.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import type { EntryPlace } from './entry-log.js'
import { timeIn, timePrefix } from './entry-names.js'
import { LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'
import { moveFormer } from './move-former.js'
import type { UsagePruning } from './prune.js'
import type { RedisUsage } from './read-usage.js'

const WHAT = 'moving entries to the archive'
/** Entries read, or added to those that wait, by one command. */
const AT_ONCE = 500
/** The memory of an entry without its name among those that wait (`test/store/size`). */
const ENTRY_BYTES = 400

/** Settles an entry of a request; the last argument is what the archive has of it. */
export type SettleAsked = (
  entry: LedgerEntry,
  reservation: Reservation | undefined,
  known: LedgerEntry | null,
) => Promise<SettleOutcome>

interface FeedParts {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  readonly usage: RedisUsage
  readonly pruning: UsagePruning
  readonly settle: SettleAsked
  /** The time in tests; empty for the server's clock. */
  readonly clock: () => Argument
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
    return String(await link.send(WHAT, 'get', [names.archiveMark(account)])).startsWith('all')
  }

  async declare(batch: number, limit: number): Promise<DeclaredBatch | null> {
    const { link, names } = this.parts
    const declared: string[] = []
    for (const account of await this.slots()) {
      const keys = [names.waiting(account), names.batch(account)]
      const args = [batch, limit - declared.length]
      declared.push(...stringsOf(await link.run(WHAT, LEDGER_SCRIPTS.declareBatch, { keys, args })))
    }
    if (declared.length === 0) return null
    const read = (some: readonly string[]) => this.read(some)
    const { corrected } = await read(declared.filter((text) => text.split('\0').length > 2))
    return {
      ...{ rows: declared.length, corrected },
      async *parts() {
        for (let at = 0; at < declared.length; at += PART_ENTRIES) {
          yield (await read(declared.slice(at, at + PART_ENTRIES))).entries
        }
      },
    }
  }

  async unconfirmed(beforeMs: number): Promise<FedEntries> {
    const { link, names } = this.parts
    const found: string[] = []
    for (const account of await this.slots()) {
      const range = [names.waiting(account), '-', `(${timePrefix(beforeMs)}`]
      for (const name of stringsOf(await link.send(WHAT, 'zrangebylex', range))) found.push(name)
    }
    return this.read(found)
  }

  /** The entries that wait under these names. */
  private async read(waiting: readonly string[]): Promise<FedEntries> {
    const { usage } = this.parts
    const marks: boolean[] = []
    const places = waiting.map((text): EntryPlace => {
      const [name = '', accountId = '', mark] = text.split('\0')
      marks.push(mark !== undefined)
      return { name, accountId, isFormer: false, member: null }
    })
    const entries: LedgerEntry[] = []
    const corrected = new Set<string>()
    for (let from = 0; from < places.length; from += AT_ONCE) {
      const found = await usage.log.read(WHAT, places.slice(from, from + AT_ONCE))
      for (const [at, entry] of found.entries()) {
        if (entry === null) continue
        entries.push(entry)
        if (marks[from + at] === true) corrected.add(entry.requestId)
      }
    }
    return { entries, corrected }
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
    const { link, names } = this.parts
    for (const account of await this.slots()) {
      const mark = names.archiveMark(account)
      const [state = '', knownMs = '0'] = String(await link.send(WHAT, 'get', [mark])).split(' ')
      if (state !== 'all' || beforeMs <= Number(knownMs)) continue
      await link.send(WHAT, 'set', [mark, `all ${Math.floor(beforeMs)}`])
    }
    for (const account of await this.accounts()) {
      count += await this.parts.pruning.pruneEntries(account, beforeMs, true)
    }
    return count
  }

  async nowMs(): Promise<number> {
    const { link, clock } = this.parts
    if (clock() !== '') return Number(clock())
    const [seconds, micros] = stringsOf(await link.send(WHAT, 'time', [])).map(Number)
    return (seconds ?? 0) * 1_000 + Math.floor((micros ?? 0) / 1_000)
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

  async addLate(entry: LedgerEntry, reservation: Reservation | undefined): Promise<void> {
    const { link, names } = this.parts
    const line = writeSpoolLine({ row: entry, reservation })
    await link.send(WHAT, 'hset', [names.lateEntries, entry.requestId, line])
  }

  async late(limit: number): Promise<LedgerEntry[]> {
    const { link, names } = this.parts
    const [, fields] = listOf(await link.send(WHAT, 'hscan', [names.lateEntries, '0', 'COUNT', limit]))
    const lines = stringsOf(fields).filter((_, at) => at % 2 === 1)
    return lines.map((line) => readSpoolLine(line).row)
  }

  async settleLate(entry: LedgerEntry, known: LedgerEntry | null): Promise<boolean> {
    const { link, names, settle } = this.parts
    const { requestId } = entry
    const line = await link.send(WHAT, 'hget', [names.lateEntries, requestId])
    if (typeof line !== 'string') return false
    const outcome = await settle(entry, readSpoolLine(line).reservation, known)
    await link.send(WHAT, 'hdel', [names.lateEntries, requestId])
    return outcome !== 'already'
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
