/**
 * Finds the history of a configuration file: below the folder of the embedded store, or the spool folder of a
 * gateway on Redis. A broken file has a history too, so its text is searched for these two settings.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { dataFolders } from '../../files/private-files.js'
import type { Config } from '../config.js'
import type { Env, LoadResult } from '../load-config.js'

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
  const { path, text } = loaded.sources
  const own = loaded.ok ? historyFolder(dataFolderOf(loaded.config), path) : null
  return own !== null && existsSync(own) ? own : findHistory(path, text, env)
}

/** Data folders of the shipped configurations and the defaults, relative to the file's folder. */
const USUAL_FOLDERS = ['data', '../data', 'spool', '.']

/**
 * The existing history folder of a configuration file that cannot be loaded; null if there is none. `text` is
 * its readable part. Searches the folders that the file's `store` and `spool` name, then the default ones.
 */
export function findHistory(path: string, text: string, env: Env): string | null {
  const folder = dirname(resolve(path))
  const store = /^store:[ \t]*["']?sqlite:([^\s"'#]{1,4096})/m.exec(text)?.[1]
  const spool = /\bspool:[ \t]*["']?([^\s"'#,}]{1,4096})/.exec(text)?.[1]
  const named = [store === undefined ? undefined : dirname(store), spool]
  // systemd sets it for units with StateDirectory=.
  const state = env['STATE_DIRECTORY']?.split(':')[0]
  const candidates = [...named, ...USUAL_FOLDERS, state]
    .filter((candidate) => candidate !== undefined && candidate !== '')
    .map((candidate) => historyFolder(resolve(folder, candidate ?? ''), path))
  return candidates.find((candidate) => existsSync(candidate)) ?? null
}
