/**
 * A count and a checksum of records that does not depend on their order.
 */
import { createHash } from 'node:crypto'
import { isObject } from '../../chat/json.js'

/** Characters of the checksum that are shown. */
const SHOWN = 16

/**
 * Adds up records that each occur once: engines that return them in different orders have the same checksum.
 * If the order matters, callers add the position to the record.
 */
export class Checksum {
  count = 0
  private readonly mixed = Buffer.alloc(32)

  add(thing: unknown): void {
    this.count += 1
    const digest = createHash('sha256').update(canonical(thing)).digest()
    digest.forEach((byte, at) => (this.mixed[at] = (this.mixed[at] ?? 0) ^ byte))
  }

  /** A digest of the digests; reveals nothing about the records. */
  get digest(): string {
    return createHash('sha256').update(this.mixed).digest('hex').slice(0, SHOWN)
  }
}

/** JSON with sorted names, so that equal values have equal texts. */
export function canonical(thing: unknown): string {
  return JSON.stringify(thing, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
