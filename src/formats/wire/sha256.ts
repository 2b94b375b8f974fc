/**
 * SHA-256 for stable names in codecs. The only import of `node:crypto` in `formats`: codecs are pure, and a
 * hash depends on its content alone.
 */
import { hash } from 'node:crypto'

/** The hash of the bytes, of a text its UTF-8 bytes, as 64 hexadecimal digits. */
export function sha256Hex(content: string | Buffer): string {
  return hash('sha256', content)
}

/** The first eight digits, enough to distinguish the names of one request. */
export function shortHash(text: string): string {
  return sha256Hex(text).slice(0, 8)
}
