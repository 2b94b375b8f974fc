/**
 * Parses YAML: the value of a file with the positions of its parts, or the syntax errors. Only this file uses
 * the YAML parser, and what changes the text of a file: `edit-catalogue.ts` and `sluice connect`.
 */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  parseDocument,
  stringify,
  visit,
  type Document,
} from 'yaml'
import {
  MAX_PROBLEMS,
  pathText,
  shownKey,
  type ConfigProblem,
  type Finding,
  type Path,
} from './config-problem.js'

const MAX_ALIASES = 100

/** A parsed file with the positions of its values in the text. */
export interface YamlFile {
  readonly value: unknown
  readonly errors: ConfigProblem[]
  readonly locate: (finding: Finding) => ConfigProblem
  /** Keys that their map has again further down, with `keepsLast`. */
  readonly repeated: readonly RepeatedKey[]
}

/** A key that its map has again: lines of the first value, which does not count, and of the one that does. */
export interface RepeatedKey {
  readonly path: Path
  readonly line: number
  readonly again: number
}

/**
 * The file's value, or its syntax errors. `text` may contain `${NAME}` anywhere. Never throws.
 * `keepsLast`: of equal keys of a map the last one counts, as other readers of YAML have it; else they are
 * errors.
 */
export function parseYaml(file: string, text: string, { keepsLast = false } = {}): YamlFile {
  const lines = new LineCounter()
  const at = (offset: number, { path, message, suggestion = null }: Finding): ConfigProblem => {
    const { line, col } = lines.linePos(offset)
    const position = { line: Math.max(1, line), column: Math.max(1, col) }
    return { file, ...position, path: pathText(path), message, suggestion }
  }
  const syntaxProblem = (offset: number, message: string) => at(offset, { path: [], message })
  let document: Document.Parsed | null = null
  const locate = (finding: Finding): ConfigProblem => {
    const { path, atKey } = finding
    return at(document === null ? 0 : offsetOf(document, path, atKey), finding)
  }
  try {
    document = parseDocument(shielded(text), {
      schema: 'core',
      version: '1.2',
      uniqueKeys: !keepsLast,
      prettyErrors: false,
      logLevel: 'error',
      lineCounter: lines,
    })
    const errors = syntaxFaults(document, lines, text).map(([offset, message]) =>
      syntaxProblem(offset, message),
    )
    if (errors.length === 0 && document.contents === null) errors.push(syntaxProblem(0, 'the file is empty'))
    if (errors.length > 0) {
      return { value: null, errors: errors.slice(0, MAX_PROBLEMS), locate, repeated: [] }
    }
    unshield(document)
    const repeated = keepsLast ? withoutRepeated(document.contents, [], lines) : []
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), errors, locate, repeated }
  } catch {
    // The parser throws on nesting thousands of levels deep and on aliases that multiply.
    const message = 'is not valid YAML: too deeply nested, or too many aliases'
    return { value: null, errors: [syntaxProblem(0, message)], locate, repeated: [] }
  }
}

/** A document of a file that may have several. `at` is the position of a part: line and column. */
export interface YamlDocument {
  readonly value: unknown
  readonly at: (path: Path, atKey: boolean) => { readonly line: number; readonly column: number }
}

/** The documents of a file, without empty ones, or its syntax errors. Never throws. */
export function parseYamlDocuments(
  file: string,
  text: string,
): { readonly documents: YamlDocument[]; readonly errors: ConfigProblem[] } {
  const lines = new LineCounter()
  const placeOf = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const problem = (offset: number, message: string): ConfigProblem => {
    return { file, ...placeOf(offset), path: '', message, suggestion: null }
  }
  try {
    const options = {
      schema: 'core',
      version: '1.2',
      uniqueKeys: true,
      prettyErrors: false,
    } as const
    const parsed = parseAllDocuments(text, { ...options, logLevel: 'error', lineCounter: lines })
    const all = 'empty' in parsed ? [] : parsed
    const errors = all.flatMap((document) => {
      return syntaxFaults(document, lines, text).map(([offset, message]) => problem(offset, message))
    })
    if (errors.length > 0) return { documents: [], errors: errors.slice(0, MAX_PROBLEMS) }
    const documents = all
      .filter(({ contents }) => contents !== null)
      .map((document) => ({
        value: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown,
        at: (path: Path, atKey: boolean) => placeOf(offsetOf(document, path, atKey)),
      }))
      // `key:` alone is a value; a document of comments is none.
      .filter(({ value }) => value !== null)
    return { documents, errors: [] }
  } catch {
    const message = 'is not valid YAML: too deeply nested, or too many aliases'
    return { documents: [], errors: [problem(0, message)] }
  }
}

/** The text of a file with these documents. */
export function yamlText(documents: readonly unknown[]): string {
  return documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n')
}

/** The problems with their positions, in file order; at most `MAX_PROBLEMS`. */
export function located(findings: readonly Finding[], yaml: YamlFile): ConfigProblem[] {
  return findings
    .slice(0, MAX_PROBLEMS)
    .map((finding) => yaml.locate(finding))
    .sort((a, b) => a.line - b.line || a.column - b.column)
}

/** Replacements for braces from the private use area, of the same length so that positions do not change. */
const OPEN = '\u{F8F1}'
const CLOSE = '\u{F8F2}'

/**
 * The text with `${NAME}` in a form that YAML accepts anywhere. Its braces would end a plain value inside `{
 * … }`, but users write `{ api_key: ${KEY} }`.
 */
function shielded(text: string): string {
  return text.replace(/\$\{([^\s{}[\],"'`]*)\}/g, `$$${OPEN}$1${CLOSE}`)
}

function unshield(document: Document): void {
  visit(document, {
    Scalar(_key, scalar) {
      const { value } = scalar
      if (typeof value !== 'string' || !value.includes(OPEN)) return
      scalar.value = value.replaceAll(OPEN, '{').replaceAll(CLOSE, '}')
    },
  })
}

/** Undefined aliases and too many aliases, each with its offset. */
function aliasFaults(document: Document): [number, string][] {
  const faults: [number, string][] = []
  let count = 0
  visit(document, {
    Alias(_key, alias) {
      count += 1
      if (count <= MAX_ALIASES && alias.resolve(document) === undefined) {
        faults.push([startOf(alias) ?? 0, 'is an alias without an anchor before it'])
      }
    },
  })
  if (count > MAX_ALIASES) faults.push([0, `contains more than ${MAX_ALIASES} aliases`])
  return faults
}

/** Syntax errors with their offsets. After the first error the parser reports others that follow from it. */
function syntaxFaults(document: Document.Parsed, lines: LineCounter, text: string): [number, string][] {
  const faults = [...document.errors, ...document.warnings]
  const mistakes = faults
    .filter(({ code }) => code !== 'DUPLICATE_KEY')
    .sort((one, other) => one.pos[0] - other.pos[0])
  const [first] = mistakes
  if (first !== undefined) {
    const [offset] = first.pos
    const [rest = ''] = text.slice(offset).split('\n', 1)
    return [[offset, syntaxMessage(first.code, first.message, rest)]]
  }
  const duplicates = faults.length === 0 ? [] : duplicateKeys(document, lines)
  return [...duplicates, ...aliasFaults(document)]
}

/** Every key that is already in its map. */
function duplicateKeys(document: Document.Parsed, lines: LineCounter): [number, string][] {
  const faults: [number, string][] = []
  visit(document, {
    Map(_key, map) {
      const firsts = new Map<unknown, number>()
      for (const { key } of map.items) {
        if (!isScalar(key)) continue
        const offset = startOf(key) ?? 0
        const first = firsts.get(key.value)
        if (first === undefined) firsts.set(key.value, offset)
        else faults.push([offset, duplicateText(String(key.value), lineOf(first), lineOf(offset))])
      }
    },
  })
  return faults

  function lineOf(offset: number): number {
    return lines.linePos(offset).line
  }
}

/** Removes the pairs whose key the map has again further down. */
function withoutRepeated(node: unknown, path: Path, lines: LineCounter): RepeatedKey[] {
  if (isSeq(node)) return node.items.flatMap((each, at) => withoutRepeated(each, [...path, at], lines))
  if (!isMap(node)) return []
  const lineOf = (key: unknown): number => lines.linePos(startOf(key) ?? 0).line
  const last = new Map(node.items.map((pair) => [isScalar(pair.key) ? pair.key.value : pair, pair]))
  const repeated: RepeatedKey[] = []
  for (const pair of node.items) {
    const { key } = pair
    const counts = last.get(isScalar(key) ? key.value : pair)
    if (counts === undefined || counts === pair) continue
    const name = isScalar(key) ? String(key.value) : ''
    repeated.push({ path: [...path, name], line: lineOf(key), again: lineOf(counts.key) })
  }
  node.items = [...last.values()]
  return [
    ...repeated,
    ...node.items.flatMap(({ key, value }) => {
      return withoutRepeated(value, [...path, isScalar(key) ? String(key.value) : ''], lines)
    }),
  ]
}

function duplicateText(key: string, first: number, again: number): string {
  return `Duplicate key "${shownKey(key)}" (lines ${first} and ${again})`
}

/** The offset of a path's value (or its key); for a missing value, that of its map. */
function offsetOf(document: Document.Parsed, path: Path, atKey = false): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [depth, step] of path.entries()) {
    const whole = isAlias(node) ? node.resolve(document) : node
    const last = depth === path.length - 1
    if (isMap(whole)) {
      const pair = whole.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      if (pair === undefined) return offset
      const keyStart = startOf(pair.key)
      if (last && atKey) return keyStart ?? offset
      node = pair.value
      offset = startOf(node) ?? keyStart ?? offset
    } else if (isSeq(whole)) {
      node = whole.items[Number(step)]
      offset = startOf(node) ?? offset
    } else return offset
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null || !('range' in node)) return undefined
  const { range } = node
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : undefined
}

/** The parser's error codes, or its messages, with the message for the user; the first match counts. */
const MESSAGES: readonly (readonly [parser: RegExp, message: string])[] = [
  [
    /^MULTIPLE_DOCS/,
    'contains a second YAML document: remove the --- line, or put each document in a file of its own',
  ],
  [/^BAD_SCALAR_START/, 'a plain value cannot start with this character: quote it'],
  [/^TAB_AS_INDENT/, 'is not valid YAML: use spaces instead of tabs as indentation'],
  [/^RESOURCE_EXHAUSTION/, 'is not valid YAML: too deeply nested'],
  [/Missing closing .quote/, 'is not valid YAML: a quote is not closed'],
  [/ Flow .* end with a /, 'is not valid YAML: a { or [ is not closed before this line'],
  [/^BAD_INDENT All/, 'is not valid YAML: indent this line like the other entries of its map or list'],
  [
    /^MULTILINE_IMPLICIT_KEY|be followed by map values/,
    'is not valid YAML: a key needs a colon and a space after it, on the same line',
  ],
  [
    /^BLOCK_AS_IMPLICIT_KEY Nested/,
    'is not valid YAML: a value that contains a colon and a space must be in quotes',
  ],
  [
    /^BLOCK_IN_FLOW|Block collections are not allowed/,
    'is not valid YAML: a comma is missing between two entries',
  ],
  [
    /Unexpected flow-(?:map|seq)-end/,
    'is not valid YAML: this } or ] closes no bracket: remove it, or add the opening one',
  ],
  [
    /Sequence item without - indicator/,
    'is not valid YAML: indent this line like the other keys of its list entry',
  ],
  [
    /Unexpected scalar at node end/,
    'is not valid YAML: a value continues after its end: write KEY: VALUE, and quote a value with brackets or quotes',
  ],
  [/Missing ,/, 'is not valid YAML: a comma is missing between two entries'],
  [/^BAD_DQ_ESCAPE/, 'is not valid YAML: use single quotes, or write \\\\ for a backslash'],
  [/^TAG_RESOLVE_FAILED/, 'contains a YAML tag (!NAME): quote the value, or remove the tag'],
]

/**
 * The message for an error of the YAML parser, from its code and its message. `line`: the rest of the line
 * from the position of the error.
 *
 * Messages for YAML syntax errors: what is wrong and how to fix it, without text of the file, since any part
 * of it may be a secret.
 */
function syntaxMessage(code: string, message: string, line: string): string {
  if (code === 'BLOCK_AS_IMPLICIT_KEY' && !/:\s/.test(line)) {
    return 'is not valid YAML: the next line is indented too far: indent it like this one'
  }
  const known = MESSAGES.find(([parser]) => parser.test(`${code} ${message}`))
  if (known !== undefined) return known[1]
  // Further on, the message would quote the file.
  const [safe = ''] = message.split(/: |["\\]/)
  return `is not valid YAML: ${safe.trim()}`
}
