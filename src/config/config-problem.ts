/**
 * Problems of a configuration file: position, path, message, suggestion. A problem never contains a value of
 * the file, since any value may be a secret.
 */
import { counted } from '../base/counted.js'
import * as z from 'zod'
import { FOREIGN_KEYS, VENDOR_ALIASES } from './foreign-names.js'
import { hideSecrets } from '../hide-secrets.js'

// A configuration is checked once or twice in the life of a process: compiling the checks costs more.
z.config({ jitless: true })

/** More problems than a person reads at once. */
export const MAX_PROBLEMS = 100

/** The keys and indexes from the root of a file to a value. */
export type Path = readonly PropertyKey[]

/** Adds a finding; `suggestion` is the correct word for a misspelt one. */
export type ReportFinding = (path: Path, message: string, suggestion?: string | null) => void

/** One problem. `line` and `column` count from 1. */
export interface ConfigProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** `routes[2].hedge`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
  /** The probable spelling, or null. */
  readonly suggestion: string | null
}

/** A problem of the file as a whole. */
export function problemOfFile(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

/** A problem before its position in the text is known. */
export interface Finding {
  readonly path: Path
  /** Set if the key itself is wrong and not its value. */
  readonly atKey?: boolean
  readonly message: string
  readonly suggestion?: string | null
}

/** `file:line:column: path: message (did you mean …?)`, a form that editors can open. */
export function formatProblem(problem: ConfigProblem): string {
  const place = `${problem.file}:${problem.line}:${problem.column}`
  const path = problem.path === '' ? '' : `${problem.path}: `
  return hideSecrets(`${place}: ${path}${problem.message}${suggestionText(problem.suggestion)}`, '***')
}

/** `['routes', 2, 'hedge']` → `routes[2].hedge`. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? shownKey(String(step)) : `.${shownKey(String(step))}`
  }
  return text
}

/** Findings of a failed validation, with suggestions from the schema. `value` is the validated value. */
export function findingsOf(
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType,
  value: unknown,
): Finding[] {
  const findings: Finding[] = []
  const reportedPaths = new Set<string>()
  for (const issue of issues.flatMap(withinUnion)) {
    if (issue.code === 'unrecognized_keys') {
      const known = keysAt(schema, issue.path)
      for (const key of issue.keys) {
        const { message, suggestion } = unknownKey(key, { known, section: issue.path[0], schema })
        findings.push({ path: [...issue.path, key], atKey: true, message, suggestion })
      }
      continue
    }
    const path = pathText(issue.path)
    if (reportedPaths.has(path)) continue
    reportedPaths.add(path)
    findings.push(findingOf(issue, value, schema))
  }
  return findings
}

interface UnknownKey {
  readonly message: string
  readonly suggestion: string | null
}

interface KeyPlace {
  readonly known: readonly string[]
  readonly section: unknown
  readonly schema: z.ZodType
}

/** A key that is unknown at its place: of another gateway, of another place here, or misspelt. */
function unknownKey(key: string, { known, section, schema }: KeyPlace): UnknownKey {
  const isShared = SHARED_SECTIONS.includes(section)
  const ours = isShared && Object.hasOwn(FOREIGN_KEYS, key) ? FOREIGN_KEYS[key] : undefined
  const own = ours?.split(' of ')[0] ?? ''
  const similar = nearest(key, known)
  // `timeout` in an upstream is `timeouts`, misspelt.
  if (ours !== undefined && !known.includes(own) && similar !== own.split(':')[0]) {
    return { message: `Unknown key "${key}": here it is ${ours}`, suggestion: null }
  }
  const suggestion = known.includes(own) ? own : similar
  const place = OWN_PLACES.find(([path]) => keysAt(schema, path).includes(key))
  if (suggestion === null && isShared && place !== undefined) {
    return { message: `Unknown key "${key}": it belongs to ${place[1]}`, suggestion }
  }
  return { message: unknownKeyText(key, suggestion === null ? known : []), suggestion }
}

/** Places whose keys are often written elsewhere. */
const OWN_PLACES: readonly (readonly [path: Path, name: string])[] = [
  [['upstreams', ''], 'an upstream'],
  [['routes', 0], 'a route'],
  [['routes', 0, 'targets', 0], 'a target of a route'],
  [['limits', 0], 'an entry of limits'],
]

/** Sections whose keys other gateways have, too. */
const SHARED_SECTIONS: readonly unknown[] = [undefined, 'upstreams', 'routes', 'limits', 'plans', 'cache']

/** More keys are not listed in a message. */
const MAX_LISTED = 15

/** `known`: the keys to list. */
function unknownKeyText(key: string, known: readonly string[]): string {
  const hint = unknownKeyHint(key)
  if (hint !== null) return `Unknown key ${hint}`
  const text = `Unknown key "${shownKey(key)}"`
  return known.length === 0 || known.length > MAX_LISTED ? text : `${text}: use one of ${known.join(', ')}`
}

/**
 * The probable mistake behind a key that no schema has, after its name; null for a key that is only misspelt.
 */
function unknownKeyHint(key: string): string | null {
  if (key === '<<') return '"<<": merge keys are not supported: repeat the keys of the anchor'
  if (/^\d{3}$/.test(key)) return `"${key}": write a number without commas`
  if (shownKey(key) !== HIDDEN) return null
  const why = '(not shown, because it may contain a secret)'
  if (/^[a-z_]+:\S/.test(key)) return `${why}: write a space after the colon`
  return /^\s/.test(key) ? `${why}: indent with ordinary spaces` : why
}

/** The errors inside a map if a map is one of several allowed forms; else the issue itself. */
function withinUnion(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const within = issue.errors.find((errors) =>
    errors.some(({ code, path }) => code === 'unrecognized_keys' || path.length > 0),
  )
  if (within === undefined) return [issue]
  return within.flatMap((inner) => withinUnion({ ...inner, path: [...issue.path, ...inner.path] }))
}

/** Keys of which one names the vendor of an upstream. */
const VENDOR_KEYS = ['preset', 'dialect', 'platform']
/** The key and value that name a vendor, for a value of another one of these keys; null if there is none. */
function vendorText(path: Path, value: unknown, schema: z.ZodType): string | null {
  const key = String(path.at(-1))
  if (!VENDOR_KEYS.includes(key) || typeof value !== 'string') return null
  const lower = value.toLowerCase().replaceAll('_', '-')
  const name = Object.hasOwn(VENDOR_ALIASES, lower) ? (VENDOR_ALIASES[lower] ?? lower) : lower
  if (nearest(value, optionsAt(schema, path)) !== null) return null
  const own = VENDOR_KEYS.find((each) => optionsAt(schema, [...path.slice(0, -1), each]).includes(name))
  return own === undefined ? null : `${own}: ${name}`
}

function findingOf(issue: z.core.$ZodIssue, root: unknown, schema: z.ZodType): Finding {
  const { path } = issue
  const value = valueAt(root, path)
  if (issue.code === 'invalid_key') {
    return { path, atKey: true, message: issue.issues[0]?.message ?? 'is not a valid name' }
  }
  if (value === undefined) return { path, message: 'is required' }
  if (value === null) {
    const message = path.length === 0 ? 'the file is empty' : 'has no value: set one or remove the key'
    return { path, message }
  }
  if (issue.code === 'invalid_value') {
    const options = issue.values.map(String)
    const message = `must be one of ${options.join(', ')}`
    const vendor = vendorText(path, value, schema)
    if (vendor !== null) return { path, message: `${message}; for this value write ${vendor}` }
    return { path, message, suggestion: typeof value === 'string' ? nearest(value, options) : null }
  }
  return { path, message: quantityText(path, value) ?? ruleText(issue, value) }
}

/** The expected number, for `3s` or `32 MiB` in a setting whose name ends with its unit; else null. */
function quantityText(path: Path, value: unknown): string | null {
  const name = path.findLast((step) => typeof step === 'string')
  const unit = UNITS[/_([a-z]+)$/.exec(String(name))?.[1] ?? '']
  if (unit === undefined || typeof value !== 'string') return null
  const [, amount = '', suffix = ''] = QUANTITY.exec(value.trim()) ?? []
  const factor = unit.factors[suffix.toLowerCase()]
  const expected = factor === undefined ? NaN : Math.round(Number(amount) * factor) / unit.size
  const hint = Number.isSafeInteger(expected) ? `: ${expected}` : ''
  return `must be a number of ${unit.title}${hint}`
}

const QUANTITY = /^(\d{1,9}(?:\.\d{1,3})?) ?([a-z]{1,3})$/i

/** Factors of duration suffixes, to milliseconds. */
const DURATIONS = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 }
/** Factors of size suffixes, to bytes. */
const SIZES = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 }

/** Units of settings, by the end of their names; `size` is one unit in the terms of `factors`. */
const UNITS: Partial<Record<string, Unit>> = {
  ms: { title: 'milliseconds', size: 1, factors: DURATIONS },
  seconds: { title: 'seconds', size: 1_000, factors: DURATIONS },
  days: { title: 'days', size: 86_400_000, factors: DURATIONS },
  bytes: { title: 'bytes', size: 1, factors: SIZES },
}

interface Unit {
  readonly title: string
  readonly size: number
  readonly factors: Partial<Record<string, number>>
}

function ruleText(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}${notationHint(issue.expected, value)}`
    case 'too_small':
      // With an exact length, the schema has a message.
      if (issue.exact === true) return issue.message
      return `${smallText(issue.origin, Number(issue.minimum), issue.inclusive !== false)}${secondsHint(issue.path, value, Number(issue.minimum))}`
    case 'too_big':
      if (issue.exact === true) return issue.message
      if (issue.origin === 'array')
        return `must have at most ${counted(Number(issue.maximum), 'entry', 'entries')}`
      if (issue.origin === 'string')
        return `must be at most ${counted(Number(issue.maximum), 'character')} long`
      return `must be at most ${String(issue.maximum)}${millisecondsHint(issue.path, value, Number(issue.maximum))}`
    default:
      return issue.message
  }
}

/** The value in seconds, for milliseconds in a setting whose name ends with `_seconds`. */
function millisecondsHint(path: Path, value: unknown, maximum: number): string {
  if (typeof value !== 'number' || value % 1_000 !== 0 || value / 1_000 > maximum) return ''
  return /_seconds$/.test(String(path.at(-1))) ? `: for ${value} milliseconds write ${value / 1_000}` : ''
}

/** The value in milliseconds, for seconds in a setting whose name ends with `_ms`. */
function secondsHint(path: Path, value: unknown, minimum: number): string {
  if (typeof value !== 'number' || value <= 0 || value * 1_000 < minimum) return ''
  return /_ms$/.test(String(path.at(-1))) ? `: for ${value} seconds write ${value * 1_000}` : ''
}

function smallText(origin: string, minimum: number, isInclusive: boolean): string {
  if (origin === 'string') {
    return minimum === 1 ? 'must not be empty' : `must be at least ${minimum} characters long`
  }
  if (origin === 'array') {
    return minimum === 1 ? 'must have at least one entry' : `must have at least ${minimum} entries`
  }
  return `must be ${isInclusive ? 'at least' : 'above'} ${minimum}`
}

/** Advice for a value that is wrong only in quotes, or in the notation of a number. */
function notationHint(expected: string, value: unknown): string {
  if (expected === 'string') {
    return typeof value === 'number' || typeof value === 'boolean' ? ': put it in quotes' : ''
  }
  const isQuoted =
    typeof value === 'string' &&
    (expected === 'boolean' ? /^(?:true|false)$/ : /^-?\d{1,15}(?:\.\d{1,15})?$/).test(value)
  if (isQuoted) return ': remove the quotes'
  return expected === 'number' || expected === 'int' ? numberHint(value) : ''
}

/** The number that `$20`, `50%`, `100k` or `8_080` probably means. */
function numberHint(value: unknown): string {
  if (typeof value !== 'string') return ''
  const [, digits = '', suffix = ''] = /^\$?(\d[\d_]{0,14}(?:\.\d{1,6})?) ?([kM%]?)$/.exec(value) ?? []
  const factor = { k: 1e3, M: 1e6 }[suffix] ?? 1
  return digits === '' ? '' : `: ${Number(digits.replaceAll('_', '')) * factor}`
}

const TYPE_NAMES: Partial<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map (KEY: VALUE)',
  record: 'a map (NAME: VALUE)',
  array: 'a list (- VALUE)',
}

/** The keys of the schema at a path; none if it allows any. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  const inner = schemaAt(schema, path)
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
}

/** The values of the schema at a path, if it lists them. */
function optionsAt(schema: z.ZodType, path: Path): string[] {
  const inner = schemaAt(schema, path)
  return inner instanceof z.ZodEnum ? inner.options.map(String) : []
}

function schemaAt(schema: z.ZodType, path: Path): unknown {
  let inner: unknown = unwrapped(schema)
  for (const step of path) {
    if (inner instanceof z.ZodObject)
      inner = unwrapped((inner.shape as Record<string, unknown>)[String(step)])
    else if (inner instanceof z.ZodArray) inner = unwrapped(inner.element)
    else if (inner instanceof z.ZodRecord) inner = unwrapped(inner.valueType)
    else return null
  }
  return inner
}

function unwrapped(schema: unknown): unknown {
  let inner = schema
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodOptional) {
    inner = inner.unwrap()
  }
  if (!(inner instanceof z.ZodUnion)) return inner
  return inner.options.find((option) => option instanceof z.ZodObject) ?? inner
}

/** The value at a path, or `undefined`. */
export function valueAt(value: unknown, path: Path): unknown {
  let inner = value
  for (const step of path) {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, step)) return undefined
    inner = (inner as Record<PropertyKey, unknown>)[step]
  }
  return inner
}

/**
 * A key in printable form: words, and what YAML and placeholders contain (`<<`, `${NAME}`). Anything else may
 * be a misplaced secret.
 */
export function shownKey(key: string): string {
  const isPlain = /^[\p{L}\p{N} _.<${}-]{1,64}$/u.test(key) && hideSecrets(key) === key
  if (isPlain) return key
  return key === '' ? '(empty)' : HIDDEN
}

const HIDDEN = '(hidden)'

/** A longer line is cut to this length around the column. */
const MAX_COLUMNS = 160
/** Keys whose values may be or contain secrets. */
const SECRET_KEY =
  /(?:(?<!^max_)keys?|tokens?(?<!_tokens)|secrets?|passwords?|passphrase|authorization)$|^(?:headers|query|escrow)$/i
/** Readable parts of a line that may contain a secret: keys, numbers with a unit, placeholders, marks. */
const SHOWN =
  /\$\{[\w:/.-]*\}|(?<![\w.-])[\w.-]{1,64}_(?:ms|seconds|hours|days|bytes)["']?:\s{1,16}\d{1,15}(?=[\s,}]|$)|(?<![\w.-])[\w.-]{1,64}["']?:(?=\s|$)|[\s{}[\],:"'-]+/g
/** One masked character, from the private use area. */
const MASK = '\u{F8F3}'
/** Masked characters, also with marks between them, which may belong to a secret. */
const MASKS = /\u{F8F3}+(?:[-:]+\u{F8F3}+)*/gu
/** What is shown for each, of the same length for all secrets. */
const SHOWN_MASK = '***'
/** A word of at least this length of letters and digits may be a key. */
const LONG_WORD = /[\w+/=.-]{20,}/g
/** A word of a comment that may be a key or a password: letters with digits. */
const MIXED_WORD = /[\w+/=.-]{8,}/g
/** The start of the path of a file, or of an address after its scheme. */
const PATH_START = /^\.{0,2}\//
/** A part of a path that may be a secret. */
const PATH_PART = /[^/]{8,}/g
/** A part of a readable name, as in `claude-sonnet-4-5-20250929`. */
const NAME_PART = /^(?:[a-z]{0,15}|\d{1,8})$/i

/**
 * Two lines for a terminal: the source line after its number, and a caret under the column. Values that may
 * be secrets are replaced with `***`; the caret of a column within one is at its start. Null if there is no
 * such line. `line` and `column` count from 1.
 */
export function excerpt(text: string, line: number, column: number): string | null {
  const lines = text.split(/\r\n|\n/)
  const source = lines[line - 1]
  if (source === undefined || source.trim() === '') return null
  const masked = withMasks(masking(source, isWithinSecrets(lines, line - 1)), column - 1)
  const from = masked.at < MAX_COLUMNS ? 0 : masked.at - MAX_COLUMNS / 2
  // Control characters could move the caret or control the terminal.
  const shown = masked.text.slice(from, from + MAX_COLUMNS).replace(/[\p{Cc}\p{Cf}]/gu, ' ')
  const number = String(line).padStart(4)
  const caret = '^'.padStart(masked.at + 1 - from)
  return `${number} | ${shown.trimEnd()}\n${' '.repeat(number.length)} | ${caret}`
}

/** The line with masks of one length, and where the character at `position` is in it. */
function withMasks(line: string, position: number): { readonly text: string; readonly at: number } {
  let text = ''
  let end = 0
  let at = position
  for (const { 0: run, index } of line.matchAll(MASKS)) {
    text += line.slice(end, index)
    if (index <= position)
      at = position < index + run.length ? text.length : at + SHOWN_MASK.length - run.length
    text += SHOWN_MASK
    end = index + run.length
  }
  return { text: text + line.slice(end), at }
}

/** The line with `MASK` in place of each character of possible secrets; its length does not change. */
function masking(source: string, isSecret: boolean): string {
  const end = commentStart(source)
  const line = source.slice(0, end)
  const comment = maskComment(source.slice(end))
  if (isSecret || !/[\w"']\s*:(?:\s|$)/.test(line)) return maskAll(line, true) + comment
  const start = secretStart(line) ?? line.length
  return maskKnownForms(line.slice(0, start), LONG_WORD) + maskAll(line.slice(start), false) + comment
}

/**
 * The column of the `#` of a comment; the length of a line without one. Without a space after it, `#` may
 * belong to a password, although YAML ends the value here.
 */
function commentStart(source: string): number {
  let quote = ''
  for (let at = 0; at < source.length; at += 1) {
    const character = source.charAt(at)
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === '#' && isSpace(source[at - 1]) && isSpace(source[at + 1])) return at
  }
  return source.length
}

/** Also the ends of a line. */
function isSpace(character: string | undefined): boolean {
  return character === undefined || /\s/.test(character)
}

/** Comments are shown, without what follows the name of a secret in them. */
function maskComment(comment: string): string {
  const start = secretStart(comment) ?? comment.length
  return maskKnownForms(comment.slice(0, start), MIXED_WORD) + maskAll(comment.slice(start), false)
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

/**
 * A key is a readable part only if it begins an entry: other words before a colon may belong to a value.
 * `isLine`: the part is the start of a line, where an entry may begin.
 */
function maskAll(part: string, isLine: boolean): string {
  let masked = ''
  let from = 0
  for (const { 0: readable, index } of part.matchAll(SHOWN)) {
    if (/^\w/.test(readable) && !beginsEntry(part, index, isLine)) continue
    masked += MASK.repeat(index - from) + readable
    from = index + readable.length
  }
  return masked + MASK.repeat(part.length - from)
}

/** Whether an entry of a map or list begins at the column. */
function beginsEntry(part: string, column: number, isLine: boolean): boolean {
  const before = part.slice(Math.max(0, column - MAX_COLUMNS), column)
  return /(?:\{|,\s|^\s*-\s)\s*["']?$/.test(before) || (isLine && /^\s*["']?$/.test(before))
}

/** Whether a word is a readable name, such as `claude-sonnet-4-5-20250929`. */
function isName(word: string): boolean {
  const parts = word.split(/[-_.]/).filter((part) => !NAME_PART.test(part))
  return parts.length === 0 || (parts.length === 1 && /^[a-z\d]{1,4}$/i.test(parts[0] ?? ''))
}

function maskKnownForms(part: string, words: RegExp): string {
  const masked = part.replace(words, (word) => {
    return PATH_START.test(word) ? word.replace(PATH_PART, (each) => maskWord(each, true)) : maskWord(word)
  })
  // `hideSecrets` changes the length, so a line with other possible secrets is masked completely.
  return hideSecrets(masked) === masked ? masked : maskAll(part, true)
}

/** `MASK`s for a word that may be a key; `isPart`: of a path, where both cases of letters are enough. */
function maskWord(word: string, isPart = false): string {
  const isMixed =
    /[a-z]/i.test(word) && (/\d/.test(word) || (isPart && /[a-z]/.test(word) && /[A-Z]/.test(word)))
  return isMixed && !isName(word) ? MASK.repeat(word.length) : word
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

/** The candidate that is at most two edits (one for short words) away, or null. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  let best: string | null = null
  let bestDistance = word.length <= 4 ? 2 : 3
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** ` (did you mean "…"?)` if a candidate is similar to the word, else empty. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  return suggestionText(nearest(word, candidates))
}

/** The same text for a known suggestion; empty for null. */
export function suggestionText(suggestion: string | null): string {
  return suggestion === null ? '' : ` (did you mean "${suggestion}"?)`
}

/** Edits: insertion, deletion, replacement, and swapping two neighbours. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  let before: number[] = []
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1))
      next.push(swapped ? Math.min(best, (before[j - 2] ?? 0) + 1) : best)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
