/**
 * Numbers by texts of any length: 20 bytes for each, in a table that is at most three quarters full. Texts
 * differ if 128 bits of their SHA-256 do.
 */
import { hash } from 'node:crypto'

const KEY_WORDS = 4
/** The words of a key, and its number; 0: the place is free. */
const PLACE_WORDS = KEY_WORDS + 1
const FIRST_PLACES = 256

/** A table of numbers from 1. */
export class KeyNumbers {
  /** How many texts it has. */
  size = 0
  private places = FIRST_PLACES
  private words = new Uint32Array(FIRST_PLACES * PLACE_WORDS)

  /** The number of the text, which is this one unless it has had one before. */
  add(text: string, number: number): number {
    if (this.size >= this.places * 0.75) this.grow()
    const key = keyOf(text)
    const at = this.placeOf(key)
    const known = this.numberAt(at)
    if (known !== 0) return known
    this.words.set(key, at)
    this.words[at + KEY_WORDS] = number
    this.size += 1
    return number
  }

  /** The number of the text; null if it has none. */
  find(text: string): number | null {
    const number = this.numberAt(this.placeOf(keyOf(text)))
    return number === 0 ? null : number
  }

  /** The place with the key, or the free one for it. */
  private placeOf(key: Uint32Array): number {
    const { words, places } = this
    for (let place = (key[0] ?? 0) % places; ; place = (place + 1) % places) {
      const at = place * PLACE_WORDS
      if (this.numberAt(at) === 0 || key.every((word, index) => words[at + index] === word)) return at
    }
  }

  private numberAt(at: number): number {
    return this.words[at + KEY_WORDS] ?? 0
  }

  private grow(): void {
    const before = this.words
    this.places *= 2
    this.words = new Uint32Array(this.places * PLACE_WORDS)
    for (let at = 0; at < before.length; at += PLACE_WORDS) {
      if (before[at + KEY_WORDS] === 0) continue
      const place = before.subarray(at, at + PLACE_WORDS)
      this.words.set(place, this.placeOf(place.subarray(0, KEY_WORDS)))
    }
  }
}

function keyOf(text: string): Uint32Array {
  const bytes = hash('sha256', text, 'buffer')
  return Uint32Array.from({ length: KEY_WORDS }, (_, at) => bytes.readUInt32LE(at * 4))
}
