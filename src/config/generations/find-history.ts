/**
 * Where the history of a configuration file is: below the folder of the embedded store, or the spool folder of a
 * gateway on Redis. It must be found for a broken file too, so the file's text is searched for those two settings.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { dataFolders } from '../../files/private-files.js'
import type { Config } from '../config.js'
import type { Env, LoadResult } from '../load.js'

/** The folder for data of this machine: that of the embedded store, else the spool. */
export function dataFolderOf({ store, ledger }: Pick<Config, 'store' | 'ledger'>): string {
  return dataFolders(store, ledger.spool)[0] ?? ledger.spool
}

/** The history of the configuration file at `path` within a data folder. */
export function historyFolder(dataFolder: string, path: string): string {
  const absolute = resolve(path)
  const name = basename(absolute).replace(/\.ya?ml$/, '')
  const hash = createHash('sha256').update(absolute).digest('hex').slice(0, 8)
  return join(dataFolder, 'generations', `${name}-${hash}`)
}

/** The existing history folder of a configuration file, good or broken; null if there is none. */
export function historyOf(loaded: LoadResult, env: Env): string | null {
  const { path, text } = loaded.sources
  const own = loaded.ok ? historyFolder(dataFolderOf(loaded.config), path) : null
  return own !== null && existsSync(own) ? own : findHistory(path, text, env)
}

/** Data folders of the shipped configurations and of the defaults, from the folder of the file. */
const USUAL_FOLDERS = ['data', '../data', 'spool', '.']

/**
 * The existing history folder of a configuration file that cannot be loaded; `text` is what can be read of it. Null if
 * there is none. Searches the folders that the file's `store` and `spool` name, then the usual ones.
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
