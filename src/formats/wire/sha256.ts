/**
 * SHA-256 for stable names in codecs. The only import of `node:crypto` in `formats`: codecs are pure, and a
 * hash depends on its text alone.
 */
import { hash } from 'node:crypto'

/** The hash of the text's UTF-8 bytes, as 64 hexadecimal digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text)
}

/** The first eight digits, enough to distinguish the names of one request. */
export function shortHash(text: string): string {
  return sha256Hex(text).slice(0, 8)
}
