/** What lines of a statement may be split by: properties that only single requests have. */

const NAMED = ['client_format', 'program', 'user'] as const

/** A grouping of lines. */
export type StatementGrouping = (typeof NAMED)[number] | `dimension:${string}`

/** Whether the text names what lines of a statement may be split by. */
export function isStatementGrouping(text: string): text is StatementGrouping {
  return NAMED.some((name) => name === text) || /^dimension:[a-z][a-z0-9_]{0,31}$/.test(text)
}
