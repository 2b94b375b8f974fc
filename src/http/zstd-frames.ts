/**
 * Checks the frame headers of zstd before decoding, because `fzstd` allocates any window size that a header
 * requests.
 *
 * Source: RFC 8878, section 3.1; RFC 9659 (the window of the content coding is at most 8 MiB), read
 * 2026-11-20.
 */

/** Binary logarithm of the largest window. */
export const ZSTD_MAX_WINDOW_LOG = 23
const MAX_WINDOW_BYTES = 2 ** ZSTD_MAX_WINDOW_LOG

const MAGIC = 0xfd2fb528
const SKIPPABLE = 0x184d2a50
/** Bytes of the dictionary id and of the content size, by their flags. */
const DICTIONARY_BYTES = [0, 1, 2, 4]
const SIZE_BYTES = [0, 2, 4, 8]
const RLE = 1

/** Throws an `Error` unless the bytes are complete frames with small enough windows. Linear in the bytes. */
export function assertZstdFrames(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  while (at < view.byteLength) {
    const magic = view.getUint32(at, true)
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE) at += 8 + view.getUint32(at + 4, true)
    else if (magic === MAGIC) at = endOfFrame(view, at + 4)
    else throw new Error('not a zstd frame')
  }
  if (at > view.byteLength) throw new Error('a zstd frame is truncated')
}

/** The end of the frame whose header descriptor is at `at`. Throws if it is beyond the bytes. */
function endOfFrame(view: DataView, at: number): number {
  const flags = view.getUint8(at)
  const isSingle = (flags & 32) !== 0
  const dictionaryBytes = DICTIONARY_BYTES[flags & 3] ?? 0
  const sizeBytes = SIZE_BYTES[flags >> 6] ?? 0
  let next = at + 1
  if (!isSingle) {
    const descriptor = view.getUint8(next)
    next += 1
    const base = 2 ** (10 + (descriptor >> 3))
    assertWindow(base + (base / 8) * (descriptor & 7))
  }
  next += dictionaryBytes
  const lengthBytes = isSingle && sizeBytes === 0 ? 1 : sizeBytes
  if (isSingle) assertWindow(contentBytes(view, next, lengthBytes))
  return endOfBlocks(view, next + lengthBytes) + ((flags & 4) === 0 ? 0 : 4)
}

function endOfBlocks(view: DataView, first: number): number {
  let at = first
  for (;;) {
    const header = view.getUint8(at) | (view.getUint8(at + 1) << 8) | (view.getUint8(at + 2) << 16)
    at += 3 + (((header >> 1) & 3) === RLE ? 1 : header >> 3)
    if ((header & 1) === 1) return at
  }
}

function contentBytes(view: DataView, at: number, length: number): number {
  switch (length) {
    case 1:
      return view.getUint8(at)
    case 2:
      return view.getUint16(at, true) + 256
    case 4:
      return view.getUint32(at, true)
    default:
      return Number(view.getBigUint64(at, true))
  }
}

function assertWindow(bytes: number): void {
  if (bytes > MAX_WINDOW_BYTES) throw new Error('the zstd window is larger than 8 MiB')
}
