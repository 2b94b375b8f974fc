/**
 * The names of the Redis keys of the ledger.
 *
 * The keys of an account have its hash tag, so that one script admits and one settles. Without a Cluster there are also
 * indexes over all accounts; in a Cluster, a query over all accounts reads each of `ACCOUNTS`.
 *
 * A time in a name is 9 digits to the base 36, so that names sort by time.
 */
import type { BudgetDemand, Demand } from '../../ledger.js'

/** The prefix of every key. */
export const PREFIX = 'sluice:'
const TIME_DIGITS = 9
const LAST_TIME = 36 ** TIME_DIGITS - 1

/** The accounts with data in the ledger. */
export const ACCOUNTS = `${PREFIX}ledger:accounts`
/** The lengths of the times of sums. */
export const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 } as const
/** Suffixes of keys that scripts build themselves. */
export const SUFFIX = { open: ':open', rows: ':rows', order: ':order', used: ':used' } as const
/** Sorts after every name. */
export const AFTER_ALL = '~'

/** Maximum number of subjects whose key names are cached. */
const MAX_CACHED_NAMES = 10_000
/** Replaces the account's id, which is never empty. */
const ALL_ACCOUNTS = ''

/** The keys of the counters of one subject. */
type SubjectNames = Readonly<Record<Demand['kind'], string>>

/** The keys of the ledger, by account. */
export class LedgerKeys {
  readonly isCluster: boolean
  /** By subject, then account. */
  private readonly named = new Map<string, Map<string, SubjectNames>>()

  constructor(isCluster: boolean) {
    this.isCluster = isCluster
  }

  /** Reservations by request id: `DAY MONTH`, holds, shared holds, the row; a line each. */
  reservations(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.open
  }

  /** The stream of entries, in the order in which they were settled. */
  entries(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.rows
  }

  /** Entries in the order of their time: `timePrefix`, then the request id. */
  order(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.order
  }

  /** When each key was used last. */
  lastUse(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.used
  }

  /** The counters of one bucket: `KEY\0MODEL\0COUNTER`. */
  sum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${accountPrefix(accountId)}:${by}:${startMs}`
  }

  /** The existing sums, by their start. */
  buckets(accountId: string, by: 'hour' | 'day'): string {
    return `${accountPrefix(accountId)}:${by}s`
  }

  /** Reservations by the end of their lease. */
  ends(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ends` : `${PREFIX}ledger:ends`
  }

  /** The stream id and the account of each entry, by request id. */
  ids(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ids` : `${PREFIX}ledger:ids`
  }

  /** Entries of all accounts in the order of their time; null in a Cluster. */
  get allOrder(): string | null {
    return this.isCluster ? null : `${PREFIX}ledger:order`
  }

  /**
   * The key of the demand's counter, as the name of its slice; null if there can be no slice: in a Cluster, for a limit
   * in another slot, and for concurrent requests, which have a second key.
   */
  slice(accountId: string, demand: Demand): string | null {
    const { kind, shared, subject } = demand
    if (this.isCluster && (shared || kind === 'concurrent')) return null
    let byAccount = this.named.get(subject)
    if (byAccount === undefined) {
      if (this.named.size >= MAX_CACHED_NAMES) this.named.clear()
      this.named.set(subject, (byAccount = new Map<string, SubjectNames>()))
    }
    const whose = shared ? ALL_ACCOUNTS : accountId
    let names = byAccount.get(whose)
    if (names === undefined) {
      // One subject of many accounts: none of them is busy.
      if (byAccount.size >= MAX_CACHED_NAMES) byAccount.clear()
      byAccount.set(whose, (names = namesOf(slotPrefix(accountId, demand), subject)))
    }
    return names[kind]
  }

  /** The key of a budget; null as the account is a shared one. */
  budget(accountId: string | null, kind: BudgetDemand['kind'], subject: string): string {
    return limitKey(
      slotPrefix(accountId ?? '', { shared: accountId === null, subject }),
      kind,
      subject,
    )
  }
}

/** The key of a counter. */
export function limitKey(slot: string, kind: Demand['kind'], subject: string): string {
  return `${slot}:${kind}:${subject}`
}

function namesOf(slot: string, subject: string): SubjectNames {
  return {
    requests: limitKey(slot, 'requests', subject),
    tokens: limitKey(slot, 'tokens', subject),
    concurrent: limitKey(slot, 'concurrent', subject),
    usd_day: limitKey(slot, 'usd_day', subject),
    usd_month: limitKey(slot, 'usd_month', subject),
  }
}

/** The prefix of the slot of a demand's counter. */
export function slotPrefix(
  accountId: string,
  { shared, subject }: Pick<Demand, 'shared' | 'subject'>,
): string {
  return shared ? `${PREFIX}{~${encodeURIComponent(subject)}}` : accountPrefix(accountId)
}

/** The member of a request in `ends`. */
export function leaseMember(accountId: string, requestId: string): string {
  return `${accountId}\0${requestId}`
}

/** The request id in a member of `order`. */
export function requestIdIn(name: string): string {
  return name.slice(TIME_DIGITS)
}

/** A time as in names. Caches the last one: many entries have the same time. */
export function timePrefix(atMs: number): string {
  if (atMs !== lastTime.ms) {
    const whole = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
    lastTime = { ms: atMs, name: whole.toString(36).padStart(TIME_DIGITS, '0') }
  }
  return lastTime.name
}

let lastTime = { ms: 0, name: '0'.repeat(TIME_DIGITS) }

/** The prefix of every key of an account. */
export function accountPrefix(accountId: string): string {
  return `${PREFIX}{${accountId}}`
}
