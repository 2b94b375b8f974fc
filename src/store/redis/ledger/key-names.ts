/**
 * Where the `redis` engine's ledger keeps what. Knows no client and no script.
 *
 * All that belongs to an account has its tag, so that one script admits and one settles. Beside that
 * there are orders over all accounts: without a Cluster, the same scripts keep them; with one, there
 * are none, and who asks for all accounts asks each (`ACCOUNTS`).
 *
 * A time in a name is 9 digits to the base 36, so that names sort by time.
 */
import type { BudgetDemand, Demand } from '../../ledger.js'

/** What every name begins with. */
export const PREFIX = 'sluice:'
const TIME_DIGITS = 9
const LAST_TIME = 36 ** TIME_DIGITS - 1

/** Every account that the ledger has anything of. */
export const ACCOUNTS = `${PREFIX}ledger:accounts`
/** How long a bucket of sums is. */
export const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 } as const
/** What follows an account's tag, where scripts make the name themselves. */
export const SUFFIX = { open: ':open', rows: ':rows', order: ':order', used: ':used' } as const
/** Sorts after every name. */
export const AFTER_ALL = '~'

/** Subjects whose names are remembered, where there can be slices of their limits. */
const MAX_CACHED_NAMES = 10_000
/** In the place of an account, none of which is empty. */
const ALL_ACCOUNTS = ''

/** What is taken of each limit of one subject. */
type SubjectNames = Readonly<Record<Demand['kind'], string>>

/** Names of what a script of one account touches. */
export class LedgerKeys {
  readonly isCluster: boolean
  /** By subject, then account: what is asked for all the time is named once. */
  private readonly named = new Map<string, Map<string, SubjectNames>>()

  constructor(isCluster: boolean) {
    this.isCluster = isCluster
  }

  /** Reservations by request id: `DAY MONTH`, holds, shared holds, the row; a line each. */
  reservations(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.open
  }

  /** The stream of rows, in the order in which they were settled. */
  entries(accountId: string): string {
    return accountPrefix(accountId) + SUFFIX.rows
  }

  /** Rows in the order of their time: `timeName`, then the request. */
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

  /** The buckets that there are, by their start. */
  buckets(accountId: string, by: 'hour' | 'day'): string {
    return `${accountPrefix(accountId)}:${by}s`
  }

  /** When reservations run out, by account and request. */
  ends(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ends` : `${PREFIX}ledger:ends`
  }

  /** Where in the stream each request's row is, and whose it is. */
  ids(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ids` : `${PREFIX}ledger:ids`
  }

  /** All accounts' rows in the order of their time; of a Cluster there is none. */
  get allOrder(): string | null {
    return this.isCluster ? null : `${PREFIX}ledger:order`
  }

  /**
   * What is taken of the demand's limit, as a slice's name; null where it cannot be reached with what is the account's.
   * What is held of places stands in a second name, which a Cluster that moves a slot would not know of.
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
      // One subject of very many accounts: nobody's limit is asked for all the time.
      if (byAccount.size >= MAX_CACHED_NAMES) byAccount.clear()
      byAccount.set(whose, (names = namesOf(slotPrefix(accountId, demand), subject)))
    }
    return names[kind]
  }

  /** The same of a budget; null is one that accounts share. */
  budget(accountId: string | null, kind: BudgetDemand['kind'], subject: string): string {
    return limitKey(
      slotPrefix(accountId ?? '', { shared: accountId === null, subject }),
      kind,
      subject,
    )
  }
}

/** What is taken of a limit. */
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

/** Demands with the same of these are of one slot. */
export function slotPrefix(
  accountId: string,
  { shared, subject }: Pick<Demand, 'shared' | 'subject'>,
): string {
  return shared ? `${PREFIX}{~${encodeURIComponent(subject)}}` : accountPrefix(accountId)
}

/** A request's place among the ends. */
export function leaseMember(accountId: string, requestId: string): string {
  return `${accountId}\0${requestId}`
}

/** The request of a row's place. */
export function requestIdIn(name: string): string {
  return name.slice(TIME_DIGITS)
}

/** A time as it stands in names; many rows a millisecond have the same. */
export function timePrefix(atMs: number): string {
  if (atMs !== lastTime.ms) {
    const whole = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
    lastTime = { ms: atMs, name: whole.toString(36).padStart(TIME_DIGITS, '0') }
  }
  return lastTime.name
}

let lastTime = { ms: 0, name: '0'.repeat(TIME_DIGITS) }

/** What every name of an account begins with. */
export function accountPrefix(accountId: string): string {
  return `${PREFIX}{${accountId}}`
}
