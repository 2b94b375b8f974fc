/** Value types that several parts of the schema share: names, model ids and bounded numbers. */
import { MODEL_NAME } from '../../formats/chat/model-facts.js'
import * as z from 'zod'

/** A name that is used as a metric label and in paths, so it has a small alphabet. */
export const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: 'must be 1 to 64 letters, digits, dots, dashes or underscores, and start with a letter or digit',
})

/** A model id. */
export const modelText = z.string().max(256).regex(MODEL_NAME, {
  error: 'must be 1 to 256 printable ASCII characters, with single spaces only between words',
})

/** A text of 1 to `max` characters. */
export const text = (max: number) => z.string().min(1).max(max)

/** A whole number in a range, inclusive. */
export const whole = (min: number, max: number) => z.int().min(min).max(max)

/** A number from 0 to 1. */
export const share = z.number().min(0).max(1)

/** Words of examples. */
const EXAMPLE = /change.?me|placeholder|your[-_]|^example|^password/i
const DISTINCT_CHARACTERS = 5

/** Whether an operator's secret is easy to guess. */
export function isGuessable(secret: string): boolean {
  return EXAMPLE.test(secret) || new Set(secret).size <= DISTINCT_CHARACTERS
}

/** The problem of such a secret. */
export const GUESSABLE = 'is easy to guess: use a random one, as printed by openssl rand -hex 24'
