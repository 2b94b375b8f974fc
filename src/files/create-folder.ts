/**
 * Creates folders for the gateway's own files. Node's recursive `mkdir` is not used: it never returns if a
 * file system returns ENOENT for a new folder in an existing one, as /proc does.
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates the folder and its missing parents with mode 0700. An existing folder keeps its mode. Throws an
 * Error that names the folder and the system's error code if it cannot be created.
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
