/**
 * The columns of `sluice usage export` with their documentation, and its forms: JSON lines and CSV. New
 * columns are added at the end.
 */
import { csvCell, type CsvCell } from '../base/csv.js'
import { STORED, storedIn, type LedgerEntry, type StoredValue } from './entry.js'

type ExportColumn = readonly [name: string, means: string, cell: (row: LedgerEntry) => CsvCell]

/** The columns, in order, with the documentation of each. */
export const COLUMNS: readonly ExportColumn[] = STORED.flatMap((stored): ExportColumn[] => {
  const { member, column, means } = stored
  if (means === null) return []
  if (member === 'atMs') return [['at', means, (row) => new Date(row.atMs).toISOString()]]
  const own: ExportColumn = [column, means, (row) => cellOf(row, stored)]
  if (member !== 'costNanoUsd') return [own]
  return [own, ['cost_usd', 'The same in dollars, with nine digits.', (row) => usd(row.costNanoUsd)]]
})

function cellOf(row: LedgerEntry, stored: StoredValue): CsvCell {
  const value = storedIn(row, stored)
  if (Array.isArray(value)) return value.join(' ')
  const isCell = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return isCell ? value : null
}

/** Nine digits after the point, computed from the whole number, because a float would round. */
export function usd(nanoUsd: number | bigint): string
export function usd(nanoUsd: number | bigint | null): string | null
export function usd(nanoUsd: number | bigint | null): string | null {
  if (nanoUsd === null) return null
  const digits = String(nanoUsd).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

/** A line of JSON, without its line break. */
export function jsonLine(row: LedgerEntry): string {
  return JSON.stringify(Object.fromEntries(COLUMNS.map(([name, , cell]) => [name, cell(row)])))
}

/** The first line of the CSV form. */
export function csvHeader(): string {
  return COLUMNS.map(([name]) => name).join(',')
}

/** A line of RFC 4180, without its line break. */
export function csvLine(row: LedgerEntry): string {
  return COLUMNS.map(([, , cell]) => csvCell(cell(row))).join(',')
}
