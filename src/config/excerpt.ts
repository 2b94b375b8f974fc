/**
 * Prints the line of a file with a problem and a caret under its column, for a terminal. Values that may be
 * secrets are replaced with asterisks of the same length.
 */
import { hideSecrets } from '../secrets/redact-secrets.js'

/** A longer line is cut to this length around the column. */
const MAX_COLUMNS = 160
/** Keys whose values may be or contain secrets. */
const SECRET_KEY =
  /(?:keys?|token|secret|password|passphrase|authorization)$|^(?:headers|query|escrow)$/i
/** The readable parts of a line that may contain a secret: keys and placeholders. */
const SHOWN = /\$\{[\w:/.-]*\}|\b[a-z_]{1,40}:(?=\s|$)|[\s{}[\],:"'-]+/g
/** A word of at least this length of letters and digits may be a key. */
const LONG_WORD = /[\w+/=-]{20,}/g

/**
 * Two lines: the source line after its number, and the caret. Null if there is no such line. `line` and
 * `column` count from 1.
 */
export function excerpt(text: string, line: number, column: number): string | null {
  const lines = text.split(/\r\n|\n/)
  const source = lines[line - 1]
  if (source === undefined || source.trim() === '') return null
  const from = column <= MAX_COLUMNS ? 0 : column - 1 - MAX_COLUMNS / 2
  const masked = masking(source, isWithinSecrets(lines, line - 1))
  // Control characters could move the caret or control the terminal.
  const shown = masked.slice(from, from + MAX_COLUMNS).replace(/[\p{Cc}\p{Cf}]/gu, ' ')
  const number = String(line).padStart(4)
  const caret = '^'.padStart(column - from)
  return `${number} | ${shown.trimEnd()}\n${' '.repeat(number.length)} | ${caret}`
}

/** The line with asterisks in place of possible secrets; its length does not change. */
function masking(source: string, isSecret: boolean): string {
  if (isSecret || !/[\w"']\s*:(?:\s|$)/.test(source)) return maskAll(source)
  const start = secretStart(source) ?? source.length
  return maskKnownForms(source.slice(0, start)) + maskAll(source.slice(start))
}

/**
 * The column where the value of the first possibly secret key starts, or a URL with a password; else null.
 */
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

function maskAll(part: string): string {
  let masked = ''
  let from = 0
  for (const { 0: readable, index } of part.matchAll(SHOWN)) {
    masked += '*'.repeat(index - from) + readable
    from = index + readable.length
  }
  return masked + '*'.repeat(part.length - from)
}

function maskKnownForms(part: string): string {
  const masked = part.replace(LONG_WORD, (word) =>
    /\d/.test(word) && /[a-z]/i.test(word) ? '*'.repeat(word.length) : word,
  )
  // `hideSecrets` changes the length, so a line with other possible secrets is masked completely.
  return hideSecrets(masked) === masked ? masked : maskAll(part)
}

/** Whether a key around the line may contain secrets. */
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
