/** Names of operating system users: the owner of a file, and the user of this process. */
import { readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'

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
