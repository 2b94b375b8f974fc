/**
 * Reads the messages of one direction of a WebSocket from its bytes (RFC 6455), which pass on unchanged. It
 * keeps at most the head of a frame. Pure.
 */

/** Callbacks for the messages. */
interface FrameSink {
  /** A part of a text or binary message. */
  part(bytes: Buffer): void
  /** The message is complete. */
  end(): void
}

const MAX_HEAD = 14
const CONTINUATION = 0
const TEXT = 1
const BINARY = 2

/** Reads the frames of one direction, which must not be compressed. */
export class FrameReader {
  /** The bytes are no frames that can be read: compressed, or longer than a number. */
  isLost = false
  private readonly sink: FrameSink
  private head: Buffer = Buffer.alloc(0)
  private remaining = 0
  private mask: Buffer | null = null
  private maskAt = 0
  private isFinal = false
  private isData = false
  private isInMessage = false

  constructor(sink: FrameSink) {
    this.sink = sink
  }

  /** Reads the chunk; the number of its bytes after which no message and no frame is incomplete. */
  write(chunk: Buffer): number {
    let at = 0
    let complete = 0
    while (at < chunk.length && !this.isLost) {
      if (this.remaining > 0) at += this.payload(chunk.subarray(at, at + this.remaining))
      else at += this.beginFrame(chunk.subarray(at, at + MAX_HEAD))
      if (this.remaining === 0 && this.head.length === 0 && !this.isInMessage) complete = at
    }
    return complete
  }

  /** Reads payload of the current frame; its length. */
  private payload(bytes: Buffer): number {
    this.remaining -= bytes.length
    if (this.isData) this.sink.part(this.mask === null ? bytes : this.unmasked(bytes, this.mask))
    if (this.remaining === 0) this.endFrame()
    return bytes.length
  }

  private unmasked(bytes: Buffer, mask: Buffer): Buffer {
    const plain = Buffer.allocUnsafe(bytes.length)
    for (let at = 0; at < bytes.length; at += 1) {
      plain[at] = (bytes[at] ?? 0) ^ (mask[(this.maskAt + at) & 3] ?? 0)
    }
    this.maskAt += bytes.length
    return plain
  }

  /** Reads the head of a frame; the number of bytes of the chunk that belong to it. */
  private beginFrame(bytes: Buffer): number {
    const before = this.head.length
    const head = Buffer.concat([this.head, bytes])
    const size = headSize(head)
    if (size === null || head.length < size) {
      this.head = head
      return bytes.length
    }
    this.head = Buffer.alloc(0)
    const [first = 0, second = 0] = head
    const short = second & 0x7f
    const length =
      short < 126 ? short : short === 126 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2))
    const opcode = first & 0x0f
    // The extension bits: no extension was negotiated.
    this.isLost = (first & 0x70) !== 0 || !Number.isSafeInteger(length)
    this.isFinal = (first & 0x80) !== 0
    this.isData = opcode === CONTINUATION || opcode === TEXT || opcode === BINARY
    this.mask = (second & 0x80) === 0 ? null : Buffer.from(head.subarray(size - 4, size))
    this.maskAt = 0
    this.remaining = length
    if (this.isData) this.isInMessage = true
    if (length === 0) this.endFrame()
    return size - before
  }

  private endFrame(): void {
    if (!this.isData || !this.isFinal) return
    this.isInMessage = false
    this.sink.end()
  }
}

/** The size of the head; null if it is not known yet. */
function headSize(head: Buffer): number | null {
  const second = head[1]
  if (second === undefined) return null
  const short = second & 0x7f
  const extended = short === 126 ? 2 : short === 127 ? 8 : 0
  return 2 + extended + ((second & 0x80) === 0 ? 0 : 4)
}
