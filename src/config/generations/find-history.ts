/**
 * Finds the history of a configuration file: below the folder of the embedded store, or the spool folder of a
 * gateway on Redis. A broken file has a history and a running gateway too, so its text is searched for the
 * settings that lead to them.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { dataFolders } from '../../files/private-files.js'
import type { Config } from '../config.js'
import { fillPlaceholders } from '../fill-placeholders.js'
import { surroundingsOf, type ConfigSources, type Env, type LoadResult } from '../load-config.js'

/** The data folder of this machine: that of the embedded store, else the spool. */
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

/** The first value with this key, wherever it is, with its variables filled in; undefined if there is none. */
function settingIn(
  { path, text }: ReadableFile,
  key: 'store' | 'spool' | 'ops_host' | 'ops_port',
  env: Env,
): string | undefined {
  for (const [, name, inDouble, inSingle, bare] of text.matchAll(SETTING)) {
    if (name !== key) continue
    const { value, findings } = fillPlaceholders(
      inDouble ?? inSingle ?? bare ?? '',
      surroundingsOf(path, env),
    )
    return findings.length === 0 && typeof value === 'string' ? value : undefined
  }
  return undefined
}

/** A text in double, single or no quotes; without quotes, `}` and `,` end it except in `${…}`. */
const SETTING =
  /(^store|\b(?:spool|ops_host|ops_port)):[ \t]*(?:"([^"\n]{1,4096})"|'([^'\n]{1,4096})'|((?:\$\{[^}\n]{1,256}\}|[^\s"'#,}]){1,4096}))/gm
