/** Secrets that anyone could guess: values of examples, and texts of a few repeated characters. */

/** Words of examples. */
const EXAMPLE = /change.?me|placeholder|your[-_]|^example|^password/i
const DISTINCT_CHARACTERS = 5

/** Whether a secret of the operator is easy to guess. */
export function isGuessable(secret: string): boolean {
  return EXAMPLE.test(secret) || new Set(secret).size <= DISTINCT_CHARACTERS
}

/** What is wrong with such a secret. */
export const GUESSABLE = 'is easy to guess; use a random one, as `openssl rand -hex 24` prints'
