/** CSV (RFC 4180), for every file that is one. Pure. */

/** A value of a cell; null is an empty one. */
export type CsvCell = string | number | bigint | boolean | null

/**
 * Spreadsheets evaluate cells that begin like a formula, and clients choose names: an apostrophe before the
 * cell makes it text (OWASP, "CSV injection").
 */
export function csvCell(cell: CsvCell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Rows as lines that all have an end. */
export function csvText(rows: readonly (readonly CsvCell[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('')
}
