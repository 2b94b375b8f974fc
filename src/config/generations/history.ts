/**
 * Stores past generations on disk, for rollbacks and for a restart with a broken file. Files contain the
 * configuration with `${…}` in place of secrets.
 *
 * Generation 7 consists of `generation-7.yaml`, `generation-7.shown.json` (all values, secrets masked) and
 * `generation-7.json`, which is written last: without it the other files are ignored. Catalogues are shared.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join, basename, dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import { createFolder, dataFolders } from '../../base/private-files.js'
import { isObject, type JsonObject } from '../../base/json.js'
import type { Config } from '../config.js'
import { fillPlaceholders } from '../fill-placeholders.js'
import { surroundingsOf, type Loaded, type ConfigSources, type Env, type LoadResult } from '../load-config.js'
import { shownConfig } from '../masked-config.js'

const MAX_DELAY_MS = 250

/** What created a generation. */
const ORIGINS = ['start', 'change', 'rollback'] as const

/** The author of a change, and the reason. */
export interface Author {
  /** An OS user or the e-mail address of a dashboard account. */
  readonly author: string
  readonly reason: string
}

/** The metadata of a generation. */
export interface GenerationRecord extends Author {
  readonly generation: number
  /** SHA-256 of the configuration and its catalogue, hex. */
  readonly hash: string
  /** The hash of the files at that time; it differs after a rollback. */
  readonly filesHash: string
  readonly atMs: number
  readonly origin: (typeof ORIGINS)[number]
  /** The generation whose content a rollback restored; null for others. */
  readonly contentOf: number | null
}

/** The texts that a generation was built from, and its values. */
export interface GenerationContent {
  /** The configuration file's text. */
  readonly text: string
  readonly catalogue: string
  /** All values with secrets masked, in the form of `/config`. */
  readonly shown: JsonObject
}

/** The content of the generation that was built from these texts. */
export function contentOf({ text, catalogue }: Loaded['sources'], config: Config): GenerationContent {
  return { text, catalogue: catalogue.text, shown: shownConfig(config) }
}

/** Older generations are deleted. */
export const MAX_GENERATIONS = 20

/** A generation to write, and the records of those to delete. */
interface HistoryChange {
  readonly record: GenerationRecord
  readonly content: GenerationContent
  readonly surplus: readonly GenerationRecord[]
}

/** Generations by number. Writes run in sequence and never reject; `warn` reports failures. */
export class History {
  /** Null if generations are in memory only. */
  readonly folder: string | null
  private readonly warn: (reason: string) => void
  private records: readonly GenerationRecord[]
  /** Contents that are not on disk yet, or could not be written. */
  private readonly unwritten = new Map<number, GenerationContent>()
  private writing: Promise<void> = Promise.resolve()
  /** The process uses settings of this generation until its restart, so it is not deleted. */
  private protectedNumber = 0

  /**
   * Reads the records of the folder, and creates it with mode 0700 for the first generation. With null the
   * generations are in memory only.
   */
  constructor(folder: string | null, warn: (reason: string) => void) {
    this.folder = folder
    this.warn = warn
    this.records = folder === null ? [] : recordsIn(folder)
  }

  /** Newest first. */
  list(): readonly GenerationRecord[] {
    return this.records
  }

  find(generation: number): GenerationRecord | null {
    return this.records.find((record) => record.generation === generation) ?? null
  }

  /** The content of a generation; null if it cannot be read. */
  async content(generation: number): Promise<GenerationContent | null> {
    const { folder } = this
    const unwritten = this.unwritten.get(generation) ?? null
    return unwritten ?? (folder === null ? null : contentIn(folder, generation))
  }

  /** Adds a generation, and deletes all but the newest 20 and the protected one. */
  add(record: GenerationRecord, content: GenerationContent): void {
    const { generation } = record
    this.unwritten.set(generation, content)
    const others = this.records.filter((known) => known.generation !== generation)
    const all = [record, ...others].sort((a, b) => b.generation - a.generation)
    const isKept = ({ generation: each }: GenerationRecord, at: number): boolean =>
      at < MAX_GENERATIONS || each === this.protectedNumber
    this.records = all.filter(isKept)
    const surplus = all.filter((each, at) => !isKept(each, at))
    const { folder } = this
    if (folder === null) for (const each of surplus) this.unwritten.delete(each.generation)
    else this.writing = this.writing.then(() => this.write(folder, { record, content, surplus }))
  }

  /** Keeps this generation even if 20 newer ones exist. */
  protect(generation: number): void {
    this.protectedNumber = generation
  }

  /** Resolves when all writes have completed or failed. */
  async flushed(): Promise<void> {
    await this.writing
  }

  /**
   * The same, but waits for a quarter of a second at most, so that a slow disk does not delay a generation.
   */
  async flushedSoon(): Promise<void> {
    await Promise.race([this.writing, delay(MAX_DELAY_MS, undefined, { ref: false })])
  }

  private async write(folder: string, { record, content, surplus }: HistoryChange): Promise<void> {
    const { generation } = record
    try {
      await writeGeneration(folder, record, content)
      this.unwritten.delete(generation)
      await removeGenerations(
        folder,
        surplus.map((each) => each.generation),
      )
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.warn(`generation ${String(generation)} is kept in memory only: ${why}`)
    }
    for (const each of surplus) this.unwritten.delete(each.generation)
  }
}

async function writeGeneration(
  folder: string,
  record: GenerationRecord,
  content: GenerationContent,
): Promise<void> {
  createFolder(folder)
  const name = join(folder, `generation-${String(record.generation)}`)
  const catalogue = catalogueName(content.catalogue)
  const cataloguePath = join(folder, catalogue)
  if (!existsSync(cataloguePath)) await put(cataloguePath, content.catalogue)
  await put(`${name}.yaml`, content.text)
  await put(`${name}.shown.json`, JSON.stringify(content.shown))
  await put(`${name}.json`, JSON.stringify({ ...record, catalogue }))
}

/** Writes atomically: after a kill the previous file remains, or none. */
async function put(path: string, text: string): Promise<void> {
  const draft = `${path}.draft`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
}

/** Also deletes catalogues that no other generation uses. */
async function removeGenerations(folder: string, generations: readonly number[]): Promise<void> {
  if (generations.length === 0) return
  for (const generation of generations) {
    for (const ending of ['json', 'yaml', 'shown.json']) {
      await rm(join(folder, `generation-${String(generation)}.${ending}`), { force: true })
    }
  }
  const used = new Set(metaIn(folder).map(({ catalogue }) => catalogue))
  for (const name of await readdir(folder)) {
    if (CATALOGUE.test(name) && !used.has(name)) await rm(join(folder, name), { force: true })
  }
}

const META = /^generation-(\d{1,15})\.json$/
const CATALOGUE = /^models-[0-9a-f]{16}\.yaml$/

const metaSchema = z.object({
  generation: z.int(),
  hash: z.string(),
  filesHash: z.string(),
  atMs: z.number(),
  author: z.string(),
  reason: z.string(),
  origin: z.enum(ORIGINS),
  contentOf: z.int().nullable(),
  catalogue: z.string().regex(CATALOGUE),
})

function catalogueName(text: string): string {
  return `models-${createHash('sha256').update(text).digest('hex').slice(0, 16)}.yaml`
}

/** The records in a folder, newest first; empty if the folder does not exist. */
export function recordsIn(folder: string): GenerationRecord[] {
  return metaIn(folder)
    .map(({ record }) => record)
    .sort((a, b) => b.generation - a.generation)
}

/** The content of a generation; null if it does not exist or cannot be read. */
export async function contentIn(folder: string, generation: number): Promise<GenerationContent | null> {
  const meta = metaIn(folder).find(({ record }) => record.generation === generation)
  if (meta === undefined) return null
  try {
    const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')
    const name = `generation-${String(generation)}`
    const [text, shown, catalogue] = await Promise.all([
      read(`${name}.yaml`),
      read(`${name}.shown.json`),
      read(meta.catalogue),
    ])
    const values: unknown = JSON.parse(shown)
    return isObject(values) ? { text, catalogue, shown: values } : null
  } catch {
    return null
  }
}

interface Meta {
  readonly record: GenerationRecord
  readonly catalogue: string
}

function metaIn(folder: string): Meta[] {
  try {
    return readdirSync(folder)
      .filter((name) => META.test(name))
      .flatMap((name) => metaOf(join(folder, name)))
  } catch {
    // The folder is created with the first generation.
    return []
  }
}

/** A damaged file, or one of another version, is ignored. */
function metaOf(path: string): Meta[] {
  try {
    const { catalogue, ...record } = metaSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    return [{ record, catalogue }]
  } catch {
    return []
  }
}

/**
 * The data folder of this machine: that of the embedded store, else the spool. Below it is the history of a
 * configuration file. A broken file has a history and a running gateway too, so its text is searched for the
 * settings that lead to them.
 */
export function dataFolderOf({ store, ledger }: Pick<Config, 'store' | 'ledger'>): string {
  return dataFolders(store, ledger.spool)[0] ?? ledger.spool
}

/** The history folder of the configuration file at `path` in a data folder. */
export function historyFolder(dataFolder: string, path: string): string {
  const absolute = resolve(path)
  const name = basename(absolute).replace(/\.ya?ml$/, '')
  const hash = createHash('sha256').update(absolute).digest('hex').slice(0, 8)
  return join(dataFolder, 'generations', `${name}-${hash}`)
}

/** The existing history folder of a configuration file, valid or not; null if there is none. */
export function historyOf(loaded: LoadResult, env: Env): string | null {
  const { sources } = loaded
  const own = loaded.ok ? historyFolder(dataFolderOf(loaded.config), sources.path) : null
  return own !== null && existsSync(own) ? own : findHistory(sources, env)
}

/** The path of a file, and its readable part. */
type ReadableFile = Pick<ConfigSources, 'path' | 'text'>

/** Data folders of the shipped configurations and the defaults, relative to the file's folder. */
const USUAL_FOLDERS = ['data', '../data', 'spool', '.']

/**
 * The existing history folder of a configuration file that cannot be loaded; null if there is none. Searches
 * the folders that the file's `store` and `spool` name, then the default ones.
 */
export function findHistory(file: ReadableFile, env: Env): string | null {
  const { path } = file
  const folder = dirname(resolve(path))
  const store = /^sqlite:(.+)$/.exec(settingIn(file, 'store', env) ?? '')?.[1]
  const named = [store === undefined ? undefined : dirname(store), settingIn(file, 'spool', env)]
  // systemd sets it for units with StateDirectory=.
  const state = env['STATE_DIRECTORY']?.split(':')[0]
  const candidates = [...named, ...USUAL_FOLDERS, state]
    .filter((candidate) => candidate !== undefined && candidate !== '')
    .map((candidate) => historyFolder(resolve(folder, candidate ?? ''), path))
  return candidates.find((candidate) => existsSync(candidate)) ?? null
}

/** The address of the ops port that a file which cannot be loaded names, else the default. */
export function opsAddressIn(file: ReadableFile, env: Env): { opsHost: string; opsPort: number } {
  const port = Number(settingIn(file, 'ops_port', env))
  return {
    opsHost: settingIn(file, 'ops_host', env) ?? '127.0.0.1',
    opsPort: Number.isInteger(port) && port > 0 && port < 65_536 ? port : 9464,
  }
}

/**
 * The first value with this key, wherever it is, with its variables filled in; undefined if there is none.
 * Names may be quoted, as in JSON.
 */
function settingIn(
  { path, text }: ReadableFile,
  key: 'store' | 'spool' | 'ops_host' | 'ops_port',
  env: Env,
): string | undefined {
  for (const { 0: whole, 2: name, 3: inDouble, 4: inSingle, 5: bare, index } of text.matchAll(SETTING)) {
    if (name !== key || isInComment(text, index + whole.indexOf(name))) continue
    const written = inDouble ?? inSingle ?? bare ?? ''
    const { value, findings } = fillPlaceholders(written, surroundingsOf(path, env))
    const isFilled = findings.length === 0 && typeof value === 'string'
    // Other settings are named `store`, too, and have other values.
    if (key === 'store' && isFilled && !/^(?:sqlite|rediss?\b)/.test(value)) continue
    return isFilled ? value : undefined
  }
  return undefined
}

function isInComment(text: string, offset: number): boolean {
  const before = text.slice(text.lastIndexOf('\n', offset) + 1, offset)
  return /(?:^|\s)#/.test(before.replaceAll(QUOTED, ''))
}

const QUOTED = /"[^"]*"|'[^']*'/g

/** A text in double, single or no quotes; without quotes, `}` and `,` end it except in `${…}`. */
const SETTING =
  /(?:^|[\s{,])(["']?)(store|spool|ops_host|ops_port)\1[ \t]*:[ \t]*(?:"([^"\n]{1,4096})"|'([^'\n]{1,4096})'|((?:\$\{[^}\n]{1,256}\}|[^\s"'#,}]){1,4096}))/gm
