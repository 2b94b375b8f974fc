/**
 * Recognises the 3,000 most common passwords of 8 characters or more, which attackers try first.
 *
 * Source: the package @zxcvbn-ts/language-common 4.1.3 (MIT; from leaked lists, by frequency), read
 * 2026-11-20. `common-passwords.txt` has the first 40 bits of the SHA-256 of each password in lower case, one
 * in a line; any other password matches with a probability of 1 in 366 million.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { programFile } from '../config/package-file.js'

/** Hexadecimal digits of a digest in the file. */
const DIGITS = 10

/** Whether the password is one of them, ignoring case. */
export function isCommonPassword(password: string): boolean {
  const digest = createHash('sha256').update(password.toLowerCase()).digest('hex')
  digests ??= new Set(readFileSync(programFile('accounts/common-passwords.txt'), 'utf8').split('\n'))
  return digests.has(digest.slice(0, DIGITS))
}

/** Read when the first password is set. */
let digests: ReadonlySet<string> | null = null
