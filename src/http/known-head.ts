/**
 * The head that came last on a connection. Clients repeat theirs to the byte, but for the length of the
 * body: what is the same need not be read, nor judged, again. Knows no rule.
 */
import { headEnd } from '../wire/http-message.js'
import { parseHead, type RequestHead } from './request-head.js'

/** Larger heads are read each time: a connection that waits keeps what it knows. */
const MAX_KNOWN_BYTES = 2048
/** After so many in a row of which none was like the one before it, no more are remembered. */
const MAX_STRANGERS = 4
/** As in `admit`: no sign, no leading zero. */
const MAX_DIGITS = 11
const ZERO = 48
const LENGTH_LINE = /\r\ncontent-length:[ \t]*/i

/** Reads the heads of one connection. */
export class Heads {
  /** True where the head read last is known to be one that may pass. */
  isKnown = false
  private bytes: Buffer | null = null
  /** Where the digits of the body's length stand in them; both at the end where there is none. */
  private digitsFrom = 0
  private digitsTo = 0
  private known: RequestHead | null = null
  private strangers = 0
  private match: RequestHead | null = null

  /** Where the head that begins at `from` ends: behind its empty line, or -1 while that has not come. */
  end(bytes: Buffer, from: number): number {
    this.isKnown = false
    const end = this.bytes === null ? -1 : this.endOfKnown(this.bytes, bytes, from)
    this.isKnown = end !== -1
    return this.isKnown ? end : headEnd(bytes, from)
  }

  /** The head between the two, of which `end` has just told; null where it is none. */
  read(bytes: Buffer, from: number, to: number): RequestHead | null {
    return this.isKnown ? this.match : parseHead(bytes.toString('latin1', from, to))
  }

  /** The head read last may pass, and so may any that says the same. */
  remember(head: RequestHead, bytes: Buffer, from: number, to: number): void {
    this.strangers += 1
    this.bytes = null
    if (to - from > MAX_KNOWN_BYTES || this.strangers > MAX_STRANGERS) return
    this.known = head.own()
    this.bytes = Buffer.from(bytes.subarray(from, to))
    const text = this.bytes.toString('latin1')
    const found = LENGTH_LINE.exec(text)
    this.digitsFrom = found === null ? to - from : found.index + found[0].length
    this.digitsTo = this.digitsFrom + (head.header('content-length') ?? '').length
  }

  /** Where the bytes from `from` on are the known head, its end; else -1. */
  private endOfKnown(known: Buffer, bytes: Buffer, from: number): number {
    const { digitsFrom, digitsTo } = this
    const first = from + digitsFrom
    if (!isSame(known, 0, digitsFrom, bytes, from)) return -1
    let at = first
    if (digitsTo > digitsFrom) {
      while (isDigit(bytes[at])) at += 1
      const digits = at - first
      if (digits === 0 || digits > MAX_DIGITS || (digits > 1 && bytes[first] === ZERO)) return -1
    }
    if (!isSame(known, digitsTo, known.length, bytes, at)) return -1
    this.strangers = 0
    this.match = this.withLength(known, bytes, first, at)
    return at + known.length - digitsTo
  }

  private withLength(known: Buffer, bytes: Buffer, first: number, at: number): RequestHead | null {
    const { digitsFrom, digitsTo } = this
    if (at - first === digitsTo - digitsFrom && isSame(known, digitsFrom, digitsTo, bytes, first)) {
      return this.known
    }
    return this.known?.withLength(bytes.toString('latin1', first, at)) ?? null
  }
}

/** Whether `bytes` has at `at` what `known` has between the two. */
function isSame(known: Buffer, from: number, to: number, bytes: Buffer, at: number): boolean {
  const length = to - from
  if (at + length > bytes.length) return false
  // A call costs as much as a loop over some twenty bytes.
  if (length > 20) return known.compare(bytes, at, at + length, from, to) === 0
  for (let i = 0; i < length; i += 1) if (known[from + i] !== bytes[at + i]) return false
  return true
}

function isDigit(code: number | undefined): boolean {
  return code !== undefined && code >= ZERO && code <= ZERO + 9
}
