/**
 * The names of the Redis keys of the ledger.
 *
 * The keys of an account have its hash tag, so that one script admits and one settles. Without a Cluster
 * there are also indexes over all accounts; in a Cluster, a query over all accounts reads each of `ACCOUNTS`.
 *
 * A time in a name is 9 digits to the base 36, so that names sort by time.
 */
import type { BudgetDemand, Demand } from '../../ledger.js'
import { loadScript } from '../connection/script.js'

const PREFIX = 'sluice:'
const TIME_DIGITS = 9
const LAST_TIME = 36 ** TIME_DIGITS - 1

/** The accounts with data in the ledger. */
export const ACCOUNTS = `${PREFIX}ledger:accounts`
/** The lengths of the times of sums. */
export const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 } as const
/** Sorts after every name. */
export const AFTER_ALL = '~'

/** The keys of the ledger, by account. */
export class LedgerKeys {
  readonly isCluster: boolean

  constructor(isCluster: boolean) {
    this.isCluster = isCluster
  }

  /** Reservations by request id: `DAY MONTH`, holds, shared holds, the entry's record; a line each. */
  reservations(accountId: string): string {
    return `${accountPrefix(accountId)}:open`
  }

  /** The stream of entries, in the order in which they were settled. */
  entries(accountId: string): string {
    return `${accountPrefix(accountId)}:rows`
  }

  /** Entries in the order of their time: `timePrefix`, then the request id. */
  order(accountId: string): string {
    return `${accountPrefix(accountId)}:order`
  }

  /** When each key was used last. */
  lastUse(accountId: string): string {
    return `${accountPrefix(accountId)}:used`
  }

  /** A count of changes of past days: entries after the end of their day, and removed sums; absent: none. */
  past(accountId: string): string {
    return `${accountPrefix(accountId)}:past`
  }

  /** The counters of one bucket: `KEY\0MODEL\0COUNTER`. */
  sum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${accountPrefix(accountId)}:${by}:${startMs}`
  }

  /** The sums of one bucket by property: `*PROPERTY=VALUE\0MODEL\0COUNTER`. */
  propertySum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${accountPrefix(accountId)}:${by}:${startMs}:by`
  }

  /** The last entry in the sums by property. */
  propertyMark(accountId: string): string {
    return `${accountPrefix(accountId)}:by`
  }

  /** The existing sums, by their start. */
  buckets(accountId: string, by: 'hour' | 'day'): string {
    return `${accountPrefix(accountId)}:${by}s`
  }

  /** The use of pruned entries, by month (`account-use.ts`). */
  months(accountId: string): string {
    return `${accountPrefix(accountId)}:months`
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
   * The key of the demand's counter, as the name of its slice; null if there can be no slice: in a Cluster,
   * for a limit in another slot, and for concurrent requests, which have a second key.
   */
  slice(accountId: string, demand: Demand): string | null {
    const { kind, shared, subject } = demand
    if (this.isCluster && (shared || kind === 'concurrent')) return null
    return limitKey(slotPrefix(accountId, demand), kind, subject)
  }

  /** The key of a budget; null as the account is a shared one. */
  budget(accountId: string | null, kind: BudgetDemand['kind'], subject: string): string {
    const slot = slotPrefix(accountId ?? '', { shared: accountId === null, subject })
    return limitKey(slot, kind, subject)
  }
}

/** The key of a counter. */
export function limitKey(slot: string, kind: Demand['kind'], subject: string): string {
  return `${slot}:${kind}:${subject}`
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

/** A time as in names. */
export function timePrefix(atMs: number): string {
  const wholeMs = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
  return wholeMs.toString(36).padStart(TIME_DIGITS, '0')
}

/** The time in a member of `order`. */
export function timeIn(name: string): number {
  return Number.parseInt(name.slice(0, TIME_DIGITS), 36)
}

/** The prefix of every key of an account. */
export function accountPrefix(accountId: string): string {
  return `${PREFIX}{${accountId}}`
}

/**
 * The last file of each script describes its keys, arguments and reply.
 *
 * The scripts of limits and of the ledger. Each accesses keys of one slot of a Cluster; without a Cluster,
 * all keys of its requests.
 */
export const LEDGER_SCRIPTS = {
  admit: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/concurrency-slice',
    'limits/admit',
  ),
  settle: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/charge-actual-usage',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'ledger/settle',
  ),
  reportSlices: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'limits/report-slices',
  ),
  releaseShared: loadScript('limits/time', 'limits/charge-actual-usage', 'limits/release-shared'),
  renew: loadScript('limits/time', 'limits/renew'),
  renewShared: loadScript('limits/time', 'limits/renew-shared'),
  listExpired: loadScript('limits/time', 'ledger/list-expired'),
  readEntries: loadScript('ledger/read-entries'),
  deleteEntries: loadScript('ledger/delete-entries'),
  addPropertySums: loadScript('ledger/add-property-sums'),
}

/** Groups items by a key, as `Map.groupBy` of Node 21 does; this program also runs on Node 20. */
export function groupBy<Item>(items: Iterable<Item>, keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
