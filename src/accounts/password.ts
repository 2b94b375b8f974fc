/**
 * Passwords: made, judged and hashed with Argon2id. Hashing and comparing take 24 ms of the thread that
 * calls; the gateway does both at its desk (`password-queue.ts`).
 * Knows no account and no thread.
 */
import { hashSync, verifySync, type Options } from '@node-rs/argon2'
import { GatewayError } from '../errors.js'
import { isCommonPassword } from './common-passwords.js'
import { randomBase62, type RandomBytes } from './key-secret.js'

/** OWASP's current advice: 19 MiB, two passes, one lane; about 24 ms of one core. */
const MEMORY_KIB = 19_456
const PASSES = 2
const ARGON2: Options = { memoryCost: MEMORY_KIB, timeCost: PASSES, parallelism: 1 }
/** NIST SP 800-63B and ASVS 6.2.1 ask for 8. */
const MIN_CHARACTERS = 8
/** Checked before hashing, so that a megabyte of password costs nothing. */
const MAX_BYTES = 1024

/**
 * Throws `GatewayError(malformed_request)` where the password is shorter than 8 characters, longer than
 * 1,024 bytes, or one of those that everybody tries. Nothing is asked of its characters (ASVS 6.2.5).
 */
export function assertPassword(password: string): void {
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw refused(`the password must be at most ${MAX_BYTES} bytes long`)
  }
  if (Array.from(password).length < MIN_CHARACTERS) {
    throw refused(`the password must have at least ${MIN_CHARACTERS} characters`)
  }
  if (isCommonPassword(password)) {
    throw refused('this password is one of those that everybody tries first; choose another')
  }
}

/** Argon2id in PHC form. Throws as `assertPassword` does. */
export function hashPassword(password: string): string {
  assertPassword(password)
  return hashSync(password, ARGON2)
}

/** Whether a hash was made with less work than is now thought right, and the password should be hashed anew. */
export function isOutdated(passwordHash: string): boolean {
  const made = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=\d+\$/.exec(passwordHash)
  if (made === null) return true
  return Number(made[1]) < MEMORY_KIB || Number(made[2]) < PASSES
}

/** False for a wrong password, one that could never have been set, and a hash that is damaged. */
export function isPassword(passwordHash: string, password: string): boolean {
  if (Buffer.byteLength(password) > MAX_BYTES) return false
  try {
    return verifySync(passwordHash, password)
  } catch {
    // The only failure of `verifySync` is a text that is no PHC string: nobody has that password.
    return false
  }
}

/** Twenty characters of base62: 119 bits, typed once and kept in a password manager. */
export function newPassword(random?: RandomBytes): string {
  return randomBase62(20, random)
}

function refused(message: string): GatewayError {
  return new GatewayError('malformed_request', message, { param: 'password' })
}
