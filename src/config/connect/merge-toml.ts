/**
 * Sets values of tables in the text of a TOML file and leaves every other line unchanged. Only the statements
 * and the extents of their values are read, not the values. Pure.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { SettingsError } from './settings-error.js'

/** A line `[table]` or `key = value`; a value may have several lines. */
interface Statement {
  readonly kind: 'table' | 'value'
  /** The whole path; `[]` ends that of an array of tables. */
  readonly path: readonly string[]
  readonly valueStart: number
  /** The end of the value, before a comment. */
  readonly valueEnd: number
  /** After the line break. */
  readonly end: number
}

/** A value of the settings with its table. */
interface Leaf {
  readonly table: readonly string[]
  readonly name: string
  readonly value: JsonValue
}

/**
 * The text with the settings, of which maps are tables, and without the values and tables at the paths of
 * `removed`. Throws `SettingsError`.
 */
export function mergeToml(
  former: string,
  settings: JsonObject,
  removed: readonly (readonly string[])[] = [],
): string {
  return leavesOf(settings, []).reduce(withLeaf, removed.reduce(withoutToml, former))
}

/** The text without the value or table at a path and what is below it. Throws `SettingsError`. */
export function withoutToml(text: string, path: readonly string[]): string {
  const found = statementsOf(text).filter((each) => isStart(path, each.path))
  return found.reduceRight((left, { valueStart, end }) => {
    const start = left.lastIndexOf('\n', valueStart - 1) + 1
    return left.slice(0, start) + left.slice(end)
  }, text)
}

/** The lines of the value or table at a path and of what is below it. Throws `SettingsError`. */
export function tomlLines(text: string, path: readonly string[]): string {
  const found = statementsOf(text).filter((each) => isStart(path, each.path))
  return found.map(({ valueStart, valueEnd }) => text.slice(valueStart, valueEnd)).join('\n')
}

function leavesOf(settings: JsonObject, table: readonly string[]): Leaf[] {
  const entries = Object.entries(settings)
  return entries.flatMap(([name, value]) => {
    if (value === undefined) return []
    return isObject(value) ? leavesOf(value, [...table, name]) : [{ table, name, value }]
  })
}

function withLeaf(text: string, { table, name, value }: Leaf): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const statements = statementsOf(text)
  const path = [...table, name]
  const known = statements.find((each) => each.kind === 'value' && isEqual(each.path, path))
  if (known !== undefined) {
    return text.slice(0, known.valueStart) + tomlText(value) + text.slice(known.valueEnd)
  }
  const line = `${keyText(name)} = ${tomlText(value)}${eol}`
  const insert = (at: number, before = ''): string => {
    const isBroken = at > 0 && !text.slice(0, at).endsWith('\n')
    return `${text.slice(0, at)}${isBroken ? eol : ''}${before}${line}${text.slice(at)}`
  }
  if (table.length === 0) return insertAtTop(text, { statements, line, insert, eol })
  const unclear = statements.find(
    (each) => each.kind === 'value' && (isStart(each.path, path) || isStart(table, each.path)),
  )
  const header = statements.findIndex((each) => each.kind === 'table' && isEqual(each.path, table))
  if (header < 0 && unclear !== undefined) {
    throw new SettingsError(
      `sets ${unclear.path.join('.')} without a table: write [${table.map(keyText).join('.')}] first`,
    )
  }
  if (header < 0) {
    const gap = text === '' || /\n\r?\n$/.test(text) ? '' : eol
    return insert(text.length, `${gap}[${table.map(keyText).join('.')}]${eol}`)
  }
  let last = header
  while (statements[last + 1]?.kind === 'value') last += 1
  return insert(statements[last]?.end ?? text.length)
}

interface TopInsertion {
  readonly statements: readonly Statement[]
  readonly line: string
  readonly insert: (at: number, before?: string) => string
  readonly eol: string
}

/** Values without a table come before the first table. */
function insertAtTop(text: string, { statements, line, insert, eol }: TopInsertion): string {
  const first = statements.findIndex(({ kind }) => kind === 'table')
  const last = (first < 0 ? statements : statements.slice(0, first)).at(-1)
  if (last !== undefined) return insert(last.end)
  return first < 0 ? insert(text.length) : `${line}${eol}${text}`
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && isStart(one, other)
}

function isStart(start: readonly string[], path: readonly string[]): boolean {
  return start.length <= path.length && start.every((part, at) => part === path[at])
}

function keyText(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name)
}

function tomlText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(tomlText).join(', ')}]`
  return JSON.stringify(value)
}

/** The statements of the text. Throws `SettingsError`. */
function statementsOf(text: string): Statement[] {
  const found: Statement[] = []
  let table: readonly string[] = []
  let at = 0
  while (at < text.length) {
    const start = afterBlanks(text, at)
    const lineEnd = endOfLine(text, start)
    if (text[start] === '[') {
      const isList = text[start + 1] === '['
      const key = keyAt(text, start + (isList ? 2 : 1))
      table = isList ? [...key.path, '[]'] : key.path
      found.push({ kind: 'table', path: table, valueStart: start, valueEnd: lineEnd, end: lineEnd })
    } else if (!/^(?:#|\r?\n|$)/.test(text.slice(start, start + 2))) {
      const key = keyAt(text, start)
      if (text[key.end] !== '=') throw new SettingsError(`is not valid TOML at line ${lineOf(text, start)}`)
      const valueStart = afterBlanks(text, key.end + 1)
      const valueEnd = endOfValue(text, valueStart)
      const end = endOfLine(text, valueEnd)
      found.push({ kind: 'value', path: [...table, ...key.path], valueStart, valueEnd, end })
      at = end
      continue
    }
    at = lineEnd
  }
  return found
}

/** A dotted key, and the place after it and the white space. */
function keyAt(text: string, start: number): { path: string[]; end: number } {
  const part = /"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([\w-]+)/y
  const path: string[] = []
  let end = start
  do {
    part.lastIndex = afterBlanks(text, path.length === 0 ? end : end + 1)
    const found = part.exec(text)
    if (found === null) throw new SettingsError(`is not valid TOML at line ${lineOf(text, start)}`)
    path.push(found[1] ?? found[2] ?? found[3] ?? '')
    end = afterBlanks(text, part.lastIndex)
  } while (text[end] === '.')
  return { path, end }
}

const TOKEN =
  /"""(?:[^\\]|\\[^])*?"{3,5}|'''[^]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}]|\r?\n|[^"'#[\]{}\r\n]+|\r/y

/** The end of a value: of its line, or of the last line of a list or a long text. */
function endOfValue(text: string, start: number): number {
  let depth = 0
  let end = start
  TOKEN.lastIndex = start
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const [token] = found
    if (token === '[' || token === '{') depth += 1
    else if (token === ']' || token === '}') depth -= 1
    else if (depth === 0 && (token.endsWith('\n') || token.startsWith('#'))) {
      if (!token.startsWith('"') && !token.startsWith("'")) return end
    }
    end = found.index + token.trimEnd().length
  }
  if (depth !== 0) throw new SettingsError(`is not valid TOML at line ${lineOf(text, start)}`)
  return end
}

function afterBlanks(text: string, at: number): number {
  let end = at
  while (text[end] === ' ' || text[end] === '\t') end += 1
  return end
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

function lineOf(text: string, at: number): string {
  return String(text.slice(0, at).split('\n').length)
}
