/** The queries of a store's ledger, and their results: sums of usage, the use of keys, and ledger entries. */
import { addNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { HOUR_MS } from '../base/time-units.js'
import { UNIT_NAMES, unitFigures, unitFiguresIn, type UnitFigures } from '../base/unit-counts.js'
import { causeOf, type Cause } from '../errors.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { EntryOrder } from './entry-order.js'

/** Sums of an hour or day for one key and model; counters only grow until the sum is pruned. */
export interface UsageSum extends UnitFigures {
  /** Start of the hour or day (UTC), ms since 1970. */
  readonly startMs: number
  readonly accountId: string
  readonly keyId: string
  /** As in `LedgerEntry`. */
  readonly model: string
  readonly requests: number
  /** Requests with an outcome other than `ok`. */
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly reasoningTokens: number
  readonly costNanoUsd: NanoUsd
  /** Requests that used tokens whose price is unknown. */
  readonly unpriced: number
  /** Requests whose tokens are estimated. */
  readonly estimated: number
  /** Requests whose tokens are the maximum that they may have used, because their end was not received. */
  readonly assumed: number
  /** Requests by time to first content: a count for each bound of first-content.ts, and one above. */
  readonly firstContent: readonly number[]
  /**
   * `failed` by cause; entries written by earlier versions of the program have no cause and are not in it.
   */
  readonly byCause: Readonly<Record<Cause, number>>
  /** Requests that the gateway's own cache answered. Sums of earlier versions and of an archive have none. */
  readonly cacheHits: number
  /** What those would have cost at their upstreams. */
  readonly savedNanoUsd: number
}

/** Selects sums. Both ends are moved to the start of their hour or day, which are both included. */
export interface SumQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly by: 'hour' | 'day'
  readonly fromMs: number
  readonly toMs: number
  /** Only this key. */
  readonly keyId?: string
  /** Only this model, as in `LedgerEntry.model`. */
  readonly model?: string
  /**
   * `key` (the default): a sum for each key and model. `model`: one for each model; `keyId` of the sums is
   * empty then, and for all accounts `accountId`, too. Not with `keyId`.
   */
  readonly per?: 'key' | 'model'
  /**
   * Only sums by this property of requests, or by this one of its values: `keyId` of the sums is
   * `*PROPERTY=VALUE` then. Those of one account, or of all together. Not with `keyId` and `per`.
   */
  readonly property?: PropertyName | `${PropertyName}=${string}`
  /**
   * Sums by these values of the property `account` (`ID PATH`), added up: `keyId` and `accountId` of the sums
   * are empty. Not with `property`, `keyId` and `per`.
   */
  readonly accounts?: readonly string[]
  /**
   * With `by: 'day'`: days of another time zone, made of hours. `startMs` of the sums is the start of the day
   * as if its local time were UTC; both ends are moved to the start of their hour.
   */
  readonly offsets?: readonly ZoneOffset[]
}

/** The difference of a zone to UTC, in whole hours, from a time on. */
export interface ZoneOffset {
  readonly fromMs: number
  readonly offsetMs: number
}

/**
 * Properties of requests that sums are kept by, besides key and model. `account`: `ID PATH`, the account and
 * `LedgerEntry.accountPath` at the time of the request, for all accounts only. `label`: `NAME=VALUE`.
 * `shadow`: the upstream of a copied request. Sums of earlier versions lack them.
 */
export const PROPERTIES = ['upstream', 'format', 'label', 'shadow', 'account'] as const
/** One of them. */
export type PropertyName = (typeof PROPERTIES)[number]

/**
 * The first characters of `UsageSum.keyId` in sums by property; no key has such an id. It ends where the ids
 * of keys may start.
 */
export const PROPERTY_MARK = '*'

/** Selects cells: the entries that are kept, added up. */
export interface CellQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** Inclusive; ms since 1970. */
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** The time that a cell covers; cells begin at multiples of it. */
  readonly stepMs: number
}

/** The entries of one step of time with the same account, key, model and properties, added up. */
export interface UsageCell extends UsageSum {
  /** As in `LedgerEntry`. */
  readonly accountPath: string | null
  readonly upstream: string | null
  readonly ingress: string | null
  readonly labels: string | null
  readonly isShadow: boolean
}

/** Selects the totals of groups. */
export interface GroupUseQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** `key`, `model`, both, or a property; `label=NAME=` selects one label. */
  readonly by: 'key' | 'model' | 'key model' | PropertyName | `label=${string}=`
  readonly model?: string
  /** Only with `key` and `model`. */
  readonly keyId?: string
  /** Whole hours; ms since 1970. */
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
}

/** Whether the groups are values of a property. */
export function isByProperty(by: GroupUseQuery['by']): by is PropertyName | `label=${string}=` {
  return by !== 'key' && by !== 'model' && by !== 'key model'
}

/** The totals of a group. */
export interface GroupUse extends KeyUse, UnitFigures {
  /** Empty for groups other than keys. */
  readonly accountId: string
  /** The key, the model, both with a tab between them, or the value of the property. */
  readonly keyId: string
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/**
 * Selects the usage of keys on days (UTC). Both ends are moved to the start of their day, which are both
 * included.
 */
export interface KeyUseQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** Only these keys, of one account. */
  readonly keyIds?: readonly string[]
  /** Only this number of keys, those with the highest cost; not with `keyIds`. */
  readonly most?: number
  readonly model?: string
  readonly fromMs: number
  readonly toMs: number
}

export interface KeyUse {
  readonly accountId: string
  readonly keyId: string
  readonly requests: number
  readonly costNanoUsd: NanoUsd
  /** As in `UsageSum`. */
  readonly unpriced: number
}

/**
 * What the use of accounts is counted by: `accounts` (by path), also each key and model (`keys`), also each
 * set of labels (`labels`). Names that are not counted by are empty.
 */
export type UseDetail = 'accounts' | 'keys' | 'labels'

/** Selects the use of accounts. */
export interface AccountUseQuery {
  /** What is counted separately. Default: `labels`. */
  readonly by?: UseDetail
  /** Entries that are kept are counted exactly from this time on, ms since 1970. */
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
}

/**
 * What requests of one month (UTC), account, key, model and set of labels used. The months of pruned entries
 * are kept as long as daily sums, as a whole: one that overlaps the queried time is in the result.
 */
export interface AccountUse extends UnitFigures {
  /** Months since 1970. */
  readonly month: number
  readonly accountId: string
  /** As in `LedgerEntry`, at the time of the requests; empty if it is not known. */
  readonly accountPath: string
  readonly keyId: string
  readonly model: string
  /** As in `LedgerEntry`; empty for none. */
  readonly labels: string
  readonly requests: number
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanoUsd: NanoUsd
  /** Requests that used tokens whose price is unknown. */
  readonly unpriced: number
}

/** What the sums of a month, or of some hours of one, have. */
interface UsesOfMonth {
  readonly uses: readonly AccountUse[]
  /** Accounts of which requests were made under several paths: these are left to the entries. */
  readonly moved: readonly string[]
  /** All of them, also those of moved accounts. */
  readonly requests: number
}

/** What is read of sums for a `UseDetail`, besides the use of each account and path (`account`). */
export const LINES_OF = { accounts: 'model', keys: 'key model' } as const

/**
 * What accounts used in a month, from the use of each account and path (`account`) and from `lines`, which
 * are as `LINES_OF`. Null if sums lack the paths of some requests, as those of earlier versions.
 */
export function usesOfMonth(
  { month, by }: { readonly month: number; readonly by: keyof typeof LINES_OF },
  lines: readonly GroupUse[],
  ofAccounts: readonly GroupUse[],
): UsesOfMonth | null {
  if (by === 'accounts') return usesOfAccounts(month, lines, ofAccounts)
  const paths = new Map<string, string[]>()
  let requests = 0
  for (const { keyId, requests: own } of ofAccounts) {
    if (own === 0) continue
    requests += own
    const end = keyId.indexOf(' ')
    const known = paths.get(keyId.slice(0, end))
    if (known === undefined) paths.set(keyId.slice(0, end), [keyId.slice(end + 1)])
    else known.push(keyId.slice(end + 1))
  }
  const uses: AccountUse[] = []
  let ofLines = 0
  for (const line of lines) {
    const { keyId: name, accountId } = line
    ofLines += line.requests
    const [path, ...others] = paths.get(accountId) ?? []
    const end = name.indexOf('\t')
    if (path === undefined || others.length > 0 || line.requests === 0) continue
    // There are tens of thousands, and an object that is put together of several takes ten times as long.
    uses.push({
      month,
      accountId,
      accountPath: path,
      keyId: name.slice(0, end),
      model: name.slice(end + 1),
      labels: '',
      requests: line.requests,
      failed: line.failed,
      inputTokens: line.inputTokens,
      outputTokens: line.outputTokens,
      costNanoUsd: line.costNanoUsd,
      unpriced: line.unpriced,
      images: line.images,
      audioMs: line.audioMs,
      characters: line.characters,
      pages: line.pages,
      searches: line.searches,
      documents: line.documents,
      lines: line.lines,
    })
  }
  if (requests < ofLines) return null
  return { uses, moved: [...paths].flatMap(([id, of]) => (of.length > 1 ? [id] : [])), requests: ofLines }
}

function usesOfAccounts(
  month: number,
  ofModels: readonly GroupUse[],
  ofAccounts: readonly GroupUse[],
): UsesOfMonth | null {
  const requestsOf = (uses: readonly GroupUse[]) => uses.reduce((sum, use) => sum + use.requests, 0)
  const requests = requestsOf(ofModels)
  if (requestsOf(ofAccounts) < requests) return null
  const uses = ofAccounts.flatMap(({ keyId, ...figures }): AccountUse[] => {
    const end = keyId.indexOf(' ')
    const of = { accountId: keyId.slice(0, end), accountPath: keyId.slice(end + 1) }
    if (figures.requests === 0) return []
    return [{ ...figures, month, ...of, ...{ keyId: '', model: '', labels: '' } }]
  })
  return { uses, moved: [], requests }
}

/**
 * The whole hours of a time from the hour after its first entry on: entries that were pruned are in the sums
 * of earlier ones. Null if there are none.
 */
export function wholeHours(
  { fromMs, toMs }: Pick<AccountUseQuery, 'fromMs' | 'toMs'>,
  oldestMs: number,
): { readonly fromMs: number; readonly toMs: number } | null {
  const first = Math.ceil(Math.max(fromMs, oldestMs) / HOUR_MS) * HOUR_MS
  const end = Math.floor(toMs / HOUR_MS) * HOUR_MS
  return first < end ? { fromMs: first, toMs: end } : null
}

/** Adds up uses of several parts of a time, each of which has every name once. */
export function joinedUses(parts: readonly (readonly AccountUse[])[], by: UseDetail): readonly AccountUse[] {
  const [first = [], ...others] = parts.filter((uses) => uses.length > 0)
  if (others.length === 0) return first
  const uses = new AccountUses(by)
  for (const part of [first, ...others]) for (const use of part) uses.add(use)
  return uses.all()
}

/** The figures of `AccountUse`, in the order in which engines store them. */
export const ACCOUNT_FIGURES = [
  'requests',
  'failed',
  'inputTokens',
  'outputTokens',
  'costNanoUsd',
  'unpriced',
  ...UNIT_NAMES,
] as const satisfies readonly (keyof AccountUse)[]

/** Those that are no money. */
const COUNTED = ACCOUNT_FIGURES.filter((figure) => figure !== 'costNanoUsd')

/** What one entry adds to the use of its account in a month. */
export function useOfEntry(entry: LedgerEntry, month: number): AccountUse {
  const { accountId, accountPath, keyId, model, labels, usage, costNanoUsd, source } = entry
  return {
    ...{ month, accountId, accountPath: accountPath ?? '', keyId, model, labels: labels ?? '' },
    requests: 1,
    failed: entry.outcome === 'ok' ? 0 : 1,
    inputTokens: usage.input ?? 0,
    outputTokens: usage.output ?? 0,
    costNanoUsd: costNanoUsd ?? 0,
    unpriced: costNanoUsd === null && source !== 'none' ? 1 : 0,
    ...unitFiguresIn(entry.units),
  }
}

/** Adds up the uses of the same month and of the same names that are counted by. */
export class AccountUses {
  private readonly by: UseDetail
  /** Most are of one use, which is not copied. */
  private readonly uses = new Map<string, { readonly first: AccountUse; sum: RunningUse | null }>()

  constructor(by: UseDetail) {
    this.by = by
  }

  add(use: AccountUse): void {
    const { month, accountId, accountPath } = use
    const labels = this.by === 'labels' ? use.labels : ''
    const [keyId, model] = this.by === 'accounts' ? ['', ''] : [use.keyId, use.model]
    const name = `${month}\0${accountId}\0${accountPath}\0${keyId}\0${model}\0${labels}`
    const known = this.uses.get(name)
    if (known === undefined) {
      const isSame = use.labels === labels && use.keyId === keyId && use.model === model
      this.uses.set(name, { first: isSame ? use : { ...use, keyId, model, labels }, sum: null })
      return
    }
    const sum = (known.sum ??= { ...known.first })
    sum.costNanoUsd = addNanoUsd(sum.costNanoUsd, use.costNanoUsd)
    for (const figure of COUNTED) sum[figure] += use[figure]
  }

  all(): AccountUse[] {
    return Array.from(this.uses.values(), ({ first, sum }) => sum ?? first)
  }
}

type RunningUse = { -readonly [Name in keyof AccountUse]: AccountUse[Name] }

/** The same with negative figures, which takes it off when it is added. */
export function negative(use: AccountUse): AccountUse {
  return {
    ...use,
    requests: -use.requests,
    failed: -use.failed,
    inputTokens: -use.inputTokens,
    outputTokens: -use.outputTokens,
    costNanoUsd: -use.costNanoUsd,
    unpriced: -use.unpriced,
    ...unitFigures((figure) => -use[figure]),
  }
}

/** Selects a page of entries. */
export interface EntryQuery extends Omit<EntryFilter, 'accountId' | 'requestId'> {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** Inclusive. */
  readonly fromMs?: number
  /** Exclusive. */
  readonly toMs?: number
  /** Default: newest first. */
  readonly order?: EntryOrder
  /** `EntryPage.next` of the previous page in the same order; null for the first. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

export interface EntryPage {
  readonly entries: readonly LedgerEntry[]
  /** The cursor of the next page; null on the last. A page may be short, or empty, and not the last. */
  readonly next: string | null
  /** More entries match than the engine can sort, which is this number; there are none then. */
  readonly mostSorted?: number
}

/** One value, or several of which an entry must have one. */
export type OneOf<Value> = Value | readonly Value[]

/** Conditions that an entry must meet; absent members are not checked. */
export interface EntryFilter {
  readonly accountId?: string
  readonly keyId?: OneOf<string>
  /** The model of the sums. */
  readonly model?: OneOf<string>
  /** The model that the client asked for; compared as a whole. */
  readonly modelAsked?: OneOf<string>
  readonly upstream?: OneOf<string>
  /** The HTTP status, such as 429. */
  readonly status?: OneOf<number>
  readonly requestId?: string
  /** Whether the outcome is other than `ok`. */
  readonly failed?: boolean
  /** `ok`, `lost`, or a kind of error. */
  readonly outcome?: OneOf<string>
  /** Who has to act on the failure. */
  readonly cause?: OneOf<Cause>
  /** The client's format, such as `messages`. */
  readonly ingress?: OneOf<string>
  /** One label, as `name=value`. */
  readonly label?: OneOf<string>
  /** One value of a dimension, as `name=value` with the value percent-encoded. */
  readonly dimension?: OneOf<string>
  readonly program?: OneOf<string>
  readonly user?: OneOf<string>
  /** The id that the client gave the request. */
  readonly clientRequestId?: string
  /** The id of a batch: its entry, and those of its lines. */
  readonly batch?: string
  /**
   * Entries of this account and, from a time on, of those that were below an account of the name at the time
   * of the request. Default: from the first entry on.
   */
  readonly within?: { readonly accountId: string; readonly name: string; readonly sinceMs?: number }
}

/** `NAME=VALUE` of a dimension as entries have it. */
export function dimensionPair(text: string): string {
  const at = text.indexOf('=') + 1
  return text.slice(0, at) + encodeURIComponent(text.slice(at))
}

/** The values of a condition. */
export function valuesOf<Value extends string | number>(of: OneOf<Value>): readonly Value[] {
  return typeof of === 'object' ? of : [of]
}

/** Whether the entry meets every condition. */
export function matchesEntry(entry: LedgerEntry, filter: EntryFilter): boolean {
  const { requestId, failed, cause, label, dimension, within, ...same } = filter
  const causeNow = causeOf(entry.outcome)
  const labels = (entry.labels ?? '').split(' ')
  return (
    (requestId === undefined || entry.requestId === requestId) &&
    (failed === undefined || (entry.outcome !== 'ok') === failed) &&
    (cause === undefined || (causeNow !== null && valuesOf(cause).includes(causeNow))) &&
    (label === undefined || valuesOf(label).some((each) => labels.includes(each))) &&
    (dimension === undefined ||
      valuesOf(dimension).some((each) => (entry.dimensions ?? '').split(' ').includes(each))) &&
    (within === undefined ||
      entry.accountId === within.accountId ||
      // The last name is that of the entry's own account, which has another id.
      (entry.atMs >= (within.sinceMs ?? 0) &&
        (entry.accountPath ?? '').split('/').slice(0, -1).includes(within.name))) &&
    COMPARED.every((name) => isOneOf(entry[name], same[name]))
  )
}

function isOneOf(value: string | number | null, wanted: OneOf<string | number> | undefined): boolean {
  if (wanted === undefined) return true
  return value !== null && valuesOf(wanted).includes(value)
}

/** Members that are compared for equality. */
const COMPARED = [
  'accountId',
  'keyId',
  'model',
  'modelAsked',
  'upstream',
  'status',
  'outcome',
  'ingress',
  'clientRequestId',
  'batch',
  'program',
  'user',
] as const satisfies readonly (keyof EntryFilter & keyof LedgerEntry)[]
