/**
 * Reads a configuration file: YAML, placeholders, schema, rules; a `Config` or a list of problems.
 * Starts nothing, writes nothing, keeps only the last catalogue.
 */
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { z } from 'zod'
import { readBoundedFile, whyUnreadable } from '../files/bounded-file.js'
import { packageFile } from '../files/package-file.js'
import { catalogueSchema, duplicateIds, factsOfCatalogue } from './schema/catalogue-schema.js'
import { createCatalogue, withListed } from './catalogue.js'
import type { Catalogue, Config } from './config.js'
import { readTlsFiles, TlsFileError, type TlsFiles } from '../http/tls-files.js'
import { fillPlaceholders, type Surroundings } from './placeholder.js'
import {
  findingsOf,
  MAX_PROBLEMS,
  pathText,
  valueAt,
  type ConfigProblem,
  type Finding,
} from './problem.js'
import { resolveConfig } from './resolve.js'
import { fileSchema } from './schema/schema.js'
import { checkTranslatable } from './routes/translatable.js'
import { located, parseYaml } from './yaml.js'

/** Variables by name, as in `process.env`. */
export type Env = Readonly<Record<string, string | undefined>>

/** All that was read to build a generation; another process given it builds the same. Holds secrets. */
export interface ConfigSources {
  /** The file's path, absolute; other paths start at its folder. */
  readonly path: string
  readonly text: string
  /** The text of the other files (catalogue, `.env`, `${file:…}`) by absolute path; null: not readable. */
  readonly files: Readonly<Record<string, string | null>>
  /** The catalogue among them; null if loading did not get so far. */
  readonly catalogue: CatalogueFile | null
}

/** The catalogue's absolute path and text. */
export interface CatalogueFile {
  readonly path: string
  readonly text: string
}

/** Texts to load in place of those on disk. */
export interface KeptTexts {
  readonly text: string
  readonly catalogue: string
}

/** A configuration that loaded. */
export interface Loaded {
  readonly ok: true
  readonly config: Config
  readonly catalogue: Catalogue
  /** As `hashOf` the sources. */
  readonly fileHash: string
  readonly sources: ConfigSources & { readonly catalogue: CatalogueFile }
}

/** A loaded configuration, or all that is wrong with it. */
export type LoadResult =
  | Loaded
  | {
      readonly ok: false
      readonly errors: readonly ConfigProblem[]
      readonly sources: ConfigSources
    }

/** A larger file is refused; nginx and Envoy configurations of large fleets stay below 1 MiB. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_SECRET_BYTES = 64 * 1024

/**
 * Reads the file, its catalogue, `.env` and secret files from disk; `kept` stands in for the first two. Never throws.
 */
export function loadConfig(path: string, env: Env, kept?: KeptTexts): LoadResult {
  const absolute = resolve(path)
  const text = kept === undefined ? readText(absolute) : kept.text
  return load({ path: absolute, text, catalogue: kept?.catalogue }, env, readText)
}

/** The same from texts that have been read already. Never throws. */
export function loadConfigText(
  { path, text, files }: Omit<ConfigSources, 'catalogue'>,
  env: Env,
): LoadResult {
  return load({ path, text }, env, (file) =>
    Object.hasOwn(files, file) ? (files[file] ?? null) : null,
  )
}

/** SHA-256 of a configuration's text and its catalogue's, hex: what tells one generation from another. */
export function hashOf({ text, catalogue }: Pick<ConfigSources, 'text' | 'catalogue'>): string {
  const hash = createHash('sha256').update(text).update('\0')
  return hash.update(catalogue?.text ?? '').digest('hex')
}

type ReadFile = (absolutePath: string, maxBytes: number) => string | null

interface LoadedTexts {
  readonly path: string
  readonly text: string | null
  /** Left out: read from the file that the text names. */
  readonly catalogue?: string | undefined
}

function load({ path, text, catalogue: kept }: LoadedTexts, env: Env, read: ReadFile): LoadResult {
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
    env: { ...parseEnv(variables ?? ''), ...setIn(env) },
    readFile: (file: string) => readRecorded(file, MAX_SECRET_BYTES),
    whyUnreadable: (file: string) => whyUnreadable(resolve(folder, file), '64 KiB'),
  }
  const own = readConfig(path, text, around)
  if (own.config === null) return { ok: false, errors: own.errors, sources }
  const named = resolve(folder, own.modelsPath ?? 'models.yaml')
  const namedText = kept ?? readRecorded(named, MAX_FILE_BYTES)
  const isShipped = namedText === null && own.modelsPath === undefined && !isFile(named)
  const modelsPath = isShipped ? packageFile('config/models.yaml') : named
  const modelsText = isShipped ? readRecorded(modelsPath, MAX_FILE_BYTES) : namedText
  if (modelsText === null) {
    return { ok: false, errors: [own.locate(catalogueMissing(modelsPath))], sources }
  }
  files[modelsPath] = modelsText
  const whole = { ...sources, catalogue: { path: modelsPath, text: modelsText } }
  const models = readCatalogueOnce(modelsPath, modelsText)
  if (models.catalogue === null) return { ok: false, errors: models.errors, sources: whole }
  const { config } = own
  const catalogue = withListed(models.catalogue, Object.values(config.upstreams))
  const unfit = checkTranslatable(config, catalogue)
  if (unfit.length > 0) {
    return { ok: false, errors: unfit.slice(0, MAX_PROBLEMS).map(own.locate), sources: whole }
  }
  return { ok: true, config, catalogue, fileHash: hashOf(whole), sources: whole }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** The variables that have a value: an empty one does not hide that of `.env`. */
function setIn(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => (value ?? '').trim() !== ''))
}

function catalogueMissing(path: string): Finding {
  return { path: ['models'], message: `the catalogue '${path}' ${whyUnreadable(path, '4 MiB')}` }
}

function unreadable(file: string): ConfigProblem {
  const message = `the file ${whyUnreadable(file, '4 MiB')}`
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

type OwnResult =
  | { config: Config; modelsPath: string | undefined; locate: (finding: Finding) => ConfigProblem }
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
    whyUnreadable: (path) => around.whyUnreadable(path),
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

/** A catalogue, or all that is wrong with its file. */
export interface CatalogueResult {
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

/** Reads the text of a catalogue; `file` is for the places of errors. Never throws. */
export function readCatalogue(file: string, text: string): CatalogueResult {
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
