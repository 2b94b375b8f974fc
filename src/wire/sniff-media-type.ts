/**
 * Detects the media type of a file from its first bytes.
 *
 * Source: the signatures in the WHATWG MIME Sniffing standard.
 */

/** Length of the longest signature. */
const HEAD_BYTES = 12
/** Base64 of that many bytes. */
const HEAD_CHARS = 16

/** The media type of base64 data; undefined if the bytes have no known signature. */
export function sniffBase64(data: string): string | undefined {
  return sniffBytes(Buffer.from(data.slice(0, HEAD_CHARS), 'base64'))
}

/** The media type of the bytes; undefined if they have no known signature. */
export function sniffBytes(bytes: Buffer): string | undefined {
  const head = bytes.toString('latin1', 0, HEAD_BYTES)
  if (head.startsWith('\xFF\xD8\xFF')) return 'image/jpeg'
  if (head.startsWith('\x89PNG')) return 'image/png'
  if (head.startsWith('GIF8')) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  if (head.startsWith('%PDF-')) return 'application/pdf'
  if (head.slice(4, 8) === 'ftyp' && HEIF.has(head.slice(8, 12))) return 'image/heic'
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp'
  return undefined
}

/** Brands of the ISO base media format for still images. */
const HEIF: ReadonlySet<string> = new Set(['heic', 'heix', 'heim', 'heis', 'mif1', 'msf1'])
