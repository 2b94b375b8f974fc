/**
 * The names of the Redis keys of the ledger.
 *
 * The keys of an account have its hash tag, so that one script admits and one settles. Without a Cluster
 * there are also indexes over all accounts; in a Cluster, a query over all accounts reads each of `ACCOUNTS`.
 */
import { isUnitRate, type WindowKind } from '../../../base/limit-members.js'
import type { Demand } from '../../ledger.js'
import { loadScript } from '../connection/script.js'

const PREFIX = 'sluice:'

/** The accounts with data in the ledger. */
export const ACCOUNTS = `${PREFIX}ledger:accounts`
/** The lengths of the times of sums. */
export const BUCKET_MS = { hour: 3_600_000, day: 86_400_000 } as const

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

  /** The entries in the order of their names: a member is the name, a NUL, and the parts of the entry. */
  log(accountId: string): string {
    return `${accountPrefix(accountId)}:log`
  }

  /** The dictionary of the texts that entries of a month (since 1970) share, by their digests. */
  dictionary(accountId: string, month: number): string {
    return `${accountPrefix(accountId)}:texts:${month}`
  }

  /** The months with a dictionary. */
  dictionaries(accountId: string): string {
    return `${accountPrefix(accountId)}:texts`
  }

  /** A count of settled entries. */
  settled(accountId: string): string {
    return `${accountPrefix(accountId)}:settled`
  }

  /** The stream of entries of former versions, in the order in which they were settled. */
  formerEntries(accountId: string): string {
    return `${accountPrefix(accountId)}:rows`
  }

  /** Entries of former versions in the order of their time: `timePrefix`, then the request id. */
  formerOrder(accountId: string): string {
    return `${accountPrefix(accountId)}:order`
  }

  /** Whether the sums of former versions are moved. */
  moved(accountId: string): string {
    return `${accountPrefix(accountId)}:moved`
  }

  /** When each key was used last. */
  lastUse(accountId: string): string {
    return `${accountPrefix(accountId)}:used`
  }

  /** A count of changes of past days: entries after the end of their day, and removed sums; absent: none. */
  past(accountId: string): string {
    return `${accountPrefix(accountId)}:past`
  }

  /** The cells of one bucket (`cells.ts`). */
  sum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${accountPrefix(accountId)}:${by}:${startMs}`
  }

  /** Sums of one bucket by property that no cell of entries has: of former versions, and of a migration. */
  propertySum(accountId: string, by: 'hour' | 'day', startMs: number): string {
    return `${accountPrefix(accountId)}:${by}:${startMs}:by`
  }

  /** The last entry of former versions in the sums by property. */
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

  /**
   * The names of entries that wait for the archive, each with a NUL and the account, then `\0corrected` for
   * one that replaces an entry which the archive may have.
   */
  waiting(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:waiting` : `${PREFIX}ledger:waiting`
  }

  /** Of those, the declared batch, after its number. */
  batch(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:batch` : `${PREFIX}ledger:batch`
  }

  /**
   * Whether there is an archive: `begun`, and `all` once all former entries wait, then after a space the time
   * up to which entries have left (ms since 1970).
   */
  archiveMark(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:archive` : `${PREFIX}ledger:archive`
  }

  /** Late entries by request id, each with its line as the spool has it. */
  get lateEntries(): string {
    return `${PREFIX}{archive}:late`
  }

  get archiveProgress(): string {
    return `${PREFIX}{archive}:progress`
  }

  get archiveLease(): string {
    return `${PREFIX}{archive}:lease`
  }

  /** Reservations by the end of their lease. */
  ends(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ends` : `${PREFIX}ledger:ends`
  }

  /**
   * By request id: `@TIME ACCOUNT` of an entry whose name the id does not determine, and `STREAM-ID ACCOUNT`
   * of one of a former version.
   */
  ids(accountId: string): string {
    return this.isCluster ? `${accountPrefix(accountId)}:ids` : `${PREFIX}ledger:ids`
  }

  /**
   * The names of the entries of all accounts, each with a NUL and the number of the account; null in a
   * Cluster.
   */
  get allNames(): string | null {
    return this.isCluster ? null : `${PREFIX}ledger:names`
  }

  /** The numbers of accounts in `allNames`. */
  get accountNumbers(): string {
    return `${PREFIX}ledger:names:accounts`
  }

  /** A count of corrected entries. */
  get corrections(): string {
    return `${PREFIX}ledger:names:corrected`
  }

  /** The names of former versions, each with a NUL and the account. */
  get formerNames(): string | null {
    return this.isCluster ? null : `${PREFIX}ledger:order`
  }

  /**
   * The key of the demand's counter, as the name of its slice; null if there can be no slice: in a Cluster,
   * for a limit in another slot, and for concurrent requests, which have a second key; and of a
   * dimension.
   */
  slice(accountId: string, demand: Demand): string | null {
    const { kind, shared, subject } = demand
    // Replies state exactly what a run has left, and each request moves the end of the time to keep it.
    if (subject.startsWith('dimension:')) return null
    // Few requests have other units than tokens, and slices count whole ones.
    if (isUnitRate(kind)) return null
    if (this.isCluster && (shared || kind === 'concurrent')) return null
    return limitKey(slotPrefix(accountId, demand), kind, subject)
  }

  /** The key of a budget or quota; null as the account is a shared one. */
  budget(accountId: string | null, kind: WindowKind, subject: string): string {
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
    'ledger/has-entry',
    'limits/admit',
  ),
  settle: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/charge-actual-usage',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'ledger/has-entry',
    'ledger/add-entry',
    'ledger/add-to-cell',
    'ledger/count-entry',
    'ledger/settle',
  ),
  correct: loadScript(
    'limits/time',
    'limits/counters',
    'limits/charge-actual-usage',
    'ledger/has-entry',
    'ledger/add-entry',
    'ledger/add-to-cell',
    'ledger/count-entry',
    'ledger/correct',
  ),
  reportSlices: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'limits/report-slices',
  ),
  addToBudget: loadScript('limits/time', 'limits/add-to-budget'),
  releaseShared: loadScript('limits/time', 'limits/charge-actual-usage', 'limits/release-shared'),
  renew: loadScript('limits/time', 'limits/renew'),
  renewShared: loadScript('limits/time', 'limits/renew-shared'),
  listExpired: loadScript('limits/time', 'ledger/list-expired'),
  readLog: loadScript('ledger/read-log'),
  readFormerEntries: loadScript('ledger/read-former-entries'),
  deleteEntries: loadScript('limits/time', 'ledger/add-to-cell', 'ledger/delete-entries'),
  deleteNames: loadScript('ledger/delete-names'),
  moveEntries: loadScript('ledger/has-entry', 'ledger/add-entry', 'ledger/move-entries'),
  putCells: loadScript('ledger/put-cells'),
  leadArchive: loadScript('ledger/lead-archive'),
  saveProgress: loadScript('ledger/save-progress'),
  declareBatch: loadScript('ledger/declare-batch'),
  confirmBatch: loadScript('ledger/confirm-batch'),
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
