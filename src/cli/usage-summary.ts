/** `sluice usage summary`: totals by model, key, account, upstream, program, user, label or dimension. */
import { compareNanoUsd } from '../base/nano-usd.js'
import { unitsOfFigures } from '../base/unit-counts.js'
import { findAccount } from '../accounts/changes/change-accounts.js'
import { usd } from '../ledger/export-columns.js'
import type { Store } from '../store/store.js'
import { dimensionPair, type EntryFilter, type UsageSum } from '../store/usage-queries.js'
import { sumsBy, type SumFigures } from '../usage/add-sums.js'
import type { OnBatch } from '../usage/entries-in-range.js'
import { ExactUsage, isKept } from '../usage/exact-usage.js'
import { rangeOf } from '../usage/ranges.js'
import { unitsCell } from '../usage/totals.js'
import { storedAs } from '../usage/usage-groups.js'
import { UsageError } from './command.js'
import { table } from './print-table-or-json.js'
import type { StoreSession } from './with-store.js'

/** The grouping of a summary. */
type Grouping = (typeof GROUPINGS)[number] | `${'label' | 'dimension'}:${string}`

const GROUPINGS = ['client_format', 'model', 'key', 'account', 'upstream', 'program', 'user'] as const

interface SummaryOptions extends FilterOptions {
  readonly by?: string | undefined
  readonly fromMs: number
  /** Exclusive; null for now. */
  readonly untilMs: number | null
  readonly json?: true | undefined
}

interface Summary {
  readonly grouping: Grouping
  readonly filter: OneFilter
  readonly fromMs: number
  readonly untilMs: number | null
}

/** The grouping of `--by`. Throws `UsageError`. */
export function groupingOf(text: string | undefined): Grouping {
  const known = GROUPINGS.find((each) => each === (text ?? 'model'))
  if (known !== undefined) return known
  const [, list, name] = /^(label|dimension):([^\s=]{1,100})$/.exec(text ?? '') ?? []
  if (list === 'label' || list === 'dimension') return `${list}:${name ?? ''}`
  throw new UsageError(
    `--by must be ${GROUPINGS.join(', ')}, parent, root, member, month, label:NAME or dimension:NAME`,
  )
}

/** Sums of one group; the group is the text in the first column. */
interface GroupSum extends UsageSum {
  readonly group: string
}

/** Prints the totals; exit status 0. Rejects as the store does. */
export async function summarise(
  session: StoreSession,
  { by, fromMs, untilMs, json, ...filters }: SummaryOptions,
  nowMs: number,
): Promise<number> {
  const grouping = groupingOf(by)
  const filter = await filterOf(session.store, filters)
  const sums = await sumsOf(session, { grouping, filter, fromMs, untilMs }, nowMs)
  const totals = totalsOf(sums)
  const names = await namesOf(session.store, sums, grouping)
  session.terminal.out((json ? jsonOf : tableOf)(totals, names, grouping))
  return 0
}

async function sumsOf(
  session: StoreSession,
  { grouping, filter, fromMs, untilMs }: Summary,
  nowMs: number,
): Promise<GroupSum[]> {
  const { ledger } = session.store
  const { accountId = null, keyId, ...conditions } = filter
  // The sums of accounts are those of their keys, which every version has kept.
  const by = grouping === 'account' ? 'key' : storedAs(grouping)
  const key = keyId === undefined ? {} : { keyId }
  const selection = { by, accountId, ...key, filter: conditions }
  const asked = { fromMs: Math.max(0, fromMs), toMs: untilMs ?? nowMs, by: 'day' } as const
  if (asked.toMs <= asked.fromMs) return []
  let sinceMs = 0
  if (isKept(selection)) {
    // Before the first entry that is kept, there are sums of whole days only.
    const order = { column: 'atMs', isDescending: false } as const
    const { entries } = await ledger.entries({ accountId: null, after: null, limit: 1, order })
    sinceMs = entries[0]?.atMs ?? nowMs
  }
  const range = rangeOf(asked, nowMs, { entriesMs: sinceMs, hoursMs: sinceMs })
  const usage = new ExactUsage(ledger, range, { onBatch: progressOn(session) })
  const start = grouping.startsWith('label:') ? `${grouping.slice('label:'.length)}=` : ''
  const groupOf = (sum: UsageSum): string => {
    if (grouping === 'account') return sum.accountId
    return sum.keyId.startsWith(start) ? sum.keyId.slice(start.length) : sum.keyId
  }
  return (await usage.sumsByGroup(selection)).map((sum) => ({ ...sum, group: groupOf(sum) }))
}

/** The name shown beside an id. Null: the key was removed, or the account does not exist. */
type Names = Readonly<Partial<Record<'name' | 'email', string | null>>>

const NAMES: Readonly<Record<string, readonly (keyof Names)[]>> = {
  key: ['name', 'email'],
  account: ['email'],
}

/** By group: names of keys, e-mail addresses of accounts. */
async function namesOf(store: Store, sums: readonly GroupSum[], by: Grouping): Promise<Map<string, Names>> {
  const names = new Map<string, Names>()
  if (by !== 'key' && by !== 'account') return names
  const emails = new Map<string, string | null>()
  for (const { group, accountId, keyId } of sums) {
    if (names.has(group)) continue
    const email = emails.get(accountId) ?? (await store.accountById(accountId))?.email ?? null
    emails.set(accountId, email)
    if (by === 'account') names.set(group, { email })
    else names.set(group, { name: (await store.keyById(accountId, keyId))?.name ?? null, email })
  }
  return names
}

type Totals = readonly (readonly [group: string, total: SumFigures])[]

/** By group: the highest cost first, then by name. */
function totalsOf(sums: readonly GroupSum[]): Totals {
  return [...sumsBy(sums, ({ group }) => group)].sort(
    ([a, one], [b, other]) => compareNanoUsd(other.costNanoUsd, one.costNanoUsd) || a.localeCompare(b),
  )
}

function jsonOf(totals: Totals, names: ReadonlyMap<string, Names>, grouping: Grouping): string {
  const lines = totals.map(([group, total]) => {
    const { requests, failed, inputTokens, outputTokens, unpriced, estimated, assumed } = total
    return {
      ...{ [grouping]: group, ...names.get(group), requests, failed },
      ...{ input_tokens: inputTokens, output_tokens: outputTokens, unpriced, estimated, assumed },
      // The name that version 0.1 had of failed requests.
      errors: failed,
      cost_usd: usd(total.costNanoUsd),
      units: unitsOfFigures(total),
    }
  })
  return JSON.stringify(lines, undefined, 2)
}

function tableOf(totals: Totals, names: ReadonlyMap<string, Names>, grouping: Grouping): string {
  const shown = NAMES[grouping] ?? []
  const sources = ['unpriced', 'estimated', 'assumed', 'units']
  const counts = ['requests', 'failed', 'input', 'output', 'cost (USD)', ...sources]
  const rows = totals.map(([group, total]) => [
    group,
    ...shown.map((name) => names.get(group)?.[name] ?? ''),
    String(total.requests),
    String(total.failed),
    String(total.inputTokens),
    String(total.outputTokens),
    usd(total.costNanoUsd),
    String(total.unpriced),
    String(total.estimated),
    String(total.assumed),
    unitsCell(unitsOfFigures(total)),
  ])
  return table([[grouping, ...shown, ...counts], ...rows])
}

/** The options that select entries. */
export interface FilterOptions {
  readonly status?: string | undefined
  readonly upstream?: string | undefined
  readonly model?: string | undefined
  readonly requestId?: string | undefined
  readonly key?: string | undefined
  readonly account?: string | undefined
  readonly dimension?: string | undefined
  readonly program?: string | undefined
  readonly user?: string | undefined
  readonly batch?: string | undefined
  readonly clientFormat?: string | undefined
}

/** The conditions of the options. Throws `UsageError`; rejects as the store does. */
export async function filterOf(store: Store, values: FilterOptions): Promise<OneFilter> {
  const { status, upstream, model, key, account, requestId, dimension, program, user, batch } = values
  const { clientFormat } = values
  return {
    ...(status === undefined ? {} : { status: statusOf(status) }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(model === undefined ? {} : { modelAsked: model }),
    ...(key === undefined ? {} : { keyId: key }),
    ...(account === undefined ? {} : { accountId: await accountIdOf(store, account) }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(dimension === undefined ? {} : { dimension: dimensionIn(dimension) }),
    ...(program === undefined ? {} : { program }),
    ...(user === undefined ? {} : { user }),
    ...(batch === undefined ? {} : { batch }),
    ...(clientFormat === undefined ? {} : { ingress: clientFormat }),
  }
}

/** Throws `UsageError` unless it is `NAME=VALUE`. */
function dimensionIn(text: string): string {
  if (/^[a-z][a-z0-9_]{0,31}=.+$/su.test(text)) return dimensionPair(text)
  throw new UsageError(`--dimension must be NAME=VALUE, such as run=r-17, not "${text}"`)
}

function statusOf(text: string): number {
  if (!/^[1-5]\d\d$/.test(text))
    throw new UsageError(`--status must be an HTTP status, such as 429, not "${text}"`)
  return Number(text)
}

async function accountIdOf(store: Store, account: string): Promise<string> {
  const found = await findAccount(store, account)
  if (found === null && !account.includes('@')) return account
  if (found === null)
    throw new UsageError(`--account: no account has this e-mail address: 'sluice accounts list' shows all`)
  return found.id
}

/** A filter by at most one key. */
type OneFilter = EntryFilter & { readonly keyId?: string }

/** Interval of progress lines. */
const PROGRESS_MS = 5_000

/** Prints how many entries are read, every five seconds. */
export function progressOn({ terminal }: Pick<StoreSession, 'terminal'>): OnBatch {
  let printedMs = performance.now()
  return (found, read) => {
    if (performance.now() - printedMs < PROGRESS_MS) return
    printedMs = performance.now()
    terminal.err(`sluice: ${found} of ${read} entries so far`)
  }
}
