/** The length of sound, as far as its bytes show it. Pure. */
import type { UploadedFile } from '../../chat/upload.js'

/** Seconds of a file. */
interface SoundLength {
  /** An upper bound; null if compressed data may have any length. */
  readonly most: number | null
  /** The bound is the length itself. */
  readonly isExact: boolean
}

/** MP3 has at least 8 kbit/s. */
const MIN_MP3_BYTES_PER_SECOND = 1_000
/** The header is in the first part of a file. */
const HEADER_BYTES = 65_536
/** Formats of WAV whose samples have a fixed size: PCM, floating point, A-law, µ-law, extensible. */
const FIXED_SIZE: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])

/** The length of the sound in the file. */
export function soundLength({ name, type, bytes, size = bytes.length }: UploadedFile): SoundLength {
  const wav = size === null ? null : wavSeconds(bytes, size)
  if (wav !== null) return { most: wav, isExact: true }
  const isMp3 = /^audio\/(?:mp3|mpeg)$/.test(type) || /\.mp3$/i.test(name)
  const begin = bytes.toString('latin1', 0, 3)
  const hasMp3Start = begin === 'ID3' || (bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe6) === 0xe2)
  if (!isMp3 || !hasMp3Start || size === null) return { most: null, isExact: false }
  return { most: Math.ceil(size / MIN_MP3_BYTES_PER_SECOND), isExact: false }
}

/** The seconds of a WAV file of this size, of which `file` is the beginning. */
function wavSeconds(file: Buffer, bytes: number): number | null {
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') return null
  let bytesPerSecond = 0
  for (let at = 12; at + 8 <= Math.min(file.length, HEADER_BYTES);) {
    const id = file.toString('latin1', at, at + 4)
    const size = file.readUInt32LE(at + 4)
    if (id === 'fmt ' && at + 24 <= file.length) {
      const [format, channels] = [file.readUInt16LE(at + 8), file.readUInt16LE(at + 10)]
      const [rate, bits] = [file.readUInt32LE(at + 12), file.readUInt16LE(at + 22)]
      // A rate that no recording has would make hours look like seconds.
      const isPlain = FIXED_SIZE.has(format) && rate <= 384_000 && bits <= 64 && channels <= 8
      bytesPerSecond = isPlain ? (rate * channels * bits) / 8 : 0
    }
    // The size of the data may be unknown, or wrong: the rest of the file is an upper bound.
    if (id === 'data') return bytesPerSecond > 0 ? (bytes - at - 8) / bytesPerSecond : null
    at += 8 + size + (size % 2)
  }
  return null
}
