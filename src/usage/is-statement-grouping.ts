/** What lines of a statement may be split by: properties that only single requests have. */

/** A grouping of lines. */
export type StatementGrouping = 'program' | 'user' | `dimension:${string}`

/** Whether the text names what lines of a statement may be split by. */
export function isStatementGrouping(text: string): text is StatementGrouping {
  return text === 'program' || text === 'user' || /^dimension:[a-z][a-z0-9_]{0,31}$/.test(text)
}
