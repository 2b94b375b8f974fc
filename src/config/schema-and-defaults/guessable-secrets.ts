/** Secrets that are easy to guess: values of examples, and texts of a few repeated characters. */

/** Words of examples. */
const EXAMPLE = /change.?me|placeholder|your[-_]|^example|^password/i
const DISTINCT_CHARACTERS = 5

/** Whether an operator's secret is easy to guess. */
export function isGuessable(secret: string): boolean {
  return EXAMPLE.test(secret) || new Set(secret).size <= DISTINCT_CHARACTERS
}

/** The problem of such a secret. */
export const GUESSABLE = 'is easy to guess: use a random one, as printed by openssl rand -hex 24'
