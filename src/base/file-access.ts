/** The owners of files, and why this user may not use a file: the text that follows an EACCES. */
import { accessSync, constants, readFileSync, statSync, type Stats } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, resolve } from 'node:path'

/**
 * The owner of a file, such as `alice`; `uid 1000` if the user has no name on this machine, `unknown` if
 * there is no file.
 */
export function ownerOf(file: string): string {
  const uid = statSync(file, { throwIfNoEntry: false })?.uid
  return uid === undefined ? 'unknown' : nameOf(uid)
}

/** The user of this process. */
export function ownUser(): string {
  try {
    return userInfo().username
  } catch {
    // Containers run with user ids that have no entry in /etc/passwd.
    return `uid ${String(process.getuid?.() ?? 'unknown')}`
  }
}

function nameOf(uid: number): string {
  if (uid === process.getuid?.()) return ownUser()
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((entry) => entry.split(':')[2] === String(uid))
    return line?.split(':')[0] ?? `uid ${String(uid)}`
  } catch {
    return `uid ${String(uid)}`
  }
}

/**
 * Which file or folder on the way to `path` this user may not read, or write, with its owner and what to do;
 * null if there is none, or the path cannot be examined.
 */
export function accessProblem(path: string, wanted: 'read' | 'write'): string | null {
  const own = resolve(path)
  const isWrite = wanted === 'write'
  // Without the right to search a folder, nothing in it is visible.
  const first = deepestVisible(own)
  for (const place of [first, dirname(first)]) {
    const stat = statOf(place)
    if (stat === null) return null
    const need = stat.isDirectory()
      ? constants.X_OK | (isWrite ? constants.W_OK : 0)
      : constants.R_OK | (isWrite ? constants.W_OK : 0)
    if (isAllowed(place, need)) continue
    const mode = (stat.mode & 0o777).toString(8)
    const owner = nameOf(stat.uid)
    const user = ownUser()
    if (owner === user) return `'${place}' has mode ${mode}: change it with chmod`
    return `'${place}' belongs to ${owner} (mode ${mode}) and this process runs as ${user}: run it as ${owner}, or change the owner with chown`
  }
  return null
}

/** Whether the error means that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** The message of an error, with advice if it is the system's about a file that this user may not use. */
export function messageWithAdvice(error: Error): string {
  const problem = problemBehind(error)
  return problem === null ? error.message : `${error.message}; ${problem}`
}

/** The system's code of an error about a file, such as `ENOENT`, with the same advice. */
export function codeWithAdvice(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
  const problem = error instanceof Error ? problemBehind(error) : null
  return problem === null ? code : `${code}; ${problem}`
}

function problemBehind(error: NodeJS.ErrnoException): string | null {
  const { code, path, cause } = error
  if (code === undefined && cause instanceof Error) return problemBehind(cause)
  if ((code !== 'EACCES' && code !== 'EPERM') || path === undefined) return null
  return accessProblem(path, 'read') ?? accessProblem(path, 'write')
}

function deepestVisible(path: string): string {
  let place = path
  while (statOf(place) === null && dirname(place) !== place) place = dirname(place)
  return place
}

function statOf(path: string): Stats | null {
  try {
    return statSync(path)
  } catch {
    // It does not exist, or a folder on its way may not be searched.
    return null
  }
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    // Not for a file system that is mounted read-only: another owner would not help.
    return !(error instanceof Error && 'code' in error && error.code === 'EACCES')
  }
}
