/**
 * Reads a configuration file: YAML, placeholders, schema, rules; a `Config` or a list of problems.
 * The only file that knows YAML. Starts nothing, writes nothing, keeps only the last catalogue.
 */
import { createHash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
} from 'yaml'
import type { z } from 'zod'
import { readBoundedFile } from '../bounded-file.js'
import { catalogueSchema, duplicateIds, factsOfCatalogue } from './catalogue-schema.js'
import { createCatalogue, withListed } from './catalogue.js'
import type { Catalogue, Config } from './config.js'
import { readTlsFiles, TlsFileError, type TlsFiles } from '../http/tls-files.js'
import { fillPlaceholders, type Surroundings } from './placeholder.js'
import {
  findingsOf,
  pathText,
  valueAt,
  type ConfigProblem,
  type Finding,
  type Path,
} from './problem.js'
import { resolveConfig } from './resolve.js'
import { fileSchema } from './schema.js'
import { checkTranslatable } from './translatable.js'

/** Variables by name, as in `process.env`. */
export type Env = Readonly<Record<string, string | undefined>>

/** All that was read to build a generation; another process given it builds the same. Holds secrets. */
export interface ConfigSources {
  /** The file's path, absolute; other paths start at its folder. */
  readonly path: string
  readonly text: string
  /** The text of the other files (catalogue, `${file:…}`) by absolute path; null: not readable. */
  readonly files: Readonly<Record<string, string | null>>
}

/** A loaded configuration, or all that is wrong with it. */
export type LoadResult =
  | {
      readonly ok: true
      readonly config: Config
      readonly catalogue: Catalogue
      /** SHA-256 of the file's text and of its catalogue's, hex. */
      readonly fileHash: string
      readonly sources: ConfigSources
    }
  | {
      readonly ok: false
      readonly errors: readonly ConfigProblem[]
      readonly sources: ConfigSources
    }

/** A larger file is refused; nginx and Envoy configurations of large fleets stay below 1 MiB. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_SECRET_BYTES = 64 * 1024
const MAX_ALIASES = 100
/** More problems than anyone reads at once. */
const MAX_PROBLEMS = 100

/** Reads the file, its catalogue and its secret files from disk. Never throws. */
export function loadConfig(path: string, env: Env): LoadResult {
  const absolute = resolve(path)
  return load(absolute, readText(absolute), env, readText)
}

/** The same from texts that have been read already. Never throws. */
export function loadConfigText(sources: ConfigSources, env: Env): LoadResult {
  return load(sources.path, sources.text, env, (file) =>
    Object.hasOwn(sources.files, file) ? (sources.files[file] ?? null) : null,
  )
}

type ReadFile = (absolutePath: string, maxBytes: number) => string | null

function load(path: string, text: string | null, env: Env, read: ReadFile): LoadResult {
  const folder = dirname(path)
  const files: Record<string, string | null> = {}
  const sources = { path, text: text ?? '', files }
  const readRecorded = (file: string, maxBytes: number): string | null => {
    const absolute = resolve(folder, file)
    const content = read(absolute, maxBytes)
    files[absolute] = content
    return content
  }
  if (text === null) return { ok: false, errors: [unreadable(path)], sources }
  const around = { env, readFile: (file: string) => readRecorded(file, MAX_SECRET_BYTES) }
  const own = readConfig(path, text, around)
  if (own.config === null) return { ok: false, errors: own.errors, sources }
  const modelsPath = resolve(folder, own.modelsPath)
  const modelsText = readRecorded(modelsPath, MAX_FILE_BYTES)
  if (modelsText === null) {
    return { ok: false, errors: [own.locate(catalogueMissing(modelsPath))], sources }
  }
  const models = readCatalogueOnce(modelsPath, modelsText)
  if (models.catalogue === null) return { ok: false, errors: models.errors, sources }
  const fileHash = createHash('sha256').update(text).update('\0').update(modelsText).digest('hex')
  const { config } = own
  const catalogue = withListed(models.catalogue, Object.values(config.upstreams))
  const unfit = checkTranslatable(config, catalogue)
  if (unfit.length > 0) {
    return { ok: false, errors: unfit.slice(0, MAX_PROBLEMS).map(own.locate), sources }
  }
  return { ok: true, config, catalogue, fileHash, sources }
}

function catalogueMissing(path: string): Finding {
  const message = `the catalogue '${path}' cannot be read, is no regular file, or is larger than 4 MiB`
  return { path: ['models'], message }
}

function unreadable(file: string): ConfigProblem {
  const message = 'the file cannot be read, is no regular file, or is larger than 4 MiB'
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

type OwnResult =
  | { config: Config; modelsPath: string; locate: (finding: Finding) => ConfigProblem }
  | { config: null; errors: ConfigProblem[] }

function readConfig(file: string, text: string, around: Surroundings): OwnResult {
  const yaml = parseYaml(file, text)
  if (yaml.errors.length > 0) return { config: null, errors: yaml.errors }
  const filled = fillPlaceholders(yaml.value, around)
  const { values, findings } = checked(fileSchema, filled.value, filled.filledPaths)
  // A value that could not be filled in breaks other rules too; one fault is enough.
  const unfilled = new Set(filled.findings.map((finding) => pathText(finding.path)))
  const others = findings.filter((finding) => !unfilled.has(pathText(finding.path)))
  const all = [...filled.findings, ...others]
  if (values === null) return { config: null, errors: located(all, yaml) }
  const folder = dirname(file)
  const resolved = resolveConfig(values, {
    folder,
    keySources: filled.keySources,
    readFile: (path) => around.readFile(path),
    checkTls,
  })
  all.push(...resolved.findings)
  if (resolved.config === null || all.length > 0)
    return { config: null, errors: located(all, yaml) }
  return { config: resolved.config, modelsPath: values.models, locate: yaml.locate }
}

function checkTls(files: TlsFiles): { setting: string; message: string } | null {
  try {
    readTlsFiles(files)
    return null
  } catch (error) {
    if (error instanceof TlsFileError) return error
    throw error
  }
}

interface CatalogueResult {
  readonly catalogue: Catalogue | null
  readonly errors: readonly ConfigProblem[]
}

let lastCatalogue: (CatalogueResult & { file: string; text: string }) | null = null

/** A reload seldom changes the catalogue, and reading it is nine tenths of a load. */
function readCatalogueOnce(file: string, text: string): CatalogueResult {
  if (lastCatalogue?.file === file && lastCatalogue.text === text) return lastCatalogue
  const result = readCatalogue(file, text)
  lastCatalogue = { ...result, file, text }
  return result
}

function readCatalogue(file: string, text: string): CatalogueResult {
  const yaml = parseYaml(file, text)
  if (yaml.errors.length > 0) return { catalogue: null, errors: yaml.errors }
  const { values, findings } = checked(catalogueSchema, yaml.value, new Set())
  if (values === null) return { catalogue: null, errors: located(findings, yaml) }
  const twice = duplicateIds(values).map(({ path, id }) => {
    return { path, message: `the id '${id}' stands twice` }
  })
  if (twice.length > 0) return { catalogue: null, errors: located(twice, yaml) }
  return { catalogue: createCatalogue(factsOfCatalogue(values)), errors: [] }
}

/** Checks against a schema. A text that came from a placeholder may stand where a number is due. */
function checked<T>(
  schema: z.ZodType<T>,
  value: unknown,
  filledPaths: ReadonlySet<string>,
): { values: T | null; findings: Finding[] } {
  const first = schema.safeParse(value)
  if (first.success) return { values: first.data, findings: [] }
  const retyped =
    filledPaths.size > 0 &&
    first.error.issues.filter((issue) => retype(issue, value, filledPaths)).length > 0
  const result = retyped ? schema.safeParse(value) : first
  if (result.success) return { values: result.data, findings: [] }
  return { values: null, findings: findingsOf(result.error.issues, schema, value) }
}

/** Turns `'8080'` into 8080 and `'true'` into true where it came from a placeholder. */
function retype(
  issue: z.core.$ZodIssue,
  value: unknown,
  filledPaths: ReadonlySet<string>,
): boolean {
  if (!filledPaths.has(JSON.stringify(issue.path))) return false
  const text = valueAt(value, issue.path)
  const parent = valueAt(value, issue.path.slice(0, -1))
  const key = issue.path.at(-1)
  if (typeof text !== 'string' || typeof parent !== 'object' || parent === null) return false
  if (key === undefined || text === '') return false
  const typed = text === 'true' ? true : text === 'false' ? false : Number(text)
  if (Number.isNaN(typed)) return false
  return Reflect.set(parent, key, typed)
}

/** A parsed file that knows where its values stand. */
interface YamlFile {
  readonly value: unknown
  readonly errors: ConfigProblem[]
  readonly locate: (finding: Finding) => ConfigProblem
}

function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter()
  const at = (offset: number, path: Path, message: string, suggestion: string | null = null) => {
    const { line, col } = lines.linePos(offset)
    return {
      file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: pathText(path),
      message,
      suggestion,
    }
  }
  let document: Document.Parsed | null = null
  const locate = (finding: Finding): ConfigProblem => {
    const { path, message, suggestion, atKey } = finding
    return at(document === null ? 0 : offsetOf(document, path, atKey), path, message, suggestion)
  }
  try {
    document = parseDocument(shielded(text), {
      schema: 'core',
      version: '1.2',
      uniqueKeys: true,
      prettyErrors: false,
      lineCounter: lines,
    })
    const faults = [...document.errors, ...document.warnings]
    const errors = faults.map((fault) =>
      at(fault.pos[0], [], syntaxText(fault.code, fault.message)),
    )
    errors.push(...aliasFaults(document).map(([offset, message]) => at(offset, [], message)))
    if (errors.length === 0 && document.contents === null)
      errors.push(at(0, [], 'the file is empty'))
    if (errors.length > 0) return { value: null, errors: errors.slice(0, MAX_PROBLEMS), locate }
    unshield(document)
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), errors, locate }
  } catch {
    // The parser gives up by throwing on nesting thousands deep and on aliases that multiply.
    const message = 'cannot be read as YAML: nested too deeply, or aliases multiply'
    return { value: null, errors: [at(0, [], message)], locate }
  }
}

function located(findings: readonly Finding[], yaml: YamlFile): ConfigProblem[] {
  return findings
    .slice(0, MAX_PROBLEMS)
    .map((finding) => yaml.locate(finding))
    .sort((a, b) => a.line - b.line || a.column - b.column)
}

/** Stand-ins for braces, from the private use area, one for one so that places stay the same. */
const OPEN = '\u{F8F1}'
const CLOSE = '\u{F8F2}'

/**
 * The text with `${NAME}` in a form that YAML takes anywhere. Its braces would end a plain value
 * inside `{ … }`, where people write `{ api_key: ${KEY} }` all the same.
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

/** Aliases of nothing, and too many of them; each with its offset. */
function aliasFaults(document: Document): [number, string][] {
  const faults: [number, string][] = []
  let count = 0
  visit(document, {
    Alias(_key, alias) {
      count += 1
      if (count <= MAX_ALIASES && alias.resolve(document) === undefined) {
        faults.push([startOf(alias) ?? 0, 'is an alias of an anchor that does not stand before it'])
      }
    },
  })
  if (count > MAX_ALIASES) faults.push([0, `holds more than ${MAX_ALIASES} aliases`])
  return faults
}

/** The parser's message up to where it would quote the file, since any part may be a secret. */
function syntaxText(code: string, message: string): string {
  if (code === 'DUPLICATE_KEY') return 'the same key stands twice in this map'
  if (code === 'MULTIPLE_DOCS') return 'holds more than one YAML document'
  if (code === 'BAD_SCALAR_START') return 'a plain value cannot begin with this character; quote it'
  const [safe = ''] = message.split(/: |["\\]/)
  return `cannot be read as YAML: ${safe.trim()}`
}

/** Where a path's value (or its key) begins; for a missing value, where its map begins. */
function offsetOf(document: Document.Parsed, path: Path, atKey = false): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [depth, step] of path.entries()) {
    const whole = isAlias(node) ? node.resolve(document) : node
    const last = depth === path.length - 1
    if (isMap(whole)) {
      const pair = whole.items.find(
        ({ key }) => isScalar(key) && String(key.value) === String(step),
      )
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

/** The text without a byte order mark; null when it cannot be read, is too large or is no regular file. */
export function readText(path: string, maxBytes = MAX_FILE_BYTES): string | null {
  try {
    return readBoundedFile(path, maxBytes)
      .toString('utf8')
      .replace(/^\uFEFF/, '')
  } catch {
    return null
  }
}
