/**
 * Decodes `application/vnd.amazon.eventstream`, the binary framing of Bedrock's streams, and passes its
 * messages on as server-sent events, so that all that reads a stream reads those of Bedrock too.
 *
 * A message: its length, the length of its headers and a CRC-32 of these 8 bytes; the headers; the payload; a
 * CRC-32 of all before. Numbers are big-endian. Nothing of a message is read before its checksums are right.
 */
import { crc32 } from 'node:zlib'
import type { WireError } from '../../../errors.js'
import { objectOf, stringOf, type JsonObject, parsedJson } from '../../../base/json.js'
import { PART_BYTES, SseFramer, type Framing, type FrameSink, type SseOptions } from '../frames/sse-framer.js'
import type { Steps } from '../../../base/steps.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../upstream-errors.js'
import { anthropicErrorOf } from './decode-error.js'

/** The media type of such a stream. */
export const AWS_EVENT_STREAM = 'application/vnd.amazon.eventstream'

const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Limits of the format. A message is refused by its first 12 bytes, before it is kept. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024
const MAX_HEADERS_BYTES = 128 * 1024

/** The type of a header's value by its code, and the sizes of those that are not a string. */
const STRING = 7
const BYTES = 6
const SIZES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 }

/** A message whose checksums are right. */
export interface AwsMessage {
  /** The headers whose value is a string; Bedrock's all are. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Buffer
  /** The rest of the payload of a large message, as it arrived; empty for others. */
  readonly more: readonly Buffer[]
}

/** A message that is larger than this is kept in the chunks in which it arrives. */
const LARGE_BYTES = 256 * 1024
const NOTHING: readonly Buffer[] = []

/** A large message that is arriving. */
interface Open {
  readonly length: number
  readonly headersLength: number
  readonly parts: Buffer[]
  size: number
  checksum: number
}

/** Splits bytes into messages, regardless of chunk boundaries. After a fault it ignores all input. */
export class AwsMessageReader {
  /** What is wrong with the stream, without any content; null if nothing is. */
  fault: string | null = null
  private chunks: Buffer[] = []
  private size = 0
  /** Bytes that are needed before anything can be read: the prelude, or a whole message. */
  private needed = PRELUDE_BYTES
  private open: Open | null = null
  private readonly take: (message: AwsMessage) => void
  /** The headers of the latest message, which those of the next one often repeat. */
  private block = Buffer.alloc(0)
  private headers: Record<string, string> = {}

  constructor(take: (message: AwsMessage) => void) {
    this.take = take
  }

  /** True if the stream is within a message. */
  get isWithinMessage(): boolean {
    return this.size > 0 || this.open !== null
  }

  write(chunk: Buffer): void {
    const arrived = this.open === null ? chunk : this.continued(chunk, this.open)
    if (this.fault !== null || arrived.length === 0) return
    this.chunks.push(arrived)
    this.size += arrived.length
    if (this.size < this.needed) return
    const bytes = this.chunks.length === 1 ? arrived : Buffer.concat(this.chunks)
    const rest = this.messages(bytes)
    this.chunks = rest === bytes.length ? [] : [bytes.subarray(rest)]
    this.size = bytes.length - rest
  }

  /** Takes every whole message; returns the offset of the rest. */
  private messages(bytes: Buffer): number {
    for (let at = 0; ;) {
      this.needed = PRELUDE_BYTES
      if (bytes.length - at < PRELUDE_BYTES) return at
      const length = bytes.readUInt32BE(at)
      const headersLength = bytes.readUInt32BE(at + 4)
      this.fault = preludeFault(bytes, at, { length, headersLength })
      if (this.fault !== null) return bytes.length
      if (bytes.length - at < length && length > LARGE_BYTES) {
        this.open = { length, headersLength, parts: [], size: 0, checksum: 0 }
        this.continued(bytes.subarray(at), this.open)
        return bytes.length
      }
      this.needed = length
      if (bytes.length - at < length) return at
      const end = at + length
      const checksum = bytes.readUInt32BE(end - CHECKSUM_BYTES)
      if (crc32(bytes.subarray(at, end - CHECKSUM_BYTES)) !== checksum) {
        this.fault = WRONG_CHECKSUM
        return bytes.length
      }
      const headersFrom = at + PRELUDE_BYTES
      const headersEnd = headersFrom + headersLength
      const payload = bytes.subarray(headersEnd, end - CHECKSUM_BYTES)
      if (!this.verified(bytes.subarray(headersFrom, headersEnd), payload, NOTHING)) {
        return bytes.length
      }
      at = end
    }
  }

  /** Adds to the large message; returns the bytes after it. Its checksum is computed as it arrives. */
  private continued(chunk: Buffer, open: Open): Buffer {
    const { length, headersLength, parts } = open
    const part = chunk.subarray(0, length - open.size)
    const summed = part.subarray(0, Math.max(0, length - CHECKSUM_BYTES - open.size))
    open.checksum = crc32(summed, open.checksum)
    open.size += part.length
    parts.push(part)
    if (open.size < length) return chunk.subarray(part.length)
    this.open = null
    if (between(parts, length - CHECKSUM_BYTES, length).readUInt32BE(0) !== open.checksum) {
      this.fault = WRONG_CHECKSUM
      return chunk
    }
    const headersEnd = PRELUDE_BYTES + headersLength
    const [payload = EMPTY, ...more] = partsBetween(parts, headersEnd, length - CHECKSUM_BYTES)
    this.verified(between(parts, PRELUDE_BYTES, headersEnd), payload, more)
    return chunk.subarray(part.length)
  }

  /** Passes on a message whose checksum is right; false if its headers are malformed. */
  private verified(block: Buffer, payload: Buffer, more: readonly Buffer[]): boolean {
    const isRead = this.readHeaders(block)
    if (isRead) this.take({ headers: this.headers, payload, more })
    else this.fault = 'the headers of a message are malformed'
    return isRead
  }

  /** False if the block is malformed. */
  private readHeaders(block: Buffer): boolean {
    if (this.block.equals(block)) return true
    const headers = headersIn(block)
    if (headers === null) return false
    // A copy, because a slice would keep the whole chunk in memory.
    this.block = Buffer.from(block)
    this.headers = headers
    return true
  }
}

const EMPTY = Buffer.alloc(0)
const WRONG_CHECKSUM = 'the checksum of a message is wrong'

/** The bytes from an offset to another in a message that arrived in parts. */
function partsBetween(parts: readonly Buffer[], from: number, to: number): Buffer[] {
  const found: Buffer[] = []
  let at = 0
  for (const part of parts) {
    const slice = part.subarray(Math.max(0, from - at), Math.max(0, to - at))
    if (slice.length > 0) found.push(slice)
    at += part.length
  }
  return found
}

function between(parts: readonly Buffer[], from: number, to: number): Buffer {
  return Buffer.concat(partsBetween(parts, from, to))
}

function preludeFault(
  bytes: Buffer,
  at: number,
  { length, headersLength }: { readonly length: number; readonly headersLength: number },
): string | null {
  if (crc32(bytes.subarray(at, at + 8)) !== bytes.readUInt32BE(at + 8)) {
    return 'the checksum of the lengths of a message is wrong'
  }
  const fits = headersLength <= length - PRELUDE_BYTES - CHECKSUM_BYTES
  if (length > MAX_MESSAGE_BYTES || headersLength > MAX_HEADERS_BYTES) return 'a message is too large'
  return fits ? null : 'the lengths of a message contradict each other'
}

/** The string headers; null if the block is malformed. */
function headersIn(block: Buffer): Record<string, string> | null {
  const headers: Record<string, string> = {}
  for (let at = 0; at < block.length;) {
    const nameEnd = at + 1 + block.readUInt8(at)
    if (nameEnd + 1 > block.length) return null
    const name = block.toString('utf8', at + 1, nameEnd)
    const type = block.readUInt8(nameEnd)
    at = nameEnd + 1
    let size = SIZES[type]
    if (type === STRING || type === BYTES) {
      if (at + 2 > block.length) return null
      size = block.readUInt16BE(at)
      at += 2
    }
    if (size === undefined || at + size > block.length) return null
    if (type === STRING) headers[name] = block.toString('utf8', at, at + size)
    at += size
  }
  return headers
}

/** The name of the frame of an exception. Its data are the error as Bedrock's HTTP errors have it. */
export const EXCEPTION = 'exception'

/**
 * A framer for the messages of Bedrock: `aws-events` emits the payload of each under the name of its event;
 * `aws-chunks` (InvokeModel) emits the Messages event that each payload has as base64, and an exception as an
 * Anthropic `error` event. A large message, and those after it, are read in turns of their own.
 */
class AwsEventFramer extends SseFramer {
  private readonly reader = new AwsMessageReader((message) => this.arrived(message))
  private readonly isChunked: boolean
  private hasEnded = false
  private streamFault: WireError | null = null
  /** The messages that wait, and the large one that is being read. */
  private waiting: AwsMessage[] = []
  private reading: Steps<void> | null = null

  constructor(framing: Framing, sink: FrameSink, options: SseOptions) {
    super(sink, options)
    this.isChunked = framing === 'aws-chunks'
  }

  override get overflow(): boolean {
    return this.fault !== null || super.overflow
  }

  override get fault(): WireError | null {
    return this.streamFault
  }

  /** False: the bytes of this framing are never those of the client. */
  override get isBetweenEvents(): boolean {
    return false
  }

  override get isPending(): boolean {
    return this.reading !== null || this.waiting.length > 0
  }

  override more(): void {
    for (let left = PARTS_PER_TURN; left > 0 && this.isPending; left--) {
      if (this.reading === null) this.next()
      else if (this.reading.next().done === true) this.reading = null
    }
    if (super.overflow) {
      this.waiting = []
      this.reading = null
    }
    if (!this.isPending) this.checkReader()
  }

  override write(chunk: Buffer): void {
    if (this.overflow) return
    this.reader.write(chunk)
    if (!this.isPending) this.checkReader()
  }

  /** A connection that closes within a message, or without the terminator, truncates the reply. */
  override end(): void {
    while (this.isPending) this.more()
    if (this.overflow) return
    if (this.reader.isWithinMessage || (this.isChunked && !this.hasEnded)) {
      this.streamFault = { ...TRUNCATED_REPLY }
    }
    super.end()
  }

  private checkReader(): void {
    const { fault } = this.reader
    if (fault === null) return
    const message = MALFORMED_REPLY.message.replace(/\.$/, `: ${fault}.`)
    this.streamFault ??= { ...MALFORMED_REPLY, message }
  }

  private arrived(message: AwsMessage): void {
    if (!this.isPending && !isLarge(message)) this.message(message)
    else this.waiting.push(message)
  }

  private next(): void {
    const message = this.waiting.shift()
    if (message === undefined) return
    if (isLarge(message) && !isException(message)) this.reading = this.large(message)
    else this.message(message)
  }

  private message(message: AwsMessage): void {
    if (this.overflow) return
    const { headers, payload } = message
    if (isException(message)) return this.exception(headers, payload)
    const name = headers[':event-type'] ?? ''
    if (!this.isChunked) return this.emit(name, payload)
    const event = name === 'chunk' ? chunkIn(payload) : null
    if (event === null) return
    const type = typeOf(event)
    if (type !== undefined) this.emit(type, this.inner(type, event))
  }

  private exception(headers: AwsMessage['headers'], payload: Buffer): void {
    const error = errorIn(headers, payload)
    this.hasEnded = true
    if (this.isChunked) this.emit('error', Buffer.from(JSON.stringify(anthropicErrorOf(error))))
    else this.emit(EXCEPTION, Buffer.from(JSON.stringify(error)))
  }

  /** The event of a chunk. The only other member of the last one has Amazon's own counts. */
  private inner(type: string, event: Buffer): Buffer {
    if (type !== 'message_stop') return event
    this.hasEnded = true
    return MESSAGE_STOP
  }

  private emit(name: string, json: Buffer): void {
    const data = json.toString(this.keepsRaw ? 'latin1' : 'utf8')
    // Line breaks in JSON are white space.
    const isOneLine = !json.includes(LINE_FEED) && !json.includes(CARRIAGE_RETURN)
    const line = isOneLine ? data : data.replace(/[\r\n]/g, ' ')
    this.feed(`event: ${name}\ndata: ${line}\n\n`, false)
  }

  /** Emits a large message, a part of it in each step. */
  private *large({ headers, payload, more }: AwsMessage): Steps<void> {
    const name = headers[':event-type'] ?? ''
    const parts = [payload, ...more]
    if (!this.isChunked) return yield* this.emitParts(name, parts)
    if (name !== 'chunk') return
    const event: Buffer[] = []
    for (const text of base64In(parts)) {
      event.push(Buffer.from(text, 'base64'))
      yield
    }
    const head = between(event, 0, HEAD_BYTES).toString('latin1')
    const type = TYPE.exec(head)?.[1] ?? typeOf(Buffer.concat(event))
    if (type === undefined) return
    if (type === 'message_stop') this.emit(type, this.inner(type, EMPTY))
    else yield* this.emitParts(type, event)
  }

  private *emitParts(name: string, parts: readonly Buffer[]): Steps<void> {
    super.write(Buffer.from(`event: ${name}\ndata: `))
    for (const part of smallParts(parts)) {
      const isOneLine = !part.includes(LINE_FEED) && !part.includes(CARRIAGE_RETURN)
      super.write(isOneLine ? part : oneLine(part))
      yield
    }
    super.write(Buffer.from('\n\n'))
  }
}

/** Parts that are read in one turn; a scan of them takes some milliseconds. */
const PARTS_PER_TURN = 8
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const MESSAGE_STOP = Buffer.from('{"type":"message_stop"}')

/** The parts, and those that are larger than a step in several. */
function* smallParts(parts: readonly Buffer[]): Generator<Buffer> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += PART_BYTES) yield part.subarray(at, at + PART_BYTES)
  }
}

function isLarge({ payload, more }: AwsMessage): boolean {
  return payload.length > PART_BYTES || more.length > 0
}

function isException({ headers }: AwsMessage): boolean {
  const type = headers[':message-type']
  return type === 'exception' || type === 'error'
}

function oneLine(json: Buffer): Buffer {
  return Buffer.from(json.toString('latin1').replace(/[\r\n]/g, ' '), 'latin1')
}

/** The type of an event, which is its first member in all of Anthropic's streams. */
const TYPE = /^\{"type":"([a-z_]{1,64})"/
/** Longer than its match. */
const HEAD_BYTES = 80

/** Undefined for chunks without a type, which are no events of the Messages API. */
function typeOf(event: Buffer): string | undefined {
  const head = event.toString('latin1', 0, HEAD_BYTES)
  return TYPE.exec(head)?.[1] ?? stringOf(objectOf(parsedJson(event.toString('utf8'))).type)
}

/** The start of a chunk in all of Bedrock's streams. */
const CHUNK_START = '{"bytes":"'

/** The JSON text in a chunk `{"bytes": base64, "p": padding}`; null if there is none. */
function chunkIn(payload: Buffer): Buffer | null {
  const text = payload.toString('latin1')
  if (text.startsWith(CHUNK_START)) {
    const end = text.indexOf('"', CHUNK_START.length)
    // The decoder ignores the backslash of an escaped slash.
    return Buffer.from(text.slice(CHUNK_START.length, end), 'base64')
  }
  const bytes = stringOf(objectOf(parsedJson(text)).bytes)
  return bytes === undefined ? null : Buffer.from(bytes, 'base64')
}

/** The base64 text of a large chunk, in parts that can be decoded alone. */
function* base64In(parts: readonly Buffer[]): Generator<string> {
  let rest = ''
  for (const part of base64Parts(parts)) {
    const text = rest + (part.includes('\\') ? part.replaceAll('\\', '') : part)
    const whole = text.length - (text.length % 4)
    yield text.slice(0, whole)
    rest = text.slice(whole)
  }
  yield rest
}

function* base64Parts(parts: readonly Buffer[]): Generator<string> {
  const start = CHUNK_START.length
  if (between(parts, 0, start).toString('latin1') === CHUNK_START) {
    for (const part of smallParts(partsBetween(parts, start, Infinity))) {
      const text = part.toString('latin1')
      const end = text.indexOf('"')
      yield end === -1 ? text : text.slice(0, end)
      if (end !== -1) return
    }
    return
  }
  const bytes = stringOf(objectOf(parsedJson(Buffer.concat(parts).toString('latin1'))).bytes) ?? ''
  for (let at = 0; at < bytes.length; at += PART_BYTES) yield bytes.slice(at, at + PART_BYTES)
}

/** An error as the body of an HTTP error has it: `__type` and `message`. */
function errorIn(headers: AwsMessage['headers'], payload: Buffer): JsonObject {
  const name = headers[':exception-type'] ?? headers[':error-code'] ?? ''
  const body = objectOf(parsedJson(payload.toString('utf8')))
  const message = body.message ?? headers[':error-message'] ?? ''
  return { ...body, __type: name, message }
}

/** The framer of a stream with this framing. */
export function newFramer(framing: Framing, sink: FrameSink, options: SseOptions = {}): SseFramer {
  return framing === 'sse' ? new SseFramer(sink, options) : new AwsEventFramer(framing, sink, options)
}
