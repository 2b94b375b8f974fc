/**
 * The heads that an upstream's replies came with. One reply's head is most often another's but for a few
 * values: the date, an id, the length. What is the same is not read again. Knows no connection.
 */
import { headEnd, ownFields } from '../wire/http-message.js'
import { parseReplyHead, replyHead, type ReplyHead } from './reply-head.js'

/** As many kinds of head are remembered: of whole replies, of streams, with what comes only at times. */
const MAX_KNOWN = 4
/** Larger heads are read each time. */
const MAX_KNOWN_BYTES = 4096
/** After so many in a row of which none was like one before it, no more are remembered. */
const MAX_STRANGERS = 64
/** So many replies are met with other values before those are taken over: ids never come again, a date does. */
const PATIENCE = 8
const TAB = 9
const CR = 13
const SPACE = 32
const COLON = 58
const DEL = 127
/** Fields that say more than their value: where the body ends, and what becomes of the connection. */
const DECIDING: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
])

/** Reads the heads of one upstream's replies. */
export class KnownReplies {
  private readonly known: KnownReply[] = []
  private strangers = 0
  private match: ReplyHead | null = null

  /** Where the head that begins at `from` ends: behind its empty line, or -1 while that has not come. */
  end(bytes: Buffer, from: number): number {
    for (const known of this.known) {
      const end = known.end(bytes, from)
      if (end === -1) continue
      this.strangers = 0
      this.match = known.match
      return end
    }
    this.match = null
    return headEnd(bytes, from)
  }

  /** The head between the two, of which `end` has just told; null where it is none. */
  read(bytes: Buffer, from: number, to: number): ReplyHead | null {
    if (this.match !== null) return this.match
    const head = parseReplyHead(bytes.toString('latin1', from, to))
    // Others are rare, and some of them have no body whatever their fields say.
    if (head?.status !== 200 || to - from > MAX_KNOWN_BYTES) return head
    this.strangers += 1
    return this.strangers > MAX_STRANGERS ? head : this.remember(head, bytes, from, to)
  }

  private remember(head: ReplyHead, bytes: Buffer, from: number, to: number): ReplyHead {
    const own = { ...head, headers: ownFields(head.headers) }
    this.known.unshift(new KnownReply(own, Buffer.from(bytes.subarray(from, to))))
    if (this.known.length > MAX_KNOWN) this.known.pop()
    return own
  }
}

/** A value that is another: whose it is, and where it stands. */
interface Change {
  readonly field: number
  readonly from: number
  readonly to: number
}

/** One head, and where its values are. */
class KnownReply {
  /** What the head said of which `end` told last. */
  match: ReplyHead
  private head: ReplyHead
  private readonly bytes: Buffer
  /** By field: where its value begins, and where its line ends. */
  private readonly starts: number[] = []
  private readonly stops: number[] = []
  /** As much of it as came again the last time: compared at one go. */
  private steady: number
  private misses = 0

  constructor(head: ReplyHead, bytes: Buffer) {
    this.head = head
    this.match = head
    this.bytes = bytes
    this.steady = bytes.length
    for (let at = bytes.indexOf(CR) + 2; at < bytes.length - 2;) {
      let start = bytes.indexOf(COLON, at) + 1
      while (isBlank(bytes[start])) start += 1
      const stop = bytes.indexOf(CR, at)
      this.starts.push(start)
      this.stops.push(stop)
      at = stop + 2
    }
  }

  /** Where the bytes from `from` on are this head but for some values, its end; else -1. */
  end(bytes: Buffer, from: number): number {
    const { bytes: known, starts, stops } = this
    let changes: Change[] | null = null
    const begun = this.isSteady(bytes, from) ? this.steady : 0
    let at = from + begun
    let field = 0
    for (let i = begun; i < known.length;) {
      if (known[i] === bytes[at]) {
        i += 1
        at += 1
        continue
      }
      while ((stops[field] ?? Infinity) < i) field += 1
      const start = starts[field] ?? Infinity
      if (i < start) return -1
      const first = at - (i - start)
      at = valueEnd(bytes, first, at)
      if (at === -1) return -1
      if (changes === null) {
        changes = []
        this.steady = start
      }
      changes.push({ field, from: first, to: at })
      i = stops[field] ?? Infinity
    }
    const match = changes === null ? this.head : this.changed(bytes, changes)
    if (match === null) return -1
    this.match = match
    return at
  }

  private isSteady(bytes: Buffer, from: number): boolean {
    const end = from + this.steady
    return end <= bytes.length && this.bytes.compare(bytes, from, end, 0, this.steady) === 0
  }

  /** The head with other values; null where they make none. */
  private changed(bytes: Buffer, changes: readonly Change[]): ReplyHead | null {
    const { version, status, framing, isLast, keepAliveMs, headers: before } = this.head
    const headers = [...before]
    let isAlike = true
    let decides = false
    for (const { field, from, to } of changes) {
      headers[2 * field + 1] = bytes.toString('latin1', from, to)
      if (DECIDING.has(headers[2 * field] ?? '')) decides = true
      if (to - from !== (this.stops[field] ?? 0) - (this.starts[field] ?? 0)) isAlike = false
    }
    const head = decides
      ? replyHead(version, status, headers)
      : { version, status, headers, framing, isLast, keepAliveMs }
    this.misses += 1
    if (this.misses >= PATIENCE && head !== null && isAlike) this.become(head, bytes, changes)
    return head
  }

  /** What came last is the likeliest to come again, and each value has its room. */
  private become(head: ReplyHead, bytes: Buffer, changes: readonly Change[]): void {
    this.misses = 0
    this.steady = this.bytes.length
    this.head = head
    for (const { field, from, to } of changes) {
      bytes.copy(this.bytes, this.starts[field], from, to)
    }
  }
}

/** Where the value ends that begins at `from`, and is the known one's up to `at`; -1 where it is none. */
function valueEnd(bytes: Buffer, from: number, at: number): number {
  let end = at
  while (isText(bytes[end])) end += 1
  if (bytes[end] !== CR || isBlank(bytes[from]) || isBlank(bytes[end - 1])) return -1
  return end
}

function isText(code: number | undefined): boolean {
  return code !== undefined && ((code >= SPACE && code !== DEL) || code === TAB)
}

function isBlank(code: number | undefined): boolean {
  return code === SPACE || code === TAB
}
