/**
 * Splits the bytes of a `text/event-stream` into frames, by the rules of WHATWG HTML, "event stream
 * interpretation". Never throws: its properties report an event that is too large and a truncated end.
 */
import { isAscii } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import type { WireError } from '../../../errors.js'
import { isObject } from '../../../base/json.js'
import { errorIn } from '../error-text.js'
import { mayBeDeep, ReplyScan } from '../json/reply-scan.js'

export interface SseOptions {
  /**
   * Maximum size of one event in characters of its lines, or in bytes if `bytes` is set (default 16 MiB:
   * single events with images or encrypted reasoning have megabytes).
   */
  maxEventBytes?: number
  /** Decode as Latin-1, which preserves all bytes, and keep the exact text of each frame in `raw`. */
  bytes?: boolean
  /**
   * With `bytes`: an event that is larger than this, or exceeds a limit of `ReplyScan`, is not kept. Its
   * bytes are text without a frame as they arrive, and the data of its frame are an outline.
   */
  maxKeptBytes?: number
}

const MAX_EVENT_BYTES = 16 * 1024 * 1024
/** Larger events are scanned while they arrive, because parsing them may take long. */
const LARGE_BYTES = 256 * 1024
/** Shorter events cannot be nested so deeply that reading them fails. */
const SHALLOW_BYTES = 8 * 1024
/** Chunks are read in parts of this size, so that a large event is noticed. */
export const PART_BYTES = 64 * 1024
/** A longer object that is not in fields is not an error of an upstream. */
const MAX_BARE_CHARS = 64 * 1024
const CR = '\r'
const LF = '\n'
const COLON = 58
const SPACE = 32
const LF_CODE = 10
const BRACE = 123
const DATA = 'data: '
const BOM = Buffer.from('\uFEFF')

/**
 * Emits the same frames regardless of chunk boundaries. `id` and `retry` are ignored, because the gateway
 * does not reconnect.
 *
 * Five differences from WHATWG: a frame with empty data is not emitted; an event without a blank line at the
 * end of the stream is emitted if its data are valid JSON or `[DONE]`, because some proxies drop the last
 * line; lines that are not fields and together form a JSON object with an `error` are emitted as a frame,
 * because some upstreams fail within a stream and write a plain body; the field `error`, of llama.cpp's older
 * servers, is an event `error` with these data; consecutive `data` lines of which each is a JSON object or
 * `[DONE]` are events of their own, because some servers end events with one line feed.
 */
export class SseFramer implements Framer {
  private readonly sink: FrameSink
  private readonly max: number
  protected readonly keepsRaw: boolean
  private readonly maxKept: number | null
  /** Null if bytes are kept, because Latin-1 characters are not split by chunks. */
  private readonly decoder: StringDecoder | null
  /** The start of an incomplete line. */
  private partial = ''
  private deferredCr = false
  /** The first bytes, while they may be a byte order mark, which some clients do not expect. */
  private start: Buffer | null = Buffer.alloc(0)
  private name = ''
  private data: string | null = null
  /** Lines that are not fields, from a line that begins an object on; nearly always empty. */
  private bare = ''
  /** Characters of the lines of the open event; 0 between events. */
  private size = 0
  /** The current chunk, and the offset of its first character that belongs to no frame yet. */
  private chunk = ''
  private chunkFrom = 0
  /** The offset in the chunk of the line after the one that is being processed. */
  private nextLine = 0
  private pendingRaw = ''
  private unframed = ''
  private rawText = ''
  private leadLength = 0
  private hasOverflowed = false
  private isTailTruncated = false
  /**
   * The last name of two events in sequence, the start of a frame with it, and the name of the last event.
   */
  private knownName = ''
  private knownStart = ''
  private lastName = ''
  /** The scan of the data of a large event; null for other events. */
  private scan: ReplyScan | null = null
  /** The incomplete line has data, and was scanned up to the end of the chunk. */
  private isLineScanned = false
  /** The open event is not kept. */
  private isPassed = false
  private limit: string | null = null
  private hasLineEvents = false

  constructor(sink: FrameSink, options: SseOptions = {}) {
    this.sink = sink
    this.max = options.maxEventBytes ?? MAX_EVENT_BYTES
    this.keepsRaw = options.bytes ?? false
    this.maxKept = options.maxKeptBytes ?? null
    this.decoder = this.keepsRaw ? null : new StringDecoder('utf8')
  }

  /** True after an event exceeded the limit. Its text is dropped, and all later input is ignored. */
  get overflow(): boolean {
    return this.hasOverflowed
  }

  /** The error of a framing that is broken; always null for server-sent events. */
  get fault(): WireError | null {
    return null
  }

  /**
   * Input is waiting, because a large message is read in turns of the event loop of its own: `more` is called
   * once in each turn while this is true. Always false for server-sent events, which are read as they arrive.
   */
  get isPending(): boolean {
    return false
  }

  /** Reads a part of what is waiting. */
  more(): void {
    // Nothing waits.
  }

  /** The limit of `ReplyScan` that the event exceeded before `overflow`; null if it was its size. */
  get excess(): string | null {
    return this.limit
  }

  /** The scan of the event that is open or being emitted, if it is larger than 256 KiB; else null. */
  get largeEvent(): ReplyScan | null {
    return this.scan
  }

  /** True while a frame is emitted whose data are an outline. */
  get isOutline(): boolean {
    return this.isPassed || (this.scan !== null && this.scan.excess !== null)
  }

  /** True while such an event is not kept: a part of it may have been forwarded. */
  get passesEvent(): boolean {
    return this.isPassed
  }

  /** True after end() if the stream ended within an incomplete event. */
  get truncatedTail(): boolean {
    return this.isTailTruncated
  }

  /**
   * The text of the frame that is being emitted, and the text before it since the last frame or
   * `takeUnframed()`. Encoded as Latin-1 it has the exact bytes. Empty unless `bytes` is set.
   */
  get raw(): string {
    return this.rawText
  }

  /** The part of `raw` before the frame, which is forwarded even if the frame is not. */
  get lead(): string {
    return this.rawText.slice(0, this.leadLength)
  }

  /** Characters of the incomplete event (bytes if `bytes` is set). */
  get pendingBytes(): number {
    return this.size + this.partial.length + (this.start?.length ?? 0)
  }

  /** True if lines were events of their own, whose `raw` is corrected. */
  get isRewritten(): boolean {
    return this.hasLineEvents
  }

  /** True if no line or event is incomplete. */
  get isBetweenEvents(): boolean {
    return this.pendingBytes === 0 && !this.deferredCr
  }

  /**
   * Returns and removes text that belongs to no frame: comments, blank lines and, after end(), the incomplete
   * rest. A pass-through forwards it after each write() and after end(). Latin-1; empty unless `bytes` is
   * set.
   */
  takeUnframed(): string {
    const text = this.unframed
    this.unframed = ''
    return text
  }

  write(chunk: Buffer): void {
    if (this.isStopped()) return
    if (chunk.length > PART_BYTES) {
      this.write(chunk.subarray(0, PART_BYTES))
      this.write(chunk.subarray(PART_BYTES))
      return
    }
    const bytes = this.start === null ? chunk : this.afterMark(chunk, this.start)
    this.feed(this.decoder === null ? bytes.toString('latin1') : this.decoder.write(bytes), false)
  }

  /** The first bytes of the stream without a byte order mark; none while they may be a part of it. */
  private afterMark(chunk: Buffer, before: Buffer): Buffer {
    const start = before.length === 0 ? chunk : Buffer.concat([before, chunk])
    const isPart = start.length < BOM.length && BOM.subarray(0, start.length).equals(start)
    this.start = isPart ? start : null
    if (isPart) return start.subarray(start.length)
    return start.subarray(0, BOM.length).equals(BOM) ? start.subarray(BOM.length) : start
  }

  end(): void {
    if (this.isStopped()) return
    const { decoder, start } = this
    this.start = null
    if (start !== null) this.feed(decoder === null ? start.toString('latin1') : decoder.write(start), false)
    this.feed(decoder === null ? '' : decoder.end(), true)
    if (this.isStopped()) return
    const tail = this.partial
    this.partial = ''
    this.nextLine = 0
    if (tail !== '') this.line(tail, 0, tail.length)
    if (this.isStopped()) return
    if (this.isTailWhole()) this.blank()
    else this.isTailTruncated = this.size > 0
    this.unframed += this.pendingRaw
    this.pendingRaw = ''
  }

  /** Takes decoded text: Latin-1 if `bytes` is set. */
  protected feed(decoded: string, isLast: boolean): void {
    let text = this.deferredCr ? CR + decoded : decoded
    // A CR at the end may be the first half of a CRLF, so it is processed with the next chunk.
    this.deferredCr = !isLast && text.endsWith(CR)
    if (this.deferredCr) text = text.slice(0, -1)
    this.chunk = text
    this.chunkFrom = 0
    const rest = this.lines(text)
    this.chunk = ''
    if (this.isStopped()) return
    this.partial += text.slice(rest)
    if (this.keepsRaw) this.pendingRaw += text.slice(this.chunkFrom)
    this.chunkFrom = 0
    const pending = this.size + this.partial.length
    if (pending > LARGE_BYTES) this.scanLarge(text.slice(rest))
    if (pending > this.max && !this.isStopped()) this.drop()
  }

  private isTailWhole(): boolean {
    if (this.scan !== null) return this.scan.isComplete
    return this.data === null ? isError(this.bare) : isWhole(this.data)
  }

  /** Scans what arrived of a large event with the last chunk, whose incomplete line ends with `rest`. */
  private scanLarge(rest: string): void {
    if (this.keepsRaw && this.maxKept === null) return
    const { partial } = this
    if (this.scan === null) {
      this.scan = new ReplyScan()
      if (this.data !== null) scanText(this.scan, this.data)
    }
    const { scan } = this
    if (this.isLineScanned) scanText(scan, rest)
    else if (partial.startsWith('data:')) {
      this.isLineScanned = true
      if (this.data !== null) scan.addLine()
      scanText(scan, value(partial, 5, partial.length))
    }
    if (this.maxKept === null) {
      if (scan.excess !== null) this.drop(scan.excess)
      return
    }
    if (scan.excess !== null || this.size + partial.length > this.maxKept) this.isPassed = true
    if (!this.isPassed) return
    this.unframed += this.pendingRaw
    this.pendingRaw = ''
    this.data = ''
    if (!this.isLineScanned) return
    this.size += partial.length
    this.partial = ''
  }

  /** The end of a line of a large event that was scanned up to here. */
  private scannedLine(text: string, at: number, end: number): void {
    this.isLineScanned = false
    if (this.scan !== null) scanText(this.scan, text.slice(at, end))
    if (this.isPassed) this.size += end - at
    else {
      const line = this.partial + text.slice(at, end)
      this.size += line.length
      const data = value(line, 5, line.length)
      this.data = this.data === null ? data : this.data + LF + data
    }
    this.partial = ''
  }

  /** Takes every complete line; returns the offset of the incomplete one. */
  private lines(text: string): number {
    let at = 0
    let lf = -1
    let cr = find(text, CR, 0)
    while (at < text.length) {
      if (cr < at) cr = find(text, CR, at)
      if (this.size === 0) {
        const after = this.wholeFrame(text, at, cr)
        if (after > at) {
          if (this.isStopped()) return 0
          at = after
          continue
        }
      }
      if (lf < at) lf = find(text, LF, at)
      const end = lf < cr ? lf : cr
      if (end === Infinity) return at
      const after = end === cr && lf === cr + 1 ? end + 2 : end + 1
      this.nextLine = after
      if (this.isLineScanned) this.scannedLine(text, at, end)
      else if (this.partial === '') this.line(text, at, end)
      else {
        const line = this.partial + text.slice(at, end)
        this.partial = ''
        this.line(line, 0, line.length)
      }
      if (this.isStopped()) return 0
      if (this.keepsRaw && this.size === 0) this.addUnframed(after)
      at = after
    }
    return at
  }

  /**
   * Takes a frame of the most common form without any state: `data: …` LF LF within one chunk, after an
   * `event:` line with the known name if there is one. Returns the offset of the next frame; `at` if the
   * frame has another form.
   */
  private wholeFrame(text: string, at: number, cr: number): number {
    if (this.partial !== '') return at
    const { knownStart } = this
    const isKnown = knownStart !== '' && text.slice(at, at + knownStart.length) === knownStart
    if (!isKnown && !text.startsWith(DATA, at)) return at
    const from = at + (isKnown ? knownStart.length : DATA.length)
    const lf = text.indexOf(LF, from)
    if (lf <= from || lf + 1 >= cr || lf - at > this.max) return at
    if (text.charCodeAt(lf + 1) !== LF_CODE) return at
    this.deliver(isKnown ? this.knownName : '', text.slice(from, lf), lf + 2)
    return lf + 2
  }

  /** Takes one line of `source` without its end. */
  private line(source: string, start: number, end: number): void {
    if (start === end) return this.blank()
    const isComment = source.charCodeAt(start) === COLON
    if (this.size + end - start > this.max) return this.drop()
    // A comment within an event counts towards the limit.
    if (!isComment || this.size > 0) this.size += end - start
    if (!isComment) this.field(source, start, end)
  }

  private field(source: string, start: number, end: number): void {
    if (source.startsWith('data:', start)) {
      if (this.bare !== '') this.endBare(end - start)
      this.addData(value(source, start + 5, end))
    } else if (source.startsWith('event:', start)) this.name = value(source, start + 6, end)
    else if (end - start === 4 && source.startsWith('data', start)) this.addData('')
    else if (end - start === 5 && source.startsWith('event', start)) this.name = ''
    else if (source.startsWith('error:', start)) {
      this.name = 'error'
      this.addData(value(source, start + 6, end))
    } else if (this.bare !== '' || source.charCodeAt(start) === BRACE) {
      this.bare += source.slice(start, end) + LF
      if (this.bare.length > MAX_BARE_CHARS) this.bare = ''
    }
  }

  /**
   * Delivers an error whose lines are not fields, and which a line of data follows without a blank line. That
   * line's `raw` is lost: no client gets what follows an error.
   */
  private endBare(lineLength: number): void {
    const { bare } = this
    this.bare = ''
    if (this.data !== null || !isError(bare)) return
    this.deliverLine(bare.trimEnd())
    this.size = lineLength
  }

  private addData(text: string): void {
    if (this.scan !== null) {
      if (this.data !== null) this.scan.addLine()
      scanText(this.scan, text)
    }
    if (this.isPassed) return
    const { data } = this
    // An event with a name ends with a blank line: its name and its data are two lines.
    if (this.name !== '') {
      this.data = data === null ? text : data + LF + text
      return
    }
    if (data !== null && this.scan === null && isLineEvent(text) && isLineEvent(data)) {
      this.hasLineEvents = true
      this.deliverLine(data)
      this.data = null
    }
    if (this.hasLineEvents && this.data === null && isLineEvent(text)) this.deliverLine(text)
    else this.data = this.data === null ? text : this.data + LF + text
  }

  /** Delivers an event that ends with one line feed, with the two that clients need. */
  private deliverLine(data: string): void {
    if (this.isStopped()) return
    this.rawText = this.unframed + `data: ${data}\n\n`
    this.leadLength = this.unframed.length
    this.unframed = ''
    this.pendingRaw = ''
    this.chunkFrom = this.nextLine
    this.size = 0
    const checked = data.length > SHALLOW_BYTES ? this.shallow(data) : data
    if (checked !== null) this.sink.frame(this.name, checked)
    this.rawText = ''
  }

  private blank(): void {
    const { name, bare, scan } = this
    const kept = this.isPassed ? (scan?.outline ?? '') : this.data
    const data = kept ?? (isError(bare) ? bare : null)
    this.name = ''
    this.data = null
    this.bare = ''
    this.size = 0
    if (name === this.lastName) this.cacheName(name)
    this.lastName = name
    if (data !== null && data !== '') this.deliver(name, data, this.nextLine)
    this.scan = null
    this.isPassed = false
  }

  /** Copies the name, because a slice would keep the whole chunk in memory. */
  private cacheName(name: string): void {
    if (name === '' || name === this.knownName) return
    this.knownStart = Buffer.from(`event: ${name}\n${DATA}`).toString()
    this.knownName = Buffer.from(name).toString()
  }

  private deliver(name: string, found: string, after: number): void {
    const data = found.length > SHALLOW_BYTES ? this.shallow(found) : found
    if (data === null) return
    if (!this.keepsRaw) return this.sink.frame(name, data)
    if (this.isPassed) {
      this.addUnframed(after)
      return this.sink.frame(name, data)
    }
    this.leadLength = this.unframed.length
    this.rawText = this.unframed + this.pendingRaw + this.chunk.slice(this.chunkFrom, after)
    this.unframed = ''
    this.pendingRaw = ''
    this.chunkFrom = after
    this.sink.frame(name, data)
    this.rawText = ''
    this.scan = null
  }

  /** The data; their outline, or null and an overflow, if an event of ordinary size exceeds a limit. */
  private shallow(data: string): string | null {
    if (this.scan !== null || (this.keepsRaw && this.maxKept === null)) return data
    if (!mayBeDeep(data)) return data
    const scan = new ReplyScan()
    scanText(scan, data)
    if (scan.excess === null) return data
    if (this.maxKept === null) {
      this.drop(scan.excess)
      return null
    }
    this.scan = scan
    return scan.outline
  }

  private addUnframed(after: number): void {
    this.unframed += this.pendingRaw + this.chunk.slice(this.chunkFrom, after)
    this.pendingRaw = ''
    this.chunkFrom = after
  }

  /** A method, because the type checker would narrow the property across calls that set it. */
  private isStopped(): boolean {
    return this.hasOverflowed
  }

  private drop(limit: string | null = null): void {
    this.limit = limit
    this.hasOverflowed = true
    this.scan = null
    this.isLineScanned = false
    this.partial = ''
    this.name = ''
    this.data = null
    this.bare = ''
    this.size = 0
    this.pendingRaw = ''
    this.unframed = ''
  }
}

function scanText(scan: ReplyScan, text: string): void {
  scan.add(text, isAscii(Buffer.from(text)))
}

function find(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from)
  return at === -1 ? Infinity : at
}

function value(source: string, from: number, end: number): string {
  return source.slice(from < end && source.charCodeAt(from) === SPACE ? from + 1 : from, end)
}

/** Whether the data are whole: `[DONE]`, or valid JSON. */
function isWhole(data: string): boolean {
  return data === '[DONE]' || parsed(data) !== undefined
}

/** Whether a line of data is an event of its own: `[DONE]`, or a JSON object. */
function isLineEvent(line: string): boolean {
  const text = line.trim()
  if (text === '[DONE]') return true
  return text.startsWith('{') && text.endsWith('}') && parsed(text) !== undefined
}

/** Whether the text is a JSON object with an error. */
function isError(text: string): boolean {
  const value = text === '' ? undefined : parsed(text)
  return isObject(value) && errorIn(value) !== null
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * How an upstream delimits the frames of a stream. A framer is synchronous, keeps incomplete frames, and
 * emits the same frames regardless of chunk boundaries.
 */
export type Framing =
  | 'sse'
  /** Bedrock's binary messages, each of which has one event as JSON. */
  | 'aws-events'
  /** The same, and each event is base64 in the JSON (InvokeModel). */
  | 'aws-chunks'

/** Receives frames: the name of the event (`''` if it has none) and its data. */
export interface FrameSink {
  frame(name: string, data: string): void
}

/** write() any number of times, then end() exactly once. */
interface Framer {
  write(chunk: Buffer): void
  end(): void
}
