/** Prints lists page by page, so that a list of any length needs the memory of one page. */
import { table, type Terminal } from './with-store.js'

/** One JSON array, an item on each line. */
export async function outJson<Item>(
  terminal: Terminal,
  pages: AsyncIterable<readonly Item[]>,
  shown: (item: Item) => unknown,
): Promise<void> {
  let held: string | null = null
  for await (const page of pages) {
    for (const item of page) {
      if (held !== null) terminal.out(`${held},`)
      held = (held === null ? '[' : '') + JSON.stringify(shown(item))
    }
  }
  terminal.out(held === null ? '[]' : `${held}]`)
}

/**
 * Prints a table with columns aligned within each page, and no header without rows. Resolves to the number of rows.
 */
export async function outTable<Item>(
  terminal: Terminal,
  pages: AsyncIterable<readonly Item[]>,
  head: readonly string[],
  cells: (item: Item) => readonly string[],
): Promise<number> {
  let count = 0
  for await (const page of pages) {
    if (page.length === 0) continue
    const rows = page.map(cells)
    terminal.out(table(count === 0 ? [head, ...rows] : rows))
    count += page.length
  }
  return count
}
