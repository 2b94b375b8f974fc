/**
 * What accounts used and cost: the statement of a month, and sums by account, parent, top of the tree,
 * member, key, label, model and month. Each request counts under the tree at its own time, so that a closed
 * month never changes, and every sum is exact to the nano-dollar.
 */
import { compareNanoUsd } from '../base/nano-usd.js'
import { adminTurns } from '../base/turn-queue.js'
import { csvCell } from '../ledger/export-columns.js'
import { monthOf } from '../store/limit-arithmetic.js'
import type { KeyName } from '../store/account-and-key-lists.js'
import type { Store } from '../store/store.js'
import type { AccountUse, AccountUseQuery } from '../store/usage-queries.js'
import {
  isOwnUse,
  isUseBelow,
  selectAccount,
  type AccountSelection,
  type AccountSource,
} from './account-selection.js'
import { NONE } from './sums-of-entries.js'
import {
  addTotals,
  FIGURE_COLUMNS,
  newTotals,
  shownTotals,
  type ReportFigures,
  type ReportTotals,
  type RunningTotals,
  type Totals,
} from './totals.js'

/** Uses that are added up without giving way to other work. */
const AT_ONCE = 500

/** The parts of the store that have the names of accounts and keys. */
export type UsageNames = Pick<Store, 'accountById' | 'ancestorsOf' | 'keyById' | 'directory'>
/** The parts of the store that reports read. */
type Source = AccountSource & UsageNames & Pick<Store, 'ledger'>

/** What one key of one account used of one model. */
interface StatementLine extends ReportFigures {
  /** The account's name. */
  readonly account: string
  /** The key's name; null if the key was removed from the store. */
  readonly key: string | null
  readonly key_id: string
  readonly model: string
}

/** The statement of an account and of all below it, or of all accounts. */
export interface Statement {
  /** The account's name; null: all accounts. */
  readonly account: string | null
  /** `2026-11` (UTC). */
  readonly month: string
  /** By account, key and model. */
  readonly lines: readonly StatementLine[]
  /** The sum of each account, the highest cost first; they add up to the total. */
  readonly accounts: readonly AccountSum[]
  readonly total: ReportFigures
}

/** What one account used. */
interface AccountSum extends ReportFigures {
  /** The account's name. */
  readonly account: string
}

const MONTH = /^(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])$/

/** The first moment of a month and of the next one, ms since 1970; null if the text is not `YYYY-MM`. */
export function monthRange(text: string): { fromMs: number; toMs: number } | null {
  const [, year, month] = MONTH.exec(text) ?? []
  if (year === undefined || month === undefined) return null
  const [at, next] = [Number(month) - 1, Number(month)]
  return { fromMs: Date.UTC(Number(year), at), toMs: Date.UTC(Number(year), next) }
}

/** `2026-11` of months since 1970. */
export function monthText(month: number): string {
  return new Date(Date.UTC(1970, month)).toISOString().slice(0, 7)
}

/**
 * The statement of a month, which must be valid, of the account with this name or id, or of all accounts
 * (null); an account that was purged has the lines that it had. The month that is not over has its requests
 * so far.
 */
export async function statementOf(store: Source, nameOrId: string | null, month: string): Promise<Statement> {
  const range = monthRange(month) ?? { fromMs: 0, toMs: 1 }
  const selection = nameOrId === null ? null : await selectAccount(store, nameOrId)
  const uses = await usesOf(store, { ...range, byLabels: false }, { selection, tree: true })
  const keys = await KeyNames.for(store, uses.length)
  const groups = new Map<string, { use: AccountUse; name: string; sum: RunningTotals }>()
  const accounts = new Map<string, RunningTotals>()
  const total = newTotals()
  for (const [at, { use, path }] of uses.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    if (use.month !== monthOf(range.fromMs)) continue
    const name = path.at(-1) ?? ''
    const id = JSON.stringify([name, use.keyId, use.model])
    const group = groups.get(id) ?? { use, name, sum: newTotals() }
    const ofAccount = accounts.get(name) ?? newTotals()
    for (const sum of [group.sum, ofAccount, total]) addTotals(sum, use)
    groups.set(id, group)
    accounts.set(name, ofAccount)
  }
  const lines: StatementLine[] = []
  // Without a function that compares: fifty thousand lines would hold the event loop.
  for (const [at, id] of [...groups.keys()].sort().entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    const group = groups.get(id)
    if (group === undefined) continue
    const { use, name, sum } = group
    const { keyId, model } = use
    const known = keys.known(use)
    const key = (known === undefined ? await keys.of(use) : known)?.name ?? null
    lines.push({ account: name, key, key_id: keyId, model, ...statementFigures(sum) })
  }
  const sums = Array.from(accounts, ([account, sum]) => ({ account, ...statementFigures(sum) }))
  sums.sort(
    (one, other) =>
      compareNanoUsd(other.cost_nano_usd, one.cost_nano_usd) || (one.account < other.account ? -1 : 1),
  )
  return { account: selection?.name ?? null, month, lines, accounts: sums, total: statementFigures(total) }
}

/** The figures of a statement: without failed requests and unknown prices. */
function statementFigures(sum: Totals): ReportFigures {
  const { requests, input_tokens, output_tokens, cost_nano_usd, cost_usd } = shownTotals(sum)
  return { requests, input_tokens, output_tokens, cost_nano_usd, cost_usd }
}

const STATEMENT_COLUMNS = [
  'account',
  'key',
  'key_id',
  'model',
  'requests',
  'input_tokens',
  'output_tokens',
  'cost_nano_usd',
  'cost_usd',
] as const satisfies readonly (keyof StatementLine)[]

/** The lines of a statement as CSV (RFC 4180) with a line of names; the total is the sum of the lines. */
export function statementCsv({ lines }: Pick<Statement, 'lines'>): string {
  const cells = lines.map((line) => STATEMENT_COLUMNS.map((name) => csvCell(line[name])).join(','))
  return `${[STATEMENT_COLUMNS.join(','), ...cells].join('\r\n')}\r\n`
}

/** The groupings of a report; `label:NAME` groups by the value of a label. */
const REPORT_GROUPINGS = ['account', 'parent', 'root', 'member', 'key', 'model', 'month'] as const
/** One of them. */
export type ReportGrouping = (typeof REPORT_GROUPINGS)[number] | `label:${string}`

/** Whether the text is a grouping. */
export function isReportGrouping(text: string): text is ReportGrouping {
  return REPORT_GROUPINGS.some((each) => each === text) || /^label:[^\s=]{1,100}$/.test(text)
}

/** Selects what a report sums up. */
export interface ReportQuery {
  readonly by: ReportGrouping
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** Only this account, by its name or id; null: all. */
  readonly account: string | null
  /** With `account`: with all below it. */
  readonly tree: boolean
}

/** The sums of one group. */
interface ReportRow extends ReportTotals {
  /** A name; for keys the id; `(none)` for requests without the property. */
  readonly group: string
}

/** Sums by group; the highest cost first, months in order. */
export interface Report {
  readonly rows: readonly ReportRow[]
  readonly total: ReportTotals
}

/** See `ReportQuery`. Entries that were pruned are counted with their whole month. */
export async function accountReport(store: Source, query: ReportQuery): Promise<Report> {
  const { by, account, tree } = query
  const { fromMs, toMs } = query
  const selection = account === null ? null : await selectAccount(store, account)
  const wanted = { fromMs, toMs, byLabels: by.startsWith('label:') }
  const uses = await usesOf(store, wanted, { selection, tree })
  const keys = await KeyNames.for(store, by === 'member' ? uses.length : 0)
  const groups = new Map<string, RunningTotals>()
  const total = newTotals()
  for (const [at, { use, path }] of uses.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    const group = await groupOf(use, by, { path, keys })
    const sum = groups.get(group) ?? newTotals()
    addTotals(sum, use)
    addTotals(total, use)
    groups.set(group, sum)
  }
  const rows = Array.from(groups, ([group, sum]) => ({ group, ...shownTotals(sum) }))
  rows.sort((a, b) => {
    const byName = a.group < b.group ? -1 : 1
    return by === 'month' ? byName : compareNanoUsd(b.cost_nano_usd, a.cost_nano_usd) || byName
  })
  return { rows, total: shownTotals(total) }
}

/** A use with the names from the top of the tree to its account. */
interface UseInTree {
  readonly use: AccountUse
  readonly path: readonly string[]
}

/** The uses of the account, with those of accounts below it if `tree` is set; without a selection, all. */
async function usesOf(
  store: Source,
  query: AccountUseQuery,
  { selection, tree }: { readonly selection: AccountSelection | null; readonly tree: boolean },
): Promise<UseInTree[]> {
  const paths = new AccountPaths(store)
  const within = async (
    range: Pick<AccountUseQuery, 'fromMs' | 'toMs'>,
    isMeant: (inTree: UseInTree) => boolean,
  ): Promise<UseInTree[]> => {
    const found: UseInTree[] = []
    for (const [at, use] of (await store.ledger.accountUse({ ...query, ...range })).entries()) {
      if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
      const inTree = { use, path: await paths.of(use) }
      if (isMeant(inTree)) found.push(inTree)
    }
    return found
  }
  if (selection === null) return within(query, () => true)
  const isOwn = ({ use, path }: UseInTree): boolean => isOwnUse(selection, use, path)
  if (!tree) return within(query, isOwn)
  const isBelow = (inTree: UseInTree): boolean => !isOwn(inTree) && isUseBelow(selection, inTree.path)
  const fromMs = Math.max(query.fromMs, selection.sinceMs)
  const toMs = Math.min(query.toMs, selection.untilMs)
  if (fromMs === query.fromMs && toMs === query.toMs) {
    return within(query, (inTree) => isOwn(inTree) || isBelow(inTree))
  }
  const below = fromMs < toMs ? await within({ fromMs, toMs }, isBelow) : []
  return [...(await within(query, isOwn)), ...below]
}

const REPORT_COLUMNS = ['group', ...FIGURE_COLUMNS] as const

/** A report as CSV (RFC 4180) with a line of names. */
export function reportCsv({ rows }: Pick<Report, 'rows'>): string {
  const lines = rows.map((row) => REPORT_COLUMNS.map((name) => csvCell(row[name])).join(','))
  return `${[REPORT_COLUMNS.join(','), ...lines].join('\r\n')}\r\n`
}

async function groupOf(
  use: AccountUse,
  by: ReportGrouping,
  { path, keys }: { readonly path: readonly string[]; readonly keys: KeyNames },
): Promise<string> {
  switch (by) {
    case 'account':
      return path.at(-1) ?? NONE
    case 'parent':
      return path.at(-2) ?? path.at(-1) ?? NONE
    case 'root':
      return path[0] ?? NONE
    case 'member':
      return (await keys.of(use))?.createdBy ?? NONE
    case 'key':
      return use.keyId
    case 'model':
      return use.model
    case 'month':
      return monthText(use.month)
    default: {
      const start = `${by.slice('label:'.length)}=`
      const pair = use.labels.split(' ').find((each) => each.startsWith(start))
      return pair?.slice(start.length) ?? NONE
    }
  }
}

/** The paths of accounts; those of today for entries of earlier versions, which have none. */
export class AccountPaths {
  private readonly store: UsageNames
  private readonly today = new Map<string, readonly string[]>()

  constructor(store: UsageNames) {
    this.store = store
  }

  async of({
    accountPath,
    accountId,
  }: Pick<AccountUse, 'accountPath' | 'accountId'>): Promise<readonly string[]> {
    if (accountPath !== '') return accountPath.split('/')
    const known = this.today.get(accountId)
    if (known !== undefined) return known
    const account = await this.store.accountById(accountId)
    const above = account === null ? [] : await this.store.ancestorsOf(account)
    const path = account === null ? [accountId] : [account, ...above].map(({ name }) => name)
    this.today.set(accountId, path.reverse())
    return path
  }
}

/** Names of more keys are read together. */
const FEW_KEYS = 100

/** The names of all keys if more than `FEW_KEYS` are needed, else null. */
export async function manyKeyNames(
  { directory }: UsageNames,
  accountId: string | null,
  count: number,
): Promise<ReadonlyMap<string, KeyName> | null> {
  return count > FEW_KEYS ? directory.keyNames(accountId) : null
}

/** Names and makers of keys. */
export class KeyNames {
  private readonly store: UsageNames
  private readonly all: ReadonlyMap<string, KeyName> | null
  private readonly keys = new Map<string, KeyName | null>()

  /** Reads the names of all keys at once if many are needed. */
  static async for(store: UsageNames, count: number, accountId: string | null = null): Promise<KeyNames> {
    return new KeyNames(store, await manyKeyNames(store, accountId, count))
  }

  private constructor(store: UsageNames, all: ReadonlyMap<string, KeyName> | null) {
    this.store = store
    this.all = all
  }

  async of(key: Pick<AccountUse, 'accountId' | 'keyId'>): Promise<KeyName | null> {
    const known = this.known(key)
    if (known !== undefined) return known
    const { accountId, keyId } = key
    const found = await this.store.keyById(accountId, keyId)
    this.keys.set(`${accountId} ${keyId}`, found)
    return found
  }

  /** The same without waiting; undefined for a key that must be read from the store. */
  known({ accountId, keyId }: Pick<AccountUse, 'accountId' | 'keyId'>): KeyName | null | undefined {
    // The playground, or `NAME/KEY_NAME` of a workload identity.
    if (!keyId.startsWith('key_')) return { name: keyId.slice(keyId.indexOf('/') + 1) }
    if (this.all !== null) return this.all.get(keyId) ?? null
    return this.keys.get(`${accountId} ${keyId}`)
  }
}
