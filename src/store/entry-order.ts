/**
 * The orders of a list of ledger entries, and the place of an entry in one, which is the cursor of a page.
 * Unknown values come last in both directions; entries of the same value are newest first. Pure.
 */
import type { LedgerEntry } from '../ledger/entry.js'

/** A value by which a list is sorted; null, the unknown value, comes last in both directions. */
export type SortValue = string | number | null

/** The columns by which entries can be sorted. `key` and `account`: by name, else by id. */
export const ENTRY_COLUMNS = [
  'atMs',
  'status',
  'model',
  'account',
  'upstream',
  'key',
  'tokens',
  'costNanoUsd',
  'firstTokenMs',
  'durationMs',
] as const
/** One of them. */
export type EntryColumn = (typeof ENTRY_COLUMNS)[number]

export interface EntryOrder {
  readonly column: EntryColumn
  readonly isDescending: boolean
}

/** The order of lists that name none. */
export const NEWEST_FIRST: EntryOrder = { column: 'atMs', isDescending: true }

/** The place of an entry in an order other than that of time. */
export interface EntryPlace {
  readonly value: SortValue
  readonly atMs: number
  readonly requestId: string
}

/** Columns whose value is in the entry. */
export type OwnColumn = Exclude<EntryColumn, 'atMs' | 'account' | 'key'>

/** The value of an entry in a column. The model is the one that the list shows. */
export function valueOfEntry(entry: LedgerEntry, column: OwnColumn): SortValue {
  switch (column) {
    case 'status':
      return entry.status
    case 'model':
      return entry.model === 'other' ? (entry.modelAsked ?? entry.model) : entry.model
    case 'upstream':
      return entry.upstream
    case 'tokens': {
      const { input, output } = entry.usage
      return input === undefined && output === undefined ? null : (input ?? 0) + (output ?? 0)
    }
    case 'costNanoUsd':
      return entry.costNanoUsd
    case 'firstTokenMs':
      return entry.hops.firstContent ?? null
    case 'durationMs':
      return entry.durationMs
    default:
      return column satisfies never
  }
}

/** The value of a key or account: its id keeps those of the same name apart. */
export function valueOfOwner(name: string | null, id: string): string {
  return `${(name ?? id).toLowerCase()}\0${id}`
}

/** Which of two places comes first. */
export function comparePlaces(a: EntryPlace, b: EntryPlace, isDescending: boolean): number {
  if (a.value !== b.value) {
    if (a.value === null) return 1
    if (b.value === null) return -1
    return a.value < b.value === isDescending ? 1 : -1
  }
  if (a.atMs !== b.atMs) return b.atMs - a.atMs
  return a.requestId < b.requestId ? 1 : a.requestId > b.requestId ? -1 : 0
}

/** The place as the cursor of a page. */
export function cursorOfPlace({ value, atMs, requestId }: EntryPlace): string {
  return JSON.stringify([value, atMs, requestId])
}

/** The place of a cursor; null for a text that is none. */
export function placeOfCursor(text: string): EntryPlace | null {
  let parts: unknown
  try {
    parts = JSON.parse(text)
  } catch {
    return null
  }
  const [value, atMs, requestId] = Array.isArray(parts) ? Array.from<unknown>(parts) : []
  if (typeof atMs !== 'number' || typeof requestId !== 'string') return null
  if (value !== null && typeof value !== 'string' && typeof value !== 'number') return null
  return { value, atMs, requestId }
}
