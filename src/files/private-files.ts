/**
 * Makes files that the gateway wrote earlier private to its user. New files are created so (`program.ts` sets the
 * umask); a version before that, a copy or a restored backup may have left wider ones.
 */
import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What stores and spools write, by its ending. Nothing else in a folder is touched. */
const OURS =
  /\.(?:db|db-wal|db-shm|db-journal|spool|spool\.damaged|lock)$|^store-[0-9a-f]{16}\.json$|^generation-\d+\.(?:yaml|json|shown\.json)$|^models-[0-9a-f]{16}\.yaml$|^gateway\.json$/
/** Folders in a store's folder; they may be empty. */
const OUR_FOLDERS = new Set(['spool', 'generations'])
/** A store has folders in its folder, and these have folders. */
const MAX_DEPTH = 3
const OTHERS = 0o077

/** The folders that hold data of this configuration: the embedded store's and the spool's. */
export function dataFolders(store: string, spool: string): string[] {
  const path = /^sqlite:(.+)$/.exec(store)?.[1]
  return path === undefined ? [spool] : [dirname(path), spool]
}

/**
 * Gives the gateway's files in a folder mode 0600 and the folders in it that hold such files 0700. The folder itself
 * may be used for more, so `warn` is called when others may enter it, and for what cannot be changed.
 */
export function makePrivate(folder: string, warn: (reason: string) => void): void {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory() !== true) return
  const isHeld = tighten(folder, MAX_DEPTH, warn)
  if (!isHeld || (stat.mode & OTHERS) === 0) return
  const mode = (stat.mode & 0o777).toString(8)
  warn(`the folder ${folder} has data of the gateway and mode ${mode}; chmod 700 keeps others out`)
}

/** Whether the folder, or one in it, has a file of ours. */
function tighten(folder: string, depth: number, warn: (reason: string) => void): boolean {
  let isHeld = false
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isFile() && OURS.test(entry.name)) {
        isHeld = true
        narrow(path, 0o600)
      } else if (entry.isDirectory() && depth > 0) {
        const isOurs = tighten(path, depth - 1, warn) || OUR_FOLDERS.has(entry.name)
        if (isOurs) narrow(path, 0o700)
        isHeld ||= isOurs
      }
    }
  } catch (error) {
    warn(
      `files in ${folder} cannot be made private: ${error instanceof Error ? error.message : ''}`,
    )
  }
  return isHeld
}

function narrow(path: string, mode: number): void {
  const now = lstatSync(path).mode
  if ((now & OTHERS) !== 0) chmodSync(path, now & mode)
}
