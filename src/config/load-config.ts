/**
 * Loads a configuration file: YAML, placeholders, schema, rules. Returns a `Config` or a list of problems,
 * and changes nothing except that it caches the last catalogue.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import type * as z from 'zod'
import { readBoundedFile, whyUnreadable } from './bounded-file.js'
import { packageFile, programFile } from './package-file.js'
import { catalogueSchema, duplicateIds, factsOfCatalogue } from './schema/catalogue-schema.js'
import { boundsOf, type TextBounds } from './caller-text.js'
import { createCatalogue, withListed } from './catalogue.js'
import type { Catalogue, Config } from './config.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import { readTlsFiles, TlsFileError, type TlsFiles } from '../http/read-tls-files.js'
import { fillPlaceholders, type Surroundings } from './fill-placeholders.js'
import { withPresetVariables } from './preset-variables.js'
import {
  findingsOf,
  MAX_PROBLEMS,
  pathText,
  valueAt,
  type ConfigProblem,
  type Finding,
} from './config-problem.js'
import { resolveConfig } from './resolve-config.js'
import { fileSchema } from './schema/config-file-schema.js'
import { checkTranslatable } from './check-routes.js'
import { located, parseYaml } from './yaml.js'

/** Variables by name, as in `process.env`. */
export type Env = Readonly<Record<string, string | undefined>>

/**
 * All texts that a generation was built from; another process builds the same generation from them. Contains
 * secrets.
 */
export interface ConfigSources {
  /** The file's absolute path; relative paths in it start at its folder. */
  readonly path: string
  readonly text: string
  /** The other files (catalogue, `.env`, `${file:…}`) by absolute path; null if not readable. */
  readonly files: Readonly<Record<string, string | null>>
  /** The catalogue; null if loading failed before it. */
  readonly catalogue: CatalogueFile | null
}

/** The catalogue's absolute path and text. */
interface CatalogueFile {
  readonly path: string
  readonly text: string
}

/** Texts to load instead of the files on disk. */
interface StoredTexts {
  readonly text: string
  readonly catalogue: string
}

/** A configuration without problems. */
export interface Loaded {
  readonly ok: true
  readonly config: Config
  readonly catalogue: Catalogue
  /** `hashOf` the sources. */
  readonly fileHash: string
  readonly sources: ConfigSources & { readonly catalogue: CatalogueFile }
}

/** A loaded configuration, or its problems. */
export type LoadResult =
  | Loaded
  | {
      readonly ok: false
      readonly errors: readonly ConfigProblem[]
      readonly sources: ConfigSources
    }

/** Larger files are refused; nginx and Envoy configurations of large fleets are smaller than 1 MiB. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_SECRET_BYTES = 64 * 1024

/** The maximum size of a file that the configuration names: a plugin, or a secret. */
function limitOf(file: string): number {
  return /\.[cm]?js$/.test(file) ? MAX_FILE_BYTES : MAX_SECRET_BYTES
}

/**
 * Reads the file, its catalogue, `.env` and secret files from disk; `stored` replaces the first two. Never
 * throws.
 */
export function loadConfig(path: string, env: Env, stored?: StoredTexts): LoadResult {
  const absolute = resolve(path)
  const text = stored === undefined ? readText(absolute) : stored.text
  return load({ path: absolute, text, catalogue: stored?.catalogue }, env, readText)
}

/**
 * The same for a text in place of that of the file at the path. `inForce` null: the text may use all that the
 * file may; otherwise its author may not read secrets, and it may only use what the configuration in force
 * uses (`caller-text.ts`). Never throws.
 */
export function loadConfigAs(path: string, text: string, env: Env, inForce: Loaded | null): LoadResult {
  const bounds = inForce === null ? undefined : boundsOf(inForce.sources)
  return load({ path: resolve(path), text, bounds }, env, readText)
}

/** The same from texts in memory. Never throws. */
export function loadConfigText(
  { path, text, files }: Omit<ConfigSources, 'catalogue'>,
  env: Env,
): LoadResult {
  return load({ path, text }, env, (file) => (Object.hasOwn(files, file) ? (files[file] ?? null) : null))
}

/** SHA-256 of the texts of a configuration and its catalogue, hex: identifies the content of a generation. */
export function hashOf({ text, catalogue }: Pick<ConfigSources, 'text' | 'catalogue'>): string {
  const hash = createHash('sha256').update(text).update('\0')
  return hash.update(catalogue?.text ?? '').digest('hex')
}

type ReadFile = (absolutePath: string, maxBytes: number) => string | null

interface LoadedTexts {
  readonly path: string
  readonly text: string | null
  /** If absent, the file that `text` names is read. */
  readonly catalogue?: string | undefined
  readonly bounds?: TextBounds | undefined
}

function load({ path, text, catalogue: stored, bounds }: LoadedTexts, env: Env, read: ReadFile): LoadResult {
  const folder = dirname(path)
  const files: Record<string, string | null> = {}
  const sources = { path, text: text ?? '', files, catalogue: null }
  const readRecorded = (file: string, maxBytes: number): string | null => {
    const absolute = resolve(folder, file)
    const content = read(absolute, maxBytes)
    files[absolute] = content
    return content
  }
  if (text === null) return { ok: false, errors: [unreadable(path)], sources }
  const envPath = join(folder, '.env')
  const variables = readRecorded(envPath, MAX_FILE_BYTES)
  if (variables === null && isFile(envPath)) {
    return { ok: false, errors: [unreadable(envPath)], sources }
  }
  const around = {
    ...surroundings(folder, variables, env),
    readFile: (file: string) => readRecorded(file, limitOf(file)),
  }
  const own = readConfig(path, text, around, bounds)
  if (own.config === null) return { ok: false, errors: own.errors, sources }
  const named = resolve(folder, own.modelsPath ?? 'models.yaml')
  if (bounds?.isCatalogue(named) === false && own.modelsPath !== undefined) {
    const finding = { path: ['models'], message: `the file ${OUT_OF_BOUNDS}` }
    return { ok: false, errors: [own.locate(finding)], sources }
  }
  const namedText = stored ?? readRecorded(named, MAX_FILE_BYTES)
  const isShipped = namedText === null && own.modelsPath === undefined && !isFile(named)
  const modelsPath = isShipped ? packageFile('config/models.yaml') : named
  const modelsText = isShipped ? readRecorded(modelsPath, MAX_FILE_BYTES) : namedText
  if (modelsText === null) {
    return { ok: false, errors: [own.locate(catalogueMissing(modelsPath))], sources }
  }
  files[modelsPath] = modelsText
  const allSources = { ...sources, catalogue: { path: modelsPath, text: modelsText } }
  const models = readCatalogueOnce(modelsPath, modelsText)
  if (models.catalogue === null) return { ok: false, errors: models.errors, sources: allSources }
  const { config } = own
  const catalogue = withListed(models.catalogue, Object.values(config.upstreams))
  const unfit = checkTranslatable(config, catalogue)
  if (unfit.length > 0) {
    return { ok: false, errors: unfit.slice(0, MAX_PROBLEMS).map(own.locate), sources: allSources }
  }
  return { ok: true, config, catalogue, fileHash: hashOf(allSources), sources: allSources }
}

/** The variables and files of the placeholders of a file, which may be broken. */
export function surroundingsOf(path: string, env: Env): Surroundings {
  const folder = dirname(resolve(path))
  return {
    ...surroundings(folder, readText(join(folder, '.env')), env),
    readFile: (file) => readText(resolve(folder, file), MAX_SECRET_BYTES),
  }
}

function surroundings(folder: string, variables: string | null, env: Env): Omit<Surroundings, 'readFile'> {
  return {
    env: { ...parseEnv(variables ?? ''), ...setIn(env) },
    whyUnreadable: (file) => whyUnreadable(resolve(folder, file), limitOf(file)),
  }
}

/** Whether a file has this path; false for a folder. */
export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** Variables with a value: an empty variable does not override `.env`. */
function setIn(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => (value ?? '').trim() !== ''))
}

function catalogueMissing(path: string): Finding {
  return {
    path: ['models'],
    message: `the catalogue "${path}" ${whyUnreadable(path, MAX_FILE_BYTES)}`,
  }
}

function unreadable(file: string): ConfigProblem {
  const message = `the file ${whyUnreadable(file, MAX_FILE_BYTES)}`
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

/** Why the text of a caller cannot use a file, as the rest of a sentence: the same if it does not exist. */
const OUT_OF_BOUNDS = 'is not read: this text may only use files of the configuration in force'

type OwnResult =
  | { config: Config; modelsPath: string | undefined; locate: (finding: Finding) => ConfigProblem }
  | { config: null; errors: ConfigProblem[] }

function readConfig(
  file: string,
  text: string,
  around: Surroundings,
  bounds: TextBounds | undefined,
): OwnResult {
  const yaml = parseYaml(file, text)
  if (yaml.errors.length > 0) return { config: null, errors: yaml.errors }
  const filling = bounds === undefined ? around : { ...around, mayFill: bounds.mayFill }
  const filled = fillPlaceholders(withPresetVariables(yaml.value, around.env), filling)
  const { values, findings } = checked(fileSchema, filled.value, filled.filledPaths)
  // A value whose placeholder failed also breaks other rules; one problem is enough.
  const unfilled = new Set(filled.findings.map((finding) => pathText(finding.path)))
  const others = findings.filter((finding) => !unfilled.has(pathText(finding.path)))
  const all = [...filled.findings, ...others]
  if (values === null) return { config: null, errors: located(all, yaml) }
  const folder = dirname(file)
  const isReadable = (path: string): boolean => bounds?.mayRead(resolve(folder, path)) !== false
  const resolved = resolveConfig(values, {
    folder,
    env: around.env,
    keySources: filled.keySources,
    readFile: (path) => (isReadable(path) ? around.readFile(path) : null),
    whyUnreadable: (path) => (isReadable(path) ? around.whyUnreadable(path) : OUT_OF_BOUNDS),
    // Those of the listener are read again by the process that serves.
    checkTls: bounds === undefined ? checkTls : () => null,
  })
  all.push(...resolved.findings)
  if (resolved.config === null || all.length > 0) return { config: null, errors: located(all, yaml) }
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

/** A catalogue, or the problems of its file. */
interface CatalogueResult {
  readonly catalogue: Catalogue | null
  readonly errors: readonly ConfigProblem[]
}

let lastCatalogue: (CatalogueResult & { file: string; text: string }) | null = null

/**
 * Most reloads do not change the catalogue, and checking it takes half of a load. Only errors name the file.
 */
function readCatalogueOnce(file: string, text: string): CatalogueResult {
  const isSame =
    lastCatalogue?.text === text && (lastCatalogue.file === file || lastCatalogue.catalogue !== null)
  if (lastCatalogue !== null && isSame) return lastCatalogue
  const result = readCatalogue(file, text)
  lastCatalogue = { ...result, file, text }
  return result
}

/** The facts of the shipped catalogue, as the build has read it: its text takes 0.2 s of each start. */
const SHIPPED_FACTS = programFile('config/shipped-catalogue.json')

/**
 * The facts of the text if it is the shipped catalogue, which has no errors; otherwise null, also if the file
 * of the build is missing or damaged.
 */
function shippedFacts(text: string): readonly ModelFacts[] | null {
  const built = writtenByBuild()
  const isRead = typeof built === 'object' && built !== null && 'hash' in built && 'facts' in built
  if (!isRead || built.hash !== createHash('sha256').update(text).digest('hex')) return null
  // The build has written what `factsOfCatalogue` returned.
  return built.facts as readonly ModelFacts[] | null
}

function writtenByBuild(): unknown {
  try {
    return JSON.parse(readText(fileURLToPath(SHIPPED_FACTS)) ?? '')
  } catch {
    return null
  }
}

/** Reads the text of a catalogue; `file` is the name in problems. Never throws. */
export function readCatalogue(file: string, text: string): CatalogueResult {
  const shipped = shippedFacts(text)
  if (shipped !== null) return { catalogue: createCatalogue(shipped), errors: [] }
  const yaml = parseYaml(file, text)
  if (yaml.errors.length > 0) return { catalogue: null, errors: yaml.errors }
  const { values, findings } = checked(catalogueSchema, yaml.value, new Set())
  if (values === null) return { catalogue: null, errors: located(findings, yaml) }
  const duplicates = duplicateIds(values).map(({ path, id }) => {
    return { path, message: `Duplicate id "${id}"` }
  })
  if (duplicates.length > 0) return { catalogue: null, errors: located(duplicates, yaml) }
  return { catalogue: createCatalogue(factsOfCatalogue(values)), errors: [] }
}

/** Validates a value. A text from a placeholder may be used for a number. */
function checked<T>(
  schema: z.ZodType<T>,
  value: unknown,
  filledPaths: ReadonlySet<string>,
): { values: T | null; findings: Finding[] } {
  const first = schema.safeParse(value)
  if (first.success) return { values: first.data, findings: [] }
  const retyped =
    filledPaths.size > 0 && first.error.issues.filter((issue) => retype(issue, value, filledPaths)).length > 0
  const result = retyped ? schema.safeParse(value) : first
  if (result.success) return { values: result.data, findings: [] }
  return { values: null, findings: findingsOf(result.error.issues, schema, value) }
}

/** Converts `'8080'` to 8080 and `'true'` to true if the text came from a placeholder. */
function retype(issue: z.core.$ZodIssue, value: unknown, filledPaths: ReadonlySet<string>): boolean {
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

/**
 * The text without a byte order mark; null if the file is not readable, too large, not a regular file or not
 * UTF-8.
 */
export function readText(path: string, maxBytes = MAX_FILE_BYTES): string | null {
  try {
    const bytes = readBoundedFile(path, maxBytes)
    return isUtf8(bytes) ? bytes.toString('utf8').replace(/^\uFEFF/, '') : null
  } catch {
    return null
  }
}
