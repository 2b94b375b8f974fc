/**
 * The names of entries in Redis, which sort by time: 9 digits of a time to the base 36, then the id.
 *
 * The id of a request is a UUID of version 7, which has its time and 74 random bits: these are 13 digits. The
 * entry's own time may differ a little, because clocks are set. An id of another form, or with another time,
 * is in the name unchanged, after a mark and the time of the entry; `LedgerKeys.ids` finds the name by the
 * id.
 */
import { timeOfRequestId } from '../../../http/request-id.js'

const TIME_DIGITS = 9
const LAST_TIME = 36 ** TIME_DIGITS - 1
/** In the order of ASCII, so that names sort as ids do. */
const DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
const VALUES: ReadonlyMap<string, number> = new Map(Array.from(DIGITS, (digit, at) => [digit, at]))
/** Sorts after every digit. */
const MARK = '~'
/**
 * The places in a UUID of three hex digits that make two digits of a name; after the first two digits, one is
 * of the variant.
 */
const [FIRST, VARIANT, TRIPLETS] = [15, 19, [20, 24, 27, 30, 33]] as const
const ID_DIGITS = 13
/** Codes of characters. */
const [DIGIT_0, LETTER_A] = [0x30, 0x61]
/** The most by which the time of an entry differs from that in its short name, in ms. */
export const NEAR_MS = 250
/** Sorts after every name. */
export const AFTER_ALL = '~'

/** The last digits of a time, and how many ms they span: V8 formats large numbers ten times slower. */
const [LOW_DIGITS, LOW_MS] = [4, 36 ** 4]
let highest = -1
let highDigits = ''

/** A time as in names. */
export function timePrefix(atMs: number): string {
  const wholeMs = Math.floor(Math.max(0, Math.min(LAST_TIME, atMs)))
  const high = Math.floor(wholeMs / LOW_MS)
  if (high !== highest) {
    highest = high
    highDigits = high.toString(36).padStart(TIME_DIGITS - LOW_DIGITS, '0')
  }
  return highDigits + (wholeMs - high * LOW_MS).toString(36).padStart(LOW_DIGITS, '0')
}

/** The time in a name: that of an entry to `NEAR_MS`. */
export function timeIn(name: string): number {
  return Number.parseInt(name.slice(0, TIME_DIGITS), 36)
}

/** The name that an id alone determines; null for an id of another form. */
export function nameOfId(requestId: string): string | null {
  const idMs = timeOfRequestId(requestId)
  if (idMs === null || idMs > LAST_TIME) return null
  // Two of the four bits of the digit with the variant are random.
  const variant = DIGITS[hexAt(requestId, VARIANT) & 3] ?? ''
  let digits = pairOf(requestId, FIRST) + variant
  for (const at of TRIPLETS) digits += pairOf(requestId, at)
  return timePrefix(idMs) + digits
}

function pairOf(requestId: string, at: number): string {
  const bits = (hexAt(requestId, at) << 8) | (hexAt(requestId, at + 1) << 4) | hexAt(requestId, at + 2)
  return (DIGITS[bits >> 6] ?? '') + (DIGITS[bits & 63] ?? '')
}

/** The value of a hex digit: `parseInt` of a slice takes five times as long. */
function hexAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code < LETTER_A ? code - DIGIT_0 : code - LETTER_A + 10
}

/** The name of an entry. */
export function nameOfEntry(
  { requestId, atMs }: { readonly requestId: string; readonly atMs: number },
  ofId = nameOfId(requestId),
): string {
  const isShort = ofId !== null && Number.isInteger(atMs) && Math.abs(timeIn(ofId) - atMs) <= NEAR_MS
  return isShort ? ofId : longName(requestId, atMs)
}

function longName(requestId: string, atMs: number): string {
  return `${timePrefix(atMs)}${MARK}${requestId}`
}

function isLong(name: string): boolean {
  return name[TIME_DIGITS] === MARK
}

/** The id in a name; empty if it is none. */
export function requestIdIn(name: string): string {
  if (isLong(name)) return name.slice(TIME_DIGITS + 1)
  if (name.length !== TIME_DIGITS + ID_DIGITS) return ''
  const digits = name.slice(TIME_DIGITS)
  const value = (at: number): number => VALUES.get(digits.charAt(at)) ?? 0
  const triplet = (at: number): string => ((value(at) << 6) | value(at + 1)).toString(16).padStart(3, '0')
  const variant = (8 | (value(2) & 3)).toString(16)
  const rest = [3, 5, 7, 9, 11].map(triplet).join('')
  const time = timeIn(name).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${triplet(0)}-${variant}${rest.slice(0, 3)}-${rest.slice(3)}`
}
