/**
 * Makes existing files of the gateway private to its user. `cli/run-command.ts` sets the umask for new files;
 * an older version, a copy or a restored backup may have left wider permissions.
 */
import { chmodSync, lstatSync, readdirSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Files of stores and spools, by their endings. Other files are not touched. */
const OWN_FILES =
  /\.(?:db|db-wal|db-shm|db-journal|spool|spool\.damaged|lock)$|^store-[0-9a-f]{16}\.json$|^generation-\d+\.(?:yaml|json|shown\.json)$|^models-[0-9a-f]{16}\.yaml$|^gateway\.json$/
/** Subfolders of a store's folder; they may be empty. */
const OWN_FOLDERS = new Set(['spool', 'generations'])
/** Depth of the subfolders. */
const MAX_DEPTH = 3
const OTHERS = 0o077

/** The folders with data of this configuration: those of the embedded store and the spool. */
export function dataFolders(store: string, spool: string): string[] {
  const path = /^sqlite:(.+)$/.exec(store)?.[1]
  return path === undefined ? [spool] : [dirname(path), spool]
}

/**
 * Sets mode 0600 on the gateway's files in a folder, and 0700 on subfolders with such files. The folder
 * itself may have other uses, so its mode is not changed; `warn` is called if other users can enter it, and
 * for files that cannot be changed.
 */
export function makePrivate(folder: string, warn: (reason: string) => void): void {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory() !== true) return
  const hasOwnFiles = restrictFolder(folder, MAX_DEPTH, warn)
  if (!hasOwnFiles || (stat.mode & OTHERS) === 0) return
  const mode = (stat.mode & 0o777).toString(8)
  warn(
    `the folder "${folder}" contains data of the gateway and has mode ${mode}: run chmod 700 to keep other users out`,
  )
}

/** Whether the folder, or a subfolder, contains a file of the gateway. */
function restrictFolder(folder: string, depth: number, warn: (reason: string) => void): boolean {
  let hasOwnFiles = false
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isFile() && OWN_FILES.test(entry.name)) {
        hasOwnFiles = true
        restrictMode(path, 0o600)
      } else if (entry.isDirectory() && depth > 0) {
        const isOwn = restrictFolder(path, depth - 1, warn) || OWN_FOLDERS.has(entry.name)
        if (isOwn) restrictMode(path, 0o700)
        hasOwnFiles ||= isOwn
      }
    }
  } catch (error) {
    warn(`files in "${folder}" cannot be made private: ${error instanceof Error ? error.message : ''}`)
  }
  return hasOwnFiles
}

function restrictMode(path: string, mode: number): void {
  const now = lstatSync(path).mode
  if ((now & OTHERS) !== 0) chmodSync(path, now & mode)
}

/**
 * Creates the folder and its missing parents with mode 0700. An existing folder keeps its mode. Throws an
 * Error that names the folder and the system's error code if it cannot be created.
 *
 * Creates folders for the gateway's own files. Node's recursive `mkdir` is not used: it never returns if a
 * file system returns ENOENT for a new folder in an existing one, as /proc does.
 */
export function createFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) createFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it first.
    if (isFolder(path)) return
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(`cannot create the folder '${path}' (${code})`, { cause: error })
  }
}

/** False also if the path cannot be examined. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}
