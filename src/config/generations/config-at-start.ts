/**
 * Opens the configuration of a gateway: from its files, from a rollback that is still in force, or from the
 * last good generation if the files are not valid.
 */
import { authorOf } from './author.js'
import { hashOf, loadConfig, type Env, type Loaded, type LoadResult } from '../load-config.js'
import { formatProblem, type ConfigProblem } from '../config-problem.js'
import {
  dataFolderOf,
  findHistory,
  historyFolder,
  History,
  type GenerationContent,
  type GenerationRecord,
} from './history.js'
import { differencesOf } from './diff-configs.js'
import { shownConfig } from '../masked-config.js'
import { ConfigSource, type InitialState, type Override } from './config-source.js'

/** The first load failed, and there is no earlier generation to start with. */
export class ConfigRefused extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(`the configuration is not valid\n${problems.map(formatProblem).join('\n')}`)
    this.name = 'ConfigRefused'
    this.problems = problems
  }
}

/** Options for storing generations. */
interface OpenOptions {
  /** On disk, in the data folder; otherwise in memory. */
  readonly keepsHistory?: boolean
  /** Called with a warning for the operator: a generation that could not be written. */
  readonly warn?: (reason: string) => void
}

/** Loads the file and watches it. Rejects with `ConfigRefused` if there is no generation to start with. */
export async function openConfig(
  path: string,
  env: Env,
  { keepsHistory = false, warn = () => undefined }: OpenOptions = {},
): Promise<ConfigSource> {
  const first = loadConfig(path, env)
  const folder = keepsHistory ? folderFor(first, env) : null
  const history = new History(folder, warn)
  const source = new ConfigSource(first.sources.path, env, await initialStateOf(first, history, env))
  await source.watch()
  return source
}

function folderFor(first: LoadResult, env: Env): string | null {
  const { sources } = first
  return first.ok ? historyFolder(dataFolderOf(first.config), sources.path) : findHistory(sources, env)
}

async function initialStateOf(first: LoadResult, history: History, env: Env): Promise<InitialState> {
  const [newest] = history.list()
  const content = newest === undefined ? null : await history.content(newest.generation)
  const stored = content === null ? null : loadStored(first, content, env)
  const errors = first.ok ? null : first.errors
  const files = first.sources
  const override = overrideOf(first, newest)
  if (newest !== undefined && stored !== null && override !== null) {
    return { loaded: stored, files, errors, override, record: newest, history }
  }
  if (!first.ok) throw new ConfigRefused(first.errors)
  const hash = hashOf(files)
  const same = { loaded: first, files, errors, override: null, history } as const
  if (newest?.hash === hash) return { ...same, record: newest }
  const record = startRecord(first, (newest?.generation ?? 0) + 1, env)
  const changes = content === null ? null : differencesOf(content.shown, shownConfig(first.config))
  return { ...same, record, changes }
}

/** Why the newest generation is in force instead of the files. */
function overrideOf(first: LoadResult, newest: GenerationRecord | undefined): Override | null {
  if (!first.ok) return 'last_good'
  const isRolledBack = newest !== undefined && newest.hash !== newest.filesHash
  return isRolledBack && newest.filesHash === hashOf(first.sources) ? 'rollback' : null
}

/** The newest generation with the current secrets; null if it cannot be loaded. */
function loadStored({ sources }: LoadResult, content: GenerationContent, env: Env): Loaded | null {
  const loaded = loadConfig(sources.path, env, content)
  return loaded.ok ? loaded : null
}

function startRecord({ sources, fileHash }: Loaded, generation: number, env: Env): GenerationRecord {
  return {
    generation,
    hash: fileHash,
    filesHash: fileHash,
    atMs: Date.now(),
    author: authorOf(sources.path, sources.text, env),
    reason: 'start',
    origin: 'start',
    contentOf: null,
  }
}
