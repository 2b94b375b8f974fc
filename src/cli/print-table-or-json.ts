/**
 * Prints lists as a table or as JSON, page by page, so that a list of any length needs the memory of one
 * page.
 */
import type { Terminal } from './with-store.js'

interface ListForms<Item> {
  /** The JSON of an item; null prints a table. */
  readonly json: ((item: Item) => unknown) | null
  /** The titles of the table's columns. */
  readonly head: readonly string[]
  readonly cells: (item: Item) => readonly string[]
  /** Printed on standard error for a table without rows. */
  readonly none: string
}

/** Prints the items as one JSON array, or as a table. */
export async function printList<Item>(
  terminal: Terminal,
  pages: AsyncIterable<readonly Item[]>,
  { json, head, cells, none }: ListForms<Item>,
): Promise<void> {
  if (json !== null) return printJson(terminal, pages, json)
  const count = await printTable(terminal, pages, { head, cells })
  if (count === 0) terminal.err(none)
}

/** One JSON array, an item on each line. */
async function printJson<Item>(
  terminal: Terminal,
  pages: AsyncIterable<readonly Item[]>,
  shown: (item: Item) => unknown,
): Promise<void> {
  let line: string | null = null
  for await (const page of pages) {
    for (const item of page) {
      if (line !== null) terminal.out(`${line},`)
      line = (line === null ? '[' : '') + JSON.stringify(shown(item))
    }
    await terminal.ready()
  }
  terminal.out(line === null ? '[]' : `${line}]`)
}

/**
 * Prints a table with columns aligned within each page, and no header without rows. Resolves to the number of
 * rows.
 */
async function printTable<Item>(
  terminal: Terminal,
  pages: AsyncIterable<readonly Item[]>,
  { head, cells }: Pick<ListForms<Item>, 'head' | 'cells'>,
): Promise<number> {
  let count = 0
  for await (const page of pages) {
    if (page.length === 0) continue
    const rows = page.map(cells)
    terminal.out(table(count === 0 ? [head, ...rows] : rows))
    count += page.length
    await terminal.ready()
  }
  return count
}

/** Rows with aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)))
  }
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}
