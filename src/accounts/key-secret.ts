/**
 * Creates and validates the secrets of API keys: `sk_`, 38 random base62 characters (226 bits), and a
 * checksum of 6 characters.
 *
 * The checksum (CRC-32 of the characters before it) refuses invalid secrets without a lookup, and lets secret
 * scanners recognise keys offline, as with GitHub's tokens.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** Returns that many unpredictable bytes; `node:crypto` randomBytes for every real secret. */
export type RandomBytes = (count: number) => Uint8Array

const PREFIX = 'sk_'
const RANDOM_LENGTH = 38
const CHECKSUM_LENGTH = 6
const SECRET_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH
const FORM = /^sk_[0-9A-Za-z]{44}$/
/** Tokens of the admin API have the same form with another prefix. */
const TOKEN_PREFIX = 'sat_'
const TOKEN_FORM = /^sat_[0-9A-Za-z]{44}$/
/** Tokens of programs whose users have signed in: access tokens, and refresh tokens. */
const ACCESS_PREFIX = 'slt_'
const REFRESH_PREFIX = 'slr_'
const LOGIN_LENGTH = 43
const LOGIN_FORM = /^sl[tr]_[0-9A-Za-z]{43}$/
/** Keys of other gateways. */
const IMPORTED_FORM = /^[!-~]{8,512}$/
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Larger bytes would favour the first characters: 248 is the largest multiple of 62. */
const FAIR_BYTES = 248

/** Creates a secret. */
export function newSecret(random: RandomBytes = randomBytes): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH, random)
  return body + checksumOf(body)
}

/** Creates a token of the admin API. */
export function newAdminSecret(random: RandomBytes = randomBytes): string {
  const body = TOKEN_PREFIX + randomBase62(RANDOM_LENGTH, random)
  return body + checksumOf(body)
}

/** Whether the text has the form of a token of the admin API, its checksum included. */
export function isAdminSecret(text: string): boolean {
  if (!TOKEN_FORM.test(text)) return false
  return checksumOf(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** Creates an access token of a program: 256 random bits, without a checksum. */
export function newAccessToken(random: RandomBytes = randomBytes): string {
  return ACCESS_PREFIX + randomBase62(LOGIN_LENGTH, random)
}

/** Whether the text has the form of an access token. */
export function isAccessToken(text: string): boolean {
  return text.startsWith(ACCESS_PREFIX) && LOGIN_FORM.test(text)
}

/** The refresh token of a sign-in: its handle, which stays, and a part that each renewal replaces. */
export function newRefreshToken(
  handle = randomBase62(HANDLE_LENGTH),
  random: RandomBytes = randomBytes,
): string {
  return REFRESH_PREFIX + handle + randomBase62(LOGIN_LENGTH - HANDLE_LENGTH, random)
}

/** 125 random bits; the other part has 131. */
const HANDLE_LENGTH = 21

/** The handle of a refresh token; null for a text of another form. */
export function refreshHandle(text: string): string | null {
  if (!text.startsWith(REFRESH_PREFIX) || !LOGIN_FORM.test(text)) return null
  return text.slice(REFRESH_PREFIX.length, REFRESH_PREFIX.length + HANDLE_LENGTH)
}

/** Whether prefix, alphabet and length are right: the cheap part of the check. */
export function looksLikeSecret(secret: string): boolean {
  return secret.length === SECRET_LENGTH && FORM.test(secret)
}

/** Whether the checksum is right too. The key may not exist. */
export function hasValidForm(secret: string): boolean {
  if (!looksLikeSecret(secret)) return false
  const split = SECRET_LENGTH - CHECKSUM_LENGTH
  return checksumOf(secret.slice(0, split)) === secret.slice(split)
}

/** Whether the text may be a key of another gateway: it has not the form of a key or token of this one. */
export function mayBeImported(text: string): boolean {
  const isOwn = looksLikeSecret(text) || TOKEN_FORM.test(text) || LOGIN_FORM.test(text)
  return IMPORTED_FORM.test(text) && !isOwn
}

/** SHA-256 in lower-case hex: stored instead of the secret. */
export function digestOf(secret: string): string {
  // No salt and no slow hash: 226 random bits cannot be guessed (OWASP ASVS 5.0, 6.5.2).
  return hash('sha256', secret, 'hex')
}

/** The parts of a secret that may be shown: its first eight characters and its last four. */
export function shownParts(secret: string): { prefix: string; lastFour: string } {
  return { prefix: secret.slice(0, 8), lastFour: secret.slice(-4) }
}

/** `length` base62 characters with equal probability. */
export function randomBase62(length: number, random: RandomBytes = randomBytes): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random(length - text.length + 8)) {
      if (byte < FAIR_BYTES && text.length < length) text += BASE62.charAt(byte % 62)
    }
  }
  return text
}

/** CRC-32 (IEEE) in six base62 digits; 62^6 is larger than 2^32, so the text is unique for each value. */
function checksumOf(text: string): string {
  let remaining = crc32(text)
  let digits = ''
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit += 1) {
    digits = BASE62.charAt(remaining % 62) + digits
    remaining = Math.floor(remaining / 62)
  }
  return digits
}
