/**
 * Request ids: UUID version 7 (RFC 9562), so that ids sort by time in logs and in the ledger; and the ids
 * that clients send.
 */
import { randomBytes } from 'node:crypto'
import { headerOf, type HttpRequest } from './message.js'

/** Random hex digits of one id: 3 + 1 + 3 + 12, and one that is not used. */
const DIGITS = 20
const IDS_PER_DRAW = 400

let pool = ''
let used = 0
let prefixMs = -1
let prefix = ''

/** A new id for the given time, in ms since 1970. Random digits are generated for 400 ids at once. */
export function newRequestId(nowMs: number): string {
  if (used === pool.length) {
    pool = randomBytes((DIGITS / 2) * IDS_PER_DRAW).toString('hex')
    used = 0
  }
  if (nowMs !== prefixMs) {
    prefixMs = nowMs
    prefix = prefixOf(nowMs)
  }
  const at = used
  used += DIGITS
  const variant = VARIANT[pool.charCodeAt(at + 3) & 3] ?? '8'
  return (
    prefix +
    pool.slice(at, at + 3) +
    '-' +
    variant +
    pool.slice(at + 4, at + 7) +
    '-' +
    pool.slice(at + 7, at + 19)
  )
}

/** V8 formats one number above 32 bits in hex three times slower than two below. */
function prefixOf(nowMs: number): string {
  const high = Math.floor(nowMs / 2 ** 16)
  const low = nowMs - high * 2 ** 16
  return `${high.toString(16).padStart(8, '0')}-${low.toString(16).padStart(4, '0')}-7`
}

/** The two bits that mark RFC 9562's variant, with two random ones. */
const VARIANT = ['8', '9', 'a', 'b']

/** Maximum length of a client's own request id. */
const CLIENT_ID_CHARS = 128

/**
 * The client's own request id for the log line, reduced to printable ASCII without quotes and backslashes and
 * to 128 characters. Null if the result is empty.
 */
export function clientRequestIdOf(req: HttpRequest): string | null {
  const sent = headerOf(req, 'x-request-id') ?? headerOf(req, 'x-client-request-id')
  if (sent === undefined) return null
  const cleaned = sent.replace(/[^ -~]|["'`\\]/g, '').slice(0, CLIENT_ID_CHARS)
  return cleaned === '' ? null : cleaned
}

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The time of a request id, in ms since 1970; null for an id of another form. */
export function timeOfRequestId(id: string): number | null {
  if (!UUID_7.test(id)) return null
  return Number.parseInt(id.slice(0, 8), 16) * 2 ** 16 + Number.parseInt(id.slice(9, 13), 16)
}
