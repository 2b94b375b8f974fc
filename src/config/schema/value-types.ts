/**
 * The texts that several parts of the schema share: names, model ids and bounded numbers.
 * Part of `schema.ts`.
 */
import { z } from 'zod'

/** A day, the longest time that a setting takes. */
export const DAY_MS = 86_400_000

/** A name that becomes a metric label and a path in messages, so its characters are few. */
export const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error:
    'must be 1 to 64 letters, digits, dots, dashes or underscores, and begin with one of the first two',
})

/** A model id or the beginning of one: printable, no spaces. The longest of 2026 has 42 characters. */
export const modelText = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})

/** A text of 1 to `max` characters. */
export const text = (max: number) => z.string().min(1).max(max)

/** A whole number between two bounds, both included. */
export const whole = (min: number, max: number) => z.int().min(min).max(max)

/** A number from 0 to 1. */
export const share = z.number().min(0).max(1)
