/**
 * The line of a file at a problem, with a caret under its column, for a terminal. Values that may be secrets are
 * covered with asterisks of the same length. Pure.
 */
import { hideSecrets } from '../secrets/redact-secrets.js'

/** A longer line is shown around the column. */
const MAX_COLUMNS = 160
/** Keys whose value may be a secret, or whose map may hold some. */
const SECRET_KEY =
  /(?:keys?|token|secret|password|passphrase|authorization)$|^(?:headers|query|escrow)$/i
/** What may be shown of a part that may hold a secret: keys and placeholders. */
const SHOWN = /\$\{[\w:/.-]*\}|\b[a-z_]{1,40}:(?=\s|$)|[\s{}[\],:"'-]+/g
/** Of this length and of letters and digits, a word may be a key. */
const LONG_WORD = /[\w+/=-]{20,}/g

/**
 * Two lines: the source line after its number, and the caret. Null if there is no such line. `line` and `column`
 * count from 1.
 */
export function excerpt(text: string, line: number, column: number): string | null {
  const lines = text.split(/\r\n|\n/)
  const source = lines[line - 1]
  if (source === undefined || source.trim() === '') return null
  const from = column <= MAX_COLUMNS ? 0 : column - 1 - MAX_COLUMNS / 2
  const covered = covering(source, isWithinSecrets(lines, line - 1))
  // Control characters would move the caret or command the terminal.
  const shown = covered.slice(from, from + MAX_COLUMNS).replace(/[\p{Cc}\p{Cf}]/gu, ' ')
  const number = String(line).padStart(4)
  const caret = '^'.padStart(column - from)
  return `${number} | ${shown.trimEnd()}\n${' '.repeat(number.length)} | ${caret}`
}

/** The line with asterisks for what may be a secret, as long as before. */
function covering(source: string, isSecret: boolean): string {
  if (isSecret || !/[\w"']\s*:(?:\s|$)/.test(source)) return coverAll(source)
  const start = secretStart(source) ?? source.length
  return coverForms(source.slice(0, start)) + coverAll(source.slice(start))
}

/** Where the value of the first key that may hold a secret begins, or an address with a password; else null. */
function secretStart(source: string): number | null {
  const address = source.indexOf('://')
  const end = address === -1 || !source.includes('@', address) ? null : address
  for (const { 0: word, index } of source.slice(0, end ?? source.length).matchAll(/[\w.-]+/g)) {
    const after = index + word.length
    const colon = /^["']?\s{0,16}:/.exec(source.slice(after, after + 20))
    if (colon !== null && SECRET_KEY.test(word)) return after + colon[0].length
  }
  return end
}

function coverAll(part: string): string {
  let covered = ''
  let from = 0
  for (const { 0: kept, index } of part.matchAll(SHOWN)) {
    covered += '*'.repeat(index - from) + kept
    from = index + kept.length
  }
  return covered + '*'.repeat(part.length - from)
}

function coverForms(part: string): string {
  const covered = part.replace(LONG_WORD, (word) =>
    /\d/.test(word) && /[a-z]/i.test(word) ? '*'.repeat(word.length) : word,
  )
  // What else looks like a key changes the length, so all of it is covered.
  return hideSecrets(covered) === covered ? covered : coverAll(part)
}

/** Whether one of the keys that enclose the line may hold secrets. */
function isWithinSecrets(lines: readonly string[], index: number): boolean {
  let indent = indentOf(lines[index] ?? '')
  for (let at = index - 1; at >= 0 && indent > 0; at--) {
    const above = lines[at] ?? ''
    if (above.trim() === '' || indentOf(above) >= indent) continue
    if (secretStart(above) !== null) return true
    indent = indentOf(above)
  }
  return false
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}
