/**
 * Reproducible random values: the same seed gives the same numbers, ids and signatures.
 */

/** A source of unsigned 32-bit numbers; the same seed gives the same numbers. */
export type RandomSource = () => number

/** FNV-1a over the text's UTF-16 units, started from `seed`. Not for secrets. */
export function hashOf(text: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}

/** A source that starts at `seed` (mulberry32). */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` letters and digits, as providers use them in ids. */
export function lettersOf(random: RandomSource, length: number): string {
  let text = ''
  while (text.length < length) {
    let number = random()
    for (let digit = 0; digit < 5 && text.length < length; digit += 1) {
      text += BASE62.charAt(number % 62)
      number = Math.floor(number / 62)
    }
  }
  return text
}

/** Base64 of `bytes` bytes, in the form of an opaque signature. */
export function opaqueOf(random: RandomSource, bytes: number): string {
  const buffer = Buffer.alloc(bytes)
  for (let index = 0; index < bytes; index += 1) {
    buffer[index] = random() & 0xff
  }
  return buffer.toString('base64')
}
