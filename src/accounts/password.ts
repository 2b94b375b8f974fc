/**
 * Creates, validates and hashes passwords with Argon2id. Hashing and comparing block the calling thread for
 * 24 ms; the gateway uses `password-queue.ts`.
 */
import { hashSync, verifySync, type Options } from '@node-rs/argon2'
import { malformed } from '../errors.js'
import { isCommonPassword } from './common-passwords.js'
import { randomBase62, type RandomBytes } from './key-secret.js'

/** The parameters that OWASP recommends: 19 MiB, two passes, one lane; about 24 ms of one core. */
const MEMORY_KIB = 19_456
const PASSES = 2
const ARGON2: Options = { memoryCost: MEMORY_KIB, timeCost: PASSES, parallelism: 1 }
/** NIST SP 800-63B and ASVS 6.2.1 require 8. */
const MIN_CHARACTERS = 8
/** Checked before hashing, so that a very long password costs nothing. */
const MAX_BYTES = 1024

/**
 * Throws `GatewayError(malformed_request)` if the password is shorter than 8 characters, longer than 1,024
 * bytes, or a common one. Any characters are allowed (ASVS 6.2.5).
 */
export function assertPassword(password: string): void {
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw malformed(`the password must be at most ${MAX_BYTES} bytes long`, 'password')
  }
  if (Array.from(password).length < MIN_CHARACTERS) {
    throw malformed(`the password must have at least ${MIN_CHARACTERS} characters`, 'password')
  }
  if (isCommonPassword(password)) {
    throw malformed('this password is too common: choose another', 'password')
  }
}

/** Argon2id in PHC form. Throws as `assertPassword` does. */
export function hashPassword(password: string): string {
  assertPassword(password)
  return hashSync(password, ARGON2)
}

/** Whether a hash has lower costs than the current ones, so that the password should be hashed again. */
export function isOutdated(passwordHash: string): boolean {
  const parameters = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=\d+\$/.exec(passwordHash)
  if (parameters === null) return true
  return Number(parameters[1]) < MEMORY_KIB || Number(parameters[2]) < PASSES
}

/** False for a wrong password, one that is not allowed, and a damaged hash. */
export function isPassword(passwordHash: string, password: string): boolean {
  if (Buffer.byteLength(password) > MAX_BYTES) return false
  try {
    return verifySync(passwordHash, password)
  } catch {
    // `verifySync` throws only if the text is not a PHC string, which matches no password.
    return false
  }
}

/** Twenty base62 characters: 119 bits, for a password manager. */
export function newPassword(random?: RandomBytes): string {
  return randomBase62(20, random)
}
