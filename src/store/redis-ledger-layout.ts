/**
 * Where the `redis` engine's ledger keeps what. Knows no client and no script.
 *
 * All that belongs to an account has its tag, so that one script admits and one settles. Beside that
 * there are orders over all accounts: without a Cluster, the same scripts keep them; with one, there
 * are none, and who asks for all accounts asks each (`ACCOUNTS`).
 *
 * A time in a name is 9 digits to the base 36, so that names sort by time.
 */
import type { BudgetDemand, Demand } from './ledger.js'

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

/** Limits whose names are remembered, where there can be slices of them. */
const MOST_NAMED = 10_000

/** Names of what a script of one account touches. */
export class LedgerNames {
  readonly isCluster: boolean
  /** By subject, then kind and account: what is asked for all the time is named once. */
  private readonly named = new Map<string, Map<string, string>>()

  constructor(isCluster: boolean) {
    this.isCluster = isCluster
  }

  /** Reservations by request id: `DAY MONTH`, holds, shared holds, the row; a line each. */
  open(accountId: string): string {
    return own(accountId) + SUFFIX.open
  }

  /** The stream of rows, in the order in which they were settled. */
  rows(accountId: string): string {
    return own(accountId) + SUFFIX.rows
  }

  /** Rows in the order of their time: `timeName`, then the request. */
  order(accountId: string): string {
    return own(accountId) + SUFFIX.order
  }

  /** When each key was used last. */
  used(accountId: string): string {
    return own(accountId) + SUFFIX.used
  }

  /** The counters of one bucket: `KEY\0MODEL\0COUNTER`. */
  sum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${own(accountId)}:${by}:${startMs}`
  }

  /** The buckets that there are, by their start. */
  buckets(accountId: string, by: 'hour' | 'day'): string {
    return `${own(accountId)}:${by}s`
  }

  /** When reservations run out, by account and request. */
  ends(accountId: string): string {
    return this.isCluster ? `${own(accountId)}:ends` : `${PREFIX}ledger:ends`
  }

  /** Where in the stream each request's row is, and whose it is. */
  ids(accountId: string): string {
    return this.isCluster ? `${own(accountId)}:ids` : `${PREFIX}ledger:ids`
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
    let names = this.named.get(subject)
    if (names === undefined) {
      if (this.named.size >= MOST_NAMED) this.named.clear()
      this.named.set(subject, (names = new Map<string, string>()))
    }
    const which = shared ? kind : accountId + kind
    let name = names.get(which)
    if (name === undefined) {
      // One subject of very many accounts: nobody's limit is asked for all the time.
      if (names.size >= MOST_NAMED) names.clear()
      names.set(which, (name = limitName(slotOf(accountId, demand), kind, subject)))
    }
    return name
  }

  /** The same of a budget; null is one that accounts share. */
  budget(accountId: string | null, kind: BudgetDemand['kind'], subject: string): string {
    return limitName(
      slotOf(accountId ?? '', { shared: accountId === null, subject }),
      kind,
      subject,
    )
  }
}

/** What is taken of a limit. */
export function limitName(slot: string, kind: Demand['kind'], subject: string): string {
  return `${slot}:${kind}:${subject}`
}

/** Demands with the same of these are of one slot. */
export function slotOf(
  accountId: string,
  { shared, subject }: Pick<Demand, 'shared' | 'subject'>,
): string {
  return shared ? `${PREFIX}{~${encodeURIComponent(subject)}}` : own(accountId)
}

/** A request's place among the ends. */
export function endPlace(accountId: string, requestId: string): string {
  return `${accountId}\0${requestId}`
}

/** The request of a row's place. */
export function requestOf(name: string): string {
  return name.slice(TIME_DIGITS)
}

/** A time as it stands in names. */
export function timeName(atMs: number): string {
  const whole = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
  return whole.toString(36).padStart(TIME_DIGITS, '0')
}

/** What every name of an account begins with. */
export function own(accountId: string): string {
  return `${PREFIX}{${accountId}}`
}
