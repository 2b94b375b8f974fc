/**
 * Which rows an account has, in the embedded engine's tables, and so which rows have been counted: names of rows,
 * many to a record. Knows no row and no sum.
 *
 * Rows that were counted together and began within a second of each other share a record. Its key says the last
 * and the first of them, so that whoever looks for a name, or for all below it, passes the other records over.
 */
import { quietly } from './lmdb-failure.js'
import { endOf, MOST_NAMES, timeName, timeOf, type LedgerTables } from './lmdb-ledger-tables.js'

/** How far apart the rows of a record may have begun. */
const SPAN_MS = 1_000

type Lists = LedgerTables['byAccount']

/** Has the rows among the account's; `names` as `rowName` makes them. Only inside a transaction. */
export function putNames(lists: Lists, accountId: string, names: readonly string[]): void {
  for (const record of recordsOf(accountId, names)) {
    const [first = '', ...others] = record
    const last = others.at(-1)
    if (last === undefined) quietly(lists.put(`${accountId} ${first}`, ''))
    else quietly(lists.put(`${accountId} ${last} ${first}`, record.join(' ')))
  }
}

/** Those that are not among the account's. */
export function namesMissing(
  lists: Lists,
  accountId: string,
  names: readonly string[],
): readonly string[] {
  const found = new Set<string>()
  for (const record of recordsOf(accountId, names)) {
    const [first = ''] = record
    const last = record.at(-1) ?? first
    const range = { start: `${accountId} ${first}`, end: `${accountId} ${behind(last)}` }
    for (const key of lists.getKeys(range)) {
      const place = placeOf(key)
      if (place.first > last) continue
      for (const name of namesAt(lists, key, place)) found.add(name)
    }
  }
  return found.size === 0 ? names : names.filter((name) => !found.has(name))
}

/** Names of the account's rows below one and not below another, newest first. */
export function* namesBelow(
  lists: Lists,
  accountId: string,
  from: string,
  oldest: string,
): Generator<string> {
  const range = { start: `${accountId} ${behind(from)}`, end: `${accountId} ${oldest}` }
  // Those of records that begin before the next record ends, in order.
  let waiting: string[] = []
  for (const key of lists.getKeys({ ...range, reverse: true })) {
    const place = placeOf(key)
    if (place.first >= from) continue
    while ((waiting.at(-1) ?? '') > place.last) yield waiting.pop() ?? ''
    const names = namesAt(lists, key, place).filter((name) => name < from && name >= oldest)
    waiting = waiting.length === 0 ? names : [...names, ...waiting].sort()
  }
  for (const name of waiting.reverse()) yield name
}

/** Forgets the record that ends with a row: rows are dropped in order, so all others of it are gone. */
export function dropName(lists: Lists, accountId: string, name: string): void {
  const key = `${accountId} ${name}`
  quietly(lists.remove(key))
  for (const record of Array.from(lists.getKeys({ start: `${key} `, end: endOf(`${key} `) }))) {
    quietly(lists.remove(record))
  }
}

interface Place {
  readonly last: string
  readonly first: string
}

function placeOf(key: string): Place {
  const [, last = '', first = last] = key.split(' ')
  return { last, first }
}

function namesAt(lists: Lists, key: string, { last, first }: Place): string[] {
  return first === last ? [last] : (lists.get(key)?.split(' ') ?? [])
}

/** The names of each record, in order. */
function recordsOf(accountId: string, names: readonly string[]): string[][] {
  const records: string[][] = []
  let record: string[] = []
  let end = ''
  for (const name of [...names].sort()) {
    // A key must not become too long for the engine.
    const isLong = accountId.length + 2 * name.length > MOST_NAMES
    if (name < end && !isLong) {
      record.push(name)
    } else {
      record = [name]
      records.push(record)
      end = isLong ? '' : behind(name)
    }
  }
  return records
}

/** Behind every row that began within the span of a record after the one of that name. */
function behind(name: string): string {
  const atMs = timeOf(name)
  return Number.isNaN(atMs) ? endOf('') : timeName(atMs + SPAN_MS + 1)
}
