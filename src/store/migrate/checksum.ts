/**
 * How many things there are, and a digest of them all. Knows not what they are.
 */
import { createHash } from 'node:crypto'
import { isObject } from '../../chat/json.js'

/** How much of a digest people are shown. */
const SHOWN = 16

/**
 * Adds up things that each occur once, in any order: engines that keep the same in another order have the
 * same tally. Where the order matters, it is a part of the thing.
 */
export class Checksum {
  count = 0
  private readonly mixed = Buffer.alloc(32)

  add(thing: unknown): void {
    this.count += 1
    const digest = createHash('sha256').update(canonical(thing)).digest()
    digest.forEach((byte, at) => (this.mixed[at] = (this.mixed[at] ?? 0) ^ byte))
  }

  /** Tells nothing of the things. */
  get digest(): string {
    return createHash('sha256').update(this.mixed).digest('hex').slice(0, SHOWN)
  }
}

/** JSON with the names in order, so that equal things have equal texts. */
export function canonical(thing: unknown): string {
  return JSON.stringify(thing, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
