/**
 * Bytes of a `text/event-stream` to frames, by the rules of WHATWG HTML, "event stream interpretation".
 * Knows nothing of what the data mean, and never throws: what is wrong it says in its properties.
 */
import { StringDecoder } from 'node:string_decoder'
import type { Framer, FrameSink } from './framer.js'

/** What a framer may be told. */
export interface SseOptions {
  /**
   * The most that one event may hold, in characters of its lines (bytes where `bytes` is set);
   * 16 MiB, since single events with images or encrypted reasoning reach megabytes.
   */
  maxEventBytes?: number
  /** Decode as latin1, so that nothing is lost, and keep each frame's exact text in `raw`. */
  bytes?: boolean
}

const MAX_EVENT_BYTES = 16 * 1024 * 1024
const CR = '\r'
const LF = '\n'
const COLON = 58
const SPACE = 32
const LF_CODE = 10
const BRACE = 123
const DATA = 'data: '
const BOM = '\uFEFF'
const BOM_BYTES = '\u00EF\u00BB\u00BF'

/**
 * Cuts a byte stream into frames; the same frames however the bytes were chunked.
 *
 * Two departures from WHATWG, both on purpose: a frame whose data are empty is not delivered, and
 * an event that the end of the stream cuts off before its blank line is delivered if its data are
 * whole JSON (or `[DONE]`), since some proxies drop the last line. `id` and `retry` are read over:
 * nothing here reconnects.
 *
 * A third, for upstreams that fail in the middle and then write a plain body: lines that are no field
 * and together are a JSON object with an `error` are delivered as a frame.
 */
export class SseFramer implements Framer {
  private readonly sink: FrameSink
  private readonly max: number
  private readonly keepsRaw: boolean
  /** Null where bytes are kept: latin1 has no split characters. */
  private readonly decoder: StringDecoder | null
  /** The start of a line whose end has not come. Grows as a rope; flattened once, at the line's end. */
  private partial = ''
  private deferredCr = false
  private isFirstLine = true
  private name = ''
  private data: string | null = null
  /** Lines that are no field, from one that begins an object on; '' nearly always. */
  private bare = ''
  /** Characters of the lines of the event that has begun; 0 between events. */
  private size = 0
  /** The chunk under work and the offset of its first character that no frame has taken. */
  private chunk = ''
  private chunkFrom = 0
  private heldRaw = ''
  private unframed = ''
  private rawText = ''
  private leadLength = 0
  private hasOverflowed = false
  private isTailTruncated = false
  /** The name that came twice in a row, how a frame with it begins, and the name that came last. */
  private knownName = ''
  private knownStart = ''
  private lastName = ''

  constructor(sink: FrameSink, options: SseOptions = {}) {
    this.sink = sink
    this.max = options.maxEventBytes ?? MAX_EVENT_BYTES
    this.keepsRaw = options.bytes ?? false
    this.decoder = this.keepsRaw ? null : new StringDecoder('utf8')
  }

  /** True once an event was larger than the cap; its text is dropped and all that follows ignored. */
  get overflow(): boolean {
    return this.hasOverflowed
  }

  /** True after end() where the stream stopped inside an event that could not be read. */
  get truncatedTail(): boolean {
    return this.isTailTruncated
  }

  /**
   * The text of the frame that is being delivered, with what came before it since the last frame or
   * `takeLoose()`; written back as latin1 it is byte-exact. Empty where `bytes` is not set.
   */
  get raw(): string {
    return this.rawText
  }

  /** The part of `raw` that belongs to no frame: what is left of it where the frame is held back. */
  get lead(): string {
    return this.rawText.slice(0, this.leadLength)
  }

  /** Characters (bytes where `bytes` is set) of the event that has begun and not ended. */
  get pendingBytes(): number {
    return this.size + this.partial.length
  }

  /** True where the next chunk starts a line between events: nothing of the last one waits for it. */
  get isBetweenEvents(): boolean {
    return this.pendingBytes === 0 && !this.deferredCr
  }

  /**
   * Text that belongs to no frame (comments, blank lines and, after end(), whatever is left), as
   * latin1, once. A pass-through writes it after each write() and after end(); where `bytes` is not
   * set it is empty.
   */
  takeUnframed(): string {
    const text = this.unframed
    this.unframed = ''
    return text
  }

  write(chunk: Buffer): void {
    if (this.isDead()) return
    this.feed(this.decoder === null ? chunk.toString('latin1') : this.decoder.write(chunk), false)
  }

  end(): void {
    if (this.isDead()) return
    this.feed(this.decoder === null ? '' : this.decoder.end(), true)
    if (this.isDead()) return
    const tail = this.partial
    this.partial = ''
    if (tail !== '') this.line(tail, 0, tail.length, 0)
    if (this.isDead()) return
    if (this.data === null ? isError(this.bare) : isWhole(this.data)) this.blank(0)
    else this.isTailTruncated = this.size > 0
    this.unframed += this.heldRaw
    this.heldRaw = ''
  }

  private feed(decoded: string, isLast: boolean): void {
    let text = this.deferredCr ? CR + decoded : decoded
    // A CR at the end may be half of a CRLF: it waits for the next chunk.
    this.deferredCr = !isLast && text.endsWith(CR)
    if (this.deferredCr) text = text.slice(0, -1)
    this.chunk = text
    this.chunkFrom = 0
    const rest = this.lines(text)
    this.chunk = ''
    if (this.isDead()) return
    this.partial += text.slice(rest)
    if (this.keepsRaw) this.heldRaw += text.slice(this.chunkFrom)
    this.chunkFrom = 0
    if (this.size + this.partial.length > this.max) this.drop()
  }

  /** Takes every complete line; answers where the incomplete one starts. */
  private lines(text: string): number {
    let at = 0
    let lf = -1
    let cr = find(text, CR, 0)
    while (at < text.length) {
      if (cr < at) cr = find(text, CR, at)
      if (this.size === 0) {
        const after = this.wholeFrame(text, at, cr)
        if (after > at) {
          at = after
          continue
        }
      }
      if (lf < at) lf = find(text, LF, at)
      const end = lf < cr ? lf : cr
      if (end === Infinity) return at
      const after = end === cr && lf === cr + 1 ? end + 2 : end + 1
      if (this.partial === '') this.line(text, at, end, after)
      else {
        const line = this.partial + text.slice(at, end)
        this.partial = ''
        this.line(line, 0, line.length, after)
      }
      if (this.isDead()) return 0
      if (this.keepsRaw && this.size === 0) this.addUnframed(after)
      at = after
    }
    return at
  }

  /**
   * Takes a frame as nearly all are, `data: …` LF LF in one chunk, behind the line of its name where that has come
   * before: it needs no state. Answers where the next one starts; `at` where this is none.
   */
  private wholeFrame(text: string, at: number, cr: number): number {
    if (this.partial !== '' || this.isFirstLine) return at
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

  /** One line of `source`, without its end; `after` is where the next one starts in the chunk. */
  private line(source: string, from: number, end: number, after: number): void {
    let start = from
    if (this.isFirstLine) {
      this.isFirstLine = false
      const bom = this.keepsRaw ? BOM_BYTES : BOM
      if (source.startsWith(bom, start)) start += bom.length
    }
    if (start === end) return this.blank(after)
    const isComment = source.charCodeAt(start) === COLON
    if (this.size + end - start > this.max) return this.drop()
    // A comment between events is nobody's; inside one it counts towards the cap.
    if (!isComment || this.size > 0) this.size += end - start
    if (!isComment) this.field(source, start, end)
  }

  private field(source: string, start: number, end: number): void {
    if (source.startsWith('data:', start)) this.addData(value(source, start + 5, end))
    else if (source.startsWith('event:', start)) this.name = value(source, start + 6, end)
    else if (end - start === 4 && source.startsWith('data', start)) this.addData('')
    else if (end - start === 5 && source.startsWith('event', start)) this.name = ''
    else if (this.bare !== '' || source.charCodeAt(start) === BRACE) {
      this.bare += source.slice(start, end) + LF
    }
  }

  private addData(text: string): void {
    this.data = this.data === null ? text : this.data + LF + text
  }

  private blank(after: number): void {
    const { name, bare } = this
    const data = this.data ?? (isError(bare) ? bare : null)
    this.name = ''
    this.data = null
    this.bare = ''
    this.size = 0
    if (name === this.lastName) this.cacheName(name)
    this.lastName = name
    if (data !== null && data !== '') this.deliver(name, data, after)
  }

  /** Both are made anew: a slice would keep all of its chunk in memory. */
  private cacheName(name: string): void {
    if (name === '' || name === this.knownName) return
    this.knownStart = Buffer.from(`event: ${name}\n${DATA}`).toString()
    this.knownName = Buffer.from(name).toString()
  }

  private deliver(name: string, data: string, after: number): void {
    if (!this.keepsRaw) return this.sink.frame(name, data)
    this.leadLength = this.unframed.length
    this.rawText = this.unframed + this.heldRaw + this.chunk.slice(this.chunkFrom, after)
    this.unframed = ''
    this.heldRaw = ''
    this.chunkFrom = after
    this.sink.frame(name, data)
    this.rawText = ''
  }

  private addUnframed(after: number): void {
    this.unframed += this.heldRaw + this.chunk.slice(this.chunkFrom, after)
    this.heldRaw = ''
    this.chunkFrom = after
  }

  private isDead(): boolean {
    return this.hasOverflowed
  }

  private drop(): void {
    this.hasOverflowed = true
    this.partial = ''
    this.name = ''
    this.data = null
    this.bare = ''
    this.size = 0
    this.heldRaw = ''
    this.unframed = ''
  }
}

function find(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from)
  return at === -1 ? Infinity : at
}

function value(source: string, from: number, end: number): string {
  return source.slice(from < end && source.charCodeAt(from) === SPACE ? from + 1 : from, end)
}

function isWhole(data: string): boolean {
  return data === '[DONE]' || parsed(data) !== undefined
}

function isError(bare: string): boolean {
  if (bare === '') return false
  const value = parsed(bare)
  return typeof value === 'object' && value !== null && 'error' in value
}

/** Undefined where it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
