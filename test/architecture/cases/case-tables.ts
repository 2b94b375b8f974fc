/**
 * Reads the tables of pages that list cases, each with its test or the reason why it cannot arise.
 */

/** One line of such a table. */
export interface Row {
  readonly id: string
  readonly what: string
  readonly here: string
  /** The file of the test; `—` if there is none. */
  readonly shownBy: string
}

/** The rows of a page's table; `id` is the pattern of its first column. */
export function rowsOf(page: string, id: string): Row[] {
  const line = new RegExp(`^\\| *(${id}) *\\| *(.*?) *\\| *(.*?) *\\| *(.*?) *\\|$`, 'gm')
  return [...page.matchAll(line)].map(([, name = '', what = '', here = '', shownBy = '']) => {
    return { id: name, what, here, shownBy: shownBy.replaceAll('`', '') }
  })
}

/** Ids that are missing or duplicated, and rows without a test and a reason. */
export function gaps(rows: readonly Row[], ids: readonly string[]): string[] {
  const found: string[] = []
  for (const id of ids) {
    if (rows.filter((row) => row.id === id).length !== 1) found.push(`${id}: not one row`)
  }
  for (const { id, here, shownBy } of rows) {
    const isExcused = shownBy === '—'
    if (isExcused && !here.startsWith('Cannot arise: ')) found.push(`${id}: no test and no reason`)
  }
  return found
}
