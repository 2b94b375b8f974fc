/** Which single requests a query of the page selects, and a page, the number or the groups of them. */
import { DAY_MS } from '../../base/time-units.js'
import { adminTurns } from '../../base/turn-queue.js'
import { causeOf, type Cause } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import {
  dimensionPair,
  matchesEntry,
  valuesOf,
  type EntryFilter,
  type EntryPage,
  type EntryQuery,
  type OneOf,
} from '../../store/usage-queries.js'
import { selectAccount, withinOf } from '../../usage/account-selection.js'
import { timesOf } from '../../usage/ranges.js'
import { modelIn } from '../../usage/usage-groups.js'
import { keptSince, scopeOf, type Services } from '../services.js'
import type { AccountSession } from '../sign-in/sessions.js'
import { endingModels } from './deprecated-models.js'
import type * as schema from './schema/schema.js'
import { assertReadsBelow, keysMadeBy, selectUsage } from './select-usage.js'

/** The query of a list of requests, without its order and place. */
type AskedRequests = ReturnType<typeof schema.requestsCsvQuery.parse>

/** What a query selects. */
export interface RequestSelection extends Omit<EntryQuery, 'after' | 'limit' | 'order'> {
  readonly filter: EntryFilter
  /** Only this request. */
  readonly requestId?: string | undefined
  /** This request, or those to which the client gave this id. */
  readonly anyId?: string | undefined
}

/** The requests that a query of the session selects; null: none. Throws as `assertReadsBelow` does. */
export async function selectRequests(
  services: Services,
  session: AccountSession,
  query: AskedRequests,
): Promise<RequestSelection | null> {
  const { requestId, anyId, range, tree } = query
  const own = scopeOf(session)
  const isTree = tree !== undefined && own !== null
  if (isTree) await assertReadsBelow(services, session)
  const [scope, parent] = isTree ? [null, own] : [own, query.parent]
  // A range that ends now has no end: a request may be recorded while its page is read.
  const { fromMs, toMs } =
    range === undefined ? query : { fromMs: timesOf(query, services.now()).fromMs, toMs: undefined }
  const accountId = scope ?? query.accountId ?? null
  if (query.accountId !== undefined && accountId !== query.accountId) return null
  return {
    ...{ accountId, filter: await filterOf(services, accountId, { ...query, parent }), requestId, anyId },
    ...(fromMs === undefined ? {} : { fromMs }),
    ...(toMs === undefined ? {} : { toMs }),
  }
}

/** No requests. */
export const NO_PAGE: EntryPage = { entries: [], next: null }

/** A page of requests, or the request with the given id if it matches the other filters. */
export async function pageOf(
  { ledger }: Pick<Services, 'ledger'>,
  selection: RequestSelection | null,
  place: Pick<EntryQuery, 'after' | 'limit' | 'order'>,
): Promise<EntryPage> {
  if (selection === null) return NO_PAGE
  const { requestId, anyId, filter, ...span } = selection
  const { accountId, fromMs = 0, toMs = Number.POSITIVE_INFINITY } = span
  const named = requestId ?? anyId
  if (named !== undefined) {
    const row = await ledger.entry(accountId, named)
    const isIn = row !== null && row.atMs >= fromMs && row.atMs < toMs
    if (isIn && matchesEntry(row, filter)) return { entries: [row], next: null }
    if (requestId !== undefined) return NO_PAGE
  }
  const byClient = anyId === undefined ? {} : { clientRequestId: anyId }
  return ledger.entries({ ...filter, ...span, ...place, ...byClient })
}

/** Filters that are compared for equality. */
const SAME = [
  ...(['modelAsked', 'upstream', 'status', 'clientRequestId', 'cause', 'label'] as const),
  ...(['program', 'user', 'batch'] as const),
]

async function filterOf(
  services: Services,
  accountId: string | null,
  query: AskedRequests,
): Promise<EntryFilter> {
  const { outcome, parent, dimension, clientFormat } = query
  const outcomes = outcome === undefined ? [] : valuesOf(outcome)
  const isAnyFailure = outcomes.includes('failed')
  const models = modelsIn(services, query)
  const keyIds = await keysIn(services, accountId, query)
  return {
    ...Object.fromEntries(
      SAME.filter((name) => query[name] !== undefined).map((name) => [name, query[name]]),
    ),
    ...(clientFormat === undefined ? {} : { ingress: clientFormat }),
    ...(models === null ? {} : { model: models }),
    ...(keyIds === null ? {} : { keyId: keyIds }),
    ...(dimension === undefined ? {} : { dimension: valuesOf(dimension).map(dimensionPair) }),
    ...(parent === undefined ? {} : { within: withinOf(await selectAccount(services.store, parent)) }),
    // With `ok` it is every outcome.
    ...(isAnyFailure && !outcomes.includes('ok') ? { failed: true } : {}),
    ...(outcome === undefined || isAnyFailure ? {} : { outcome }),
  }
}

/** The models of a query as the ledger has them; null: all. */
function modelsIn({ snapshot }: Services, { model, deprecated }: AskedRequests): OneOf<string> | null {
  const ending = deprecated === undefined ? null : endingModels(snapshot())
  if (model === undefined) return ending
  const named = valuesOf(model).map(modelIn)
  if (ending !== null) return named.filter((each) => ending.includes(each))
  return named.length === 1 ? (named[0] ?? null) : named
}

/** The keys of a query; null: all. */
async function keysIn(
  services: Services,
  accountId: string | null,
  { keyId, member }: AskedRequests,
): Promise<OneOf<string> | null> {
  if (member === undefined) return keyId ?? null
  const made = (await keysMadeBy(services, accountId, member)).map((key) => key.keyId)
  return keyId === undefined ? made : valuesOf(keyId).filter((id) => made.includes(id))
}

/** Entries that are counted or grouped one by one, at most, and the time for it. */
const MOST_READ = 10_000
const MOST_MS = 500
const READ_AT_ONCE = 1_000

/** Calls `onEntry` for the newest requests of a selection; resolves with whether there may be more. */
async function eachNewest(
  services: Pick<Services, 'ledger'>,
  selection: RequestSelection | null,
  onEntry: (entry: LedgerEntry) => void,
): Promise<boolean> {
  const untilMs = performance.now() + MOST_MS
  let read = 0
  for (let after: string | null = null; ;) {
    const page: EntryPage = await pageOf(services, selection, { after, limit: READ_AT_ONCE })
    for (const entry of page.entries) onEntry(entry)
    read += page.entries.length
    after = page.next
    if (after === null) return false
    if (read >= MOST_READ || performance.now() > untilMs) return true
    await adminTurns.next()
  }
}

/** Failed requests with the same upstream, outcome, status at the upstream and model. */
interface FailureGroup {
  readonly newest: LedgerEntry
  requests: number
  firstMs: number
  readonly accounts: Set<string>
}

/** The newest failures of a selection in groups, the largest first. */
export async function groupFailures(
  services: Pick<Services, 'ledger'>,
  selection: RequestSelection | null,
): Promise<{ readonly groups: FailureGroup[]; readonly isPart: boolean }> {
  const groups = new Map<string, FailureGroup>()
  const failed = selection === null ? null : { ...selection, filter: { ...selection.filter, failed: true } }
  const isPart = await eachNewest(services, failed, (entry) => {
    const { upstream, outcome, upstreamStatus, model, accountId, atMs } = entry
    const name = [upstream, outcome, upstreamStatus, model].join('\0')
    const group = groups.get(name) ?? { newest: entry, requests: 0, firstMs: atMs, accounts: new Set() }
    group.requests += 1
    group.firstMs = Math.min(group.firstMs, atMs)
    group.accounts.add(accountId)
    groups.set(name, group)
  })
  return { groups: [...groups.values()].sort((a, b) => b.requests - a.requests), isPart }
}

/** The members of a query that sums are kept by, or that select none of them. */
const SUMMED = new Set<string>([
  ...['account', 'tree', 'member', 'keyId', 'model', 'outcome', 'cause', 'range', 'fromMs', 'toMs'],
  ...['sort', 'after', 'limit', 'count'],
])

/**
 * The number of requests that a query selects, and of the failures among them: from the sums if the filters
 * allow it, else of the newest ones (`isPart`: there are more).
 */
export async function countRequests(
  services: Services,
  session: AccountSession,
  query: AskedRequests,
): Promise<schema.RequestCount> {
  const counted = await countOfSums(services, session, query)
  if (counted !== null) return counted
  let [requests, failed] = [0, 0]
  const selection = await selectRequests(services, session, query)
  const isPart = await eachNewest(services, selection, ({ outcome }) => {
    requests += 1
    if (causeOf(outcome) !== null) failed += 1
  })
  return { requests, failed, isPart }
}

async function countOfSums(
  services: Services,
  session: AccountSession,
  query: AskedRequests,
): Promise<schema.RequestCount | null> {
  const { keyId, model, cause, outcome, range, tree, member } = query
  const isSummed = Object.entries(query).every(([name, value]) => value === undefined || SUMMED.has(name))
  const isOne = [keyId, model, cause, outcome].every((value) => typeof value !== 'object')
  if (!isSummed || !isOne || (outcome !== undefined && outcome !== 'failed')) return null
  const nowMs = services.now()
  const { entriesMs } = await keptSince(services)
  const asked = { fromMs: query.fromMs ?? entriesMs, toMs: query.toMs ?? nowMs }
  const times = timesOf(range === undefined ? asked : { range }, nowMs)
  const fromMs = Math.max(times.fromMs, entriesMs)
  if (fromMs >= times.toMs || times.toMs - fromMs > MOST_SUMMED_MS) return null
  const of = { fromMs, toMs: times.toMs, by: 'day', tree, member } as const
  const { usage, accountId } = await selectUsage(services, session, of)
  const sums = await usage.sums({
    accountId,
    ...(typeof model === 'string' ? { model: modelIn(model) } : {}),
    ...(typeof keyId === 'string' ? { keyId } : { per: 'model' }),
  })
  const added = (count: (sum: (typeof sums)[number]) => number): number =>
    sums.reduce((total, sum) => total + count(sum), 0)
  const failed = added(({ failed, byCause }) => (cause === undefined ? failed : byCause[cause as Cause]))
  const isFailed = outcome !== undefined || cause !== undefined
  return { requests: isFailed ? failed : added(({ requests }) => requests), failed, isPart: false }
}

/** Sums of longer ranges are not read. */
const MOST_SUMMED_MS = 400 * DAY_MS
