/** The length of sound, as far as its bytes show it. Pure. */

/** The bytes of a file, of which the first ones are read. */
export interface SoundFile {
  /** In bytes. */
  readonly size: number
  /** The bytes from there on, as many as are there. */
  read(from: number, length: number): Buffer
}

/** Seconds of a file. */
export interface SoundLength {
  /** An upper bound; null if compressed data may have any length. */
  readonly most: number | null
  /** The bound is the length itself. */
  readonly isExact: boolean
}

/** Nothing is known about the length. */
export const UNKNOWN_LENGTH: SoundLength = { most: null, isExact: false }

/** MP3 has at least 8 kbit/s. */
const MIN_MP3_BYTES_PER_SECOND = 1_000
/** The format of a WAV file is in its first part. */
const HEADER_BYTES = 65_536
/** Formats of WAV whose samples have a fixed size: PCM, floating point, A-law, µ-law, extensible. */
const FIXED_SIZE: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])

/** The length of the sound in a WAV or MP3 file, by its bytes; nothing of what a client declares counts. */
export function soundLength(file: SoundFile): SoundLength {
  const head = file.read(0, HEADER_BYTES)
  if (head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WAVE') {
    return wavLength(head, file.size)
  }
  return beginsAsMp3(file, head) ? longestMp3(file.size) : UNKNOWN_LENGTH
}

/** The longest time of MP3 of this size. */
export function longestMp3(bytes: number): SoundLength {
  return { most: Math.ceil(bytes / MIN_MP3_BYTES_PER_SECOND), isExact: false }
}

function wavLength(head: Buffer, fileBytes: number): SoundLength {
  let bytesPerSecond = Number.POSITIVE_INFINITY
  for (let at = 12; at + 8 <= head.length;) {
    const id = head.toString('latin1', at, at + 4)
    const size = head.readUInt32LE(at + 4)
    if (id === 'fmt ') {
      const rate = at + 24 <= head.length ? bytesPerSecondOf(head.subarray(at + 8)) : null
      if (rate === null) return UNKNOWN_LENGTH
      // Of several, readers may take any.
      bytesPerSecond = Math.min(bytesPerSecond, rate)
    }
    // The size of the data may be unknown, or wrong: the rest of the file is an upper bound.
    if (id === 'data') {
      const isExact = Number.isFinite(bytesPerSecond)
      return isExact ? { most: (fileBytes - at - 8) / bytesPerSecond, isExact } : UNKNOWN_LENGTH
    }
    at += 8 + size + (size % 2)
  }
  if (!Number.isFinite(bytesPerSecond)) return UNKNOWN_LENGTH
  return { most: fileBytes / bytesPerSecond, isExact: false }
}

/** Of the format of a WAV file; null if its samples have no fixed size. */
function bytesPerSecondOf(format: Buffer): number | null {
  const [code, channels] = [format.readUInt16LE(0), format.readUInt16LE(2)]
  const [rate, bits] = [format.readUInt32LE(4), format.readUInt16LE(14)]
  // A rate that no recording has would make hours look like seconds.
  const isPlain = FIXED_SIZE.has(code) && rate <= 384_000 && bits <= 64 && channels <= 8
  const bytesPerSecond = (rate * channels * bits) / 8
  return isPlain && bytesPerSecond > 0 ? bytesPerSecond : null
}

/** Whether the file begins with a frame of MP3 with a known rate, after a tag if it has one. */
function beginsAsMp3(file: SoundFile, head: Buffer): boolean {
  let frame = head
  if (head.toString('latin1', 0, 3) === 'ID3') {
    const size = 10 + [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((head[at] ?? 0) & 0x7f), 0)
    frame = file.read(size, 3)
  }
  const [sync = 0, version = 0, rate = 0] = frame
  const hasLayer = (version & 0xe0) === 0xe0 && (version & 0x06) !== 0
  return sync === 0xff && hasLayer && rate >> 4 > 0 && rate >> 4 < 15
}
