/**
 * Reads entries of one ledger in the order of their names: those of the logs, and those of former versions
 * that have not been moved. Long reads are split into batches.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { objectOf } from '../../../base/json.js'
import { monthOf } from '../../limit-arithmetic.js'
import { readEntry } from '../../records/entry-text.js'
import { SHARED_TEXTS, unpackEntry } from '../../records/packed-entry.js'
import { damaged, unavailable } from '../../store-errors.js'
import { listOf, parseRecord, stringsOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { AFTER_ALL, nameOfId, requestIdIn, timeIn } from './entry-names.js'
import { groupBy, LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'

/** Entries read in one batch. */
export const BATCH = 250
/** Texts of dictionaries that are kept in memory: about 10 MB. */
const MOST_TEXTS = 20_000
const FORMER_TIME_DIGITS = 9

/**
 * A part of the order of names, as bounds of `ZRANGEBYLEX`, or of `ZREVRANGEBYLEX` if descending.
 */
interface NameRange {
  readonly from: string
  readonly to: string
  readonly isDescending: boolean
}

/** The place of an entry in the order. */
export interface EntryPlace {
  readonly name: string
  readonly accountId: string
  /** Whether a former version has written it. */
  readonly isFormer: boolean
  /** Its member in the log, if it was read with the place. */
  readonly member: string | null
}

/** The texts of an entry with the digests of those that are in the dictionary. */
interface LogEntry {
  readonly name: string
  readonly month: number
  readonly shared: readonly string[]
  readonly own: string
}

/** The entries of one ledger, on one connection. */
export class EntryLog {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys
  private readonly accounts: () => Promise<string[]>
  /** By the key of the dictionary and the digest. */
  private readonly texts = new Map<string, string>()
  /** Accounts by their numbers, which never change. */
  private readonly owners = new Map<string, string>()

  constructor(link: RedisConnection, names: LedgerKeys, accounts: () => Promise<string[]>) {
    this.link = link
    this.names = names
    this.accounts = accounts
  }

  /** A batch of places of one account or of all, in order; in a Cluster, merged from all accounts. */
  async places(accountId: string | null, range: NameRange): Promise<EntryPlace[]> {
    const { allNames } = this.names
    const all = async () => (allNames === null ? await this.accounts() : [null])
    const owners = accountId === null ? await all() : [accountId]
    // Former entries first: one that is moved meanwhile is found twice, and not lost.
    const former = await Promise.all(owners.map((account) => this.indexed(account, range, true)))
    const found = [...former, ...(await Promise.all(owners.map((each) => this.indexed(each, range, false))))]
    const used = found.filter((places) => places.length > 0)
    if (used.length < 2) return used[0] ?? []
    const sign = range.isDescending ? -1 : 1
    return used
      .flat()
      .sort((a, b) => (a.name < b.name ? -sign : a.name > b.name ? sign : 0))
      .slice(0, BATCH)
  }

  private async indexed(
    account: string | null,
    { from, to, isDescending }: NameRange,
    isFormer: boolean,
  ): Promise<EntryPlace[]> {
    const { names } = this
    const all = isFormer ? names.formerNames : names.allNames
    const own = isFormer ? 'formerOrder' : 'log'
    const index = account === null ? (all ?? '') : names[own](account)
    const command = isDescending ? 'zrevrangebylex' : 'zrangebylex'
    const args = [index, from, to, 'LIMIT', 0, BATCH]
    const members = stringsOf(await this.link.send('reading entries', command, args))
    const ownerOf = isFormer || account !== null ? (of: string) => of : await this.accountsByNumber(members)
    return members.map((member) => {
      const end = member.indexOf('\0')
      const name = end < 0 ? member : member.slice(0, end)
      const accountId = account ?? ownerOf(member.slice(end + 1))
      return { name, accountId, isFormer, member: isFormer || account === null ? null : member }
    })
  }

  /** The accounts of members of `allNames`. */
  private async accountsByNumber(members: readonly string[]): Promise<(number: string) => string> {
    const isKnown = members.every((member) => this.owners.has(member.slice(member.indexOf('\0') + 1)))
    if (!isKnown) {
      for (const [account, number] of Object.entries(await this.numbers())) {
        this.owners.set(String(number), account)
      }
    }
    return (number) => this.owners.get(number) ?? ''
  }

  /** The numbers by which `allNames` has accounts. */
  async numbers(): Promise<Readonly<Record<string, unknown>>> {
    const found = await this.link.send('reading entries', 'hgetall', [this.names.accountNumbers])
    return objectOf(found)
  }

  /** The entries of these places in their order; null for one that was pruned in between. */
  async read(what: string, places: readonly EntryPlace[]): Promise<(LedgerEntry | null)[]> {
    const entries: (LedgerEntry | null)[] = places.map(() => null)
    const groups = groupBy(places.keys(), (at) => `${places[at]?.accountId} ${String(places[at]?.isFormer)}`)
    await Promise.all(
      Array.from(groups.values(), async (positions) => {
        const own = positions.flatMap((at) => places[at] ?? [])
        const found = await this.readOf(what, own)
        for (const [at, position] of positions.entries()) entries[position] = found[at] ?? null
      }),
    )
    const seen = new Set<string>()
    return entries.map((entry) => {
      if (entry === null || seen.has(entry.requestId)) return null
      seen.add(entry.requestId)
      return entry
    })
  }

  /** The entries of places of one account and form. */
  private async readOf(what: string, places: readonly EntryPlace[]): Promise<(LedgerEntry | null)[]> {
    const { accountId = '', isFormer = false } = places[0] ?? {}
    if (isFormer) return this.readFormer(what, accountId, places.map(formerIdIn))
    const names = places.flatMap(({ member, name }) => (member === null ? [name] : []))
    const unread =
      names.length === 0
        ? []
        : listOf(
            await this.link.run(what, LEDGER_SCRIPTS.readLog, {
              keys: [this.names.log(accountId)],
              args: names,
            }),
          )
    const members = places.map(({ member }) => member ?? unread.shift())
    return this.parse(what, accountId, members)
  }

  /** The entries of members of a log; null for one that is no text. */
  async parse(what: string, accountId: string, members: readonly unknown[]): Promise<(LedgerEntry | null)[]> {
    const found = members.map((member) => (typeof member === 'string' ? logEntryIn(member) : null))
    const textOf = await this.dictionaryOf(
      what,
      accountId,
      found.filter((entry) => entry !== null),
    )
    return found.map((entry) => {
      if (entry === null) return null
      const { name, month, own } = entry
      const requestId = requestIdIn(name)
      return parseRecord(what, `entry '${requestId}'`, () => {
        const shared = entry.shared.map((text) => (isDigest(text) ? textOf(month, text) : text))
        return unpackEntry({ shared, own }, { accountId, requestId, nameMs: timeIn(name) })
      })
    })
  }

  /** The shared texts of these entries, by month and digest; those that are not in memory are read. */
  private async dictionaryOf(what: string, accountId: string, entries: readonly LogEntry[]) {
    const keyOf = (month: number, digest: string) => `${accountId} ${month} ${digest}`
    const texts = new Map<string, string>()
    const missing = new Map<number, Set<string>>()
    for (const { month, shared } of entries) {
      for (const digest of shared) {
        if (!isDigest(digest)) continue
        const known = this.texts.get(keyOf(month, digest))
        if (known === undefined) missing.set(month, (missing.get(month) ?? new Set()).add(digest))
        else texts.set(keyOf(month, digest), known)
      }
    }
    for (const [month, digests] of missing) {
      const wanted = [...digests]
      const key = this.names.dictionary(accountId, month)
      const found = listOf(await this.link.send(what, 'hmget', [key, ...wanted]))
      if (this.texts.size + wanted.length > MOST_TEXTS) this.texts.clear()
      for (const [at, digest] of wanted.entries()) {
        const text = found[at]
        if (typeof text !== 'string') continue
        texts.set(keyOf(month, digest), text)
        this.texts.set(keyOf(month, digest), text)
      }
    }
    return (month: number, digest: string): string => {
      const text = texts.get(keyOf(month, digest))
      if (text === undefined) throw new Error('a text that it shares is missing')
      return text
    }
  }

  private async readFormer(
    what: string,
    accountId: string,
    ids: readonly string[],
  ): Promise<(LedgerEntry | null)[]> {
    const keys = [this.names.formerEntries(accountId), this.names.ids(accountId)]
    const texts = listOf(await this.link.run(what, LEDGER_SCRIPTS.readFormerEntries, { keys, args: ids }))
    return ids.map((id, at) => {
      const text = texts[at]
      if (typeof text !== 'string') return null
      const entry = parseRecord(what, `entry '${id}'`, () => readEntry(text))
      if (entry.accountId === accountId) return entry
      throw unavailable(`${what} failed`, damaged(`entry '${id}'`, 'it belongs to another account'))
    })
  }

  /** See `Ledger.entry`. */
  async entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    const all = async () => (this.names.isCluster ? await this.accounts() : [null])
    for (const account of accountId === null ? await all() : [accountId]) {
      const place = await this.find(account, requestId)
      if (place === null || (accountId !== null && place.accountId !== accountId)) continue
      const [entry] = await this.read('reading an entry', [place])
      if (entry !== null && entry !== undefined) return entry
    }
    return null
  }

  /** The entry of a request of an account with its member in the log; null if the log has none. */
  async stored(
    accountId: string,
    requestId: string,
  ): Promise<{ readonly member: string; readonly entry: LedgerEntry } | null> {
    const what = 'reading an entry'
    const place = await this.find(accountId, requestId)
    if (place === null || place.isFormer || place.accountId !== accountId) return null
    const keys = [this.names.log(accountId)]
    const [member] = listOf(await this.link.run(what, LEDGER_SCRIPTS.readLog, { keys, args: [place.name] }))
    if (typeof member !== 'string') return null
    const [entry] = await this.parse(what, accountId, [member])
    return entry === null || entry === undefined ? null : { member, entry }
  }

  private async find(account: string | null, requestId: string): Promise<EntryPlace | null> {
    const what = 'reading an entry'
    const location = await this.link.send(what, 'hget', [this.names.ids(account ?? ''), requestId])
    if (typeof location === 'string' && !location.startsWith('0-0 ')) {
      const end = location.indexOf(' ')
      const [place, accountId] = [location.slice(0, end), location.slice(end + 1)]
      const isFormer = !place.startsWith('@')
      const name = isFormer
        ? `${'0'.repeat(FORMER_TIME_DIGITS)}${requestId}`
        : `${place.slice(1)}~${requestId}`
      return { name, accountId, isFormer, member: null }
    }
    const name = nameOfId(requestId)
    if (name === null) return null
    const bounds = { from: `[${name}`, to: `(${name}\0${AFTER_ALL}`, isDescending: false }
    const [found] = await this.indexed(account, bounds, false)
    return found ?? null
  }
}

function formerIdIn({ name }: EntryPlace): string {
  return name.slice(FORMER_TIME_DIGITS)
}

function logEntryIn(member: string): LogEntry {
  const end = member.indexOf('\0')
  const name = member.slice(0, end)
  const texts = member.slice(end + 1).split('\t')
  const shared = texts.slice(0, SHARED_TEXTS)
  return { name, month: monthOf(timeIn(name)), shared, own: texts.slice(SHARED_TEXTS).join('\t') }
}

/** Texts begin with `[`, or are empty. */
function isDigest(text: string): boolean {
  return text !== '' && !text.startsWith('[')
}
