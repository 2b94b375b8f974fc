/**
 * Lists of keys and accounts in any order, over all of them: the dashboard's lists. An engine reads every
 * record, this file filters and sorts them, so that all engines have the same order.
 */
import { LIMIT_MEMBERS } from '../base/limit-members.js'
import { addNanoUsd } from '../base/nano-usd.js'
import type { Account, ApiKey } from '../accounts/account.js'
import { namesModel } from '../accounts/allowed-models.js'
import type { SortValue } from './entry-order.js'
import { damaged } from './store-errors.js'
import type { KeyUse } from './usage-queries.js'

/** The columns by which keys can be sorted. */
export const KEY_COLUMNS = [
  'name',
  'account',
  'createdAt',
  'expiresAt',
  'lastUsedAt',
  'requests',
  'cost',
  'state',
] as const
/** One of them. */
export type KeyColumn = (typeof KEY_COLUMNS)[number]

/** The columns by which accounts can be sorted. */
export const ACCOUNT_COLUMNS = [
  'name',
  'email',
  'plan',
  'createdAt',
  'liveKeys',
  'requests',
  'cost',
  'parent',
] as const
/** One of them. */
type AccountColumn = (typeof ACCOUNT_COLUMNS)[number]

/** A part of a sorted list. */
export interface SortedQuery<Column extends string> {
  readonly column: Column
  readonly isDescending: boolean
  /** The last item of the previous page; null for the first page. */
  readonly after: { readonly value: SortValue; readonly id: string } | null
  readonly limit: number
  /** For what depends on the time: the state of keys. */
  readonly nowMs: number
  /** The figures are of the days (UTC) since then. */
  readonly sinceMs: number
}

/** Whether a key works, or why it does not. */
export type KeyState = 'live' | 'expired' | 'revoked'

/** Selects keys; absent members select all. */
export interface KeyQuery extends SortedQuery<KeyColumn> {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly states?: readonly KeyState[]
  /**
   * Part of the name, of a label `name=value` or, in the list of all accounts, of the account's name; the id;
   * part of the mask, or the last four to eight characters.
   */
  readonly search?: string
  /** `name=value`. */
  readonly label?: string
  /** Only keys that may use this model. */
  readonly model?: string
  readonly createdBy?: string
  /** Only keys with a budget of their own. */
  readonly hasBudget?: true
}

/** Selects accounts; absent members select all. */
export interface AccountQuery extends SortedQuery<AccountColumn> {
  readonly plan?: string
  readonly disabled?: boolean
  /** The name or id of the parent. */
  readonly parent?: string
  /** Part of a name or e-mail address, or the whole id. */
  readonly search?: string
}

/** What a key or an account used. */
export type Use = Pick<KeyUse, 'requests' | 'costNanoUsd' | 'unpriced'>

export interface ListedKey {
  readonly key: ApiKey
  readonly accountName: string
  readonly use: Use
  /** Null: never. */
  readonly lastUsedAtMs: number | null
}

export interface ListedAccount {
  readonly account: Account
  /** The name of its parent; null for none. */
  readonly parent: string | null
  readonly liveKeys: number
  readonly use: Use
}

export interface SortedPage<Item> {
  readonly items: readonly Item[]
  /** Place of the last item; null on the last page. */
  readonly next: { readonly value: SortValue; readonly id: string } | null
  /** Items of all pages. */
  readonly total: number
}

/** Lists in any order. Methods fail as those of `Store` do. */
export interface Directory {
  keys(query: KeyQuery): Promise<SortedPage<ListedKey>>
  accounts(query: AccountQuery): Promise<SortedPage<ListedAccount>>
  /** Name and maker of each key of the account, or of all accounts (null), by the key's id. */
  keyNames(accountId: string | null): Promise<ReadonlyMap<string, KeyName>>
}

/** What reports show of a key. */
export interface KeyName {
  readonly name: string
  readonly createdBy?: string
}

/** Nothing used. */
export const NO_USE: Use = { requests: 0, costNanoUsd: 0, unpriced: 0 }

/** The state of a key. A revoked key is not also expired. */
export function stateOfKey(
  { revokedAtMs, expiresAtMs }: Pick<ApiKey, 'revokedAtMs' | 'expiresAtMs'>,
  nowMs: number,
): KeyState {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'live'
}

/** A key with its account's name, before it is known to be in the page. */
export interface KeyRow {
  readonly key: ApiKey
  readonly accountName: string
}

/** The figures of rows that only some orders need. */
export interface KeyFigures {
  readonly use: (key: ApiKey) => Use | undefined
  readonly lastUsedAtMs: (key: ApiKey) => number | undefined
}

export function pageOfKeys<Row extends KeyRow>(
  rows: Iterable<Row>,
  query: KeyQuery,
  figures: KeyFigures,
): SortedPage<Row> {
  const matches = keyFilter(query)
  const valueOf = ({ key, accountName }: Row): SortValue => {
    switch (query.column) {
      case 'name':
        return key.name.toLowerCase()
      case 'account':
        return accountName
      case 'createdAt':
        return key.createdAtMs
      case 'expiresAt':
        return key.expiresAtMs ?? null
      case 'lastUsedAt':
        return figures.lastUsedAtMs(key) ?? null
      case 'requests':
        return figures.use(key)?.requests ?? 0
      case 'cost':
        return Number(figures.use(key)?.costNanoUsd ?? 0)
      case 'state':
        return stateOfKey(key, query.nowMs)
      default:
        return query.column satisfies never
    }
  }
  return sortedPage(rows, query, { matches, valueOf, idOf: ({ key }) => key.id })
}

function keyFilter(query: KeyQuery): (row: KeyRow) => boolean {
  const { states, search = '', label, model, createdBy, hasBudget, accountId, nowMs } = query
  const words = search.toLowerCase()
  const [labelName = '', ...labelValue] = label?.split('=') ?? []
  return ({ key, accountName }) => {
    if (states?.includes(stateOfKey(key, nowMs)) === false) return false
    if (createdBy !== undefined && key.createdBy !== createdBy) return false
    if (hasBudget === true && !hasBudgetOf(key)) return false
    if (label !== undefined && key.labels?.[labelName] !== labelValue.join('=')) return false
    if (model !== undefined && key.models !== undefined && !namesModel(key.models, model)) {
      return false
    }
    return (
      words === '' ||
      key.name.toLowerCase().includes(words) ||
      key.id === search ||
      isPartOfMask(key, words) ||
      hasLabelWith(key, words) ||
      (accountId === null && accountName.includes(words))
    )
  }
}

function hasLabelWith({ labels = {} }: ApiKey, words: string): boolean {
  return Object.entries(labels).some(([name, value]) => `${name}=${value}`.toLowerCase().includes(words))
}

function hasBudgetOf({ limits = {} }: ApiKey): boolean {
  return LIMIT_MEMBERS.some(({ counts, field }) => counts === 'usd' && limits[field] !== undefined)
}

/**
 * Whether the text is a part of the key's mask, with any number of characters on either side, or the
 * last four to eight characters of its secret.
 */
function isPartOfMask({ prefix, lastFour }: ApiKey, words: string): boolean {
  if (lastFour === '') return false
  const [start, end] = [prefix.toLowerCase(), lastFour.toLowerCase()]
  const isEnd = /^[0-9a-z]{4,8}$/.test(words) && words.endsWith(end)
  const [first = '', last] = words.replace('...', '…').split('…')
  // Other programs show fewer characters on either side of the dots.
  const isMask = last === undefined ? start.includes(first) : start.includes(first) && end.endsWith(last)
  return isEnd || (words.length >= 3 && (isMask || end.includes(words)))
}

export function pageOfAccounts<Row extends Omit<ListedAccount, 'use'>>(
  rows: Iterable<Row>,
  query: AccountQuery,
  useOf: (account: Account) => Use | undefined,
): SortedPage<Row> {
  const { plan, disabled, parent, search = '' } = query
  const words = search.toLowerCase()
  const matches = ({ account, parent: parentName }: Row): boolean =>
    (plan === undefined || account.plan === plan) &&
    (disabled === undefined || account.disabled === disabled) &&
    (parent === undefined || parent === parentName || parent === account.parentId) &&
    (words === '' ||
      account.name.includes(words) ||
      account.email?.toLowerCase().includes(words) === true ||
      account.displayName?.toLowerCase().includes(words) === true ||
      account.id === search)
  const valueOf = ({ account, parent: parentName, liveKeys }: Row): SortValue => {
    switch (query.column) {
      case 'name':
        return account.name
      case 'email':
        return account.email?.toLowerCase() ?? null
      case 'plan':
        return account.plan
      case 'createdAt':
        return account.createdAtMs
      case 'liveKeys':
        return liveKeys
      case 'requests':
        return useOf(account)?.requests ?? 0
      case 'cost':
        return Number(useOf(account)?.costNanoUsd ?? 0)
      case 'parent':
        return parentName
      default:
        return query.column satisfies never
    }
  }
  return sortedPage(rows, query, { matches, valueOf, idOf: ({ account }) => account.id })
}

interface Sorting<Row> {
  readonly matches: (row: Row) => boolean
  readonly valueOf: (row: Row) => SortValue
  readonly idOf: (row: Row) => string
}

interface Place<Row> {
  readonly row: Row
  readonly value: SortValue
  readonly id: string
}

/** Rows of the same value are in the order of their ids. */
function sortedPage<Row>(
  rows: Iterable<Row>,
  { isDescending, after, limit }: SortedQuery<string>,
  { matches, valueOf, idOf }: Sorting<Row>,
): SortedPage<Row> {
  const sign = isDescending ? -1 : 1
  const compare = (one: Omit<Place<Row>, 'row'>, other: Omit<Place<Row>, 'row'>): number => {
    if (one.value !== other.value) {
      if (one.value === null) return 1
      if (other.value === null) return -1
      return one.value < other.value ? -sign : sign
    }
    return one.id < other.id ? -1 : one.id > other.id ? 1 : 0
  }
  let total = 0
  const rest: Place<Row>[] = []
  for (const row of rows) {
    if (!matches(row)) continue
    total += 1
    const place = { row, value: valueOf(row), id: idOf(row) }
    if (after === null || compare(place, after) > 0) rest.push(place)
  }
  rest.sort(compare)
  const page = rest.slice(0, limit)
  const last = rest.length > limit ? page.at(-1) : undefined
  return {
    items: page.map(({ row }) => row),
    next: last === undefined ? null : { value: last.value, id: last.id },
    total,
  }
}

/** Records that were parsed before, so that a list of ten thousand parses only those that have changed. */
export class ParsedRecords<Value> {
  private readonly known = new Map<string, { readonly text: string; readonly value: Value }>()

  /** The value of the record's text. Throws an Error that names the record if it is damaged. */
  get(id: string, text: string, parse: (text: string) => Value): Value {
    const before = this.known.get(id)
    if (before?.text === text) return before.value
    const value = this.parsed(id, text, parse)
    if (this.known.size >= MAX_PARSED) this.known.clear()
    this.known.set(id, { text, value })
    return value
  }

  private parsed(id: string, text: string, parse: (text: string) => Value): Value {
    try {
      return parse(text)
    } catch (cause) {
      throw damaged(`'${id}'`, cause instanceof Error ? cause.message : String(cause))
    }
  }
}

/** About 100 MB. */
const MAX_PARSED = 100_000

/** What each account used: the sum of its keys. */
export function useByAccount(uses: Iterable<KeyUse>): Map<string, Use> {
  const sums = new Map<string, Use>()
  for (const { accountId, requests, costNanoUsd, unpriced } of uses) {
    const before = sums.get(accountId) ?? NO_USE
    sums.set(accountId, {
      requests: before.requests + requests,
      costNanoUsd: addNanoUsd(before.costNanoUsd, costNanoUsd),
      unpriced: before.unpriced + unpriced,
    })
  }
  return sums
}

export function idsByAccount(rows: readonly KeyRow[]): [accountId: string, keyIds: string[]][] {
  const owned = new Map<string, string[]>()
  for (const { key } of rows) {
    const ids = owned.get(key.accountId)
    if (ids === undefined) owned.set(key.accountId, [key.id])
    else ids.push(key.id)
  }
  return [...owned]
}
