/**
 * The head of an upstream's reply: its status, its fields, and where its body ends.
 * Pure; stricter than the protocol, since a reply must not be readable in two ways.
 *
 * Source: RFC 9112, sections 4, 6 and 9, read 2026-11-20.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { fieldOf, headFields, type Framing } from '../wire/http-message.js'

/** Less than the peer's own patience, by this: it may close while our request is on its way. */
const KEEP_ALIVE_MARGIN_MS = 1000

/** What the head of a reply says. The same bytes say the same, so that it may stand for several. */
export interface ReplyHead {
  /** `1.0` or `1.1`. */
  readonly version: string
  readonly status: number
  /** Name, value, … in the order in which they came; the names in lower case. */
  readonly headers: readonly string[]
  readonly framing: Framing
  /** The connection ends with this reply. */
  readonly isLast: boolean
  /** How long the upstream keeps the connection without a request; Infinity where it does not say. */
  readonly keepAliveMs: number
}

const STATUS = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?$/
const LENGTH = /^(?:0|[1-9]\d{0,14})$/

/** Null where the head is not valid HTTP/1.1, or says two things about where the body ends. */
export function parseReplyHead(text: string): ReplyHead | null {
  const lineEnd = text.indexOf('\r\n')
  if (!STATUS.test(text.slice(0, lineEnd))) return null
  const headers = headFields(text, lineEnd + 2)
  return headers === null ? null : replyHead(text.slice(5, 8), Number(text.slice(9, 12)), headers)
}

/** What fields say behind a line of that version and status; null where it is two things. */
export function replyHead(
  version: string,
  status: number,
  headers: readonly string[],
): ReplyHead | null {
  const framing = framingOf(status, headers)
  if (framing === null) return null
  const stays = staysOpen(version, fieldOf(headers, 'connection') ?? '')
  const isLast = !stays || framing.kind === 'close'
  return { version, status, headers, framing, isLast, keepAliveMs: keepAliveOf(headers) }
}

function staysOpen(version: string, connection: string): boolean {
  if (connection === 'keep-alive') return true
  const wish = connection.toLowerCase()
  return version === '1.1' ? !wish.includes('close') : wish.includes('keep-alive')
}

/** Inherits nothing, like `Object.create(null)`, which to V8 is a hash table of 3 KB for seven fields. */
class Fields {
  [name: string]: string
}
Object.setPrototypeOf(Fields.prototype, null)
delete Fields.prototype['constructor']

/** The fields by their names, for those who read a reply that is an error; joined where one comes twice. */
export function recordOf(fields: readonly string[]): IncomingHttpHeaders {
  const record = new Fields()
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? ''
    const value = fields[at + 1] ?? ''
    const before = record[name]
    record[name] = before === undefined ? value : `${before}, ${value}`
  }
  return record
}

function framingOf(status: number, headers: readonly string[]): Framing | null {
  const length = fieldOf(headers, 'content-length')
  const encoding = fieldOf(headers, 'transfer-encoding')
  if (encoding !== undefined) {
    return encoding.toLowerCase() === 'chunked' && length === undefined ? { kind: 'chunked' } : null
  }
  if (length !== undefined && !LENGTH.test(length)) return null
  if (status < 200 || status === 204 || status === 304) return { kind: 'length', bytes: 0 }
  return length === undefined ? { kind: 'close' } : { kind: 'length', bytes: Number(length) }
}

/** `timeout=5` → 4,000 ms: it may be up before our next request has arrived. */
function keepAliveOf(headers: readonly string[]): number {
  const value = fieldOf(headers, 'keep-alive')
  if (value === undefined) return Infinity
  const seconds = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(value)?.[1]
  return seconds === undefined ? Infinity : Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS
}
