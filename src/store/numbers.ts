/**
 * Whole numbers up to 2^53 as few bytes: 7 bits each, the last of a number without the high bit.
 * Knows not what they count.
 */

/** The most bytes that a number takes. */
export const NUMBER_BYTES = 8

/** Writes a number; where the next one goes. */
export function writeNumber(into: Uint8Array, at: number, value: number): number {
  let rest = value
  while (rest >= 0x80) {
    into[at++] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  into[at++] = rest
  return at
}

/** Numbers one after another. */
export class NumberReader {
  private readonly bytes: Uint8Array
  private at: number

  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes
    this.at = at
  }

  get done(): boolean {
    return this.at === this.bytes.length
  }

  /** Throws an Error where the bytes end before the number does. */
  next(): number {
    let value = 0
    let factor = 1
    let byte = 0x80
    while (byte >= 0x80) {
      byte = this.bytes[this.at++] ?? 0x100
      if (byte > 0xff) throw new Error('it is cut short')
      value += (byte & 0x7f) * factor
      factor *= 0x80
    }
    return value
  }
}
