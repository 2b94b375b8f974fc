/** The password of test accounts, hashed once in a process. */
import { hashPassword } from '../../src/accounts/password.js'

export const PASSWORD = 'correct horse battery staple'
let passwordHash: string | null = null

/** One for all accounts of a process: a hash takes as much CPU time as half of a gateway's start. */
export function knownHash(password: string): string {
  return password === PASSWORD ? (passwordHash ??= hashPassword(PASSWORD)) : hashPassword(password)
}
